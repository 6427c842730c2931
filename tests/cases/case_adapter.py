"""`optimize` as the programs of ../shared/cases call it: the function or module first, the backend by keyword.

Imported by their runner (`--impl case_adapter:factory`); must not know any of the programs.
"""

import pellucid


def factory():
    """The `optimize` that the cases call, with the attributes they look at."""

    def optimize(fn, *, backend=None, dynamic=None, fullgraph=False):
        return pellucid.optimize(backend or "eager", dynamic=dynamic, fullgraph=fullgraph)(fn)

    optimize.recompile_limit = pellucid.config.cache_size_limit
    optimize.mark_dynamic = pellucid.mark_dynamic
    return optimize
