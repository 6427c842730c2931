"""The page on the debugging view does what it says."""

import pathlib
import re
import subprocess
import sys

from dumps import files
from test_sessions import environment

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "debugging.md"


def test_the_example(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    program = tmp_path / "toy.py"
    program.write_text("".join(blocks))
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = files(tmp_path / "dump")
    named = set(re.findall(r"`(\w+_0\.py|index\.md)`", PAGE.read_text())) - {"compiled_toy_example_0_forward_0.py"}
    assert named and named <= set(written)
    line = next(line for line in (tmp_path / "dump" / "compiled_toy_example_0.py").read_text().splitlines() if "torch.abs(" in line)
    assert re.search(r"# float32\[10\] \| .*toy\.py:5: x = a / \(torch\.abs\(a\) \+ 1\)$", line)


def test_every_file_of_the_package_is_described():
    package = PAGE.parents[1] / "src" / "pellucid" / "debugging"
    text = PAGE.read_text()
    assert [path.name for path in package.glob("*.py") if path.name != "__init__.py" and f"`{path.name}`" not in text] == []
