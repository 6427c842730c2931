"""The folder that a session writes: names of files, the manifest of what was written there, the index.

Only files that the manifest names are ever removed, and only if they still are what was written.
"""

import hashlib
import json
import os
import re
from typing import Dict, List, Set

MANIFEST = ".pellucid_debug.json"


def file_part(name: str) -> str:
    """A name of the program's as part of a file name."""
    made = re.sub(r"[^\w.-]", "_", name.strip("<>")).strip(".") or "_"
    while len(made.encode("utf-8", "surrogateescape")) > 100:
        made = made[:-1]
    return made


class Folder:
    """Files of one session. Nothing is written before `write`."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._files: Dict[str, str] = {}
        self._taken: Set[str] = set()

    def new_name(self, kind: str, name: str) -> str:
        """A file name that no other file of the session has, with the lowest free number."""
        number = 0
        while True:
            made = "{}_{}_{}.py".format(kind, file_part(name), number)
            if made.lower() not in self._taken:  # some file systems know no case
                self._taken.add(made.lower())
                return made
            number += 1

    def place(self, name: str) -> str:
        """The path of a file."""
        return os.path.join(self.path, name)

    def add(self, name: str, text: str) -> None:
        """A file to be written."""
        self._files[name] = text if text.endswith("\n") else text + "\n"

    def write(self) -> List[str]:
        """Writes all files, and removes those of an earlier session. Their names."""
        os.makedirs(self.path, exist_ok=True)
        self._remove_old()
        sums = {}
        for name, text in self._files.items():
            data = text.encode("utf-8", "backslashreplace")
            with open(self.place(name), "wb") as file:
                file.write(data)
            sums[name] = hashlib.sha256(data).hexdigest()
        with open(self.place(MANIFEST), "w", encoding="utf-8") as manifest:
            json.dump({"files": sums}, manifest, indent=1, sort_keys=True)
        return list(self._files)

    def _remove_old(self) -> None:
        for name, checksum in self._old().items():
            path = self.place(name)
            if os.path.basename(name) != name or not os.path.isfile(path) or os.path.islink(path):
                continue
            with open(path, "rb") as file:
                unchanged = hashlib.sha256(file.read()).hexdigest() == checksum
            if unchanged:
                os.remove(path)

    def _old(self) -> Dict[str, str]:
        try:
            with open(self.place(MANIFEST), encoding="utf-8") as manifest:
                files = json.load(manifest)["files"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return {name: checksum for name, checksum in files.items() if isinstance(checksum, str)} if isinstance(files, dict) else {}
