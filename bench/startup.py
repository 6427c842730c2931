"""Import, and the first call, each in a fresh process that has torch imported and the program's model made.

`python -m bench.startup COMPILER WORKLOAD` is such a process; it prints its times as JSON.
"""

import json
import subprocess
import sys
from typing import Any, Dict, List

from bench import ROOT, timing
from bench.compilers import BOTH, Compiler

WORKLOADS = ("plus_one", "mlp", "encoder_inference")


def child(compiler: Compiler, name: str) -> Dict[str, Any]:
    """Times of this process: the import, and the first call after it."""
    import torch

    from bench import workloads

    torch.set_num_threads(1)
    workload = workloads.plus_one(1) if name == "plus_one" else getattr(workloads, name)()
    (arguments,) = workload.calls
    with workload.context():
        outputs = (workload.target(*arguments),)
        loaded = timing.timed(compiler.load)
        captured: List[int] = []

        def backend(gm: Any, _example_inputs: Any) -> Any:
            captured.append(len(gm.graph.nodes))
            return lambda *_inputs: outputs

        start = timing.clock()
        result = compiler.wrap(workload.target, backend)(*arguments)
        first_call = timing.clock() - start
    if len(captured) != 1 or result is not outputs[0]:
        raise RuntimeError(f"{compiler.name} did not capture {workload.name} as one graph")
    return {"workload": workload.name, "import": loaded, "first call": first_call}


def run_child(compiler: Compiler, name: str) -> Dict[str, Any]:
    """The times of a fresh process."""
    command = [sys.executable, "-m", "bench.startup", compiler.name, name]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    result: Dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(rounds: int, names: Any = WORKLOADS) -> List[Dict[str, Any]]:
    """Rows: the import (over all processes), then the first call of each program."""
    results: Dict[str, Dict[str, List[Dict[str, Any]]]] = {name: {compiler.name: [] for compiler in BOTH} for name in names}
    for _ in range(rounds):
        for name in names:
            for compiler in BOTH:
                results[name][compiler.name].append(run_child(compiler, name))
    rows: List[Dict[str, Any]] = [{"workload": "import"}]
    for compiler in BOTH:
        every = [result["import"] for name in names for result in results[name][compiler.name]]
        rows[0][compiler.name] = timing.summary(every)
    for name in names:
        row: Dict[str, Any] = {}
        for compiler in BOTH:
            runs = results[name][compiler.name]
            row["workload"] = "import and first call, " + runs[0]["workload"]
            row[compiler.name] = timing.summary([run["import"] + run["first call"] for run in runs])
        rows.append(row)
    for row in rows:
        row["ratio"] = row["torch._dynamo"]["median"] / row["pellucid"]["median"]
    return rows


if __name__ == "__main__":
    print(json.dumps(child({compiler.name: compiler for compiler in BOTH}[sys.argv[1]], sys.argv[2])))
