"""`python -m bench`: import, first calls, warm captures and call overhead, side by side with torch._dynamo in one run; and models
captured with the backend "eager" beside uncaptured ones; and the decompiler beside depyf.

Writes results.json, table.txt and ratios.svg.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import sys
from typing import Any, Dict, List, Optional

from bench import ROOT, report


def describe_run() -> Dict[str, Any]:
    """What a reader of the figures has to know."""
    import torch

    import pellucid

    return {
        "pellucid": pellucid.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "clock": "CPU time of the thread, seconds",
    }


def run(options: argparse.Namespace) -> Dict[str, Any]:
    """All measurements asked for, as rows by section."""
    import torch

    from bench import calls, capture, decompile, eager, startup, workloads

    torch.set_num_threads(1)
    torch.manual_seed(0)
    results: Dict[str, Any] = {"run": describe_run()}
    if "startup" in options.measure:
        names = [make().name for make in workloads.all_workloads()]
        numbers = [number for number, name in enumerate(names) if not options.only or re.search(options.only, name)]
        results["startup"] = startup.measure(options.fresh, numbers[:1] if options.quick else numbers)
        print(report.text({"startup": results["startup"]}), flush=True)
    if "decompile" in options.measure:
        results["decompile"] = decompile.measure(options.functions)
        print(report.text({"decompile": results["decompile"]}), flush=True)
    for make in workloads.all_workloads():
        workload = make()
        if options.only and not re.search(options.only, workload.name):
            continue
        for section, measure in (
            ("capture", lambda: capture.measure(workload, options.rounds)),  # noqa: B023
            ("calls", lambda: calls.measure(workload, options.call_rounds, 0.002)),  # noqa: B023
        ):
            if section in options.measure and section in workload.sections:
                results.setdefault(section, []).append(measure())
                print(f"{workload.name}: {section} {results[section][-1]['ratio']:,.1f} times faster", flush=True)
    if "eager" in options.measure:
        for name, model, arguments in eager.models():
            for training in (False, True):
                if not options.only or re.search(options.only, name):
                    row = eager.measure(name, model, arguments, training, options.call_rounds, 0.01)
                    results.setdefault("eager", []).append(row)
                    print(f"{row['workload']}: captured and run eagerly {row['ratio']:,.2f} times faster than uncaptured", flush=True)
    return results


def write(results: Dict[str, Any], folder: pathlib.Path) -> None:
    """The three files."""
    from bench import plot

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    (folder / "table.txt").write_text(report.text(results) + "\n", encoding="utf-8")
    (folder / "ratios.svg").write_text(plot.svg(results), encoding="utf-8")


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, for CI: shows that it runs, not how fast")
    parser.add_argument("--only", metavar="REGEX", help="workloads by name")
    parser.add_argument("--measure", default="startup,decompile,capture,calls,eager", type=lambda text: text.split(","))
    parser.add_argument("--rounds", type=int, help="of captures")
    parser.add_argument("--call-rounds", type=int, help="of calls and of eager models")
    parser.add_argument("--fresh", type=int, help="fresh processes for each row")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench" / "out")
    options = parser.parse_args(arguments)
    unknown = set(options.measure) - {"startup", "decompile", "capture", "calls", "eager"}
    if unknown:
        parser.error(f"unknown measurement: {', '.join(sorted(unknown))}")
    options.rounds = options.rounds or (1 if options.quick else 7)
    options.call_rounds = options.call_rounds or (3 if options.quick else 40)
    options.fresh = options.fresh or (1 if options.quick else 5)
    options.functions = 30 if options.quick else 500
    results = run(options)
    write(results, options.out)
    print("\n" + report.text(results))
    try:
        place = options.out.resolve().relative_to(pathlib.Path.cwd())
    except ValueError:
        place = options.out
    print(f"\nwritten: {place}/results.json, table.txt, ratios.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
