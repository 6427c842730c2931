"""What decompiled code in block form calls for operations that have no syntax, or whose syntax would need other control flow.

The source sees this module under a name that is bound beside it. Runs on Python 3.8 to 3.13 and imports nothing of Pellucid.
"""

import builtins
import sys
import types
from typing import Any, Callable, Dict, Iterable, List, NoReturn, Optional, Set, Tuple

# The builtins that block form relies on, whatever a program does to the names.
AssertionError = builtins.AssertionError
BaseException = builtins.BaseException
NameError = builtins.NameError
frozenset = builtins.frozenset
set = builtins.set
format = builtins.format
getattr = builtins.getattr
globals = builtins.globals
iter = builtins.iter
len = builtins.len
locals = builtins.locals
next = builtins.next
setattr = builtins.setattr
delattr = builtins.delattr
complex = builtins.complex
nan = float("nan")
negative_nan = -nan
CellType = types.CellType
slice = builtins.slice
tuple = builtins.tuple

# What adds to collections that the interpreter builds.
append = list.append
add = builtins.set.add
set_update = builtins.set.update

_SEQUENCE, _MAPPING = 1 << 5, 1 << 6  # Py_TPFLAGS_SEQUENCE and Py_TPFLAGS_MAPPING


class _Null:
    """No value: an unbound variable that was saved, or an iterator at its end."""

    def __repr__(self) -> str:
        return "NULL"


NULL = _Null()


def reraise(error: BaseException) -> NoReturn:
    """Raises an exception as it is, its context and traceback too."""
    context, traceback = error.__context__, error.__traceback__
    try:
        raise error
    finally:
        error.__context__ = context
        error.__traceback__ = traceback


def matches(error: BaseException, kinds: Any) -> bool:
    """What an except clause asks."""
    each = kinds if isinstance(kinds, tuple) else (kinds,)
    for kind in each:
        if not (isinstance(kind, type) and BaseException in type.mro(kind)):
            raise TypeError("catching classes that do not inherit from BaseException is not allowed")
    return any(kind in type(error).__mro__ for kind in each)


def group_matches(error: Any, kinds: Any) -> Tuple[Any, Any]:
    """What an except* clause asks: the rest and the part that matches, None for an empty one."""
    each = kinds if isinstance(kinds, tuple) else (kinds,)
    groups: Any = getattr(builtins, "BaseExceptionGroup")
    for kind in each:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError("catching classes that do not inherit from BaseException is not allowed")
        if issubclass(kind, groups):
            raise TypeError("catching ExceptionGroup with except* is not allowed. Use except instead.")
    rest, part = error, None
    if matches(error, kinds):
        kind = "ExceptionGroup" if isinstance(error, Exception) else "BaseExceptionGroup"
        rest, part = None, error if isinstance(error, groups) else getattr(builtins, kind)("", (error,))
    elif isinstance(error, groups):
        part, rest = error.split(kinds)
    if part is not None:
        _handle(part)
    return rest, part


def _handle(error: BaseException) -> None:
    """Makes an exception the one being handled. No statement does that to another one than it caught."""
    import ctypes

    set_handled = ctypes.pythonapi.PyErr_SetHandledException
    set_handled.argtypes, set_handled.restype = [ctypes.py_object], None
    set_handled(error)


def _wraps_single() -> bool:
    """Whether one exception raised in an except* clause leaves the statement in a group, as it did in the first releases of 3.11."""
    space: Dict[str, Any] = {}
    program = "try:\n try:\n  raise ExceptionGroup('', [ValueError()])\n except* ValueError:\n  raise KeyError\n"
    exec(program + "except Exception as error:\n wraps = not isinstance(error, KeyError)\n", space)
    return bool(space["wraps"])


