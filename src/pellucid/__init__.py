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
    from pellucid.api import allow_in_graph as allow_in_graph
    from pellucid.api import cache_entries as cache_entries
    from pellucid.api import compile as compile
    from pellucid.api import disable as disable
    from pellucid.api import graph_break as graph_break
    from pellucid.api import is_compiling as is_compiling
    from pellucid.api import mark_dynamic as mark_dynamic
    from pellucid.api import mark_static as mark_static
    from pellucid.api import mark_unbacked as mark_unbacked
    from pellucid.api import maybe_mark_dynamic as maybe_mark_dynamic
    from pellucid.api import optimize as optimize
    from pellucid.api import reset as reset
    from pellucid.debugging.session import prepare_debug as prepare_debug
    from pellucid.decompiling import decompile as decompile
    from pellucid.explaining import explain as explain
    from pellucid.shapes import ShapeEnv as ShapeEnv
    from pellucid.shapes import constrain_range as constrain_range

__version__ = "0.1.0"

# name -> (submodule, attribute); attribute None: the submodule itself.
_LAZY: Dict[str, Tuple[str, Optional[str]]] = {
    "config": ("config", None),
    "exc": ("exc", None),
    "logging": ("logging", None),
    "allow_in_graph": ("api", "allow_in_graph"),
    "cache_entries": ("api", "cache_entries"),
    "compile": ("api", "compile"),
    "decompile": ("decompiling", "decompile"),
    "disable": ("api", "disable"),
    "explain": ("explaining", "explain"),
    "graph_break": ("api", "graph_break"),
    "is_compiling": ("api", "is_compiling"),
    "mark_dynamic": ("api", "mark_dynamic"),
    "mark_static": ("api", "mark_static"),
    "mark_unbacked": ("api", "mark_unbacked"),
    "maybe_mark_dynamic": ("api", "maybe_mark_dynamic"),
    "optimize": ("api", "optimize"),
    "prepare_debug": ("debugging.session", "prepare_debug"),
    "reset": ("api", "reset"),
    "ShapeEnv": ("shapes", "ShapeEnv"),
    "constrain_range": ("shapes", "constrain_range"),
}


def __getattr__(name: str) -> Any:
    try:
        submodule, attribute = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    module = _importlib.import_module(f"{__name__}.{submodule}")
    # From now on plain lookups, of the submodule's other names too: captured programs read these, and a lookup that runs Python code
    # would end their graph.
    for public, (owner, own_name) in _LAZY.items():
        if owner == submodule:
            globals()[public] = module if own_name is None else getattr(module, own_name)
    return globals()[name]


def __dir__() -> List[str]:
    return sorted({*globals(), *_LAZY} - {"TYPE_CHECKING", "Any", "Dict", "List", "Optional", "Tuple"})


if _os.environ.get("PELLUCID_LOGS"):
    _importlib.import_module("pellucid.logging")  # it reads the variable; a misspelt name should be heard of now
