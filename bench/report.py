"""Results as tables for people. Knows no measurement, only its rows."""

from typing import Any, Dict, List, Sequence

from bench.calls import BARE
from bench.eager import CAPTURED, PLAIN


def table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    """Aligned text."""
    try:
        import tabulate
    except ImportError:
        texts = [[str(cell) for cell in row] for row in [headers, *rows]]
        widths = [max(len(row[i]) for row in texts) for i in range(len(headers))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in texts)
    align = ["left"] + ["right"] * (len(headers) - 1)
    result: str = tabulate.tabulate(rows, headers, tablefmt="github", colalign=align, disable_numparse=True)
    return result


def _startup(rows: List[Dict[str, Any]]) -> str:
    cells = []
    for row in rows:
        ours, theirs = row["pellucid"], row["torch._dynamo"]
        cells.append([row["workload"], f"{ours['median'] * 1e3:,.1f}", f"{theirs['median'] * 1e3:,.0f}", f"{row['ratio']:,.1f}"])
    return table(cells, ["fresh process, ms", "Pellucid", "torch._dynamo", "ratio"])


def _capture(rows: List[Dict[str, Any]]) -> str:
    cells = []
    for row in rows:
        ours, theirs = row["pellucid"], row["torch._dynamo"]
        cells.append(
            [
                row["workload"],
                ours["graphs"],
                ours["operators"],
                f"{ours['median'] * 1e3:,.2f}",
                f"{theirs['median'] * 1e3:,.1f}",
                f"{ours['per_operator'] * 1e6:,.1f}",
                f"{theirs['per_operator'] * 1e6:,.0f}",
                f"{row['ratio']:,.1f}",
            ]
        )
    headers = ["warm capture", "graphs", "operators", "Pellucid, ms", "torch._dynamo, ms", "µs/operator", "torch._dynamo, µs/op.", "ratio"]
    return table(cells, headers)


def _calls(rows: List[Dict[str, Any]]) -> str:
    cells = []
    for row in rows:
        bare, ours, theirs = row[BARE]["min"], row["pellucid"]["min"], row["torch._dynamo"]["min"]
        cells.append([row["workload"], *(f"{seconds * 1e6:,.2f}" for seconds in (bare, ours, theirs)), f"{row['ratio']:,.1f}"])
    return table(cells, ["a call, µs", "graph alone", "Pellucid", "torch._dynamo", "ratio"])


def _eager(rows: List[Dict[str, Any]]) -> str:
    cells = []
    for row in rows:
        ours, plain = row[CAPTURED]["median"], row[PLAIN]["median"]
        cells.append([row["workload"], f"{ours * 1e6:,.0f}", f"{plain * 1e6:,.0f}", f"{row['ratio']:,.2f}"])
    return table(cells, ['a step with backend "eager", µs', "captured", "uncaptured", "ratio"])


def _decompile(rows: List[Dict[str, Any]]) -> str:
    cells = []
    for row in rows:
        ours, theirs = row["pellucid"], row["depyf"]
        means = [f"{one['mean'] * 1e6:,.0f}" for one in (ours, theirs)]
        cells.append([row["workload"], *means, f"{row['ratio']:,.1f}", theirs["failed"], f"{row['big']['seconds']:.2f}"])
    headers = ["decompiling a function, µs", "Pellucid", "depyf", "ratio", "not decompiled by depyf", "100,000 instructions, s"]
    return table(cells, headers)


PRINTERS = {"startup": _startup, "capture": _capture, "calls": _calls, "eager": _eager, "decompile": _decompile}


def text(results: Dict[str, Any]) -> str:
    """All tables."""
    return "\n\n".join(printer(results[name]) for name, printer in PRINTERS.items() if results.get(name))