def reraise_star(original: Any, raised: List[Any]) -> Any:
    """The exception that leaves a statement with except* clauses, None for none."""
    groups: Any = getattr(builtins, "BaseExceptionGroup")
    left = [error for error in raised if error is not None]
    if not left:
        return None
    if not isinstance(original, groups):
        return left[0]
    new = [error for error in left if not (isinstance(error, groups) and _same_origin(error, original))]
    old = [error for error in left if isinstance(error, groups) and _same_origin(error, original)]
    kept: Set[int] = set()
    for error in old:
        kept.update(map(id, _leaves(error)))
    again = original.subgroup(lambda leaf: id(leaf) in kept) if old else None
    if not new:
        return again
    if again is not None:
        new.append(again)
    if len(new) == 1 and not _wraps_single():
        return new[0]
    kind = getattr(builtins, "ExceptionGroup" if all(isinstance(error, Exception) for error in new) else "BaseExceptionGroup")
    return kind("", new)


def _same_origin(first: Any, second: Any) -> bool:
    return (
        first.__traceback__ is second.__traceback__
        and first.__cause__ is second.__cause__
        and first.__context__ is second.__context__
        and getattr(first, "__notes__", None) == getattr(second, "__notes__", None)
    )


def _leaves(group: Any) -> Iterable[Any]:
    for error in group.exceptions:
        if hasattr(error, "exceptions"):
            yield from _leaves(error)
        else:
            yield error


def stop_async(error: BaseException) -> None:
    """The end of `async for`: goes on after StopAsyncIteration, raises anything else."""
    if not isinstance(error, StopAsyncIteration):
        reraise(error)


def _special(value: Any, name: str, kind: str) -> Any:
    """A method looked up as the interpreter looks up special methods: on the type, bound."""
    for owner in type(value).__mro__:
        if name in owner.__dict__:
            found = owner.__dict__[name]
            bind = getattr(type(found), "__get__", None)
            return found if bind is None else bind(found, value, type(value))
    if sys.version_info < (3, 11):
        raise AttributeError(name)
    raise TypeError("{!r} object does not support the {} protocol".format(type(value).__name__, kind))


def enter(manager: Any) -> Tuple[Any, Any]:
    """The beginning of `with`: the manager's bound __exit__, and what __enter__ gives."""
    start = _special(manager, "__enter__", "context manager")
    return _special(manager, "__exit__", "context manager"), start()


def enter_async(manager: Any) -> Tuple[Any, Any]:
    """The beginning of `async with`: the manager's bound __aexit__, and the awaitable of __aenter__."""
    start = _special(manager, "__aenter__", "asynchronous context manager")
    return _special(manager, "__aexit__", "asynchronous context manager"), start()


def _send(iterator: Any, value: Any) -> Any:
    """As SEND: what the iterator yields next."""
    if value is None and not isinstance(iterator, (types.GeneratorType, types.CoroutineType)) and hasattr(iterator, "__next__"):
        return next(iterator)
    return iterator.send(value)


def send(iterator: Any, value: Any) -> Tuple[bool, Any]:
    """As SEND: whether the iterator has ended, and what it yields or returns."""
    try:
        return False, _send(iterator, value)
    except StopIteration as stop:
        return True, stop.value


class delegate:
    """The rest of `yield from` or `await`: an iterator that was begun, with a value to send to it, or one it has yielded already."""

    def __init__(self, first: str, iterator: Any, value: Any) -> None:
        self._first: str = first
        self._iterator, self._value = iterator, value

    def __iter__(self) -> Any:
        return self

    __await__ = __iter__

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """What is yielded next."""
        first, self._first = self._first, ""
        if first == "yield":
            return self._value
        return _send(self._iterator, self._value if first == "send" else value)

    def throw(self, *error: Any) -> Any:
        """Raises where the iterator stands."""
        if hasattr(self._iterator, "throw"):
            return self._iterator.throw(*error)
        raise error[0] if len(error) == 1 else error[1] or error[0]

    def close(self) -> None:
        """Ends the iterator."""
        if hasattr(self._iterator, "close"):
            self._iterator.close()


def awaited(value: Any) -> Any:
    """As GET_AWAITABLE: the iterator behind an awaitable."""
    if isinstance(value, types.CoroutineType) or (isinstance(value, types.GeneratorType) and value.gi_code.co_flags & 0x100):
        return value
    return _special(value, "__await__", "awaitable")()


def yielded_from(value: Any) -> Any:
    """As GET_YIELD_FROM_ITER."""
    return value if isinstance(value, (types.GeneratorType, types.CoroutineType)) else iter(value)


