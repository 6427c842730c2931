"""Wrapping torch.nn.Module objects: the class such a wrapper gets, and how it is copied and pickled.

The wrapper's class derives from `_core.OptimizedModule`, which brings the C `__call__`, and from the module's own class; its
`__dict__` is the module's own dictionary.
"""

import copy
import sys
import weakref
from types import FunctionType, ModuleType
from typing import Any, Dict, MutableMapping

from pellucid._regions import Settings, new_region, ready_core, settings_of

# Weak on both sides: the class that was made names the module's class as a base.
_classes: "MutableMapping[type, weakref.ReferenceType[type]]" = weakref.WeakKeyDictionary()


def is_module(target: Any) -> bool:
    """Whether it is a torch.nn.Module, without importing torch."""
    nn = sys.modules.get("torch.nn")
    return nn is not None and isinstance(target, nn.Module)


def _class_for(core: ModuleType, cls: type) -> type:
    """Raises TypeError for classes whose instances hold more than a dictionary (`__slots__`)."""
    known = _classes.get(cls)
    made = None if known is None else known()
    if made is None:
        namespace: Dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        bases = (core.OptimizedModule, cls)
        made = type(cls)(cls.__name__, bases, namespace)
        _classes[cls] = weakref.ref(made)
    return made


def _call_function(module: Any) -> Any:
    """The Python function behind `module(...)`."""
    call = type(module).__call__
    if isinstance(call, FunctionType):
        return call
    inner = getattr(call, "__wrapped__", None)  # the class itself was optimized
    if isinstance(inner, FunctionType):
        return inner
    raise TypeError(f"{type(module).__name__}.__call__ is no Python function and can't be captured")


def wrap_module(core: ModuleType, module: Any, settings: Settings) -> Any:
    """An instance of the module's class that shares its dictionary and whose calls are captured."""
    region = new_region(core, settings)
    call = core.optimized_function(_call_function(module), module, module, region)
    try:
        cls = _class_for(core, type(module))
    except TypeError:
        return call  # can be called and passes attributes on, but is no instance of the class
    wrapper = core.optimized_module(cls, module, call)
    object.__setattr__(wrapper, "__dict__", module.__dict__)
    return wrapper


def _rebuild(module: Any, settings: Settings) -> Any:
    return wrap_module(ready_core(), module, settings)


def _settings(wrapper: Any) -> Settings:
    return settings_of(wrapper._optimized_call._region)


def reduce_module(wrapper: Any, protocol: Any) -> Any:
    """`__reduce_ex__`: the original and the settings."""
    return _rebuild, (wrapper.__wrapped__, _settings(wrapper))


def copy_module(wrapper: Any, _: Any) -> Any:
    """`__copy__`."""
    return _rebuild(copy.copy(wrapper.__wrapped__), _settings(wrapper))


def deepcopy_module(wrapper: Any, memo: Any) -> Any:
    """`__deepcopy__`."""
    return _rebuild(copy.deepcopy(wrapper.__wrapped__, memo), _settings(wrapper))
