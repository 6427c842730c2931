"""Prints "version;directory" of the interpreter's torch, as a CMake list, without importing it; exit status 1 where there is none."""

import importlib.util
import os
import re
import sys


def main() -> int:
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        sys.stderr.write("%s has no torch" % sys.executable)
        return 1
    root = list(spec.submodule_search_locations)[0]
    version_file = os.path.join(root, "version.py")
    try:
        with open(version_file) as file:
            match = re.search(r"^__version__ = ['\"]([^'\"]+)", file.read(), re.M)
    except OSError as error:
        sys.stderr.write(str(error))
        return 1
    if match is None:
        sys.stderr.write("no version in " + version_file)
        return 1
    for needed in ("include/ATen/core/TensorBody.h", "lib/libtorch_python.so", "lib/libtorch_cpu.so", "lib/libc10.so"):
        if not os.path.exists(os.path.join(root, needed)):
            sys.stderr.write("torch %s in %s is incomplete: no %s" % (match.group(1), root, needed))
            return 1
    sys.stdout.write(match.group(1) + ";" + root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
