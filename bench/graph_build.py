"""What a torch.fx node and a GraphModule cost: built natively, through the public API, and in torch's own usual way.

    python bench/graph_build.py

Prints a table of microseconds. A second table times a call of the graph: the native replay against the generated forward.
"""

import gc
import statistics
import sys
import time

import torch
import torch.fx
from torch.fx._lazy_graph_module import _LazyGraphModule

from pellucid import _core

SIZES = (1, 4, 100, 1000)


def chain(x, n):
    for _ in range(n):
        x = torch.sin(x) + 1
    return x


def specs(n):
    """`n` pointwise nodes in a row, with the metadata a capture gives them."""
    code = chain.__code__
    value = torch.empty(4, device="meta")
    stacks = [(-1, specs.__code__, 30)] + [(0, code, code.co_firstlineno + 1 + i % 2) for i in range(max(n, 2))]
    modules = [(-1, "L__self___", "L['self']", torch.nn.Module), (0, "L__self___act", "L['self'].act", torch.nn.SiLU)]
    nodes = [{"op": "placeholder", "target": "l_x_", "name": "l_x_", "source_name": "L['x']", "example_value": value}]
    for i in range(n):
        argument = ("node", i)
        node = {"op": "call_function", "target": torch.sin, "args": [argument]}
        if i % 2:
            node = {"op": "call_function", "target": torch.add, "args": [argument, ("const", 1)]}
        nodes.append({**node, "example_value": value, "stack": 1 + i, "module": i % 2})
    return nodes, [("node", n)], stacks, modules


def by_hand(nodes, module_type):
    """The same graph (metadata without texts) as a program would build it with torch.fx's public API."""
    graph = torch.fx.Graph()
    made = []
    for node in nodes:
        args = tuple(made[payload] if kind == "node" else payload for kind, payload in node.get("args", ()))
        new = graph.create_node(node["op"], node["target"], args, {}, node.get("name"))
        new.meta["example_value"] = node["example_value"]
        made.append(new)
    graph.output((made[-1],))
    return module_type(torch.nn.Module(), graph)


def best(function, budget=0.4):
    """Median over the best half of repeated runs, in microseconds, garbage collected in between."""
    function()
    times, end = [], time.perf_counter() + budget
    while time.perf_counter() < end or len(times) < 5:
        gc.collect(0)
        start = time.perf_counter_ns()
        result = function()
        times.append((time.perf_counter_ns() - start) / 1000)
        del result
    return statistics.median(sorted(times)[: max(1, len(times) // 2)])


def main():
    gc.collect()
    gc.freeze()
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}; microseconds")
    header = f"{'nodes':>6} {'native':>10} {'public, lazy':>13} {'by hand, lazy':>14} {'by hand, code':>14}"
    print(header)
    rows = []
    for n in SIZES:
        nodes, outputs, stacks, modules = specs(n)
        record = _core.graph_record(nodes, outputs, stacks, modules)
        row = (
            best(lambda record=record: len(_core.build_graph_module(record).graph.nodes)),
            best(lambda record=record: len(_core.build_graph_module_public(record).graph.nodes)),
            best(lambda nodes=nodes: by_hand(nodes, _LazyGraphModule)),
            best(lambda nodes=nodes: by_hand(nodes, torch.fx.GraphModule)),
        )
        rows.append(row)
        print(f"{n:>6} {row[0]:>10.1f} {row[1]:>13.1f} {row[2]:>14.1f} {row[3]:>14.1f}")
    per_node = [(last - first) / (SIZES[-1] - SIZES[0]) for first, last in zip(rows[0], rows[-1])]
    print(f"{'each':>6} {per_node[0]:>10.2f} {per_node[1]:>13.2f} {per_node[2]:>14.2f} {per_node[3]:>14.2f}")

    print("\na call, three floats: microseconds a node")
    x = torch.randn(3)
    with torch.no_grad():
        for n in (4, 100, 1000):
            nodes, outputs, stacks, modules = specs(n)
            record = _core.graph_record(nodes, outputs, stacks, modules)
            replay, forward = _core.make_replay(record), _core.build_graph_module(record).forward
            print(f"{n:>6} replay {best(lambda f=replay: f(x)) / n:6.2f}   forward {best(lambda f=forward: f(x)) / n:6.2f}")


if __name__ == "__main__":
    main()
