"""`import pellucid` needs no torch; lazy names, the loader of the core, and what both say when something is missing."""

import ast
import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

import pellucid

SOURCES = pathlib.Path(pellucid.__file__).parent


def run(program, **env):
    environment = {**os.environ, "PYTHONPATH": str(SOURCES.parent), **env}
    return subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_import_and_lazy_names_without_torch():
    # None in sys.modules makes `import torch` fail, as where it is not installed.
    done = run(
        "import sys; sys.modules['torch'] = None\n"
        "import pellucid, pellucid._bytecode\n"
        "print(sorted(name for name in sys.modules if name.startswith('pellucid.')))\n"
        "print(pellucid.config.cache_size_limit, pellucid.exc.Unsupported.__name__)\n"
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["['pellucid._bytecode']", "8 Unsupported"]


def test_every_lazy_name_is_listed_and_what_it_says():
    for name, (submodule, attribute) in pellucid._LAZY.items():
        module = importlib.import_module(f"pellucid.{submodule}")
        assert getattr(pellucid, name) is (module if attribute is None else getattr(module, attribute))
        assert name in dir(pellucid)


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'pellucid' has no attribute 'optimise'"):
        pellucid.optimise


def test_versions_agree():
    import pellucid._bytecode

    assert pellucid._bytecode.version == pellucid.__version__ == "0.1.0"


def test_core_loads_torch_first():
    torch = pytest.importorskip("torch")
    done = run("from pellucid import _native; core = _native.core(); assert core is _native.core(); print(core.torch_version)")
    assert done.stdout.strip() == torch.__version__, done.stderr


@pytest.mark.parametrize(
    "prepare, message",
    [
        ("sys.modules['torch'] = None", r"built for torch \S+, but torch can't be imported"),
        ("import torch; torch.__version__ = '9.9.9'", r"built for torch \S+, but torch 9\.9\.9 is installed"),
        ("import pellucid._build_info as info; info.torch_version = None", "built without torch"),
        ("sys.modules['pellucid._build_info'] = None", "was not built"),
    ],
)
def test_core_that_cannot_be_had(prepare, message):
    done = run(
        f"import sys, pellucid\n{prepare}\n"
        "from pellucid import _native, exc\n"
        "try:\n    _native.core()\nexcept exc.CoreUnavailable as error:\n    print(error)\n"
    )
    assert re.search(message, done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCES)))
def test_syntax_stays_that_of_3_8(path):
    ast.parse(path.read_text(), feature_version=(3, 8))
