"""Random programs over numbers: each is run on symbolic numbers and on plain ones, and both must agree.

A program is a tree of tuples, ("add", left, right), ("x", 0), ("const", 3); `run` computes it with Python's own operators on whatever
numbers it is given.
"""

import math
import operator

from hypothesis import strategies as st

from pellucid.shapes import SymBool, SymFloat, SymInt, sym_ceil_div, sym_ite, sym_max, sym_min, sym_not


def _symbolic(*values):
    return any(isinstance(value, (SymInt, SymBool, SymFloat)) for value in values)


def _either(symbolic, plain):
    return lambda *values: symbolic(*values) if _symbolic(*values) else plain(*values)


def _and(a, b):
    return (a & b) if _symbolic(a, b) else (a and b)


def _or(a, b):
    return (a | b) if _symbolic(a, b) else (a or b)


INT = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
    "abs": abs,
    "min": _either(sym_min, min),
    "max": _either(sym_max, max),
    "ceildiv": _either(sym_ceil_div, lambda a, b: -(-a // b)),
    "and_": operator.and_,
    "or_": operator.or_,
    "xor": operator.xor,
    "ite": _either(sym_ite, lambda c, a, b: a if c else b),
    "floor": lambda a, b: math.floor(a / b),
    "trunc": lambda a, b: math.trunc(a / b),
    "ceil": lambda a, b: math.ceil(a / b),
    "square": lambda a: a**2,
    "shift": lambda a: a << 2,
    "unshift": lambda a: a >> 1,
    "invert": operator.invert,
}
BOOL = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": _and,
    "or": _or,
    "not": _either(sym_not, operator.not_),
}


def run(tree, numbers):
    """The value of a program where number i is `numbers[i]`."""
    kind = tree[0]
    if kind == "x":
        return numbers[tree[1] % len(numbers)]
    if kind == "const":
        return tree[1]
    return (INT.get(kind) or BOOL[kind])(*[run(part, numbers) for part in tree[1:]])


CONSTANTS = st.tuples(st.just("const"), st.integers(-4, 9))
LEAVES = st.one_of(st.tuples(st.just("x"), st.integers(0, 2)), st.tuples(st.just("x"), st.integers(0, 2)), CONSTANTS)


def _grow(inner):
    # What sizes are computed with comes up most often.
    usual = st.tuples(st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "add", "mul", "floordiv"]), inner, inner)
    by_constant = st.tuples(st.sampled_from(["floordiv", "mod", "mul", "add"]), inner, CONSTANTS)
    rare = st.tuples(st.sampled_from(["min", "max", "ceildiv", "and_", "or_", "xor", "floor", "trunc", "ceil"]), inner, inner)
    unary = st.tuples(st.sampled_from(["neg", "abs", "square", "shift", "unshift", "invert"]), inner)
    choice = st.tuples(st.just("ite"), st.tuples(st.sampled_from(["lt", "eq", "le"]), inner, inner), inner, inner)
    return st.one_of(usual, by_constant, usual, by_constant, rare, unary, choice)


INTS = st.recursive(LEAVES, _grow, max_leaves=10)
COMPARISONS = st.tuples(st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne", "eq"]), INTS, INTS)
SMALL = st.recursive(LEAVES, _grow, max_leaves=4)
SMALL_COMPARISONS = st.tuples(st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne", "eq"]), SMALL, SMALL)
# What implies each other: linear relations, divisibility, equalities between few symbols.
LINEAR = st.recursive(LEAVES, lambda inner: st.tuples(st.sampled_from(["add", "sub"]), inner, inner), max_leaves=4)
RELATED = st.one_of(
    st.tuples(st.sampled_from(["lt", "le", "eq", "ne"]), LINEAR, LINEAR),
    st.tuples(st.just("eq"), st.tuples(st.just("mod"), LINEAR, st.tuples(st.just("const"), st.integers(2, 6))), CONSTANTS),
    st.tuples(st.just("eq"), st.tuples(st.just("mod"), LINEAR, st.tuples(st.just("x"), st.integers(0, 2))), st.just(("const", 0))),
    st.tuples(st.sampled_from(["lt", "le", "eq"]), st.tuples(st.just("mul"), LINEAR, LINEAR), LINEAR),
    st.tuples(
        st.sampled_from(["lt", "le", "eq"]), st.tuples(st.just("floordiv"), LINEAR, st.tuples(st.just("const"), st.integers(2, 5))), LINEAR
    ),
)


def _combine(inner):
    return st.one_of(st.tuples(st.sampled_from(["and", "or"]), inner, inner), st.tuples(st.just("not"), inner))


CONDITIONS = st.recursive(st.one_of(SMALL_COMPARISONS, RELATED), _combine, max_leaves=3)
FACTS = st.recursive(RELATED, _combine, max_leaves=2)