def leave(exit: Callable[..., Any], error: BaseException) -> Any:
    """Calls __exit__ for an exception."""
    return exit(type(error), error, error.__traceback__)


def aiter(value: Any) -> Any:
    """The iterator of `async for`."""
    method = getattr(type(value), "__aiter__", None)
    if method is None:
        raise TypeError("'async for' requires an object with __aiter__ method, got {}".format(type(value).__name__))
    iterator = method(value)
    if not hasattr(type(iterator), "__anext__"):
        raise TypeError(
            "'async for' received an object from __aiter__ that does not implement __anext__: {}".format(type(iterator).__name__)
        )
    return iterator


def anext(iterator: Any) -> Any:
    """The awaitable of the next value of `async for`."""
    method = getattr(type(iterator), "__anext__", None)
    if method is None:
        raise TypeError("'async for' requires an iterator with __anext__ method, got {}".format(type(iterator).__name__))
    return method(iterator)


def import_from(module: Any, name: str) -> Any:
    """`from module import name`."""
    try:
        return getattr(module, name)
    except AttributeError:
        pass
    # Outside of the clause: the interpreter's exception has no context either.
    package = getattr(module, "__name__", None)
    found = sys.modules.get("{}.{}".format(package, name)) if isinstance(package, str) else None
    if found is not None:
        return found
    path = getattr(module, "__file__", None)
    where = path if isinstance(path, str) else "unknown location"
    text = "cannot import name {!r} from {!r} ({})".format(name, package if isinstance(package, str) else "<unknown module name>", where)
    raise ImportError(text, name=package, path=path)


def import_star(module: Any, space: Dict[str, Any]) -> None:
    """`from module import *`."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name in module.__dict__ if not name.startswith("_")]
    for name in names:
        space[name] = getattr(module, name)


def setup_annotations(space: Dict[str, Any]) -> None:
    """Gives a class body or a module the dictionary that annotations go to."""
    if "__annotations__" not in space:
        space["__annotations__"] = {}


def forget(space: Dict[str, Any], names: Iterable[str]) -> None:
    """Takes temporaries out of a module."""
    for name in names:
        space.pop(name, None)


def annotations(pairs: Any) -> Dict[str, Any]:
    """A function's annotations from names and values in turn, or from a dictionary."""
    return pairs if isinstance(pairs, dict) else dict(zip(pairs[::2], pairs[1::2]))


def function(space: Any, code: Any, qualname: Any, defaults: Any, kwdefaults: Any, notes: Any, cells: Any) -> Any:
    """A function of a code object, as MAKE_FUNCTION makes it."""
    made = types.FunctionType(code, space, None, defaults, cells or None)
    made.__kwdefaults__ = kwdefaults
    if notes is not None:
        made.__annotations__ = annotations(notes)
    if qualname is not None:
        made.__qualname__ = qualname
    return made


def made(function: Any, name: str, qualname: str, defaults: Any, kwdefaults: Any, notes: Any, *cells: Any) -> Any:
    """A function as its original is made: with these names, defaults and annotations; `cells`: free variables and what they are in."""
    code = _named(function.__code__, name, qualname)
    return _finished(function, code, qualname, defaults, kwdefaults, notes, cells)


def made_inside(around: Any, name: str, qualname: str, defaults: Any, kwdefaults: Any, notes: Any, *cells: Any) -> Any:
    """The function of the class body, or the function, that stands in a function, likewise."""
    found = next(const for const in around.__code__.co_consts if isinstance(const, types.CodeType))
    return _finished(around, _named(found, name, qualname), qualname, defaults, kwdefaults, notes, cells)


def _named(code: types.CodeType, name: str, qualname: str) -> types.CodeType:
    names: Dict[str, Any] = {"co_name": name}
    if sys.version_info >= (3, 11):
        names["co_qualname"] = qualname
    return code.replace(**names)


