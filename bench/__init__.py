"""Benchmarks of Pellucid beside torch._dynamo: `python -m bench`. Single measurements of one layer are programs of their own here."""

import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

if importlib.util.find_spec("pellucid") is None:  # not installed: the tree that this folder belongs to
    sys.path.insert(0, str(ROOT / "src"))
