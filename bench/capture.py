"""Warm capture: everything is imported and was used before, nothing that was derived from this program is left."""

import gc
from typing import Any, Dict

from bench import timing
from bench.compilers import BOTH, Compiler, DoNothing, prepared, record
from bench.workloads import Workload


def capture_once(compiler: Compiler, workload: Workload, callables: Any) -> float:
    """Seconds of the calls that capture everything."""
    compiler.reset()
    backend = DoNothing(callables)
    compiled = compiler.wrap(workload.target, backend)
    gc.collect()
    with workload.context():
        start = timing.clock()
        for arguments in workload.calls:
            compiled(*arguments)
        seconds = timing.clock() - start
    backend.check()
    return seconds


def measure(workload: Workload, rounds: int) -> Dict[str, Any]:
    """One row of the table of captures."""
    graphs = {compiler: record(compiler, workload) for compiler in BOTH}
    callables = {compiler: prepared(graphs[compiler]) for compiler in BOTH}
    candidates = {c.name: lambda c=c: capture_once(c, workload, callables[c]) for c in BOTH}
    for once in candidates.values():
        once()
    gc.collect()
    gc.freeze()  # the collections before each capture would walk all of torch, and leave the processor's caches cold
    times = timing.interleaved(candidates, rounds)
    gc.unfreeze()
    row: Dict[str, Any] = {"workload": workload.name}
    for compiler in BOTH:
        compiler.reset()
        operators = sum(graph.operators for graph in graphs[compiler])
        result = timing.summary(times[compiler.name])
        row[compiler.name] = {
            **result,
            "graphs": len(graphs[compiler]),
            "operators": operators,
            "per_operator": result["median"] / operators,
        }
    row["ratio"] = row["torch._dynamo"]["median"] / row["pellucid"]["median"]
    return row
