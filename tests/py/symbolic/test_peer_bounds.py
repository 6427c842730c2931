"""Bounds of quotients, remainders, minima and maxima by what they are made of: known without a guard, true of every value, and nothing
that torch's ShapeEnv knows is missing."""

import itertools

import pytest
from peers import Ours, Theirs

VALUES = list(itertools.product(range(2, 10), repeat=3))

# Of three sizes of at least 2; "if" and what was asked before.
KNOWN = """
a//2 <= a
a//2 < a
a//2 != a
a//2 == a // 2
a >= a//3
(a+1)//2 <= a
(a+1)//2 < a
(a+1)//2 >= 1
(a+2)//2 <= a
(a-1)//2 + 1 <= a
(a + 2*1 - 3)//2 + 1 <= a
a//4 <= a//2
a//4 <= (a + 3)//4
(a//2)//2 <= a//3
a//2 + a//2 <= a
a//3 + a//3 + a//3 <= a
a//2 + (a+1)//2 == a
a - a//2 >= 1
(a//2)*2 <= a
(a//5)*5 > a - 5
a - a//2*2 <= 1
(3*a)//4 <= a
(a >> 1) <= a
a//b <= a
(a//b)*b <= a
(a//b)*b > a - b
a - (a//b)*b < b
(a*b)//b == a
(a//b)*b + a % b <= a + b
a % 5 <= a
a % 5 < 5
a % b <= a
a % b < b
a % b <= b
a - a % 3 >= 0
a % 3 + 3*(a//3) == a
a % b + c > a % b
min(a, b) <= a
min(a, b) <= b
min(a, b) < a + 1
min(a, b) - 1 < a
min(a, b) + c <= a + c
min(a, b)*c <= a*c
max(a, b) >= a
max(a, b) >= b
max(a, b) + 1 > b
max(a, b) <= a + b
min(a, b) <= max(a, b)
min(a, b) + max(a, b) == a + b
a//b*b + a % b == a
(a+3)//2 <= a
max(a, b) - min(a, b) >= 0
min(a//2, b) <= a
max(a - b, 0) <= a
abs(a - b) >= a - b
abs(a - b) >= b - a
abs(a - b) <= a + b
min(a, b)//2 <= a
a*b >= a
a*b >= a + b
a*b//2 <= a*b
(a*b)//(2*b) <= a
a*b % c < c
a//2*b <= a*b
a//2 < b if a < b
a//2 <= b//2 if a <= b
(a+1)//2 <= b if a < b
min(a, b) == a if a <= b
max(a, b) == b if a <= b
max(a, c) <= b if a <= b and c <= b
min(a, c) <= b if a <= b
a % c < b if c <= b
a//3 < c if a < b and b < c
a//2 + 1 <= b if a < b
a - b//2 > 0 if a >= b
a//4*4 == a if a % 4 == 0
a//2 <= a - 1
(a + b)//2 <= a + b
(a + b)//2 < a if b < a
(a + b - 1)//b <= a
""".strip().splitlines()

# True, and neither knows: a part of a term would have to be replaced by one number and a part by another.
UNKNOWN = """
(a + b)//2 >= min(a, b)
2*min(a, b) <= a + b
""".strip().splitlines()

NOT_ALWAYS = """
a//2 >= 2
a//2 <= b
a % b <= c
a % 3 == 1
min(a, b) <= c
max(a, b) <= a
a//2 == a//3
(a//b)*b == a
(a//b)*b < a
a//b <= 1
(a+2)//2 < a
abs(a - b) >= 1
(a+4)//2 <= a
a - a//2*2 <= 0
max(a, b) < a + b - 2
a//2 < c if a < b
a % b < a
""".strip().splitlines()


def parsed(line):
    condition, _, asked = line.partition(" if ")
    return condition, [part for part in asked.split(" and ") if part]


def evaluated(text, world, numbers):
    return eval(text, {"min": world.minimum, "max": world.maximum, "abs": abs}, dict(zip("abc", numbers)))


class Plain:
    minimum, maximum = staticmethod(min), staticmethod(max)


def answer(world, line):
    condition, asked = parsed(line)
    hints = next(values for values in VALUES if len(set(values)) == 3 and all(evaluated(part, Plain, values) for part in asked))
    numbers = [world.size(hint) for hint in hints]
    for part in asked:
        assert bool(evaluated(part, world, numbers))
    before = world.guard_count()
    known = world.known(evaluated(condition, world, numbers))
    assert world.guard_count() == before
    return known


def truths(line):
    condition, asked = parsed(line)
    return {evaluated(condition, Plain, values) for values in VALUES if all(evaluated(part, Plain, values) for part in asked)}


@pytest.mark.parametrize("line", KNOWN)
def test_what_always_holds_is_known(line):
    assert truths(line) == {True}
    assert answer(Ours(), line) is True
    assert answer(Theirs(), line) in (True, None)


@pytest.mark.parametrize("line", UNKNOWN)
def test_what_neither_knows(line):
    assert truths(line) == {True}
    assert answer(Ours(), line) is None
    assert answer(Theirs(), line) is None


@pytest.mark.parametrize("line", NOT_ALWAYS)
def test_what_does_not_always_hold_is_not_known(line):
    assert truths(line) == {True, False}
    assert answer(Ours(), line) is None
    assert answer(Theirs(), line) is None
