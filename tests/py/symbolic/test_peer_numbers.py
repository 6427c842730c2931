"""Arithmetic and what is statically known, asked of torch's ShapeEnv and of ours."""

import itertools
import math

import pytest
from peers import Ours, Theirs, outcome

POINTS = list(itertools.product((2, 3, 8), (2, 5, 12), (3, 4, 9)))

# Numbers computed from three sizes, a = 8, b = 12 and c = 4.
NUMBERS = {
    "a+b": lambda w, a, b, c: a + b,
    "a+1": lambda w, a, b, c: a + 1,
    "1+a": lambda w, a, b, c: 1 + a,
    "a-b": lambda w, a, b, c: a - b,
    "3-a": lambda w, a, b, c: 3 - a,
    "a-a": lambda w, a, b, c: a - a,
    "a*b": lambda w, a, b, c: a * b,
    "2*a": lambda w, a, b, c: 2 * a,
    "a*0": lambda w, a, b, c: a * 0,
    "(a+b)*c": lambda w, a, b, c: (a + b) * c,
    "(a+1)*(a-1)": lambda w, a, b, c: (a + 1) * (a - 1),
    "(a+b)*(a-b)-a*a": lambda w, a, b, c: (a + b) * (a - b) - a * a,
    "-a": lambda w, a, b, c: -a,
    "+a": lambda w, a, b, c: +a,
    "abs(a)": lambda w, a, b, c: abs(a),
    "abs(-a)": lambda w, a, b, c: abs(-a),
    "a//2": lambda w, a, b, c: a // 2,
    "a//b": lambda w, a, b, c: a // b,
    "100//a": lambda w, a, b, c: 100 // a,
    "(a*b)//b": lambda w, a, b, c: (a * b) // b,
    "(8*a)//8": lambda w, a, b, c: (8 * a) // 8,
    "(8*a)//4": lambda w, a, b, c: (8 * a) // 4,
    "(a*b)//(2*b)": lambda w, a, b, c: (a * b) // (2 * b),
    "(a*b+a)//a": lambda w, a, b, c: (a * b + a) // a,
    "(a*b+a)//(b+1)": lambda w, a, b, c: (a * b + a) // (b + 1),
    "a//2//3": lambda w, a, b, c: a // 2 // 3,
    "(-a)//3": lambda w, a, b, c: (-a) // 3,
    "-(-a//4)": lambda w, a, b, c: -(-a // 4),
    "(a+3)//4": lambda w, a, b, c: (a + 3) // 4,
    "a//-3": lambda w, a, b, c: a // -3,
    "a%2": lambda w, a, b, c: a % 2,
    "a%b": lambda w, a, b, c: a % b,
    "(a*b)%b": lambda w, a, b, c: (a * b) % b,
    "(4*a)%2": lambda w, a, b, c: (4 * a) % 2,
    "(2*a+1)%2": lambda w, a, b, c: (2 * a + 1) % 2,
    "a%(a*b)": lambda w, a, b, c: a % (a * b),
    "(a*c)%(b*c)": lambda w, a, b, c: (a * c) % (b * c),
    "100%a": lambda w, a, b, c: 100 % a,
    "a**2": lambda w, a, b, c: a**2,
    "a**3-a*a*a": lambda w, a, b, c: a**3 - a * a * a,
    "2**c": lambda w, a, b, c: 2**c,
    "a**0": lambda w, a, b, c: a**0,
    "min(a,b)": lambda w, a, b, c: w.minimum(a, b),
    "min(a,3)": lambda w, a, b, c: w.minimum(a, 3),
    "max(a,b)": lambda w, a, b, c: w.maximum(a, b),
    "max(a,1)": lambda w, a, b, c: w.maximum(a, 1),
    "max(1,a)*b": lambda w, a, b, c: w.maximum(1, a) * b,
    "max(a,max(b,c))": lambda w, a, b, c: w.maximum(a, w.maximum(b, c)),
    "min(max(a,b),c)": lambda w, a, b, c: w.minimum(w.maximum(a, b), c),
    "max(a,a+b)": lambda w, a, b, c: w.maximum(a, a + b),
    "max(a,-1)": lambda w, a, b, c: w.maximum(a, -1),
    "a<<2": lambda w, a, b, c: a << 2,
    "a>>1": lambda w, a, b, c: a >> 1,
    "a&7": lambda w, a, b, c: a & 7,
    "a&b": lambda w, a, b, c: a & b,
    "a|b": lambda w, a, b, c: a | b,
    "a^b": lambda w, a, b, c: a ^ b,
    "a/b": lambda w, a, b, c: a / b,
    "a/2": lambda w, a, b, c: a / 2,
    "a*0.5": lambda w, a, b, c: a * 0.5,
    "a+0.5": lambda w, a, b, c: a + 0.5,
    "1.0/a": lambda w, a, b, c: 1.0 / a,
    "a**-1": lambda w, a, b, c: a**-1,
    "a**0.5": lambda w, a, b, c: a**0.5,
    "float(a)": lambda w, a, b, c: w.floating(a),
    "float(a)*b": lambda w, a, b, c: w.floating(a) * b,
    "sqrt(a)": lambda w, a, b, c: w.sqrt(a),
    "floor(a/2)": lambda w, a, b, c: math.floor(a / 2),
    "ceil(a/3)": lambda w, a, b, c: math.ceil(a / 3),
    "trunc(a/3)": lambda w, a, b, c: math.trunc(a / 3),
    "floor(a*0.3)": lambda w, a, b, c: math.floor(a * 0.3),
    "floor(float(a)*2.0)": lambda w, a, b, c: math.floor(w.floating(a) * 2.0),
    "round(a/3)": lambda w, a, b, c: round(a / 3),
    "round(a/3,1)": lambda w, a, b, c: round(a / 3, 1),
    "a if a<b else c": lambda w, a, b, c: w.choose(a < b, a, c),
    "a if a>1 else c": lambda w, a, b, c: w.choose(a > 1, a, c),
    "sum": lambda w, a, b, c: w.total([a, b, c, a, 5]),
    "conv": lambda w, a, b, c: (a + 2 * 1 - 1 * (3 - 1) - 1) // 2 + 1,
    "conv after conv": lambda w, a, b, c: ((a - 1) // 2 + 1 - 1) // 2 + 1,
    "pool with symbols": lambda w, a, b, c: (a * 4 - c) // 2 + 1,
    "strides": lambda w, a, b, c: (a * b * c) // (b * c),
    "numel": lambda w, a, b, c: a * b * c - c * a * b,
    "view": lambda w, a, b, c: (a * b * c) // c // a,
}


def numbers_case(make):
    def case(world):
        a, b, c = world.size(8), world.size(12), world.size(4)
        result = make(world, a, b, c)
        return [world.hint(result)] + [world.value(result, point) for point in POINTS]

    return case


def plain(make):
    class Plain:
        minimum, maximum, total, floating, sqrt = min, max, sum, float, math.sqrt

        @staticmethod
        def choose(condition, a, b):
            return a if condition else b

    return [make(Plain, *point) for point in [(8, 12, 4), *POINTS]]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    ours = outcome(numbers_case(NUMBERS[name]), Ours())
    theirs = outcome(numbers_case(NUMBERS[name]), Theirs())
    assert ours == pytest.approx(theirs, rel=1e-15)
    assert ours == plain(NUMBERS[name])  # and exactly what Python says


def constant_case(make):
    def case(world):
        return world.constant(make(world, world.size(8), world.size(12), world.size(4)))

    return case


@pytest.mark.parametrize("name", NUMBERS)
def test_which_numbers_are_constants(name):
    ours = outcome(constant_case(NUMBERS[name]), Ours())
    theirs = outcome(constant_case(NUMBERS[name]), Theirs())
    assert ours == theirs


# Conditions on the same sizes; what is known of them without a hint.
CONDITIONS = {
    "a>1": lambda w, a, b, c: a > 1,
    "a>=2": lambda w, a, b, c: a >= 2,
    "a>2": lambda w, a, b, c: a > 2,
    "a!=0": lambda w, a, b, c: a != 0,
    "a!=1": lambda w, a, b, c: a != 1,
    "a==0": lambda w, a, b, c: a == 0,
    "a==1": lambda w, a, b, c: a == 1,
    "a==8": lambda w, a, b, c: a == 8,
    "a<0": lambda w, a, b, c: a < 0,
    "a<2": lambda w, a, b, c: a < 2,
    "a==a": lambda w, a, b, c: a == a,
    "a!=a": lambda w, a, b, c: a != a,
    "a<=a": lambda w, a, b, c: a <= a,
    "a<a": lambda w, a, b, c: a < a,
    "a==b": lambda w, a, b, c: a == b,
    "a<b": lambda w, a, b, c: a < b,
    "a<a+1": lambda w, a, b, c: a < a + 1,
    "a<a+b": lambda w, a, b, c: a < a + b,
    "a+b>3": lambda w, a, b, c: a + b > 3,
    "a+b>4": lambda w, a, b, c: a + b > 4,
    "a+b>=4": lambda w, a, b, c: a + b >= 4,
    "a-b<0": lambda w, a, b, c: a - b < 0,
    "a*b>=4": lambda w, a, b, c: a * b >= 4,
    "a*b>3": lambda w, a, b, c: a * b > 3,
    "a*b==0": lambda w, a, b, c: a * b == 0,
    "a*b==1": lambda w, a, b, c: a * b == 1,
    "a*b>=a": lambda w, a, b, c: a * b >= a,
    "a*b>a": lambda w, a, b, c: a * b > a,
    "a*b==a": lambda w, a, b, c: a * b == a,
    "c-b*c<0": lambda w, a, b, c: c - b * c < 0,
    "a*b==b*a": lambda w, a, b, c: a * b == b * a,
    "2*a==a+a": lambda w, a, b, c: 2 * a == a + a,
    "2*a==7": lambda w, a, b, c: 2 * a == 7,
    "2*a+1==2*b": lambda w, a, b, c: 2 * a + 1 == 2 * b,
    "2*a<9": lambda w, a, b, c: 2 * a < 9,
    "a%1==0": lambda w, a, b, c: a % 1 == 0,
    "a%2==0": lambda w, a, b, c: a % 2 == 0,
    "a%2<2": lambda w, a, b, c: a % 2 < 2,
    "a%2>=0": lambda w, a, b, c: a % 2 >= 0,
    "a%b<b": lambda w, a, b, c: a % b < b,
    "a%b>=0": lambda w, a, b, c: a % b >= 0,
    "(a*b)%a==0": lambda w, a, b, c: (a * b) % a == 0,
    "a%(a*b)!=0": lambda w, a, b, c: a % (a * b) != 0,
    "(2*a)%2==0": lambda w, a, b, c: (2 * a) % 2 == 0,
    "(2*a+1)%2==1": lambda w, a, b, c: (2 * a + 1) % 2 == 1,
    "a//2>=1": lambda w, a, b, c: a // 2 >= 1,
    "a//2>=2": lambda w, a, b, c: a // 2 >= 2,
    "a//2<=a": lambda w, a, b, c: a // 2 <= a,
    "a//2*2<=a": lambda w, a, b, c: a // 2 * 2 <= a,
    "a//2==0": lambda w, a, b, c: a // 2 == 0,
    "(a*b)//b==a": lambda w, a, b, c: (a * b) // b == a,
    "(a+1)//2>=1": lambda w, a, b, c: (a + 1) // 2 >= 1,
    "max(a,1)==a": lambda w, a, b, c: w.maximum(a, 1) == a,
    "max(a,b)>=a": lambda w, a, b, c: w.maximum(a, b) >= a,
    "max(a,b)>=2": lambda w, a, b, c: w.maximum(a, b) >= 2,
    "min(a,b)<=a": lambda w, a, b, c: w.minimum(a, b) <= a,
    "min(a,b)>=2": lambda w, a, b, c: w.minimum(a, b) >= 2,
    "min(a,1)==1": lambda w, a, b, c: w.minimum(a, 1) == 1,
    "abs(a)==a": lambda w, a, b, c: abs(a) == a,
    "-a<0": lambda w, a, b, c: -a < 0,
    "-a>0": lambda w, a, b, c: -a > 0,
    "a**2>=4": lambda w, a, b, c: a**2 >= 4,
    "a**2>=0": lambda w, a, b, c: a**2 >= 0,
    "a>1 and b>1": lambda w, a, b, c: (a > 1) & (b > 1),
    "a>1 and b>5": lambda w, a, b, c: (a > 1) & (b > 5),
    "a<1 and b>5": lambda w, a, b, c: (a < 1) & (b > 5),
    "a>1 or b>5": lambda w, a, b, c: (a > 1) | (b > 5),
    "a<1 or b<1": lambda w, a, b, c: (a < 1) | (b < 1),
    "not a<1": lambda w, a, b, c: w.negate(a < 1),
    "not a>5": lambda w, a, b, c: w.negate(a > 5),
    "a/2>=1.0": lambda w, a, b, c: a / 2 >= 1.0,
    "a/2>=2.0": lambda w, a, b, c: a / 2 >= 2.0,
    "float(a)>1.5": lambda w, a, b, c: w.floating(a) > 1.5,
    "float(a)>2.5": lambda w, a, b, c: w.floating(a) > 2.5,
    "a>1.5": lambda w, a, b, c: a > 1.5,
    "a==2.5": lambda w, a, b, c: a == 2.5,
    "a*0.5>0.0": lambda w, a, b, c: a * 0.5 > 0.0,
    "floor(a/2)>=1": lambda w, a, b, c: math.floor(a / 2) >= 1,
    "trunc(a/2)==a//2": lambda w, a, b, c: math.trunc(a / 2) == a // 2,
    "a<2**62": lambda w, a, b, c: a < 2**62,
    "a<=2**63-1": lambda w, a, b, c: a <= 2**63 - 1,
    "a-2**63<0": lambda w, a, b, c: a + (-(2**63)) < 0,
    "a*b*c>=8": lambda w, a, b, c: a * b * c >= 8,
    "a*b*c>8": lambda w, a, b, c: a * b * c > 8,
    "a*b>=b+a": lambda w, a, b, c: a * b >= b + a,
    "(a if a<b else b)>=2": lambda w, a, b, c: w.choose(a < b, a, b) >= 2,
}
# Where the answers differ: ours proves more ...
KNOWN_REASONS = {
    "a==2.5": "an int never equals a fraction",
    "a<=2**63-1": "an int64 can't be larger",
    "a-2**63<0": "the same, past the end of int64 in between",
    "a%b<b": "a rest is less than what was divided by",
    "a//2<=a": "a quotient is at most what was divided",
    "a//2*2<=a": "what was rounded down is not more",
    "max(a,b)>=a": "a maximum is at least each",
    "min(a,b)<=a": "a minimum is at most each",
}
# ... or theirs is wrong for the value given here.
WRONG = {"trunc(a/2)==a//2": 2**54 + 2}


def known_case(make):
    def case(world):
        return world.known(make(world, world.size(8), world.size(12), world.size(4)))

    return case


@pytest.mark.parametrize("name", CONDITIONS)
def test_what_is_statically_known(name):
    ours = outcome(known_case(CONDITIONS[name]), Ours())
    theirs = outcome(known_case(CONDITIONS[name]), Theirs())
    if name in WRONG:
        assert theirs is True and ours is None
        assert not CONDITIONS[name](None, WRONG[name], 12, 4)
    elif ours == theirs:
        assert name not in KNOWN_REASONS
    else:
        assert theirs is None and name in KNOWN_REASONS, (ours, theirs)


def asked_case(make):
    def case(world):
        condition = make(world, world.size(8), world.size(12), world.size(4))
        return bool(condition), bool(condition)

    return case


@pytest.mark.parametrize("name", CONDITIONS)
def test_answers_and_guards(name):
    ours, theirs = Ours(), Theirs()
    assert outcome(asked_case(CONDITIONS[name]), ours) == outcome(asked_case(CONDITIONS[name]), theirs)
    assert ours.guard_count() <= theirs.guard_count() or name in WRONG
    texts, their_texts = ours.guard_texts(), theirs.guard_texts()
    for point in POINTS:
        assert ours.holds(texts, point) == theirs.holds(their_texts, point), (point, texts, their_texts)
