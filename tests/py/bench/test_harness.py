"""The harness of `python -m bench`: that it measures what it says, and writes what it measured. No test looks at how long anything took."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from bench import capture, eager, plot, report, startup, timing, workloads
from bench.__main__ import main
from bench.calls import BARE
from bench.calls import measure as measure_calls
from bench.compilers import BOTH, PELLUCID, TORCH, DoNothing, prepared, record


def small_mlp():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3))
    return workloads.Workload("small MLP", model, [(torch.randn(2, 3),)])


def test_prepared_outputs_is_a_c_callable_that_ignores_its_arguments():
    core = __import__("pellucid._native", fromlist=["core"]).core()
    outputs = (torch.ones(2), None)
    function = core.prepared_outputs(outputs)
    assert function() is outputs and function(1, 2, key=3) is outputs
    assert not hasattr(function, "__code__")
    with pytest.raises(TypeError, match="tuple"):
        core.prepared_outputs([1])
    with pytest.raises(TypeError):
        type(function)()


@pytest.mark.parametrize("compiler", BOTH, ids=lambda compiler: compiler.name)
def test_recorded_graphs_are_what_is_captured_again(compiler):
    workload = workloads.toy()
    graphs = record(compiler, workload)
    assert [graph.operators for graph in graphs] == [5, 2]
    callables = prepared(graphs)
    backend = DoNothing(callables)
    compiled = compiler.wrap(workload.target, backend)
    (arguments,) = workload.calls
    for _ in range(3):
        torch.testing.assert_close(compiled(*arguments), workload.target(*arguments))
    backend.check()
    assert all(count > graph.operators for count, graph in zip(backend.nodes, graphs))
    compiler.reset()


@pytest.mark.parametrize("what", ["elsewhere", "of a module"])
def test_dictionaries_change_between_calls(what):
    workload = workloads.changing(small_mlp, what)
    calls = []
    before_each = lambda: (workload.before_each(), calls.append("change"))
    timing.CallLoop([(calls.append, ("call",))], before_each)()
    assert calls == ["change", "call"] * (len(calls) // 2)
    assert (vars(workload.target[1]).get("seen") == len(calls) // 2 - 1) == (what == "of a module")
    compiled = PELLUCID.wrap(workload.target, backend := DoNothing(prepared(record(PELLUCID, workload))))
    for _ in range(4):
        workload.before_each()
        compiled(*workload.calls[0])
    backend.check()
    PELLUCID.reset()


def test_a_capture_that_makes_other_graphs_is_an_error():
    workload = workloads.plus_one(2)
    callables = prepared(record(PELLUCID, workload))
    with pytest.raises(RuntimeError, match="expected 2"):
        capture.capture_once(PELLUCID, workload, [*callables, *callables])


@pytest.mark.parametrize("compiler", BOTH, ids=lambda compiler: compiler.name)
def test_every_timed_capture_is_a_capture(compiler):
    """reset() forgets, so the second time is no hit: `capture_once` checks the number of graphs."""
    workload = small_mlp()
    callables = prepared(record(compiler, workload))
    assert all(capture.capture_once(compiler, workload, callables) > 0 for _ in range(3))


def test_both_capture_the_same_operators():
    encoder = workloads.Workload("small encoder", workloads.encoder(2, 8, 2).train(), [(torch.randn(2, 3, 8),)])
    fast = workloads.Workload("small encoder", workloads.encoder(2, 8, 2).eval(), [(torch.randn(2, 3, 8),)], torch.no_grad)
    for workload in (workloads.toy(), workloads.plus_one(3), small_mlp(), encoder, fast, workloads.pointwise(8)):
        ours, theirs = ([graph.operators for graph in record(compiler, workload)] for compiler in (PELLUCID, TORCH))
        assert ours == theirs, workload.name
    assert [graph.operators for graph in record(PELLUCID, workloads.pointwise(8))] == [8]


def test_rows_hold_both_and_the_ratio():
    row = capture.measure(small_mlp(), rounds=2)
    for compiler in BOTH:
        side = row[compiler.name]
        assert (side["graphs"], side["operators"], side["rounds"]) == (1, 3, 2)
        assert side["min"] <= side["median"]
        assert side["per_operator"] == side["median"] / 3
    assert row["ratio"] == row["torch._dynamo"]["median"] / row["pellucid"]["median"]
    row = measure_calls(small_mlp(), rounds=2, round_seconds=1e-4)
    assert row["ratio"] == row["torch._dynamo"]["min"] / row["pellucid"]["min"]
    assert row[BARE]["min"] < row["torch._dynamo"]["min"]


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_eager_models_are_measured_captured_and_uncaptured(training):
    workload = small_mlp()
    row = eager.measure("small MLP", workload.target, workload.calls[0], training, rounds=3, round_seconds=1e-4)
    assert row["workload"] == ("small MLP, training" if training else "small MLP, inference")
    assert row["ratio"] > 0 and row["captured"]["rounds"] == row["uncaptured"]["rounds"] == 3
    assert workload.target.training is training
    assert "small MLP" in report.text({"eager": [row]})


def test_an_eager_model_that_is_captured_anew_is_no_measurement():
    class Counts(torch.nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x + self.calls

    with pytest.raises(RuntimeError, match="more than once"):
        eager.measure("counts", Counts(), (torch.ones(2),), False, rounds=1, round_seconds=1e-4)


def test_eager_models_are_the_promised_ones():
    assert [name for name, _, _ in eager.models()] == ["MLP, 10 layers", "ResNet-18", "TransformerEncoder"]


def test_a_round_robin_is_one_entry_for_each_call():
    workload = workloads.entries(4)
    assert len(record(PELLUCID, workload)) == len(workload.calls) == 4
    measure_calls(workload, rounds=1, round_seconds=1e-4)  # raises if anything is captured while it is timed


def test_candidates_are_interleaved():
    order = []

    def candidate(name):
        order.append(name)
        return len(order)

    results = timing.interleaved({"a": lambda: candidate("a"), "b": lambda: candidate("b")}, 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert results == {"a": [1, 4, 5], "b": [2, 3, 6]}


def test_a_loop_makes_the_calls_it_divides_by():
    calls = []
    loop = timing.CallLoop([(calls.append, (1,)), (calls.append, (2,))])
    loop()
    assert calls == [1, 2] * (len(calls) // 2)
    assert len(calls) == loop.calls_each


@pytest.mark.parametrize("compiler", BOTH, ids=lambda compiler: compiler.name)
def test_a_fresh_process_times_import_and_first_calls(compiler, tmp_path):
    """Two graphs, the second after a branch on what the first gave: the process checks that it captured both."""
    outputs = tmp_path / "outputs.pt"
    startup.save_outputs(compiler, workloads.toy(), outputs)
    result = startup.run_child(compiler, 0, outputs)
    assert result["workload"] == "toy_example"
    assert result["import"] > 0 and result["first call"] > 0


def test_rows_of_fresh_processes(monkeypatch):
    times = {PELLUCID.name: 1.0, TORCH.name: 30.0}
    monkeypatch.setattr(startup, "save_outputs", lambda *_: None)
    monkeypatch.setattr(
        startup,
        "run_child",
        lambda compiler, number, _: {"workload": str(number), "import": 2 * times[compiler.name], "first call": times[compiler.name]},
    )
    rows = startup.measure(3, [4, 5])
    assert [(row["workload"], row["ratio"]) for row in rows] == [("import", 30.0), ("first call, 4", 30.0), ("first call, 5", 30.0)]
    assert rows[0]["pellucid"] == {"median": 2.0, "min": 2.0, "rounds": 6} and rows[1]["pellucid"] == {
        "median": 1.0,
        "min": 1.0,
        "rounds": 3,
    }


def test_the_command_writes_what_it_measured(tmp_path, capsys):
    threads = torch.get_num_threads()
    try:
        assert main(["--quick", "--only", "^x . 1, 1 tensor$", "--measure", "capture,calls", "--out", str(tmp_path)]) == 0
    finally:
        torch.set_num_threads(threads)
    results = json.loads((tmp_path / "results.json").read_text())
    assert [row["workload"] for row in results["capture"]] == ["x + 1, 1 tensor"]
    assert results["run"]["torch"] == torch.__version__
    table = (tmp_path / "table.txt").read_text(encoding="utf-8")
    assert "warm capture" in table and "a call" in table
    assert table.strip() in capsys.readouterr().out
    chart = xml.etree.ElementTree.parse(tmp_path / "ratios.svg")
    texts = [element.text for element in chart.iter() if element.tag.endswith("text")]
    assert texts.count("x + 1, 1 tensor") == 2
    assert len([element for element in chart.iter() if element.tag.endswith("rect")]) == 3  # the background and two bars


def test_an_unknown_measurement_is_an_error():
    with pytest.raises(SystemExit):
        main(["--measure", "nothing"])


def test_a_chart_of_ratios_has_one_bar_each():
    results = {"capture": [{"workload": "a < b", "ratio": 100.0}, {"workload": "slower", "ratio": 0.5}]}
    lines = plot.svg(results).splitlines()
    assert sum("<rect" in line for line in lines) == 3
    assert any("a &lt; b" in line for line in lines)


def test_tables_without_tabulate_show_the_same(monkeypatch):
    with_it = report.table([["a", 1], ["bc", 22]], ["name", "count"])
    monkeypatch.setitem(sys.modules, "tabulate", None)
    without = report.table([["a", 1], ["bc", 22]], ["name", "count"])
    assert with_it.replace("|", " ").split()[:2] == without.split()[:2] == ["name", "count"]
    assert without.splitlines()[-1].split() == ["bc", "22"]


def test_every_workload_is_made_and_named_once():
    names = [make().name for make in workloads.all_workloads()]
    assert len(set(names)) == len(names) == 21


def test_the_command_needs_no_installed_package(tmp_path):
    code = "import bench, pellucid; print(pellucid.__file__)"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip().endswith("__init__.py")
    assert importlib.util.find_spec("bench") is not None


def test_functions_for_decompilers_are_the_same_every_time():
    from bench import decompile

    codes = decompile.functions(5)
    assert [code.co_name for code in codes] == [code.co_name for code in decompile.functions(5)]
    assert len(codes) == 5


def test_big_function_has_the_size_it_says():
    from bench import decompile
    from pellucid import _bytecode

    size = len(_bytecode.decode(decompile.big_function(10_000)).instructions)
    assert 9_000 < size < 11_000


def test_decompilers_that_fail_or_hang_give_no_time():
    from bench import decompile

    def fails(code):
        raise RuntimeError("no such opcode")

    code = decompile.functions(1)[0]
    assert decompile._time(fails, code) is None
    assert decompile._time(lambda code: None, code) is not None


def test_decompile_row_is_printed():
    row = {"workload": "2 functions", "pellucid": {"mean": 1e-5, "failed": 0}, "depyf": {"mean": 1e-3, "failed": 1}, "ratio": 100.0}
    row["big"] = {"instructions": 100_000, "seconds": 0.5}
    text = report.text({"decompile": [row]})
    assert "2 functions" in text and "100.0" in text and "depyf" in text
