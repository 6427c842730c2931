"""The public API for capturing programs: optimize, compile, disable, reset and what goes with them.

Decides what a wrapper is made around; calls themselves never come here. `pellucid.__init__` loads these names on first use.
"""

import functools
import inspect
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Union

from pellucid import _modules
from pellucid._regions import DEFAULT_BACKEND, Settings, core_or_eager, new_region, ready_core, settings_of

_NOT_GIVEN: Any = object()


# ---- optimize and compile


def optimize(
    target: Any = None,
    *,
    backend: Any = _NOT_GIVEN,
    fullgraph: bool = False,
    dynamic: Optional[bool] = None,
    mode: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
    disable: bool = False,
) -> Any:
    """Captures the tensor work of a function, or of a module, as graphs that a backend compiles.

    - `optimize(fn, backend=...)`, `optimize(module, backend=...)`: the wrapper.
    - `optimize("eager")`, `optimize(backend=...)`: a decorator.
    - `optimize(my_compiler)`: a decorator too. Nothing in `my_compiler` itself tells a backend from a function to be captured, so it
      is both until its first call: called with a function or module where it needs more than that, it is a backend and decorates.
      A backend that can be called with one argument has to be passed as `backend=`.
    """
    settings = Settings(DEFAULT_BACKEND if backend is _NOT_GIVEN else backend, fullgraph, dynamic, mode, options)
    if isinstance(target, str):
        if backend is not _NOT_GIVEN:
            raise TypeError(f"optimize() got two backends, {target!r} and {backend!r}")
        settings, target = settings._replace(backend=target), None
    if target is None:
        if not disable:
            _check_backend(settings)
        return functools.partial(_wrap, settings=settings, disable=disable)
    return _wrap(target, settings=settings, disable=disable, may_be_backend=backend is _NOT_GIVEN)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: Optional[bool] = None,
    backend: Any = DEFAULT_BACKEND,
    mode: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
    disable: bool = False,
) -> Any:
    """`torch.compile`'s arguments and meaning: the wrapper, or with no model a decorator."""
    if mode is not None and options is not None:
        raise RuntimeError("either mode or options can be given, not both")
    settings = Settings(backend, fullgraph, dynamic, mode, options)
    if model is None:
        if not disable:
            _check_backend(settings)
        return functools.partial(_wrap, settings=settings, disable=disable)
    return _wrap(model, settings=settings, disable=disable)


def _check_backend(settings: Settings) -> None:
    """An unknown backend is an error where it is named, not at the first function."""
    core = core_or_eager()
    if core is not None:
        new_region(core, settings)


def _wrap(target: Any, *, settings: Settings, disable: bool = False, may_be_backend: bool = False) -> Any:
    if not callable(target) and not isinstance(target, (staticmethod, classmethod)):
        raise TypeError(f"only callables can be optimized, not {type(target).__name__}")
    core = None if disable else core_or_eager()
    if core is None:
        return _eager_or_decorator(target) if may_be_backend and not disable else target
    if isinstance(target, (core.OptimizedFunction, core.OptimizedModule)):
        target = target.__wrapped__
    if isinstance(target, core.DisabledFunction):
        return target
    target = _uncompiled(target)
    if _modules.is_module(target):
        return _modules.wrap_module(core, target, settings)
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(_wrap(target.__func__, settings=settings))
    if isinstance(target, type):
        return _wrap_class(target, settings)
    if isinstance(target, MethodType) and isinstance(target.__func__, FunctionType):
        return MethodType(_wrap_function(core, target.__func__, None, target.__func__, settings, False), target.__self__)
    if isinstance(target, FunctionType):
        return _wrap_function(core, target, None, target, settings, may_be_backend)
    call = _uncompiled(getattr(type(target), "__call__", None))  # noqa: B004
    if isinstance(call, FunctionType):
        return _wrap_function(core, call, target, target, settings, may_be_backend)
    return _wrap_function(core, _caller_of(target), None, target, settings, may_be_backend)


def _wrap_function(core: ModuleType, function: Any, self: Any, wrapped: Any, settings: Settings, may_be_backend: bool) -> Any:
    region = new_region(core, settings)
    return core.optimized_function(function, self, wrapped, region, may_be_backend)


def _uncompiled(target: Any) -> Any:
    """What torch.compile was given, where `target` is what it returned for a function: of two compilers the outer one captures."""
    while isinstance(target, FunctionType) and target.__globals__.get("__name__") == "torch._dynamo.eval_frame":
        marks = target.__dict__
        if "_torchdynamo_orig_callable" not in marks or marks.get("_torchdynamo_disable"):
            break
        target = marks["_torchdynamo_orig_callable"]
    return target


