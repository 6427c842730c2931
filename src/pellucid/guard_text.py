"""What the Python text of a guard program is written in.

``check_fn`` in ``cache_entries()`` is Python source; these are the functions it calls. They read the same things as the compiled
program, by other means: Python's own attribute and item access and torch's public functions. Tests run every program both ways.
"""

from __future__ import annotations

import struct
import types
import warnings
import weakref
from typing import Any, Callable, Dict, Optional, Tuple

__all__ = ["HELPERS", "Missing", "evaluate"]


class Missing(Exception):
    """A path does not lead anywhere any more: the guard does not hold."""


def evaluate(text: str, local_values: Dict[str, Any], function: types.FunctionType, values: Tuple[Any, ...]) -> bool:
    """Runs the text of a guard program for a call of `function`; `values` are the objects it calls V."""
    namespace: Dict[str, Any] = dict(HELPERS)
    namespace["V"] = values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # "is" with a literal: identity is what such a guard means
        compiled = compile(text, "<guards>", "exec")
    exec(compiled, namespace)  # our own text
    try:
        return bool(namespace["check"](local_values, function.__globals__, function))
    except (Missing, KeyError):
        return False
    finally:
        namespace.clear()  # it and the function refer to each other: V would live on


def instance_dict(value: Any) -> Dict[str, Any]:
    """The instance dictionary, past any `__dict__` property of the class."""
    if isinstance(value, type):
        raise Missing
    for base in type(value).__mro__:
        getter = base.__dict__.get("__dict__")
        if isinstance(getter, (types.GetSetDescriptorType, types.MemberDescriptorType)):
            result = getter.__get__(value)
            if isinstance(result, dict):
                return result
    raise Missing


def instance_item(value: Any, name: str) -> Any:
    """What the instance itself holds under a name."""
    if isinstance(value, type):
        if name not in type.__dict__["__dict__"].__get__(value):
            raise Missing
        return type.__dict__["__dict__"].__get__(value)[name]
    return dict_item(instance_dict(value), name)


def attribute(value: Any, name: str) -> Any:
    """`value.name`, where that runs C code only."""
    try:
        return getattr(value, name)
    except AttributeError:
        raise Missing from None


def class_attribute(value: Any, name: str) -> Any:
    """What the class of a value holds under a name, unbound."""
    return mro_attribute(type(value), name)


def class_lacks(value: Any, name: str) -> bool:
    """Whether no class in the value's MRO has the name."""
    return mro_lacks(type(value), name)


def mro(cls: type) -> Tuple[type, ...]:
    """The classes that attributes of a class's instances are looked for in."""
    return cls.__mro__


def mro_attribute(cls: type, name: str) -> Any:
    """What instances of a class find in it under a name, unbound."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    raise Missing


def mro_lacks(cls: type, name: str) -> bool:
    """Whether no class in the MRO has the name."""
    return not any(name in base.__dict__ for base in cls.__mro__)


def item(value: Any, index: int) -> Any:
    """An item of a tuple or list, read through the base type."""
    base: Any = tuple if isinstance(value, tuple) else list
    if not isinstance(value, base) or index >= base.__len__(value):
        raise Missing
    return base.__getitem__(value, index)


def dict_item(value: Any, key: Any) -> Any:
    """An item of a dictionary, read through the base type."""
    if not isinstance(value, dict) or not dict.__contains__(value, key):
        raise Missing
    return dict.__getitem__(value, key)


def cell_contents(value: Any) -> Any:
    """What a cell holds."""
    try:
        return value.cell_contents
    except (AttributeError, ValueError):
        raise Missing from None


def cell_empty(value: Any) -> bool:
    """Whether a cell holds nothing."""
    if not isinstance(value, types.CellType):
        return False
    try:
        cell_contents(value)
    except Missing:
        return True
    return False


def _function(value: Any) -> types.FunctionType:
    if not isinstance(value, types.FunctionType):
        raise Missing
    return value


def default(value: Any, index: int) -> Any:
    """A positional default of a function."""
    return item(_function(value).__defaults__ or (), index)


def kwdefault(value: Any, name: str) -> Any:
    """A keyword default of a function."""
    return dict_item(_function(value).__kwdefaults__ or {}, name)


def closure_cell(value: Any, index: int) -> Any:
    """A cell of a function's closure."""
    return item(_function(value).__closure__ or (), index)


