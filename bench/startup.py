"""Import, and the first calls after it, each in a fresh process that has torch imported and the program's model made, nothing run.

`python -m bench.startup COMPILER NUMBER OUTPUTS` is such a process: the workload by its place in the list, and a file with the outputs of
its graphs; it prints its times as JSON.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Sequence

from bench import ROOT, timing
from bench.compilers import BOTH, Compiler, DoNothing, record


def child(compiler: Compiler, number: int, outputs: pathlib.Path) -> Dict[str, Any]:
    """Times of this process: the import, and after it the calls that capture everything."""
    import torch

    from bench import workloads

    torch.set_num_threads(1)
    workload = workloads.all_workloads()[number]()
    backend = DoNothing([lambda *_inputs, values=values: values for values in torch.load(outputs)])
    loaded = timing.timed(compiler.load)
    with workload.context():
        start = timing.clock()
        compiled = compiler.wrap(workload.target, backend)
        for arguments in workload.calls:
            compiled(*arguments)
        first_call = timing.clock() - start
    backend.check()
    return {"workload": workload.name, "import": loaded, "first call": first_call}


def run_child(compiler: Compiler, number: int, outputs: pathlib.Path) -> Dict[str, Any]:
    """The times of a fresh process, which finds all Python modules compiled if another ran before it."""
    command = [sys.executable, "-m", "bench.startup", compiler.name, str(number), str(outputs)]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    result: Dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def save_outputs(compiler: Compiler, workload: Any, path: pathlib.Path) -> None:
    """What the graphs of a workload give, for the processes that compute nothing."""
    import torch

    torch.save([graph.outputs for graph in record(compiler, workload)], path)


def measure(rounds: int, numbers: Sequence[int]) -> List[Dict[str, Any]]:
    """Rows: the import (over all processes), then the first calls of each workload, by its place in the list."""
    from bench import workloads

    results: Dict[int, Dict[str, List[Dict[str, Any]]]] = {number: {compiler.name: [] for compiler in BOTH} for number in numbers}
    with tempfile.TemporaryDirectory() as folder:
        files = {(number, compiler): pathlib.Path(folder) / f"{number}_{compiler.name}.pt" for number in numbers for compiler in BOTH}
        for (number, compiler), path in files.items():
            save_outputs(compiler, workloads.all_workloads()[number](), path)
        for compiler in BOTH:
            run_child(compiler, numbers[0], files[numbers[0], compiler])  # not counted: writes compiled Python modules
        for _ in range(rounds):
            for (number, compiler), path in files.items():
                results[number][compiler.name].append(run_child(compiler, number, path))
    rows: List[Dict[str, Any]] = [{"workload": "import"}]
    for compiler in BOTH:
        rows[0][compiler.name] = timing.summary([run["import"] for number in numbers for run in results[number][compiler.name]])
    for number in numbers:
        row: Dict[str, Any] = {}
        for compiler in BOTH:
            runs = results[number][compiler.name]
            row["workload"] = "first call, " + runs[0]["workload"]
            row[compiler.name] = timing.summary([run["first call"] for run in runs])
        rows.append(row)
    for row in rows:
        row["ratio"] = row["torch._dynamo"]["median"] / row["pellucid"]["median"]
    return rows


if __name__ == "__main__":
    print(json.dumps(child({one.name: one for one in BOTH}[sys.argv[1]], int(sys.argv[2]), pathlib.Path(sys.argv[3]))))