def _finished(function: Any, code: types.CodeType, qualname: str, defaults: Any, kwdefaults: Any, notes: Any, cells: Any) -> Any:
    known: Dict[str, Any] = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    known.update(zip(cells[::2], cells[1::2]))
    closure = tuple(known[free] for free in code.co_freevars)
    made = types.FunctionType(code, function.__globals__, code.co_name, defaults, closure)
    made.__kwdefaults__, made.__qualname__ = kwdefaults, qualname
    if notes is not None:
        made.__annotations__ = annotations(notes)
    return made


def call(function: Any, names: Tuple[str, ...], *arguments: Any) -> Any:
    """A call with keywords that are no identifiers: the last arguments go to these names."""
    positional = len(arguments) - len(names)
    return function(*arguments[:positional], **dict(zip(names, arguments[positional:])))


def load_global(space: Dict[str, Any], name: str) -> Any:
    """A global, or the builtin of that name."""
    if name in space:
        return space[name]
    found = space.get("__builtins__", builtins)
    found = found if isinstance(found, dict) else vars(found)
    if name in found:
        return found[name]
    raise NameError("name {!r} is not defined".format(name))


def load_name(own: Any, space: Dict[str, Any], name: str) -> Any:
    """A name of a class body or a module."""
    try:
        return own[name]
    except KeyError:
        return load_global(space, name)


def delete_name(space: Any, name: str) -> None:
    """`del` of a name that is no identifier."""
    try:
        del space[name]
    except KeyError:
        raise NameError("name {!r} is not defined".format(name)) from None


def with_keys(values: Tuple[Any, ...], keys: Any) -> Dict[Any, Any]:
    """As BUILD_CONST_KEY_MAP."""
    if not isinstance(keys, tuple) or len(keys) != len(values):
        raise SystemError("bad BUILD_CONST_KEY_MAP keys argument")
    return dict(zip(keys, values))


def extend(target: List[Any], values: Any) -> None:
    """`[*values]`, into a list."""
    try:
        iter(values)
    except TypeError:
        if not hasattr(type(values), "__iter__") and not hasattr(type(values), "__getitem__"):
            raise TypeError("Value after * must be an iterable, not {}".format(type(values).__name__)) from None
        raise
    target.extend(values)


def update(target: Dict[Any, Any], values: Any) -> None:
    """`{**values}`, into a dictionary."""
    if not hasattr(values, "keys"):
        raise TypeError("{!r} object is not a mapping".format(type(values).__name__))
    target.update(values)


def merge(target: Dict[Any, Any], values: Any, function: Any) -> None:
    """`function(**values)`: as update(), but no key may be there already."""
    name = getattr(function, "__qualname__", None)
    owner = getattr(function, "__module__", None)
    shown = str(function) if name is None else name if owner in (None, "builtins") else "{}.{}".format(owner, name)
    if not hasattr(values, "keys"):
        raise TypeError("{}() argument after ** must be a mapping, not {}".format(shown, type(values).__name__))
    for key in list(values.keys()):
        if key in target:
            raise TypeError("{}() got multiple values for keyword argument {!r}".format(shown, key))
        target[key] = values[key]


def list_of(values: Tuple[Any, ...]) -> List[Any]:
    """A list display of many values: compilers build those in steps."""
    return list(values)


def set_of(values: Tuple[Any, ...]) -> Set[Any]:
    """A set display, likewise."""
    return set(values)


def map_of(values: Tuple[Any, ...]) -> Dict[Any, Any]:
    """A dictionary display, likewise; `values`: keys and values in turn."""
    return dict(zip(values[::2], values[1::2]))


def map_add(target: Dict[Any, Any], key: Any, value: Any) -> None:
    """An entry of a dictionary display."""
    target[key] = value


def merged(function: Any, *maps: Any) -> Dict[Any, Any]:
    """As BUILD_MAP_UNPACK_WITH_CALL: the keywords of a call from several dictionaries."""
    target: Dict[Any, Any] = {}
    for each in maps:
        merge(target, each, function)
    return target


def is_sequence(value: Any) -> bool:
    """Whether a sequence pattern looks at a value."""
    return bool(type(value).__flags__ & _SEQUENCE)


def is_mapping(value: Any) -> bool:
    """Whether a mapping pattern looks at a value."""
    return bool(type(value).__flags__ & _MAPPING)


