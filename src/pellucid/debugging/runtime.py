"""What the files that `prepare_debug` writes call when they run. In the process that wrote them they find its objects; in another one
what can be imported, and for the rest `Gone`, which says so when it is used.
"""

import os
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

from pellucid.debugging import references
from pellucid.guard_text import Missing

_tables: Dict[str, List[Any]] = {}  # by path of the file


class Gone:
    """Stands for an object that lived in the process that wrote the file."""

    def __init__(self, place: int) -> None:
        self.__dict__["_place"] = place

    def _use(self, *_: Any, **__: Any) -> Any:
        place = self.__dict__["_place"]
        raise RuntimeError("object {} was kept by the process that wrote this file, and can't be had in another".format(place))

    __call__ = __getattr__ = __setattr__ = __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = _use


class Kept:
    """The table of a file's kept objects."""

    def __init__(self, table: Optional[List[Any]]) -> None:
        self._table = table

    def __getitem__(self, place: int) -> Any:
        return Gone(place) if self._table is None else self._table[place]

    def get(self, place: int, otherwise: Any) -> Any:
        """The object, or in another process something as good."""
        return otherwise if self._table is None else self._table[place]


def keep(path: str, objects: List[Any]) -> None:
    """Makes these the kept objects of a file."""
    _tables[os.path.abspath(path)] = objects


def forget(path: str) -> None:
    """Lets go of the kept objects of a file."""
    _tables.pop(os.path.abspath(path), None)


def kept(path: str) -> Kept:
    """The kept objects of a file."""
    return Kept(_tables.get(path))


def named(module: str, path: str = "") -> Any:
    """What a module holds at a dotted path."""
    found = references.find(module, path)
    if found is None:
        raise ImportError("there is no {} in {}".format(path or "module", module))
    return found


def graph(beside: str, name: str) -> Any:
    """The graph of the file `name` in the folder of the file `beside`."""
    path = os.path.join(os.path.dirname(os.path.abspath(beside)), name)
    with open(path, encoding="utf-8") as file:
        source = file.read()
    space: Dict[str, Any] = {"__name__": "pellucid_debug." + name[:-3], "__file__": path}
    exec(compile(source, path, "exec"), space)  # our own text
    return space["graph"]


def assign(module: Any, path: str, value: Any) -> None:
    """Sets an attribute at a dotted path; what is missing on the way is made."""
    import torch

    *holders, name = path.split(".")
    for holder in holders:
        if not hasattr(module, holder):
            setattr(module, holder, torch.nn.Module())
        module = getattr(module, holder)
    setattr(module, name, value)


def with_parameters(graph_module: Any) -> Any:
    """A graph some of whose inputs its caller does not pass: they are its `parameters`, set before the call."""

    def call(*inputs: Any) -> Any:
        return graph_module(*inputs, *call.parameters)  # type: ignore[attr-defined]

    call.parameters = ()  # type: ignore[attr-defined]
    return call


def with_cells(function: types.FunctionType, source: types.FunctionType) -> types.FunctionType:
    """The function with the cells of another one, by name."""
    cells = dict(zip(source.__code__.co_freevars, source.__closure__ or ()))
    closure = tuple(cells.get(name, cell) for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()))
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def without_source(reason: str) -> Callable[..., Any]:
    """Stands for a function whose code could not be decompiled."""

    def call(*_: Any, **__: Any) -> Any:
        raise RuntimeError(reason)

    return call


class Maker:
    """Makes functions of a captured code object with free variables, one for each closure."""

    def __init__(self, make: Callable[[Any], Any], function: Any, names: Tuple[str, ...]) -> None:
        self._make, self._function, self._names = make, function, names

    def __call__(self, closure: Tuple[Any, ...]) -> Any:
        """The function for this closure."""
        cells = dict(zip(self._names, closure))
        code = self._function.__code__
        own = tuple(cells[name] for name in code.co_freevars)
        made = types.FunctionType(code, self._function.__globals__, self._function.__name__, self._function.__defaults__, own)
        return self._make(made)


def function_type(code: Any, space: Any, name: Any, defaults: Any, closure: Any) -> Any:
    """types.FunctionType, for code that is a Maker here."""
    return code(closure) if isinstance(code, Maker) else types.FunctionType(code, space, name, defaults, closure)


def frame_locals(function: types.FunctionType, names: Tuple[str, ...], values: Tuple[Any, ...]) -> Dict[str, Any]:
    """What guards call L: the arguments by name, and the variables of the functions around."""
    found = dict(zip(names, values))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found.setdefault(name, cell.cell_contents)
        except ValueError:  # empty
            pass
    return found


def holds(check: Callable[..., Any], *arguments: Any) -> bool:
    """Runs guards: a path that leads nowhere means that they do not hold."""
    try:
        return bool(check(*arguments))
    except (Missing, KeyError, AttributeError, IndexError, TypeError):
        return False


def tail_call(function: Callable[..., Any], *arguments: Any) -> Any:
    """What Pellucid's transformed code ends with."""
    return function(*arguments)


# ---- words of guards


def dynamo_word(name: str) -> Any:
    """A function of torch._dynamo.guards by the name that guards call it by."""
    from torch._dynamo import guards

    return guards._get_closure_vars()[name]


def tensor_like(value: Any, cls: Any, *, keys: str, dtype: Any, device: Any, requires_grad: bool, size: Any, stride: Any) -> bool:
    """Whether a value is a tensor as torch._dynamo's check_tensor wants it. None in sizes and strides: any."""
    import torch

    if type(value) is not cls:
        return False
    c: Any = torch._C
    applied = (c._dispatch_keys(value) | c._dispatch_tls_local_include_set()) - c._dispatch_tls_local_exclude_set()
    return (
        str(applied) == keys
        and value.dtype == dtype
        and value.device.index == device
        and value.requires_grad == requires_grad
        and _like(value.size(), size)
        and (stride is None or _like(value.stride(), stride))
    )


def _like(values: Any, wanted: Any) -> bool:
    return len(values) == len(wanted) and all(want is None or want == value for value, want in zip(values, wanted))


def no_aliasing(*values: Any) -> bool:
    """Whether no two values are one object."""
    return len({id(value) for value in values}) == len(values)


def torch_state_is(state: Dict[str, Any]) -> bool:
    """Whether torch's global state is this one, as torch._dynamo describes it."""
    import json

    import torch

    current: Dict[str, Any] = json.loads(torch._C._dynamo.guards.GlobalStateGuard().__getstate__())
    return current == state


def function_modes_are(*kinds: type) -> bool:
    """Whether torch's function modes are of these classes."""
    from torch.overrides import _get_current_function_mode_stack

    return [type(mode) for mode in _get_current_function_mode_stack()] == list(kinds)


def default_device_is(device: Any) -> bool:
    """Whether torch.set_default_device was called with this."""
    module = sys.modules.get("torch.utils._device")
    return (None if module is None else module.CURRENT_DEVICE) == device


def saved_tensors_hooks_are(hooks: Any) -> bool:
    """Whether these are the ids of autograd's default hooks for saved tensors."""
    import torch

    current: Any = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return (None if current is None else tuple(map(id, current))) == hooks
