"""Pellucid: a native front end for PyTorch programs.

Public names are listed in one table and loaded on first use, so that `import pellucid` needs neither torch nor time.
"""

import importlib as _importlib
import os as _os
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from pellucid import config as config
    from pellucid import exc as exc
    from pellucid import logging as logging

__version__ = "0.1.0"

# name -> (submodule, attribute); attribute None: the submodule itself.
_LAZY: Dict[str, Tuple[str, Optional[str]]] = {
    "config": ("config", None),
    "exc": ("exc", None),
    "logging": ("logging", None),
}


def __getattr__(name: str) -> Any:
    try:
        submodule, attribute = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    module = _importlib.import_module(f"{__name__}.{submodule}")
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value  # the next use is a plain lookup
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *_LAZY} - {"TYPE_CHECKING", "Any", "Dict", "List", "Optional", "Tuple"})


if _os.environ.get("PELLUCID_LOGS"):
    _importlib.import_module("pellucid.logging")  # it reads the variable; a misspelt name should be heard of now
