"""`pellucid.decompile`: source for any code object, and how good it is.

First the structured form; where there is none, or where a check shows that it is something else than the original, the block form, which is
checked as well. No source file is ever opened. Knows which form to take, not how they are made.
"""

import types
from typing import Any, Dict, List, Literal, NamedTuple, Optional, Tuple, Union, overload

import pellucid._bytecode as _bytecode
from pellucid import _alternatives, _grading, _interpreters

# What block forms import is there already when they run: the machinery of imports may be what is decompiled.
from pellucid import block_support as block_support

IDENTICAL = "identical"
EQUAL_FLOW = "equal flow"
BLOCK_FORM = "block form"
DIFFERS = "differs"


class Decompiled(NamedTuple):
    """Decompiled source with what belongs to it; `str()` of it is the source."""

    source: str
    grade: str  # "identical", "equal flow" or "block form"; "differs" is a fault of the decompiler: never run such a source
    reason: str  # why it is no better than that; empty for "identical"
    # What names in the source stand for that are no names or literals of Python: objects among the constants, to be put where the source
    # finds them as globals.
    bindings: Dict[str, Any]
    renamed: Dict[str, str]  # names in the source that stand for variables whose own names are no identifiers
    line_map: List[Tuple[int, str, Tuple[int, ...], Tuple[int, ...]]]  # line, qualified name, bytecode offsets, original lines

    def __str__(self) -> str:
        return self.source


@overload
def decompile(obj: Any, *, check: Literal[False] = False) -> str: ...


@overload
def decompile(obj: Any, *, check: Literal[True]) -> Decompiled: ...


def decompile(obj: Any, *, check: bool = False) -> Union[str, Decompiled]:
    """The source of a function, a code object or a module, from its bytecode alone.

    With `check` the source is compiled again and compared with the original, by an interpreter of its version, and a `Decompiled` comes
    back, whose `grade` is "identical", "equal flow" (the same operations in the same order on every path) or "block form" (a loop over
    labelled blocks, each of which does what the original's does and leads where it leads; what no better form was found for, or what the
    check refused). "differs" says that not even that could be shown: a fault. Without `check` the source comes back as it is.

    Raises TypeError for anything without code, and ValueError where code is damaged or no interpreter of its version is found to check.
    """
    code = code_of(obj)
    signature = _signature_of(obj)
    if not check:
        source, reason, _, _ = _bytecode.decompile_structured(code, **signature)
        return source if source is not None else block_form(code, reason, **signature).source
    version = _grading.version_of(code)
    python = _interpreters.find(version)
    if python is None:
        raise ValueError("no Python {} is found to check with".format(_interpreters.version_name(version)))
    compiler = _grading.Compiler(version, None if version == _grading.OWN_VERSION else python)
    try:
        return checked(code, compiler, **signature)
    finally:
        compiler.close()


def _signature_of(obj: Any) -> Dict[str, Any]:
    """The function that defaults and annotations come from, as an argument of `decompile_structured`; empty where there are none."""
    function = getattr(obj, "__func__", obj)
    if not isinstance(function, types.FunctionType):
        return {}
    return {"function": function} if function.__defaults__ or function.__kwdefaults__ or function.__annotations__ else {}


def checked(code: Any, compiler: _grading.Compiler, **signature: Any) -> Decompiled:
    """The best form of a code object that a check accepts; `signature`: what `_signature_of` gives for its function."""
    reason = "there is no structured form"
    # As people write it first; with the original's lines where the compiler makes something else of that.
    best: Optional[Decompiled] = None
    for line_layout in (False, True):
        source, why, line_map, bindings = _bytecode.decompile_structured(code, line_layout=line_layout, **signature)
        if source is None:
            reason = why
            break
        [(grade, difference)] = _grading.check(
            compiler, [(code, source)], {name: value for name, value, renamed in bindings if not renamed}
        )
        if grade == _grading.DIFFERS:
            reason = "the structured form is something else: " + difference
            continue
        found = _with_bindings(source, IDENTICAL if grade == _grading.IDENTICAL else EQUAL_FLOW, difference, line_map, bindings)
        if grade == _grading.IDENTICAL:
            return found
        best = best or found
    searched = _searched(code, compiler, signature, IDENTICAL if best is not None else EQUAL_FLOW)
    return searched or best or _checked_block_form(code, compiler, reason, signature)


def _searched(code: Any, compiler: _grading.Compiler, signature: Dict[str, Any], least: str) -> Optional[Decompiled]:
    """What comes of making the decisions that bytecode leaves open otherwise, if that is at least so good."""
    found = _alternatives.Alternatives(compiler, **signature).search(code)
    if found is None or found.grade < (_grading.IDENTICAL if least == IDENTICAL else _grading.EQUAL_FLOW):
        return None
    source, _, line_map, bindings = _bytecode.decompile_structured(code, line_layout=found.line_layout, turned=found.turned, **signature)
    return _with_bindings(source, IDENTICAL if found.grade == _grading.IDENTICAL else EQUAL_FLOW, found.difference, line_map, bindings)


def _checked_block_form(code: Any, compiler: _grading.Compiler, reason: str, signature: Dict[str, Any]) -> Decompiled:
    """The block form, compiled and compared with the original; graded "differs" where that finds a fault."""
    result = block_form(code, reason, **signature)
    [made] = compiler.compile([_grading.request_for(code, result.source, renamed=result.renamed)])
    fault = _grading.block_form_fault(code, made, result.bindings)
    return result._replace(grade=DIFFERS, reason="{} ({})".format(fault, reason)) if fault else result


def block_form(code: Any, reason: str = "asked for", **signature: Any) -> Decompiled:
    """The block form of a code object; `reason`: why it is wanted; `signature`: what `_signature_of` gives for its function."""
    source, why, bindings = _bytecode.decompile_blocks(code, **signature)
    if source is None:
        raise ValueError("{} can't be decompiled: {}".format(code.co_name, why))
    return _with_bindings(source, BLOCK_FORM, reason, [], bindings)


def _with_bindings(source: str, grade: str, reason: str, line_map: Any, bindings: Any) -> Decompiled:
    values = {name: value for name, value, renamed in bindings if not renamed}
    return Decompiled(source, grade, reason, values, {name: value for name, value, renamed in bindings if renamed}, line_map)


def code_of(obj: Any) -> Any:
    """The code object behind a function, method, generator, coroutine, module or code object; TypeError for anything else."""
    if isinstance(obj, (types.CodeType, _bytecode.NeutralCode)):
        return obj
    if isinstance(obj, types.ModuleType):
        return _code_of_module(obj)
    seen = 0
    while seen < 100:
        seen += 1
        for attribute in ("__func__", "__code__", "gi_code", "cr_code", "ag_code"):
            found = getattr(obj, attribute, None)
            if isinstance(found, (types.CodeType, _bytecode.NeutralCode)):
                return found
            if attribute == "__func__" and found is not None:
                obj = found
                break
        else:
            break
    raise TypeError("{} has no code to decompile".format(type(obj).__name__))


def _code_of_module(module: types.ModuleType) -> Any:
    spec = getattr(module, "__spec__", None)
    cached = getattr(spec, "cached", None)
    if cached:
        try:
            with open(cached, "rb") as file:
                return _bytecode.load_pyc(file.read())
        except OSError:
            pass
    loader = getattr(spec, "loader", None)
    code = loader.get_code(spec.name) if hasattr(loader, "get_code") else None  # type: ignore[union-attr]
    if code is None:
        raise TypeError("module {} has no bytecode: it is built in, or its loader does not show it".format(module.__name__))
    return code