def bound_self(value: Any) -> Any:
    """What a method is bound to."""
    if not isinstance(value, types.MethodType):
        raise Missing
    return value.__self__


def referent(value: Any) -> Any:
    """What a weak reference refers to; None when that is dead."""
    if not isinstance(value, weakref.ref):
        raise Missing
    return value()


def bound_function(value: Any) -> Any:
    """The function of a bound method."""
    if not isinstance(value, types.MethodType):
        raise Missing
    return value.__func__


def code(value: Any) -> Any:
    """A function's code."""
    return _function(value).__code__


def no_defaults(value: Any) -> bool:
    """Whether a function has no positional defaults."""
    return not _function(value).__defaults__


def no_kwdefaults(value: Any) -> bool:
    """Whether a function has no keyword defaults."""
    return not _function(value).__kwdefaults__


def length(value: Any) -> int:
    """The length of a builtin container; -1 for anything else."""
    bases: Tuple[Any, ...] = (list, tuple, dict, set, frozenset)
    for base in bases:
        if isinstance(value, base):
            return int(base.__len__(value))
    return -1


def dict_keys(value: Any, keys: Tuple[Any, ...]) -> bool:
    """Whether a dictionary has exactly these keys in this order."""
    if not isinstance(value, dict):
        return False
    import collections

    order = list(collections.OrderedDict.__iter__(value) if isinstance(value, collections.OrderedDict) else dict.__iter__(value))
    return len(order) == len(keys) and all(a is b or a == b for a, b in zip(order, keys))


def dict_has(value: Any, key: Any) -> bool:
    """Whether a dictionary has a key."""
    return isinstance(value, dict) and dict.__contains__(value, key)


def dict_lacks(value: Any, key: Any) -> bool:
    """Whether a dictionary lacks a key."""
    return isinstance(value, dict) and not dict.__contains__(value, key)


def instance_lacks(value: Any, name: str) -> bool:
    """Whether an instance holds nothing of its own under a name."""
    try:
        instance_item(value, name)
    except Missing:
        return True
    return False


def empty_dict(value: Any) -> bool:
    """Whether a value is an empty dictionary."""
    return isinstance(value, dict) and dict.__len__(value) == 0


def distinct(*values: Any, first: Optional[int] = None) -> bool:
    """Whether no two values are one object; with `first`, whether none of that many at the beginning is any other."""
    watched = {id(value) for value in values[:first]}
    others = {id(value) for value in values[len(watched) :]}
    return len(watched) == len(values[:first]) and not watched & others


