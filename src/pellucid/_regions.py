"""Regions from Python: the settings of one optimize() call, and the core made ready for them. Knows no wrappers."""

import os
import sys
import sysconfig
import warnings
from types import ModuleType
from typing import Any, Dict, NamedTuple, Optional

from pellucid import _native, exc

DEFAULT_BACKEND = "inductor"


class Settings(NamedTuple):
    """The arguments of one optimize() or compile() call, as given."""

    backend: Any = DEFAULT_BACKEND
    fullgraph: bool = False
    dynamic: Optional[bool] = None
    mode: Optional[str] = None
    options: Optional[Dict[str, Any]] = None


_ready: Optional[ModuleType] = None
_warned = False


def settings_of(region: Any) -> Settings:
    """What a region was made with."""
    settings: Settings = region.settings
    return settings


def _directory(path: str) -> str:
    return os.path.join(path, "") if path else ""


def _site_packages() -> str:
    """Where packages are installed. With `expand`, sysconfig would read all that CPython was built with."""
    path = sysconfig.get_path("purelib", expand=False)
    return path.format(base=sys.prefix, py_version_short="%d.%d" % sys.version_info[:2], platlibdir=sys.platlibdir)


def ready_core() -> ModuleType:
    """`_core`, told where code lies that is not captured. Raises exc.CoreUnavailable."""
    global _ready
    if _ready is None:
        core = _native.core()
        torch_file = getattr(sys.modules.get("torch"), "__file__", None) or ""
        core.set_skip_roots(
            _directory(os.path.dirname(torch_file)),
            _directory(os.path.dirname(os.path.abspath(__file__))),
            _directory(os.path.dirname(os.__file__)),
            _directory(_site_packages()),
        )
        _ready = core
    return _ready


def core_or_eager() -> Optional[ModuleType]:
    """The core, or None where programs can only run eagerly: other Pythons, builds without torch. Warns once then.

    A torch that the core was not built for stays an error.
    """
    global _warned
    if sys.version_info[:2] == (3, 11):
        try:
            return ready_core()
        except exc.CoreUnavailable as error:
            from pellucid import _build_info

            if _build_info.torch_version is not None:
                raise
            reason = str(error)
    else:
        reason = "capture needs CPython 3.11, this is %d.%d" % sys.version_info[:2]
    if not _warned:
        _warned = True
        warnings.warn(f"pellucid runs programs eagerly: {reason}", RuntimeWarning, stacklevel=4)
    return None


def name_of_backend(backend: Any) -> str:
    """How messages call a backend."""
    return backend if isinstance(backend, str) else getattr(backend, "__name__", None) or type(backend).__name__


def new_region(core: ModuleType, settings: Settings) -> Any:
    """A region with these settings. An unknown backend is an error here, not at the first graph."""
    from pellucid import backends

    region = core.region(
        backend=backends.resolve(settings.backend, mode=settings.mode, options=settings.options),
        backend_name=name_of_backend(settings.backend),
        options=settings.options,
        fullgraph=settings.fullgraph,
        dynamic=settings.dynamic,
        settings=settings,
    )
    return region