def _caller_of(target: Any) -> FunctionType:
    """A Python function around a callable that has none (a builtin, a functools.partial): there is bytecode to capture then."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    return call  # type: ignore[return-value]


def _wrap_class(cls: type, settings: Settings) -> type:
    """As torch.compile does: calls of the instances are captured; the class itself stays what it is."""
    call = getattr(cls, "__call__", None)  # noqa: B004
    if not isinstance(call, FunctionType):
        raise TypeError(f"instances of {cls.__name__} can't be called: there is nothing to capture")
    cls.__call__ = _wrap(call, settings=settings)  # type: ignore[method-assign]
    return cls


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):  # it does not, or it has no signature
        return False
    return True


def _takes_one(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # no signature: leave it to the call
        return True
    return True


def _decorate_with(wrapper: Any, target: Any) -> Any:
    """`optimize(backend)(target)`, found out when the call did not fit. Called by the core; NotImplemented: it is no such call."""
    backend = wrapper.__wrapped__
    if not callable(target) or _takes_one(backend) or not _takes_two(backend):
        return NotImplemented
    return _wrap(target, settings=settings_of(wrapper._region)._replace(backend=backend))


def _eager_or_decorator(target: Any) -> Any:
    """Where nothing can be captured: `target` itself, which `optimize(backend)` may still call to decorate."""
    if _takes_one(target) or not _takes_two(target):
        return target

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        return target(*args, **kwargs)

    return call


def _rebuild(wrapped: Any, settings: Settings) -> Any:
    return _wrap(wrapped, settings=settings)


def _reduce(wrapper: Any) -> Any:
    """`__reduce__` of the wrapper types: functions go by reference, callable objects by value."""
    wrapped = wrapper.__wrapped__
    if isinstance(wrapped, FunctionType):
        return wrapped.__qualname__
    region = getattr(wrapper, "_region", None)
    return (disable, (wrapped,)) if region is None else (_rebuild, (wrapped, settings_of(region)))


# ---- leaving code alone


def disable(fn: Any = None, recursive: bool = True) -> Any:
    """Leaves a function alone: it runs as written, and so does everything it calls. Usable as `@disable` and `@disable()`.

    `recursive=False`: only its own frame is left alone. A module is left alone in place; of a class, calls of its instances.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive)
    if not callable(fn) and not isinstance(fn, (staticmethod, classmethod)):
        raise TypeError(f"only callables can be disabled, not {type(fn).__name__}")
    core = core_or_eager()
    if core is None:
        return fn
    if isinstance(fn, (core.OptimizedFunction, core.OptimizedModule)):
        fn = fn.__wrapped__
    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(disable(fn.__func__, recursive))
    if _modules.is_module(fn):
        fn.forward = disable(fn.forward, recursive)
        return fn
    if isinstance(fn, type):
        fn.__call__ = disable(fn.__call__, recursive)  # type: ignore[method-assign]
        return fn
    if not recursive:
        function: Any = fn.__func__ if isinstance(fn, MethodType) else fn
        function._torchdynamo_disable = True  # the mark PyTorch's compiler uses; both honour it
        return fn
    if isinstance(fn, MethodType):
        return MethodType(core.disabled_function(fn.__func__), fn.__self__)
    return fn if isinstance(fn, core.DisabledFunction) else core.disabled_function(fn)


def graph_break(msg: str = "") -> None:
    """Ends the graph here when captured; does nothing otherwise."""


graph_break._pellucid_graph_break = True  # type: ignore[attr-defined]  # what capture knows it by


def is_compiling() -> bool:
    """True while this call is being captured, False when it runs."""
    return False


graph_break._pellucid_graph_break = True  # type: ignore[attr-defined]  # what capture looks for

allowed_in_graph: Dict[int, Any] = {}  # by id, holding the function so that the id stays its own


def allow_in_graph(fn: Any) -> Any:
    """Puts calls of these functions into the graph as they are, without looking inside. Takes one, or a list or tuple of them."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    if not callable(fn):
        raise TypeError(f"only callables can be allowed in graphs, not {type(fn).__name__}")
    allowed_in_graph[id(fn)] = fn
    return fn


# ---- what was captured


def reset(fn: Any = None) -> None:
    """Drops what was captured: by one wrapper, or everything."""
    core = core_or_eager()
    if core is None:
        return
    if fn is None:
        core.reset_all()
        core.forget_translations()
    else:
        core.reset_region(_region_of(core, fn))


def _region_of(core: ModuleType, fn: Any) -> Any:
    if isinstance(fn, (MethodType, staticmethod, classmethod)):
        fn = fn.__func__
    if isinstance(fn, type):
        fn = fn.__call__
    if isinstance(fn, core.OptimizedModule):
        fn = fn._optimized_call
    if not isinstance(fn, core.OptimizedFunction):
        raise TypeError(f"expected something that optimize() or compile() returned, not {type(fn).__name__}")
    return fn._region


class GuardInfo(NamedTuple):
    """One guard of an entry."""

    name: str
    source: str
    kind: str
    text: str
    filename: Optional[str]
    line: int

    @property
    def location(self) -> Optional[str]:
        """The place in the user's program that needed the guard."""
        return None if self.filename is None else f"{self.filename}:{self.line}"

    def __str__(self) -> str:
        return self.text if self.location is None else f"{self.text}  # {self.location}"


