import sys

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, __file__.rsplit("/", 1)[0])
