"""`optimize` as the programs of ../shared/cases call it, with all transformed code decompiled, compiled again and run in its place.

`stock` is torch.compile with the backend "eager", `own` is Pellucid. Must not know any of the programs.
"""

import builtins
import itertools
from types import CodeType

import case_adapter

from pellucid import _grading, _recompile, decompiling

_numbers = itertools.count()
grades = []  # of every code object so far


def again(code, space):
    """The code object of decompiled source, which finds objects that have no literal in `space`."""
    result = decompiling.decompile(code, check=True)
    assert result.grade != decompiling.DIFFERS, result.reason
    grades.append(result.grade)
    request = _grading.request_for(code, result.source, renamed=result.renamed)
    made = _recompile.compile_request(request)
    names = {}
    for name, value in result.bindings.items():
        names[name] = f"{name}_{next(_numbers)}"
        space[names[name]] = value
    made = _renamed(made, names)
    return made.replace(co_name=code.co_name, co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)


def _renamed(code, names):
    consts = tuple(_renamed(const, names) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_names=tuple(names.get(name, name) for name in code.co_names), co_consts=consts)


def own():
    """Pellucid."""
    from pellucid._regions import ready_core

    ready_core().testing_replace_code(lambda function, code: again(code, function.__globals__))
    return case_adapter.factory()


def stock():
    """torch.compile."""
    import torch
    import torch._dynamo
    from torch._dynamo.convert_frame import register_bytecode_hook

    register_bytecode_hook(lambda before, code: again(code, vars(builtins)))

    def optimize(fn, *, backend=None, dynamic=None, fullgraph=False):
        return torch.compile(fn, backend=backend or "eager", dynamic=dynamic, fullgraph=fullgraph)

    optimize.recompile_limit = torch._dynamo.config.recompile_limit
    optimize.mark_dynamic = torch._dynamo.mark_dynamic
    return optimize
