"""What the capture in C++ asks of Python: the call of a backend, exceptions and reports for people. Called by name from `_core`."""

import contextlib
from types import CodeType
from typing import Any, Callable, ContextManager, Dict, List, Optional, Sequence

from pellucid import _native, config, exc, logging
from pellucid.profile import Profile, place_of

# With somebody watching: graph_watcher(backend's name, graph module) gives a context in which the backend is called.
graph_watcher: Optional[Callable[[str, Any], ContextManager[None]]] = None


def compile_graph(backend: Any, name: str, graph_module: Any, example_inputs: Sequence[Any]) -> Optional[Callable[..., Any]]:
    """Calls the backend. None: it failed, and `config.backend_errors` is "eager". Raises exc.BackendCompilerFailed otherwise."""
    try:
        with contextlib.nullcontext() if graph_watcher is None else graph_watcher(name, graph_module):
            compiled = backend(graph_module, example_inputs)
    except Exception as error:
        if config.backend_errors == "eager":
            logging.root.warning("backend %r failed, the frame runs as written: %s: %s", name, type(error).__name__, error)
            return None
        raise exc.BackendCompilerFailed(name, f"{type(error).__name__}: {error}", error) from error
    if not callable(compiled):
        if config.backend_errors == "eager":
            logging.root.warning(
                "backend %r returned a %s, which can't be called: the frame runs as written", name, type(compiled).__name__
            )
            return None
        raise exc.BackendCompilerFailed(name, f"it returned a {type(compiled).__name__}, which can't be called")
    return compiled


def raise_unsupported(row: Dict[str, Any]) -> None:
    """The graph break that `fullgraph=True` turns into an exception."""
    raise exc.Unsupported(**row)


_DETAILS = ("guards", "sources", "perf")


def details_wanted() -> int:
    """Which of the details of write_details() somebody reads, as bits: what nobody reads need not be printed."""
    return sum(logging.enabled(artifact) << bit for bit, artifact in enumerate(_DETAILS))


def write_details(
    code: CodeType, guards: Optional[List[Dict[str, Any]]], program: str, sources: Optional[List[str]], profile: Dict[str, Any]
) -> None:
    """The log records on one entry's guards, on what was read to make it, and on where the time went."""
    place = place_of(code)
    if guards is not None:
        lines = [f"  {row['text']}" + (f"  # {row['filename']}:{row['line']}" if row.get("filename") else "") for row in guards]
        logging.log("guards", "\n".join([f"{place}: {len(guards)} guards", *lines, "program:", program]))
    if sources is not None:
        logging.log("sources", "\n".join([f"{place}: read from outside", *(f"  {name}" for name in sources)]))
    if logging.enabled("perf"):
        logging.log("perf", f"{place}: {Profile(place, **profile)}")


def report(code: CodeType, transformed: CodeType, graph: Any, breaks: List[Dict[str, Any]], profile: Dict[str, Any]) -> Dict[str, Any]:
    """The report of one entry, after writing the log records that somebody reads."""
    if breaks and logging.enabled("graph_breaks"):
        for row in breaks:
            logging.log("graph_breaks", f"{place_of(code)}: {exc.Unsupported(**row)}")
    if graph is not None and logging.enabled("graph_code"):
        readable = _native.core().graph_module_of(graph).print_readable(print_output=False)
        logging.log("graph_code", f"{place_of(code)}:\n{readable}")
    if logging.enabled("bytecode"):
        from pellucid import _bytecode

        before, after = (_bytecode.to_text(_bytecode.decode(which)) for which in (code, transformed))
        logging.log("bytecode", f"{place_of(code)}, as written:\n{before}\ntransformed:\n{after}")
    counts = profile["counts"]
    return {"breaks": breaks, "operators": counts["operators"], "instructions": counts["instructions"], "profile": profile}
