"""The engine against z3: what it derives of wide domains, where no brute force reaches, has no counterexample."""

import math

import pytest
import z3
from generating import BOOL, INT, RELATED
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pellucid import ShapeEnv

QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
WIDTH = 1000


class Number:
    """A z3 integer with Python's operators."""

    def __init__(self, term):
        self.term = term

    @staticmethod
    def of(value):
        return value if isinstance(value, Number) else Number(z3.IntVal(value))

    def __add__(self, other):
        return Number(self.term + Number.of(other).term)

    __radd__ = __add__

    def __neg__(self):
        return Number(-self.term)

    def __sub__(self, other):
        return self + -Number.of(other)

    def __rsub__(self, other):
        return Number.of(other) - self

    def __mul__(self, other):
        return Number(self.term * Number.of(other).term)

    __rmul__ = __mul__

    def __floordiv__(self, other):
        # z3 rounds so that the rest is never negative; Python rounds down.
        a, b = self.term, Number.of(other).term
        return Number(z3.If(b > 0, a / b, (-a) / (-b)))

    def __rfloordiv__(self, other):
        return Number.of(other) // self

    def __mod__(self, other):
        return self - self // other * other

    def __rmod__(self, other):
        return Number.of(other) % self

    def __pow__(self, exponent):
        return math.prod([self] * (exponent - 1), start=self) if exponent else Number.of(1)

    def __lt__(self, other):
        return Truth(self.term < Number.of(other).term)

    def __le__(self, other):
        return Truth(self.term <= Number.of(other).term)

    def __gt__(self, other):
        return Truth(self.term > Number.of(other).term)

    def __ge__(self, other):
        return Truth(self.term >= Number.of(other).term)

    def __eq__(self, other):
        return Truth(self.term == Number.of(other).term)

    def __ne__(self, other):
        return Truth(self.term != Number.of(other).term)


class Truth:
    """A z3 boolean; `and`, `or` and `not` become calls in `translated`."""

    def __init__(self, term):
        self.term = term


def minimum(*numbers):
    first, *rest = map(Number.of, numbers)
    for other in rest:
        first = Number(z3.If(first.term <= other.term, first.term, other.term))
    return first


def maximum(*numbers):
    first, *rest = map(Number.of, numbers)
    for other in rest:
        first = Number(z3.If(first.term >= other.term, first.term, other.term))
    return first


def value(tree, numbers):
    """The program of generating.py on z3's numbers."""
    kind, *parts = tree
    if kind == "x":
        return numbers[parts[0] % len(numbers)]
    if kind == "const":
        return Number.of(parts[0])
    if kind in ("and", "or"):
        terms = [value(part, numbers).term for part in parts]
        return Truth(z3.And(*terms) if kind == "and" else z3.Or(*terms))
    if kind == "not":
        return Truth(z3.Not(value(parts[0], numbers).term))
    operands = [value(part, numbers) for part in parts]
    if kind in ("min", "max"):
        return minimum(*operands) if kind == "min" else maximum(*operands)
    if kind in INT:
        return INT[kind](*operands)
    return BOOL[kind](*operands)


def divisors(tree, numbers):
    """What must not be 0 for the program to have a value."""
    kind, *parts = tree
    if kind in ("x", "const"):
        return []
    found = [condition for part in parts for condition in divisors(part, numbers)]
    if kind in ("floordiv", "mod"):
        found.append(value(parts[1], numbers).term != 0)
    return found


def symbolic(tree, numbers):
    from generating import run

    try:
        return run(tree, numbers)
    except ZeroDivisionError:
        return None


CONSTANTS = st.tuples(st.just("const"), st.integers(-6, 12))
LEAVES = st.one_of(st.tuples(st.just("x"), st.integers(0, 2)), st.tuples(st.just("x"), st.integers(0, 2)), CONSTANTS)


def grow(inner):
    positive = st.tuples(st.just("const"), st.integers(1, 12))
    return st.one_of(
        st.tuples(st.sampled_from(["add", "sub"]), inner, inner),
        st.tuples(st.just("mul"), inner, CONSTANTS),
        st.tuples(st.sampled_from(["floordiv", "mod"]), inner, positive),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner),
    )


NESTS = st.recursive(LEAVES, grow, max_leaves=8)
QUESTIONS = st.one_of(RELATED, st.tuples(st.sampled_from(["lt", "le", "eq", "ne"]), NESTS, NESTS))


def environment(hints):
    env = ShapeEnv()
    sizes = [env.create_size(hint, f"x{i}", policy="dynamic") for i, hint in enumerate(hints)]
    for size in sizes:
        env.constrain_range(size, min=2, max=WIDTH)
    terms = [Number(z3.Int(f"x{i}")) for i in range(len(hints))]
    domain = [z3.And(term.term >= 2, term.term <= WIDTH) for term in terms]
    return env, sizes, terms, domain


def assert_always(conclusion, premises):
    solver = z3.Solver()
    solver.set("timeout", 2000)
    solver.add(*premises, z3.Not(conclusion))
    result = solver.check()
    assert result != z3.sat, solver.model()
    return result == z3.unsat


HINTS = st.lists(st.integers(2, WIDTH), min_size=3, max_size=3)


@settings(max_examples=250, deadline=None, suppress_health_check=QUIET)
@given(HINTS, NESTS)
def test_expressions(hints, tree):
    env, sizes, terms, domain = environment(hints)
    made = symbolic(tree, sizes)
    if made is None:
        return
    scope = {"min": minimum, "max": maximum, **{f"s{i}": term for i, term in enumerate(terms)}}
    simple = Number.of(eval(repr(made), scope))
    assert_always(simple.term == value(tree, terms).term, domain)
    low, high = env.range(made)
    assert_always(z3.And(value(tree, terms).term >= low, value(tree, terms).term <= high), domain)


@settings(max_examples=400, deadline=None, suppress_health_check=QUIET)
@given(HINTS, st.lists(QUESTIONS, min_size=1, max_size=5), st.lists(QUESTIONS, min_size=1, max_size=3))
def test_what_is_known_after_questions(hints, asked, questions):
    env, sizes, terms, domain = environment(hints)
    premises = list(domain)
    for tree in asked:
        condition = symbolic(tree, sizes)
        if condition is None:
            return
        truth = bool(condition)
        stated = value(tree, terms).term
        premises += [*divisors(tree, terms), stated if truth else z3.Not(stated)]
    for tree in questions:
        condition = symbolic(tree, sizes)
        if condition is None:
            continue
        defined = divisors(tree, terms)
        if env.statically_known_true(condition):
            assert_always(value(tree, terms).term, premises + defined)
        if env.statically_known_false(condition):
            assert_always(z3.Not(value(tree, terms).term), premises + defined)


@pytest.mark.parametrize("width", [3, 64])
def test_the_harness_finds_errors(width):
    x = z3.Int("x")
    with pytest.raises(AssertionError):
        assert_always(x < width, [x >= 0, x <= width])