def match_keys(subject: Any, keys: Tuple[Any, ...]) -> Optional[Tuple[Any, ...]]:
    """The values that a mapping pattern finds, None if a key is missing."""
    seen, values = set(), []
    for key in keys:
        if key in seen:
            raise ValueError("mapping pattern checks duplicate key ({!r})".format(key))
        seen.add(key)
    missing = object()
    for key in keys:
        value = subject.get(key, missing)
        if value is missing:
            return None
        values.append(value)
    return tuple(values)


def match_class(subject: Any, kind: Any, positional: int, names: Tuple[str, ...]) -> Optional[Tuple[Any, ...]]:
    """The attributes that a class pattern finds, None if it does not match."""
    if not isinstance(kind, type):
        raise TypeError("called match pattern must be a class")
    if not isinstance(subject, kind):
        return None
    seen, values = set(), []

    def attribute(name: str) -> bool:
        if name in seen:
            raise TypeError("{}() got multiple sub-patterns for attribute {!r}".format(kind.__name__, name))
        seen.add(name)
        try:
            values.append(getattr(subject, name))
        except AttributeError:
            return False
        return True

    if positional:
        itself = False
        try:
            fields = kind.__match_args__  # type: ignore[attr-defined]
        except AttributeError:
            itself = bool(kind.__flags__ & 1 << 22)  # Py_TPFLAGS_MATCH_SELF
            fields = ()
        if type(fields) is not tuple:
            raise TypeError("{}.__match_args__ must be a tuple (got {})".format(kind.__name__, type(fields).__name__))
        allowed = 1 if itself else len(fields)
        if allowed < positional:
            plural = "" if allowed == 1 else "s"
            raise TypeError("{}() accepts {} positional sub-pattern{} ({} given)".format(kind.__name__, allowed, plural, positional))
        if itself:
            values.append(subject)
        else:
            for field in fields[:positional]:
                if not isinstance(field, str):
                    raise TypeError("__match_args__ elements must be strings (got {})".format(type(field).__name__))
                if not attribute(field):
                    return None
    return tuple(values) if all(attribute(name) for name in names) else None


def without_keys(subject: Any, keys: Tuple[Any, ...]) -> Dict[Any, Any]:
    """The rest that a mapping pattern leaves."""
    rest = dict(subject)
    for key in keys:
        del rest[key]
    return rest


def load_from(space: Any, name: str, otherwise: Callable[[], Any]) -> Any:
    """A name of a class body, read from an annotation scope inside of it."""
    try:
        return space[name]
    except KeyError:
        return otherwise()


def type_variable(kind: str, name: str, bound: Any = NULL) -> Any:
    """A type parameter; a bound or constraints come as the function that gives them."""
    import typing

    maker = getattr(typing, kind)
    if kind == "TypeVarTuple":
        return maker(name)
    if kind == "ParamSpec":
        return maker(name, infer_variance=True)
    if bound is NULL:
        return maker(name, infer_variance=True)
    value = bound()
    if isinstance(value, tuple):
        return maker(name, *value, infer_variance=True)
    return maker(name, bound=value, infer_variance=True)


def type_alias(parts: Tuple[Any, Any, Any]) -> Any:
    """`type NAME[PARAMETERS] = VALUE`."""
    import typing

    name, parameters, value = parts
    return getattr(typing, "TypeAliasType")(name, value(), type_params=parameters or ())


def generic(parameters: Any) -> Any:
    """The base that type parameters give a class."""
    import typing

    unpack: Any = getattr(typing, "Unpack")
    return getattr(typing, "Generic")[tuple(unpack[each] if type(each).__name__ == "TypeVarTuple" else each for each in parameters)]


def with_type_parameters(function: Any, parameters: Any) -> Any:
    """A function with its type parameters."""
    function.__type_params__ = parameters
    return function


def convert(value: Any, how: int) -> str:
    """`!s`, `!r` and `!a` of formatted strings."""
    return str(value) if how == 1 else repr(value) if how == 2 else ascii(value)


def show(value: Any) -> None:
    """What an expression at the prompt does."""
    sys.displayhook(value)
