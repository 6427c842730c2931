"""`explain(fn)(*args)`: runs a function once under capture and tells what became graphs and what did not."""

from typing import Any, Callable, Dict, List, NamedTuple

from pellucid import api
from pellucid._regions import Settings, ready_core
from pellucid.profile import Profile, place_of


class ExplainOutput(NamedTuple):
    """What one call of a function was captured as."""

    graphs: List[Any]
    graph_count: int
    break_count: int
    break_reasons: List[str]
    op_count: int
    ops_per_graph: List[List[Any]]
    entries: List[api.CacheEntry]
    profiles: List[Profile]

    def __str__(self) -> str:
        lines = [f"graphs: {self.graph_count}", f"graph breaks: {self.break_count}", f"operators: {self.op_count}"]
        for number, reason in enumerate(self.break_reasons, 1):
            first, *rest = reason.splitlines() or [""]
            lines += [f"break {number}: {first}", *("  " + line for line in rest)]
        for number, ops in enumerate(self.ops_per_graph, 1):
            lines.append(f"graph {number}: " + ", ".join(getattr(op, "__name__", str(op)) for op in ops))
        lines += [f"{profile.place}: {profile}" for profile in self.profiles]
        return "\n".join(lines)


def explain(fn: Any) -> Callable[..., ExplainOutput]:
    """Returns a function that calls `fn` once, with nothing captured before and graphs run eagerly, and tells what was captured."""

    def explained(*args: Any, **kwargs: Any) -> ExplainOutput:
        graphs: List[Any] = []

        def collect(graph_module: Any, example_inputs: Any) -> Any:
            graphs.append(graph_module)
            return graph_module.forward

        core = ready_core()
        wrapper = api._wrap(fn, settings=Settings(backend=collect))
        wrapper(*args, **kwargs)
        region = api._region_of(core, wrapper)
        entries = list(api._entries(core, region))
        breaks = [_break_text(one) for entry in entries for one in entry.report.get("breaks", ())]
        ops = [[node.target for node in graph.graph.nodes if node.op.startswith("call_")] for graph in graphs]
        profiles = [Profile(place_of(entry.code_before), **entry.report["profile"]) for entry in entries if "profile" in entry.report]
        return ExplainOutput(graphs, len(graphs), len(breaks), breaks, sum(map(len, ops)), ops, entries, profiles)

    return explained


def _break_text(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)
    from pellucid import exc

    row: Dict[str, Any] = one
    known = ("reason", "title", "explanation", "hint", "detail", "user_stack")
    return str(exc.Unsupported(**{key: row[key] for key in known if key in row}))
