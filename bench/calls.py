"""Overhead of a call whose graphs return prepared outputs at once, beside the calls of these graphs alone."""

import gc
from typing import Any, Dict

from bench import timing
from bench.compilers import BOTH, PELLUCID, DoNothing, prepared, record
from bench.workloads import Workload

BARE = "bare graph"


def measure(workload: Workload, rounds: int, round_seconds: float) -> Dict[str, Any]:
    """One row of the table of calls: seconds of one call."""
    loops: Dict[str, timing.CallLoop] = {}
    with workload.context():
        for compiler in BOTH:
            graphs = record(compiler, workload)
            callables = prepared(graphs)
            backend = DoNothing(callables)
            compiled = compiler.wrap(workload.target, backend)
            for _ in range(3):
                for arguments in workload.calls:
                    compiled(*arguments)
            backend.check()
            loops[compiler.name] = timing.CallLoop([(compiled, arguments) for arguments in workload.calls], workload.before_each)
            if compiler is PELLUCID:
                bare = [(callables[i], graph.inputs) for i, graph in enumerate(graphs)]
                loops[BARE] = timing.CallLoop(bare, workload.before_each)
                graphs_each = max(1.0, len(graphs) / len(workload.calls))
        for loop in loops.values():
            loop.calibrate(round_seconds)
        gc.collect()
        times = timing.interleaved(dict(loops), rounds)
        backend.check()
    row: Dict[str, Any] = {"workload": workload.name}
    for name, values in times.items():
        row[name] = timing.summary(values)
    # One call of the program makes several graph calls where it breaks.
    row[BARE] = {key: value * graphs_each if key != "rounds" else value for key, value in row[BARE].items()}
    row["ratio"] = row["torch._dynamo"]["min"] / row["pellucid"]["min"]
    for compiler in BOTH:
        compiler.reset()
    return row
