"""`pip install --no-build-isolation .` in clean environments: one that has torch gets both modules, one without only `_bytecode`.

Neither downloads anything: what the build needs is lent from the running environment.
"""

import importlib.util
import pathlib
import subprocess
import venv

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD_PACKAGES = ("pip", "scikit_build_core", "packaging", "pathspec", "cmake", "ninja")

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="this environment has no torch")


def purelib(environment):
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return pathlib.Path(subprocess.check_output([str(environment / "bin" / "python"), "-c", program], text=True).strip())


@pytest.fixture
def checkout(tmp_path):
    """A copy of what git tracks or would track: nothing built lies in it, and building in it leaves no trace here."""
    names = subprocess.check_output(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"], text=True).splitlines()
    for name in names:
        if (ROOT / name).is_file():
            target = tmp_path / "checkout" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    return tmp_path / "checkout"


def install(environment, checkout):
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--no-index", "--no-build-isolation", str(checkout)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=str(checkout))
    assert done.returncode == 0, done.stdout[-5000:]


def ask(environment, program, cwd):
    # -I: no PYTHONPATH and no current folder, so that what is imported is what was installed.
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-I", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=str(cwd),
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.split()


@needs_torch
@pytest.mark.slow  # compiles all of the core
def test_with_torch(tmp_path, checkout):
    environment = tmp_path / "environment"
    venv.create(str(environment), with_pip=False)
    lent = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
    (purelib(environment) / "lent.pth").write_text(f"{lent}\n")
    install(environment, checkout)
    program = (
        "import pellucid, pellucid._bytecode, sys; assert 'torch' not in sys.modules\n"
        "import torch, pellucid._core\n"
        "from pellucid import _build_info\n"
        "assert _build_info.torch_version == torch.__version__ == pellucid._core.torch_version\n"
        "print(pellucid.__version__, pellucid._core.__file__)"
    )
    version, file = ask(environment, program, tmp_path)
    assert version in (ROOT / "src" / "pellucid" / "__init__.py").read_text()
    assert pathlib.Path(file).parents[1] == purelib(environment)
    assert (purelib(environment) / "pellucid" / "py.typed").exists()


def test_without_torch(tmp_path, checkout):
    environment = tmp_path / "environment"
    venv.create(str(environment), with_pip=False)
    lent = tmp_path / "lent"
    lent.mkdir()
    here = pathlib.Path(importlib.util.find_spec("scikit_build_core").origin).parents[1]
    for name in BUILD_PACKAGES:
        (lent / name).symlink_to(here / name)
        for metadata in here.glob(f"{name}-*.dist-info"):
            (lent / metadata.name).symlink_to(metadata)
    (purelib(environment) / "lent.pth").write_text(f"{lent}\n")
    install(environment, checkout)
    program = (
        "import importlib.util, pellucid, pellucid._bytecode\n"
        "from pellucid import _build_info\n"
        "print(pellucid._bytecode.__file__, _build_info.torch_version, importlib.util.find_spec('pellucid._core'))"
    )
    file, torch_version, core = ask(environment, program, tmp_path)
    assert pathlib.Path(file).parents[1] == purelib(environment)
    assert (torch_version, core) == ("None", "None")
