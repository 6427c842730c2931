"""What prepare_debug writes runs, and does what the program does."""

import pytest
import torch
from compiled_programs import fresh, programs
from dumps import files, namespace, same_run

import pellucid

COMPILERS = {"torch.compile": torch.compile, "pellucid": pellucid.compile}
NAMES = sorted(programs())
# torch.compile leaves these frames alone.
LEFT_ALONE = ("breaks_in_try", "loops")


def written(name, compiler, function):
    """The name of the function in its file."""
    if isinstance(function, torch.nn.Module):
        return "forward" if compiler == "torch.compile" else type(function).__name__
    return {"lambda": "lambda_", "closure_with_break": "closure"}.get(name, name)


def bound(made, function):
    owner = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
    return made if owner is None else lambda *arguments: made(owner, *arguments)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", NAMES)
def test_programs(tmp_path, name, compiler):
    function, calls = programs()[name]
    with fresh(), pellucid.prepare_debug(tmp_path):
        compiled = COMPILERS[compiler](function, backend="eager")
        for arguments in calls:
            assert same_run(compiled, function, arguments)
    names = files(tmp_path)
    assert "index.md" in names
    for file in names:
        if file.startswith(("full_code_for_", "compiled_")):
            namespace(tmp_path, file)
    if compiler == "torch.compile" and name in LEFT_ALONE:
        assert not [file for file in names if file.startswith("full_code_for_" + name)]
        assert "not compiled" in (tmp_path / "index.md").read_text()
        return
    key = written(name, compiler, function)
    space = namespace(tmp_path, f"full_code_for_{key.rstrip('_')}_0.py")
    entered = watch_transformed(space)
    for arguments in calls:
        assert same_run(bound(space[key], function), function, arguments)
    assert entered, "no entry was run"
    for kind in ("compiled", "guards", "original", "transformed"):
        assert [file for file in names if file.startswith(kind + "_")]


def watch_transformed(space):
    """Notes which transformed functions run from now on."""
    entered = []

    def watched(key, function):
        def call(*arguments, **named):
            entered.append(key)
            return function(*arguments, **named)

        return call

    for key in [key for key in space if key.startswith("transformed_")]:
        space[key] = watched(key, space[key])
    return entered


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_toy_example(tmp_path, compiler, backend, grad, dynamic):
    function, _ = programs()["toy_example"]
    sizes = (10, 11) if dynamic is not False else (10,)
    calls = [(torch.randn(n).requires_grad_(grad), torch.randn(n) + shift) for n in sizes for shift in (3.0, -3.0)]
    with fresh(), pellucid.prepare_debug(tmp_path):
        compiled = COMPILERS[compiler](function, backend=backend, dynamic=dynamic)
        for a, b in calls:
            result = compiled(a, b)
            if grad:
                result.sum().backward()
    space = namespace(tmp_path, "full_code_for_toy_example_0.py")
    entered = watch_transformed(space)
    for arguments in calls:
        assert same_run(space["toy_example"], function, arguments)
    # Every call runs an entry of the function itself and one of what goes on behind the branch.
    assert len(entered) == 2 * len(calls)
    names = files(tmp_path)
    graphs = [file for file in names if file.startswith("compiled_toy_example_") and file.count("_") == 3]
    assert len(graphs) >= 3
    stages = {"eager": (), "aot_eager": ("forward", "backward", "joint") if grad else ("inference",)}
    stages["inductor"] = (*stages["aot_eager"], "output_code")
    for graph in graphs:
        text = (tmp_path / graph).read_text()
        for line in text.splitlines():
            if " = torch.abs(" in line:
                assert "float32[" in line and "programs.py" in line and "x = a / (torch.abs(a) + 1)" in line
        for stage in stages[backend]:
            [stage_file] = [file for file in names if file.startswith(f"{graph[:-3]}_{stage}_0")]
            assert "def " in (tmp_path / stage_file).read_text()


def test_symbolic_sizes_stand_in_graphs(tmp_path):
    function, _ = programs()["toy_example"]
    with fresh(), pellucid.prepare_debug(tmp_path):
        torch.compile(function, backend="eager", dynamic=True)(torch.randn(10), torch.randn(10) + 3)
    assert "float32[s" in (tmp_path / "compiled_toy_example_0.py").read_text()


def test_guards_agree(tmp_path):
    """The written guards of torch.compile hold exactly where its own do."""
    function, calls = programs()["toy_example"]
    other = [(torch.randn(10).double(), torch.randn(10)), (torch.randn(2, 5), torch.randn(10)), (3, torch.randn(10))]
    other += [(torch.randn(20)[::2], torch.randn(10)), (torch.nn.Parameter(torch.randn(10)), torch.randn(10))]
    shared = torch.randn(10)
    other.append((shared, shared))
    with fresh():
        with pellucid.prepare_debug(tmp_path):
            compiled = torch.compile(function, backend="eager")
            for arguments in calls:
                compiled(*arguments)
        space = namespace(tmp_path, "full_code_for_toy_example_0.py")
        entries = torch._dynamo.eval_frame._debug_get_cache_entry_list(function.__code__)
        assert len(entries) == len([key for key in space if key.startswith("guards_toy_example_")]) >= 2
        by_text = {}
        for number in range(len(entries)):
            check = space[f"guards_toy_example_{number}"]
            by_text[number] = [
                space["_rt"].holds(check, dict(zip("ab", arguments)), function.__globals__, function) for arguments in calls + other
            ]
        own = [[entry.guard_manager.check(dict(zip("ab", arguments))) for arguments in calls + other] for entry in entries]
        assert sorted(by_text.values()) == sorted(own)
        assert any(map(any, own)) and not all(map(all, own))
