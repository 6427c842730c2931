"""_core alone: it brings _bytecode, whose capsule it needs, itself, and nothing else; a first capture imports little more."""

import os
import pathlib
import subprocess
import sys

import pytest

import pellucid

torch = pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

DEAR = {"torch._dynamo", "torch._inductor", "torch._functorch.aot_autograd", "torch.onnx", "sympy"}


def imported(program):
    """The modules that `program` imports in a fresh process which has torch."""
    lines = ["import sys, torch", "before = set(sys.modules)", program, "print('imported', *sorted(set(sys.modules) - before))"]
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(pellucid.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("imported"))
    return set(line.split()[1:])


def others(modules):
    return {name for name in modules if name.split(".")[0] != "pellucid"}


def test_core_loads_first_in_a_fresh_process():
    assert "pellucid._bytecode" in imported("import pellucid._core")


def test_importing_the_core_imports_nothing_of_others():
    modules = imported("import pellucid\nfrom pellucid import _native\n_native.core()")
    assert "pellucid._core" in modules and len(modules) < 10
    assert others(modules) == set()


CAPTURES = """
import pellucid
layer = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 1), torch.nn.BatchNorm2d(3), torch.nn.Flatten(2), torch.nn.TransformerEncoder(layer, 2))
captured = pellucid.optimize(model, backend={backend})
captured(torch.randn(2, 1, 2, 4)).sum().backward()
with torch.no_grad():
    captured.eval()(torch.randn(2, 1, 2, 4))
assert len(pellucid.cache_entries(captured)) == 2
"""


@pytest.mark.parametrize("backend", ['"eager"', "lambda gm, inputs: gm.forward"])
def test_a_first_capture_imports_nothing_of_torch(backend):
    modules = imported(CAPTURES.format(backend=backend))
    assert {name for name in others(modules) if name.split(".")[0] not in sys.stdlib_module_names} == set()
    assert not modules & DEAR


def test_dear_modules_are_named_as_they_are():
    """The names that the tests above look for are those that appear where the modules are loaded."""
    assert imported("import torch._dynamo, torch._inductor, torch._functorch.aot_autograd, torch.onnx") >= DEAR


def test_state_of_torch_that_is_imported_later_is_known():
    program = """
import pellucid
def f(x):
    import torch.onnx
    return x + 1 if torch.onnx.is_in_onnx_export() else x - 1
assert pellucid.optimize(lambda x: x * 2, backend="eager")(torch.ones(2)).tolist() == [2, 2]
import torch.onnx
captured = pellucid.optimize(f, backend="eager", fullgraph=True)
assert captured(torch.ones(2)).tolist() == [0, 0]
"""
    assert "torch.onnx" in imported(program)