def equals(left: Any, right: Any) -> bool:
    """Same type and same value, floats by their bits; tuples by their items."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    if isinstance(left, complex):
        return equals(left.real, right.real) and equals(left.imag, right.imag)
    if isinstance(left, tuple):
        size = tuple.__len__(left)
        return size == tuple.__len__(right) and all(equals(tuple.__getitem__(left, i), tuple.__getitem__(right, i)) for i in range(size))
    if isinstance(left, slice):
        return equals((left.start, left.stop, left.step), (right.start, right.stop, right.step))
    return bool(left == right)


def tensor_matches(
    value: Any,
    cls: type,
    *,
    dtype: str,
    device: str,
    size: Tuple[int, ...],
    stride: Tuple[int, ...],
    requires_grad: bool,
    keys: int,
) -> bool:
    """Whether a value is a tensor of exactly this class and metadata."""
    import torch

    if type(value) is not cls or torch._C._dispatch_keys(value).raw_repr() != keys:
        return False
    tensor: Any = value
    with torch._C.DisableTorchFunction():
        return (
            str(tensor.dtype) == dtype
            and str(tensor.device) == device
            and tuple(tensor.size()) == size
            and tuple(tensor.stride()) == stride
            and tensor.requires_grad == requires_grad
            and (not tensor.is_floating_point() or torch.autograd.forward_ad.unpack_dual(tensor).tangent is None)
        )


def global_state_is(
    *,
    default_dtype: str,
    grad_mode: bool,
    inference_mode: bool,
    forward_grad_mode: bool,
    multithreading: bool,
    view_replay: bool,
    grad_layout_enforcement: bool,
    torch_function_disabled: int,
    torch_function_skip_next: bool,
    torch_function_modes: int,
    deterministic_algorithms: bool,
    deterministic_warn_only: bool,
    fill_uninitialized_memory: bool,
    forward_ad_level: bool,
    saved_tensors_hooks_disabled: bool,
    saved_tensors_hooks: int,
    included: int,
    excluded: int,
    torch_dispatch_modes: int,
    functorch_level: int,
    autocast: Dict[str, str],
) -> bool:
    """Whether torch's global state is this one; what Python cannot ask for is left to the compiled program."""
    import torch

    c: Any = torch._C
    return (
        str(torch.get_default_dtype()) == default_dtype
        and torch.is_grad_enabled() == grad_mode
        and torch.is_inference_mode_enabled() == inference_mode
        and c._is_fwd_grad_enabled() == forward_grad_mode
        and c._is_multithreading_enabled() == multithreading
        and c._is_view_replay_enabled() == view_replay
        and c._is_torch_function_enabled() == (torch_function_disabled == 0)
        and c._is_torch_function_all_disabled() == (torch_function_disabled == 2)
        and c._peek_should_skip_torch_function() == torch_function_skip_next
        and c._len_torch_function_stack() == torch_function_modes
        and torch.are_deterministic_algorithms_enabled() == deterministic_algorithms
        and torch.is_deterministic_algorithms_warn_only_enabled() == deterministic_warn_only
        and torch.utils.deterministic.fill_uninitialized_memory == fill_uninitialized_memory
        and (torch.autograd.forward_ad._current_level >= 0) == forward_ad_level
        and c._autograd._saved_tensors_hooks_is_enabled() != saved_tensors_hooks_disabled
        and (c._autograd._top_saved_tensors_default_hooks(True) is not None) == (saved_tensors_hooks > 0)
        and c._dispatch_tls_local_include_set().raw_repr() == included
        and c._dispatch_tls_local_exclude_set().raw_repr() == excluded
        and c._len_torch_dispatch_stack() == torch_dispatch_modes
        and c._functorch.get_dynamic_layer_stack_depth() == functorch_level
        and all(str(torch.get_autocast_dtype(name)) == dtype for name, dtype in autocast.items())
    )


def float32_precision(classes: int) -> int:
    """The precision set for products of float32: of matmul, if the first bit is set, convolution and recurrent operators."""
    import torch

    names = ("none", "ieee", "tf32", "bf16", "default")
    word = 0
    for number, operator in enumerate(("matmul", "conv", "rnn")):
        if classes >> number & 1:
            for backend in ("cuda", "mkldnn"):
                word = word << 4 | names.index(torch._C._get_fp32_precision_getter(backend, operator))
    return word


# The words, by name.
HELPERS: Dict[str, Callable[..., Any]] = {
    helper.__name__: helper
    for helper in (
        attribute,
        bound_function,
        bound_self,
        cell_contents,
        cell_empty,
        class_attribute,
        class_lacks,
        closure_cell,
        code,
        default,
        dict_has,
        dict_item,
        dict_keys,
        dict_lacks,
        distinct,
        empty_dict,
        equals,
        float32_precision,
        global_state_is,
        instance_dict,
        instance_item,
        instance_lacks,
        item,
        kwdefault,
        length,
        mro,
        mro_attribute,
        mro_lacks,
        no_defaults,
        no_kwdefaults,
        referent,
        tensor_matches,
    )
}
