"""Searches among the sources that bytecode leaves open for the one that compiles to the same code.

The decompiler makes each decision the likely way and says which ones it made; here some are turned around, the outcome is compiled, and
what comes nearer to the original stays. Knows how to search and what is near, not what is decided.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import pellucid._bytecode as _bytecode
from pellucid import _grading

Choice = Tuple[str, int, int]  # of which code object, what kind, about which instruction

_WITH_LINES, _WITHOUT_LINES = 16, 17  # choices about how a code object is printed, for instruction 0
_MOST_ROUNDS = 8
_MOST_PER_ROUND = 160
_MOST_PAIRS = 12  # so many choices are also turned two at a time
_MOST_BYTES = 2_000_000  # of bytecode tried for one code object
_FAR = 1 << 30
# Instructions whose argument is always the index of a name.
_NAMING = {prefix + "_" + kind for prefix in ("LOAD", "STORE", "DELETE") for kind in ("NAME", "GLOBAL", "ATTR")} | {"LOAD_METHOD"}


class Found(NamedTuple):
    """A source, how good it is, and the decisions that led to it."""

    grade: int
    difference: str
    source: Optional[str]
    line_layout: bool
    turned: Tuple[Choice, ...]
    distance: int
    either: bool = False  # with lines and without them


class Alternatives:
    """Remembers what was found for code objects that stand in others."""

    def __init__(self, compiler: _grading.Compiler, **signature: Any) -> None:
        self._compiler = compiler
        self._signature = signature
        self._known: Dict[str, Tuple[Choice, ...]] = {}

    def search(self, code: Any) -> Optional[Found]:
        """The nearest source found for a code object; None: it has none at all. Those in it are searched first."""
        turned: List[Choice] = []
        for const in code.co_consts:
            if _is_code(const):
                turned.extend(self._inner(const))
        return self._search(code, tuple(turned))

    def _inner(self, code: Any) -> Tuple[Choice, ...]:
        key = "{}:{}:{}".format(code.co_name, code.co_firstlineno, len(code.co_code))
        if key not in self._known:
            signature, self._signature = self._signature, {}
            try:
                found = self.search(code)
            finally:
                self._signature = signature
            self._known[key] = _kept(code, found) if found is not None else ()
        return self._known[key]

    def _search(self, code: Any, inner: Tuple[Choice, ...]) -> Optional[Found]:
        own = "{}:{}".format(code.co_name, code.co_firstlineno)
        best, choices = self._start(code, inner)
        if best.grade == _grading.IDENTICAL:
            return best
        left = _MOST_BYTES // sum(len(each.co_code) for each in _grading.code_objects(code))
        seen: Set[str] = set() if best.source is None else {best.source}
        for _ in range(_MOST_ROUNDS):
            open_choices = [choice for choice in choices if choice[0] == own and choice not in best.turned]
            open_choices = open_choices[: min(left, _MOST_PER_ROUND)]
            left -= len(open_choices)
            tried = self._try(code, [best.turned + (choice,) for choice in open_choices], best.line_layout, seen)
            better = min(tried, key=_order, default=best)
            if _order(better) >= _order(best) and len(open_choices) <= min(_MOST_PAIRS, left // len(open_choices or "-")):
                pairs = [best.turned + (a, b) for i, a in enumerate(open_choices) for b in open_choices[:i]]
                better = min(self._try(code, pairs, best.line_layout, seen), key=_order, default=best)
            if _order(better) >= _order(best):
                break
            best = better
            if best.grade == _grading.IDENTICAL:
                break
            _, choices = _bytecode.decompile_choices(code, turned=best.turned, line_layout=best.line_layout, **self._signature)
        if best.grade != _grading.IDENTICAL and best.source is not None:
            best = min([best, *self._try(code, [best.turned], not best.line_layout, seen)], key=_order)
        return best if best.source is not None else None

    def _start(self, code: Any, turned: Tuple[Choice, ...]) -> Tuple[Found, Sequence[Choice]]:
        starts = [Found(_grading.DIFFERS, "", None, False, turned, _FAR)]
        choices: Sequence[Choice] = ()
        for line_layout in (True, False):
            _, choices = _bytecode.decompile_choices(code, turned=turned, line_layout=line_layout, **self._signature)
            starts.extend(self._try(code, [turned], line_layout, set()))
        best = min(starts, key=_order)
        return best._replace(either=sum(each.grade == _grading.IDENTICAL for each in starts) == 2), choices

    def _try(self, code: Any, sets: Sequence[Tuple[Choice, ...]], line_layout: bool, seen: Set[str]) -> List[Found]:
        """What comes of each set of choices, but for sources seen before."""
        sources = []
        for turned in sets:
            source, _ = _bytecode.decompile_choices(code, turned=turned, line_layout=line_layout, **self._signature)
            if source is not None and source not in seen:
                seen.add(source)
                sources.append((turned, source))
        if not sources:
            return []
        compiled = self._compiler.compile([_grading.request_for(code, source, _grading.imported_names(code)) for _, source in sources])
        found = []
        for (turned, source), made in zip(sources, compiled):
            reached, difference = _grading.grade(code, made)
            far = 0 if reached == _grading.IDENTICAL else _FAR - 1 if isinstance(made, str) else _distance(code, made)
            found.append(Found(reached, difference, source, line_layout, turned, far))
        return found


def _kept(code: Any, found: Found) -> Tuple[Choice, ...]:
    """The decisions that give a code object its source where it stands in another."""
    if found.either or found.grade != _grading.IDENTICAL:
        return found.turned
    kind = _WITH_LINES if found.line_layout else _WITHOUT_LINES
    return found.turned + (("{}:{}".format(code.co_name, code.co_firstlineno), kind, 0),)


def _is_code(const: Any) -> bool:
    return hasattr(const, "co_code")


def _order(found: Found) -> Tuple[int, int, int, bool]:
    """The best comes first: identical, then near, then with few decisions turned."""
    grade = 0 if found.grade == _grading.IDENTICAL else 1
    return grade, found.distance + (0 if found.grade else 1), len(found.turned), found.line_layout


def _steps(code: Any, instructions: Sequence[Any]) -> List[Tuple[str, Any]]:
    """Operations with what they operate on, wherever that stands among constants and names."""
    steps: List[Tuple[str, Any]] = []
    for each in instructions:
        operand: Any = each.arg
        if each.target is not None:
            operand = None
        elif each.op in ("LOAD_CONST", "RETURN_CONST"):
            const = code.co_consts[each.arg]
            operand = const.co_name if _is_code(const) else repr(const)
        elif each.op in _NAMING and each.arg < len(code.co_names):
            operand = code.co_names[each.arg]
        steps.append((each.op, operand))
    return steps


def _distance(code: Any, made: Any) -> int:
    """How many instructions differ between the first difference and the last one, and how many jumps outside of them lead elsewhere."""
    left, right = _bytecode.decode(code).instructions, _bytecode.decode(made).instructions
    a, b = _steps(code, left), _steps(made, right)
    shorter = min(len(a), len(b))
    before = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    behind = next((i for i in range(shorter - before) if a[-1 - i] != b[-1 - i]), shorter - before)
    moved = len(b) - len(a)
    elsewhere = 0
    for index, each in enumerate(left):
        if each.target is None or before <= index < len(a) - behind:
            continue
        other = right[index if index < before else index + moved].target
        expected = each.target if each.target <= before else each.target + moved
        near = before <= each.target <= len(a) - behind and before <= other <= len(b) - behind
        elsewhere += other != expected and not (near and each.target != before and behind + before < shorter)
    return 4 * (max(len(a), len(b)) - before - behind) + elsewhere
