"""Symbolic shapes without torch: `pellucid.ShapeEnv`, its numbers, and the questions that may be asked of them.

The engine is C++ (csrc/symbolic); this file gives what comes out of it names. docs/shape-engine.md explains it. Knows neither torch
nor capture.
"""

import contextlib
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from pellucid import config
from pellucid._bytecode import (
    GuardProgram,
    SymBool,
    SymFloat,
    SymInt,
    sym_ceil_div,
    sym_float,
    sym_int,
    sym_ite,
    sym_math,
    sym_max,
    sym_min,
    sym_not,
    sym_sum,
)
from pellucid._bytecode import ShapeEnv as _ShapeEnv

__all__ = [
    "Guard",
    "GuardProgram",
    "RuntimeAssert",
    "ShapeEnv",
    "SymBool",
    "SymFloat",
    "SymInt",
    "constrain_range",
    "sym_ceil_div",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_math",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sum",
]

_Int = Union[int, SymInt]


class Guard(NamedTuple):
    """One condition on the inputs, as Python text, with the place that made it necessary."""

    text: str
    filename: str
    line: int

    def __str__(self) -> str:
        return f"{self.text}  # {self.filename}:{self.line}" if self.filename else self.text


class RuntimeAssert(NamedTuple):
    """A fact that is to be checked as soon as `symbol`, the newest in it, is known."""

    symbol: SymInt
    condition: SymBool
    message: str
    filename: str
    line: int


class ShapeEnv(_ShapeEnv):
    """Symbols with all that is known of them.

    Numbers are made by `create_size` and its like, computed with as Python's, and asked by `bool()`, `int()` or a method. What follows
    from what is known is answered as it is; else the hints answer, and a guard is recorded.
    """

    def __new__(cls, *, specialize_zero_one: bool = True, duck_shapes: Optional[bool] = None) -> "ShapeEnv":
        """Settings as of `__init__`."""
        env: ShapeEnv = super().__new__(cls)
        return env

    def __init__(self, *, specialize_zero_one: bool = True, duck_shapes: Optional[bool] = None) -> None:
        """`duck_shapes` is `config.assume_duck_shapes` unless given."""
        super().__init__(
            specialize_zero_one=specialize_zero_one, duck_shapes=config.assume_duck_shapes if duck_shapes is None else duck_shapes
        )

    def create_sizes(
        self,
        shape: Sequence[int],
        source: str,
        *,
        policy: Union[str, Dict[int, str]] = "duck",
        ranges: Optional[Dict[int, Tuple[Optional[int], Optional[int]]]] = None,
        dynamic: Sequence[int] = (),
    ) -> Tuple[_Int, ...]:
        """The sizes of a tensor called `source`, each as `create_size` makes it.

        `policy` is for all dimensions, or by dimension ("duck" for those not named). Dimensions in `dynamic` must not become one value;
        every value in the range that `ranges` gives must do.
        """
        policies = policy if isinstance(policy, dict) else {}
        named: List[Tuple[str, Iterable[int]]] = [("policy", policies), ("ranges", ranges or {}), ("dynamic", dynamic)]
        for what, dimensions in named:
            for dimension in dimensions:
                if not 0 <= dimension < len(shape):
                    raise ValueError(f"{what}: {source} has no dimension {dimension}, only {len(shape)} of them")
        sizes = []
        for dimension, hint in enumerate(shape):
            least, most = (ranges or {}).get(dimension, (None, None))
            sizes.append(
                self.create_size(
                    hint,
                    f"{source}.size()[{dimension}]",
                    policy=policies.get(dimension, "duck") if isinstance(policy, dict) else policy,
                    min=least,
                    max=most,
                    constraint="strict" if dimension in (ranges or {}) else "relaxed" if dimension in dynamic else None,
                )
            )
        return tuple(sizes)

    @property
    def inputs(self) -> List[Tuple[str, Any]]:
        """(source, number) of everything that came from outside, in order: what a guard program is called with."""
        return self._inputs()

    @property
    def guards(self) -> List[Guard]:
        """The guards in terms of the inputs, without those that follow from others.

        A constraint that does not hold raises ConstraintViolationError.
        """
        return [Guard(*row) for row in self._guards(False)[0]]

    def guard_program(self, *, skip_static: bool = False) -> GuardProgram:
        """The guards as a program: called with the values of the inputs, it says whether all hold.

        With `skip_static`, inputs that became constants are not looked at.
        """
        return self._guards(skip_static)[1]

    @property
    def runtime_asserts(self) -> List[RuntimeAssert]:
        """What is left to be checked at run time."""
        return [RuntimeAssert(*row) for row in self._runtime_asserts()]

    @property
    def replacements(self) -> Dict[str, Any]:
        """What symbols turned out to be, by name."""
        return self._replacements()

    @property
    def log(self) -> List[str]:
        """Every symbol, question, answer, guard and replacement, one line each, with its place."""
        return self._log()

    def replayed(self) -> "ShapeEnv":
        """A fresh ShapeEnv that was asked the same in the same order."""
        fresh = type(self)(specialize_zero_one=self.specialize_zero_one, duck_shapes=self.duck_shapes)
        fresh._replay(self)
        return fresh

    def check(self, condition: Union[bool, SymBool], message: str = "") -> None:
        """States a fact: RuntimeError if it does not hold, a run-time assertion if only the data knows."""
        if not self.expect_true(condition, message):
            raise RuntimeError(message or f"expected {condition}")

    @contextlib.contextmanager
    def suppress_guards(self) -> Iterator[None]:
        """Questions are answered by the hints, and no guard remembers it."""
        self._suppress()
        try:
            yield
        finally:
            self._unsuppress()


def constrain_range(number: _Int, *, min: Optional[int] = None, max: Optional[int] = None) -> None:
    """States that an int lies between `min` and `max`, both included, without asking for its value.

    Of a plain int, ValueError if it does not. Of an int with a hint this is a guard, of others a run-time assertion.
    """
    if isinstance(number, SymInt):
        number._constrain_range(min, max)
        return
    if not isinstance(number, int):
        raise TypeError(f"constrain_range takes an int or SymInt, not {type(number).__name__}")
    if min is not None and max is not None and min > max:
        raise ValueError(f"contradictory range [{min}, {max}]")
    if (min is not None and number < min) or (max is not None and number > max):
        raise ValueError(f"{number} is not in the range [{min}, {max}]")