class CacheEntry(NamedTuple):
    """One captured variant of a code object."""

    guards: List[GuardInfo]
    check_fn: str
    program: str
    code_before: CodeType
    code_after: CodeType
    graph: Any
    hits: int
    calls_python: bool
    valid: bool
    bytes: int
    report: Dict[str, Any]

    def __str__(self) -> str:
        lines = [f"entry for {self.code_before.co_name} ({self.code_before.co_filename}:{self.code_before.co_firstlineno})"]
        lines += [f"  {guard}" for guard in self.guards]
        return "\n".join(lines)


def _guard_info(row: Dict[str, Any]) -> GuardInfo:
    return GuardInfo(row["name"], row.get("source", row["name"]), row["kind"], row["text"], row.get("filename"), row.get("line", 0))


def _entries(core: ModuleType, region: Any) -> Iterator[CacheEntry]:
    for cache in core.describe_region(region):
        for entry in cache["entries"]:
            yield CacheEntry(
                [_guard_info(row) for row in entry["guards"]],
                entry["check_fn"],
                entry["program"],
                cache["code"],
                entry["code"],
                entry["graph_module"],
                entry["hits"],
                entry["calls_python"],
                entry["valid"],
                entry["bytes"],
                entry["report"] or {},
            )


def cache_entries(fn: Any, nested: bool = False) -> List[CacheEntry]:
    """The entries of an optimized function's or module's own code. `nested`: of every code captured under it, resume functions too."""
    core = ready_core()
    entries = list(_entries(core, _region_of(core, fn)))
    if nested:
        return entries
    own = _own_code(core, fn)
    return [entry for entry in entries if entry.code_before is own]


def _own_code(core: ModuleType, fn: Any) -> Any:
    if isinstance(fn, (MethodType, staticmethod, classmethod)):
        fn = fn.__func__
    if isinstance(fn, type):
        fn = fn.__call__
    return (fn._optimized_call if isinstance(fn, core.OptimizedModule) else fn)._captured_code


# ---- dynamic sizes: what users say about single tensors, kept on the tensor as PyTorch's compiler does


class DimRange(NamedTuple):
    """The sizes a dynamic dimension may take."""

    dim: int
    min: Optional[int]
    max: Optional[int]


_Index = Union[int, List[int], "tuple[int, ...]"]


def _mark(tensor: Any, attribute: str, index: Any) -> List[int]:
    rank = tensor.dim()
    marked = getattr(tensor, attribute, None)
    if marked is None:
        marked = set()
        setattr(tensor, attribute, marked)
    dims = []
    for dim in index if isinstance(index, (list, tuple)) else (index,):
        if not -rank <= dim < rank:
            raise IndexError(f"dimension {dim} of a tensor with {rank} dimensions")
        dims.append(dim % rank)
    marked.update(dims)
    return dims


def mark_dynamic(t: Any, index: _Index, *, min: Optional[int] = None, max: Optional[int] = None) -> None:
    """This dimension's size must stay symbolic: specialising it is an error."""
    dims = _mark(t, "_dynamo_dynamic_indices", index)
    ranges = getattr(t, "_dynamo_dynamic_range", None) or set()
    t._dynamo_dynamic_range = ranges | {DimRange(dim, min, max) for dim in dims}


def maybe_mark_dynamic(t: Any, index: _Index) -> None:
    """This dimension's size is symbolic, unless the program specialises it."""
    _mark(t, "_dynamo_weak_dynamic_indices", index)


def mark_unbacked(t: Any, index: _Index) -> None:
    """This dimension's size is symbolic and has no value to branch on."""
    _mark(t, "_dynamo_unbacked_indices", index)


def mark_static(t: Any, index: Optional[_Index] = None) -> None:
    """This dimension's size, or every one, is a constant."""
    _mark(t, "_dynamo_static_indices", list(range(t.dim())) if index is None else index)


__all__: List[str] = [
    "CacheEntry",
    "GuardInfo",
    "allow_in_graph",
    "cache_entries",
    "compile",
    "disable",
    "graph_break",
    "is_compiling",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
]
