"""When prepare_debug watches, what it leaves behind, and what it must not touch."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
import torch
from compiled_programs import a, fresh, programs
from dumps import files, namespace

import pellucid


def compile_once(folder, name="toy_example", compiler=torch.compile, backend="eager"):
    function, calls = programs()[name]
    with fresh(), pellucid.prepare_debug(folder):
        compiler(function, backend=backend)(*calls[0])


def replaced():
    """What may be replaced while a session is active."""
    from torch._dynamo.convert_frame import ConvertFrameAssert, _bytecode_hooks
    from torch._dynamo.output_graph import OutputGraph
    from torch._logging._internal import trace_log

    from pellucid import _capture

    return (
        ConvertFrameAssert.__call__,
        OutputGraph.call_user_compiler,
        list(trace_log.handlers),
        dict(_bytecode_hooks),
        list(sys.meta_path),
        _capture.graph_watcher,
    )


def test_everything_is_undone(tmp_path):
    import torch._dynamo  # noqa: F401

    before = replaced()
    with pellucid.prepare_debug(tmp_path):
        assert replaced() != before
    assert replaced() == before
    with pytest.raises(KeyError), pellucid.prepare_debug(tmp_path):
        raise KeyError("the program's")
    assert replaced() == before


def test_files_are_written_where_the_program_raises(tmp_path):
    function, calls = programs()["prints"]
    with fresh(), pytest.raises(KeyError), pellucid.prepare_debug(tmp_path):
        torch.compile(function, backend="eager")(*calls[0])
        raise KeyError("the program's")
    assert "full_code_for_prints_0.py" in files(tmp_path)


def test_no_stale_files(tmp_path):
    (tmp_path / "mine.py").write_text("keep = 1")
    (tmp_path / "compiled_mine_0.py").write_text("keep = 1")
    compile_once(tmp_path)
    first = files(tmp_path)
    (tmp_path / "transformed_toy_example_0.py").write_text("changed by hand")
    compile_once(tmp_path, "prints")
    second = files(tmp_path)
    left = [name for name in second if "toy_example" in name]
    assert "full_code_for_toy_example_0.py" in first and left == ["transformed_toy_example_0.py"]
    assert {"mine.py", "compiled_mine_0.py", "full_code_for_prints_0.py", "index.md"} <= set(second)
    compile_once(tmp_path, "prints")
    assert files(tmp_path) == second


def test_the_same_program_gives_the_same_files(tmp_path):
    texts = []
    for _ in range(2):
        compile_once(tmp_path)
        texts.append({name: (tmp_path / name).read_text() for name in files(tmp_path)})
    assert texts[0] == texts[1]


@pytest.mark.parametrize("manifest", ["", "[]", '{"files": {"../victim": "x", "mine.py": 3}}', '{"files": 1}'])
def test_a_damaged_manifest_removes_nothing(tmp_path, manifest):
    folder = tmp_path / "dump"
    folder.mkdir()
    (tmp_path / "victim").write_text("keep")
    (folder / "mine.py").write_text("keep")
    (folder / ".pellucid_debug.json").write_text(manifest)
    compile_once(folder)
    assert (tmp_path / "victim").exists() and (folder / "mine.py").exists()


def test_names_that_clash_get_numbers(tmp_path):
    def one():
        def same(x):
            return x + 1

        return same

    def two():
        def same(x):
            return x * 2

        return same

    with fresh(), pellucid.prepare_debug(tmp_path):
        for function in (one(), two()):
            torch.compile(function, backend="eager")(a())
    results = {str(namespace(tmp_path, f"full_code_for_same_{number}.py")["same"](torch.ones(1)).item()) for number in (0, 1)}
    assert results == {"2.0"} and torch.equal(namespace(tmp_path, "full_code_for_same_1.py")["same"](a()), a() * 2)


def test_recompiles_are_entries_of_one_file(tmp_path):
    function, calls = programs()["größe"]
    with fresh(), pellucid.prepare_debug(tmp_path):
        compiled = pellucid.compile(function, backend="eager")
        for n in (3, 4):
            compiled(a(n))
    space = namespace(tmp_path, "full_code_for_größe_0.py")
    assert {"transformed_größe_0", "transformed_größe_1"} <= set(space)
    assert "full_code_for_größe_1.py" not in files(tmp_path)


def test_sessions_do_not_nest(tmp_path):
    with pellucid.prepare_debug(tmp_path):
        with pytest.raises(RuntimeError, match="active already"), pellucid.prepare_debug(tmp_path / "inner"):
            pass
    with pellucid.prepare_debug(tmp_path):
        pass


def test_a_graph_that_a_backend_changes_is_shown_as_captured(tmp_path):
    def changing(module, inputs):
        for node in module.graph.nodes:
            if node.target is torch.abs:
                node.target = torch.neg
        module.recompile()
        return module.forward

    for compiler in (torch.compile, pellucid.compile):
        compile_once(tmp_path, compiler=compiler, backend=changing)
        assert "torch.abs(" in (tmp_path / "compiled_toy_example_0.py").read_text()


def test_fullgraph_errors_are_told(tmp_path):
    function, calls = programs()["toy_example"]
    with fresh(), pellucid.prepare_debug(tmp_path), pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(function, backend="eager", fullgraph=True)(*calls[0])
    assert "Data-dependent branching" in (tmp_path / "index.md").read_text()


def environment():
    """That of a process which finds this Pellucid."""
    return {**os.environ, "PYTHONPATH": str(pathlib.Path(pellucid.__file__).parents[1])}


def run(source):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_before_torch_is_imported(tmp_path):
    run(f"""
        import sys
        import pellucid

        assert "torch" not in sys.modules
        with pellucid.prepare_debug({str(tmp_path)!r}):
            import torch
            assert "torch._dynamo" not in sys.modules

            def f(x):
                return x + 1

            assert torch.equal(torch.compile(f, backend="eager")(torch.ones(2)), torch.full((2,), 2.0))
        import torch._dynamo.convert_frame as module
        assert type(module.__spec__.loader).__module__ == "_frozen_importlib_external"
        assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("pellucid")]
    """)
    assert "full_code_for_f_0.py" in files(tmp_path)


def test_pellucid_alone_does_not_import_torch_dynamo(tmp_path):
    run(f"""
        import sys
        import torch
        import pellucid

        def f(x):
            return x + 1

        with pellucid.prepare_debug({str(tmp_path)!r}):
            pellucid.compile(f, backend="eager")(torch.ones(2))
        assert "torch._dynamo" not in sys.modules
    """)
    assert "full_code_for_f_0.py" in files(tmp_path)


def test_files_run_in_another_process(tmp_path):
    compile_once(tmp_path)
    out = run(f"""
        import runpy
        import torch

        space = runpy.run_path({str(tmp_path / "full_code_for_toy_example_0.py")!r})
        a, b = torch.linspace(-1, 1, 10), torch.linspace(-1, 1, 10)
        for shift in (3.0, -3.0):
            x = a / (torch.abs(a) + 1)
            y = b + shift
            assert torch.allclose(space["toy_example"](a, y), x * (y if shift > 0 else -y))
        print("ran")
    """)
    assert out == "ran\n"


def test_objects_of_another_process_say_so(tmp_path):
    compile_once(tmp_path, "closure")
    run(f"""
        import pytest
        from pellucid.debugging import runtime

        gone = runtime.kept({str(tmp_path)!r})[3]
        for use in (lambda: gone(), lambda: gone.attribute, lambda: gone[0], lambda: bool(gone)):
            with pytest.raises(RuntimeError, match="object 3 was kept by the process that wrote this file"):
                use()
    """)


def test_trouble_of_ours_is_told_and_ends_nothing(tmp_path, monkeypatch, caplog):
    from pellucid.debugging import stock_guards
    from pellucid.debugging.program_text import Program

    def fails(*arguments, **named):
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(Program, "text", fails)
    compile_once(tmp_path, "prints")
    assert "incomplete: ZeroDivisionError: a fault of ours" in (tmp_path / "index.md").read_text()
    monkeypatch.undo()
    monkeypatch.setattr(stock_guards, "GuardWriter", fails)
    compile_once(tmp_path, "prints")
    assert "an entry is missing here: ZeroDivisionError: a fault of ours" in (tmp_path / "index.md").read_text()
    assert caplog.text.count("can't be written down") >= 2
