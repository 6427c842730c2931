"""Backends: what runs a captured graph.

A backend is a callable that takes a ``torch.fx.GraphModule`` and the example inputs and returns a callable. `resolve` turns what the user
gives, a name or a callable, into a `Backend`. PyTorch's compilers are imported when a graph is first given to them.
"""

import functools
import warnings
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Union

from pellucid import _native

__all__ = ["Backend", "names", "resolve"]

CompilerFn = Callable[..., Callable[..., Any]]


class Backend:
    """A backend with its name. Calling it compiles a graph.

    `replays_record`: the core may run the record of the capture by itself and needs no GraphModule until somebody asks for one.
    """

    __slots__ = ("_compile", "name", "replays_record")

    def __init__(self, name: str, compile_fn: CompilerFn, replays_record: bool = False) -> None:
        """`compile_fn` takes the GraphModule and the example inputs."""
        self.name = name
        self.replays_record = replays_record
        self._compile = compile_fn

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compiles `gm`; what is returned is called with the inputs by position.

        Of a backend that returns the module's forward, a callable is returned whose exceptions show the user's lines.
        """
        return _native.core().with_user_lines(self._compile(gm, example_inputs))

    def __repr__(self) -> str:
        return f"<pellucid backend {self.name!r}>"


def _run_as_is(gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    del example_inputs
    return gm.forward


def _without_options(name: str, mode: Optional[str], options: Optional[Mapping[str, Any]]) -> None:
    given = [word for word, value in (("mode", mode not in (None, "default")), ("options", bool(options))) if value]
    if given:
        warnings.warn(f"backend {name!r} takes no {' or '.join(given)}: ignored", stacklevel=4)


def _eager(mode: Optional[str], options: Optional[Mapping[str, Any]]) -> Backend:
    _without_options("eager", mode, options)
    return Backend("eager", _run_as_is, replays_record=True)


def _aot_eager(mode: Optional[str], options: Optional[Mapping[str, Any]]) -> Backend:
    _without_options("aot_eager", mode, options)

    def compile_graph(gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        from pellucid.backends import aot

        return aot.compile_graph(gm, example_inputs, aot.run_operators)

    return Backend("aot_eager", compile_graph)


def _inductor(mode: Optional[str], options: Optional[Mapping[str, Any]]) -> Backend:
    patches: Optional[Dict[str, Any]] = None
    if mode not in (None, "default") or options:
        from pellucid.backends import aot

        patches = aot.inductor_config(mode, options)  # now, so that a misspelt option is an error where it stands

    def compile_graph(gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        from pellucid.backends import aot

        return aot.compile_graph(gm, example_inputs, functools.partial(aot.inductor, patches))

    return Backend("inductor", compile_graph)


_BACKENDS: Dict[str, Callable[[Optional[str], Optional[Mapping[str, Any]]], Backend]] = {
    "aot_eager": _aot_eager,
    "eager": _eager,
    "inductor": _inductor,
}


def names() -> Sequence[str]:
    """The backends that can be given by name."""
    return sorted(_BACKENDS)


def _name_of(function: Callable[..., Any]) -> str:
    for attribute in ("compiler_name", "__name__"):
        name = getattr(function, attribute, None)
        if isinstance(name, str):
            return name
    wrapped = getattr(function, "func", None)  # functools.partial
    return _name_of(wrapped) if callable(wrapped) else type(function).__name__


def resolve(backend: Union[str, CompilerFn, Backend], mode: Optional[str] = None, options: Optional[Mapping[str, Any]] = None) -> Backend:
    """The `Backend` for a name or a callable.

    `mode` and `options` are those of ``torch.compile``: settings of Inductor, or keyword arguments for a callable of the user's.

    Raises ValueError for a name that is not known, an unknown mode or option, or both a mode and options; TypeError for anything that
    is neither a name nor callable.
    """
    if mode is not None and not isinstance(mode, str):
        raise TypeError(f"mode is a str or None, not {type(mode).__name__}")
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"options is a dict or None, not {type(options).__name__}")
    if mode is not None and options:
        raise ValueError("mode and options can't both be given: a mode stands for a set of options")
    if isinstance(backend, Backend):
        return backend
    if isinstance(backend, str):
        make = _BACKENDS.get(backend)
        if make is None:
            raise ValueError(f"unknown backend {backend!r}; known: {', '.join(names())}, or any callable(gm, example_inputs)")
        return make(mode, options)
    if not callable(backend):
        raise TypeError(f"a backend is a name or a callable(gm, example_inputs), not {type(backend).__name__}")
    keywords: Dict[str, Any] = {}
    if mode not in (None, "default"):
        keywords["mode"] = mode
    if options:
        keywords["options"] = dict(options)
    return Backend(_name_of(backend), functools.partial(backend, **keywords) if keywords else backend)
