"""Loads `pellucid._core`, which can only be loaded beside the torch it was built for and after it.

Whoever needs the core calls `core()`; nothing else imports `pellucid._core`. Knows nothing of what the core does.
"""

import importlib
import sys
from types import ModuleType

from pellucid import exc


def core() -> ModuleType:
    """The `pellucid._core` module. Raises exc.CoreUnavailable, which names what is missing or both versions of torch."""
    loaded = sys.modules.get("pellucid._core")
    if loaded is not None:
        return loaded
    try:
        from pellucid import _build_info
    except ImportError as error:
        raise exc.CoreUnavailable("pellucid was not built: no _build_info (run `make build`, or install the package)") from error
    built_for = _build_info.torch_version
    if built_for is None:
        raise exc.CoreUnavailable(
            "this pellucid was built without torch (for another Python than 3.11, or where torch was not installed): "
            "it has the bytecode tools only and can't capture"
        )
    try:
        import torch  # its libraries must be loaded first: an installed _core has no path to them
    except ImportError as error:
        raise exc.CoreUnavailable(f"this pellucid was built for torch {built_for}, but torch can't be imported: {error}") from error
    if torch.__version__ != built_for:
        raise exc.CoreUnavailable(f"this pellucid was built for torch {built_for}, but torch {torch.__version__} is installed")
    # Not by the package's attribute: another thread's import may have put the module into sys.modules, and not there yet.
    return importlib.import_module("pellucid._core")
