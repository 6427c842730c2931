"""Code that compilers of PyTorch programs make: decompiled and run in the original's place, it gives the same results.

The programs of ../shared/cases run that way in tools/run_suites.py (generated-cases).
"""

import pathlib
import sys

import pytest

import pellucid

torch = pytest.importorskip("torch")

TESTS = pathlib.Path(__file__).resolve().parents[2]
for folder in ("cases", "py/debugging", "py/models"):
    sys.path.append(str(TESTS / folder))

import decompiled_adapter
from compiled_programs import fresh, programs
from dumps import same_run
from zoo import ZOO


@pytest.fixture
def replaced(request):
    """Decompiled code runs in the place of what the compiler made; gives the compiler and the grades of what was decompiled."""
    decompiled_adapter.grades.clear()
    with fresh():
        if request.param == "pellucid":
            from pellucid._regions import ready_core

            ready_core().testing_replace_code(lambda function, code: decompiled_adapter.again(code, function.__globals__))
            try:
                yield pellucid.compile, decompiled_adapter.grades
            finally:
                ready_core().testing_replace_code(None)
        else:
            import builtins

            from torch._dynamo.convert_frame import register_bytecode_hook

            before = dict(vars(builtins))
            handle = register_bytecode_hook(lambda _, code: decompiled_adapter.again(code, vars(builtins)))
            try:
                yield torch.compile, decompiled_adapter.grades
            finally:
                handle.remove()
                for name in set(vars(builtins)) - set(before):
                    delattr(builtins, name)


BOTH = pytest.mark.parametrize("replaced", ["pellucid", "torch.compile"], indirect=True)


@BOTH
@pytest.mark.parametrize("name", sorted(programs()))
def test_programs(name, replaced):
    compiler, grades = replaced
    function, calls = programs()[name]
    compiled = compiler(function, backend="eager")
    for arguments in calls:
        assert same_run(compiled, function, arguments)
    # torch.compile leaves some frames alone.
    assert grades or compiler is torch.compile
    assert set(grades) <= {"identical", "equal flow", "block form"}


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("name", sorted(ZOO))
def test_models(name, replaced):
    compiler, grades = replaced
    make, inputs = ZOO[name]
    torch.manual_seed(0)
    model, arguments = make().eval(), inputs()
    compiled = compiler(model, backend="eager")
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            results = []
            for run in (compiled, model):
                torch.manual_seed(1)
                results.append(run(*arguments))
        torch.testing.assert_close(*results, atol=1e-5, rtol=1e-4)
    assert grades or (name, compiler) == ("recurrent", torch.compile)  # which torch.compile leaves alone
