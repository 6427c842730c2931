"""What the capture in C++ asks of Python: the call of a backend, exceptions and reports for people. Called by name from `_core`."""

from types import CodeType
from typing import Any, Callable, Dict, List, Optional, Sequence

from pellucid import config, exc, logging


def compile_graph(backend: Any, name: str, graph_module: Any, example_inputs: Sequence[Any]) -> Optional[Callable[..., Any]]:
    """Calls the backend. None: it failed, and `config.backend_errors` is "eager". Raises exc.BackendCompilerFailed otherwise."""
    try:
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


def report(
    code: CodeType, transformed: CodeType, graph_module: Any, breaks: List[Dict[str, Any]], operators: int, instructions: int
) -> Dict[str, Any]:
    """The report of one entry, after writing the log records that somebody reads."""
    place = f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
    if breaks and logging.enabled("graph_breaks"):
        for row in breaks:
            logging.log("graph_breaks", f"{place}: {exc.Unsupported(**row)}")
    if graph_module is not None and logging.enabled("graph_code"):
        logging.log("graph_code", f"{place}:\n{graph_module.print_readable(print_output=False)}")
    if logging.enabled("bytecode"):
        from pellucid import _bytecode

        logging.log("bytecode", f"{place}, as written:\n{_bytecode.to_text(code)}\ntransformed:\n{_bytecode.to_text(transformed)}")
    return {"breaks": breaks, "operators": operators, "instructions": instructions}
