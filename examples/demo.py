"""Captures a 12-layer TransformerEncoder and shows everything that came of it as text: guards, transformed code, graph, and times.

python examples/demo.py
"""

import re
import sys
import time

import torch

import pellucid

LAYERS, WIDTH, HEADS = 12, 256, 4
COLUMNS = 150


# ---- printing: in colour on a terminal, plain elsewhere


def make_console():
    """rich's console on a terminal that has it; None where plain text is wanted."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console()


console = make_console()


def heading(text):
    """A line between the parts."""
    if console is None:
        print(f"\n==== {text}")
    else:
        console.rule(f"[bold]{text}", align="left")


def show(text, language=None):
    """A block of text, highlighted as `language` where that is possible."""
    if console is None or language is None:
        print(text)
        return
    from rich.syntax import Syntax

    console.print(Syntax(text, language, theme="ansi_dark", background_color="default", word_wrap=True))


def abridged(text, head, tail=0):
    """The first and last lines of a text, with a count of what was left out. Long lines are cut."""
    lines = [line if len(line) <= COLUMNS else line[: COLUMNS - 4] + " ..." for line in text.rstrip("\n").splitlines() if line.strip()]
    left_out = len(lines) - head - tail
    if left_out <= 1:
        return "\n".join(lines)
    return "\n".join([*lines[:head], f"    ... {left_out} more lines ...", *lines[len(lines) - tail :]])


# ---- what is captured


def make_model():
    """The model, its input, and what eager makes of it."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, dim_feedforward=4 * WIDTH, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).eval()
    return model, torch.randn(2, 16, WIDTH)


def step(model, x):
    """Some steps around the model: a loop, a dict, and a branch that depends on data."""
    results = {}
    for scale in (0.5, 2.0):
        results[scale] = model(x * scale).mean(dim=1)
    total = results[0.5] + results[2.0]
    if total.abs().sum() > 0:
        total = total.relu() + 1
    return total


def place(path):
    """A file as a reader knows it: without the folders above the package or program."""
    parts = path.replace("\\", "/").split("/")
    known = [i for i, part in enumerate(parts) if part in ("site-packages", "examples")]
    return "/".join(parts[known[-1] + (parts[known[-1]] == "site-packages") :]) if known else path


def guard_line(guard):
    """One guard: what is asked of which value, and the line that needed it."""
    return guard.name + ("" if guard.filename is None else f"    # {place(guard.filename)}:{guard.line}")


def show_entry(entry):
    """One cache entry as text."""
    from pellucid import _bytecode

    code = entry.code_before
    heading(f"{code.co_qualname} ({place(code.co_filename)}:{code.co_firstlineno}): {len(entry.guards)} guards")
    show(abridged("\n".join(map(guard_line, entry.guards)), 12, 4), "python")
    heading("transformed function")
    show(abridged(_bytecode.to_text(_bytecode.decode(entry.code_after)), 24, 6), "text")
    if entry.graph is not None:
        operators = sum(node.op.startswith("call_") for node in entry.graph.graph.nodes)
        heading(f"graph ({operators} operators)")
        text = re.sub(
            r"# File: (.*?):(\d+)", lambda found: f"# {place(found[1])}:{found[2]}", entry.graph.print_readable(print_output=False)
        )
        show(abridged(text, 18, 6), "python")
    for row in entry.report.get("breaks", ()):
        heading("the graph ends here")
        show(f"{row['title']}: {row['explanation']}\n  hint: {row['hint']}")


# ---- what it costs


def seconds(function, budget=1.0):
    """The fastest of several calls."""
    best, end = float("inf"), time.perf_counter() + budget
    while time.perf_counter() < end:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def first_call(compiled, x):
    """Seconds until a compiled model has given its first result."""
    start = time.perf_counter()
    compiled(x)
    return time.perf_counter() - start


def capture_seconds(compile_model, reset, x, rounds):
    """The fastest first call of several, with nothing left of those before."""
    times = []
    for _ in range(rounds):
        reset()
        times.append(first_call(compile_model(), x))
    return min(times)


def show_times(model, x):
    """First call and later calls, beside eager and torch._dynamo."""
    import torch._dynamo

    outputs = [model(x)]

    def does_nothing(gm, example_inputs):
        len(gm.graph.nodes)
        return lambda *inputs: outputs

    compilers = {
        "pellucid": (lambda backend: pellucid.optimize(model, backend=backend), pellucid.reset),
        "torch._dynamo": (lambda backend: torch.compile(model, backend=backend), torch._dynamo.reset),
    }
    rows = [("eager", "", f"{seconds(lambda: model(x)) * 1e3:.2f} ms", "")]
    for name, (compile_with, reset) in compilers.items():
        capture = capture_seconds(lambda: compile_with(does_nothing), reset, x, 3)  # noqa: B023
        reset()
        idle = compile_with(does_nothing)
        idle(x)
        overhead = seconds(lambda: idle(x), 0.3)  # noqa: B023
        reset()
        compiled = compile_with("eager")
        torch.testing.assert_close(compiled(x), outputs[0])
        rows.append((name, f"{capture * 1e3:.1f} ms", f"{seconds(lambda: compiled(x)) * 1e3:.2f} ms", f"{overhead * 1e6:.1f} µs"))  # noqa: B023
    heading("times")
    titles = ("", "capture", "a call, backend 'eager'", "a call, graph that does nothing")
    if console is None:
        for row in (titles, *rows):
            print(f"{row[0]:14s} {row[1]:>12s} {row[2]:>26s} {row[3]:>34s}")
        return
    from rich.table import Table

    table = Table(*titles)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def main():
    """The tour."""
    torch.set_num_threads(1)
    model, x = make_model()
    with torch.no_grad():
        heading(f"a TransformerEncoder of {LAYERS} layers, captured whole")
        captured = pellucid.optimize(model, backend="eager")
        torch.testing.assert_close(captured(x), model(x))
        for entry in pellucid.cache_entries(captured, nested=True):
            show_entry(entry)

        heading("a function around it, with a branch on data")
        program = pellucid.optimize(step, backend="eager")
        torch.testing.assert_close(program(model, x), step(model, x))
        entries = pellucid.cache_entries(program, nested=True)
        entries.sort(key=lambda entry: entry.code_before is not step.__code__)  # what the call began with, then what it went on with
        for entry in entries:
            show_entry(entry)

        show_times(model, x)


if __name__ == "__main__":
    main()
