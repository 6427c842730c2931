"""The engine against brute force: over random programs and every value of small domains, nothing it derives may be wrong."""

import itertools
import math

import pytest
from generating import COMPARISONS, CONDITIONS, FACTS, INTS, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pellucid import ShapeEnv

DOMAINS = st.tuples(st.integers(-3, 4), st.integers(1, 5)).map(lambda pair: range(pair[0], pair[0] + pair[1] + 1))
DOMAIN_LISTS = st.lists(DOMAINS, min_size=3, max_size=3)
QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
NAMESPACE = {"math": math, "min": min, "max": max, "abs": abs, "round": round, "float": float}


def environment(domains, hints):
    env = ShapeEnv()
    numbers = []
    for i, (domain, hint) in enumerate(zip(domains, hints)):
        if domain[0] >= 2:
            numbers.append(env.create_size(hint, f"x{i}", policy="dynamic"))
        elif domain[0] >= 0:
            numbers.append(env.create_size(hint, f"x{i}", policy="dynamic", specialize_zero_one=False))
        else:
            numbers.append(env.create_int(hint, f"x{i}"))
        env.constrain_range(numbers[-1], min=domain[0], max=domain[-1])
    return env, numbers


def compiled(text):
    return eval(f"lambda s0, s1, s2: {text}", dict(NAMESPACE))


def compiled_guards(env):
    texts = [guard.text for guard in env.guards]
    source = " and ".join(f"({text})" for text in texts) or "True"
    return eval(f"lambda x0, x1, x2: {source}", dict(NAMESPACE))


def value_of(tree, numbers):
    """The program's value, or None where it has none."""
    try:
        value = run(tree, numbers)
    except (ZeroDivisionError, OverflowError):
        return None
    return value


def draw_hints(data, domains):
    return [data.draw(st.sampled_from(list(domain))) for domain in domains]


@settings(max_examples=1000, deadline=None, suppress_health_check=QUIET)
@given(DOMAIN_LISTS, INTS, st.data())
def test_expressions_mean_what_was_computed(domains, tree, data):
    hints = draw_hints(data, domains)
    env, numbers = environment(domains, hints)
    symbolic = value_of(tree, numbers)
    plain = value_of(tree, hints)
    if symbolic is None or plain is None:
        assert plain is None  # an error at the hints is an error of the plain program too
        return
    text = compiled(repr(symbolic))
    low, high = env.range(symbolic)
    if not isinstance(symbolic, int):
        assert symbolic.hint == plain
    for values in itertools.product(*domains):
        expected = value_of(tree, values)
        if expected is None:
            continue
        assert text(*values) == expected, (repr(symbolic), values)
        assert (low is None or low <= expected) and (high is None or expected <= high), (repr(symbolic), low, high, values)


@settings(max_examples=700, deadline=None, suppress_health_check=QUIET)
@given(DOMAIN_LISTS, COMPARISONS, st.data())
def test_comparisons_mean_what_was_asked(domains, tree, data):
    hints = draw_hints(data, domains)
    env, numbers = environment(domains, hints)
    symbolic = value_of(tree, numbers)
    if symbolic is None or value_of(tree, hints) is None:
        return
    text = compiled(repr(symbolic))
    known = {True: env.statically_known_true(symbolic), False: env.statically_known_false(symbolic)}
    for values in itertools.product(*domains):
        expected = value_of(tree, values)
        if expected is not None:
            assert bool(text(*values)) == expected, (repr(symbolic), values)
            assert not known[not expected], (repr(symbolic), values)


def check_guards(domains, trees, probes, hints):
    env, numbers = environment(domains, hints)
    asked = []
    for tree in trees:
        symbolic = value_of(tree, numbers)
        plain = value_of(tree, hints)
        if symbolic is None or plain is None:
            continue
        assert bool(symbolic) == plain, (tree, hints)
        asked.append((tree, plain))
    guards = compiled_guards(env)
    program = env.guard_program()
    derived = []
    for tree in probes:
        symbolic = value_of(tree, numbers)
        if symbolic is not None and not isinstance(symbolic, (int, float)):
            derived.append((tree, compiled(repr(env.simplify(symbolic))), env.range(symbolic)))
    for values in itertools.product(*domains):
        answers = [value_of(tree, values) for tree, _ in asked]
        if None in answers:
            continue
        # The guards hold where every question would have been answered as it was, and nowhere else: none that was dropped is missing,
        # and none says more than what was asked.
        same = all(answer == plain for answer, (_, plain) in zip(answers, asked))
        try:
            held = bool(guards(*values))
        except ZeroDivisionError:
            held = False
        assert held == same, (values, [g.text for g in env.guards])
        assert program(*values) == held, (values, [g.text for g in env.guards])
        if not same:
            continue
        for tree, simple, (low, high) in derived:
            expected = value_of(tree, values)
            if expected is not None:
                assert simple(*values) == expected, (tree, values)
                assert (low is None or low <= expected) and (high is None or expected <= high), (tree, values)


@settings(max_examples=400, deadline=None, suppress_health_check=QUIET)
@given(DOMAIN_LISTS, st.lists(CONDITIONS, min_size=1, max_size=5), st.lists(INTS, max_size=2), st.data())
def test_guards_are_exactly_the_answers(domains, trees, probes, data):
    check_guards(domains, trees, probes, draw_hints(data, domains))


@settings(max_examples=400, deadline=None, suppress_health_check=QUIET)
@given(DOMAIN_LISTS, st.lists(FACTS, min_size=2, max_size=8), st.lists(INTS, max_size=1), st.data())
def test_what_follows_does_follow(domains, trees, probes, data):
    check_guards(domains, trees, probes, draw_hints(data, domains))


@settings(max_examples=80, deadline=None, suppress_health_check=QUIET)
@given(DOMAIN_LISTS, st.lists(FACTS, min_size=1, max_size=6), st.data())
def test_a_replayed_log_gives_the_same_guards(domains, trees, data):
    hints = draw_hints(data, domains)
    env, numbers = environment(domains, hints)
    for tree in trees:
        symbolic = value_of(tree, numbers)
        if symbolic is not None and value_of(tree, hints) is not None:
            bool(symbolic)
    again = env.replayed()
    assert again.log == env.log
    assert again.guards == env.guards


@settings(max_examples=250, deadline=None, suppress_health_check=QUIET)
@given(DOMAIN_LISTS, st.lists(FACTS, min_size=1, max_size=5), st.lists(FACTS, min_size=1, max_size=3))
def test_facts_of_unbacked_symbols(domains, facts, questions):
    """What was stated of symbols without hints is assumed, and what is then known holds wherever it does."""
    env = ShapeEnv()
    numbers = [env.create_unbacked_int() for _ in domains]
    for number, domain in zip(numbers, domains):
        env.constrain_range(number, min=domain[0], max=domain[-1])
    stated = []
    for tree in facts:
        symbolic = value_of(tree, numbers)
        if symbolic is None:
            continue
        if not env.expect_true(symbolic):
            break  # contradicts what was stated before
        stated.append(tree)
    else:
        tree = None
    contradicted = tree
    points = []
    for values in itertools.product(*domains):
        answers = [value_of(fact, values) for fact in stated]
        if None not in answers and all(answers):
            points.append(values)
    if contradicted is not None:
        assert not any(value_of(contradicted, values) for values in points)
        return
    for question in questions:
        symbolic = value_of(question, numbers)
        if symbolic is None:
            continue
        known = env.statically_known_true(symbolic), env.statically_known_false(symbolic)
        for values in points:
            expected = value_of(question, values)
            if expected is not None:
                assert not known[expected], (question, stated, values)


@pytest.mark.parametrize("numerator", [2**53 - 1, 2**53, 2**53 + 1, 2**62 + 1, -(2**60) - 3, 10, 7])
@pytest.mark.parametrize("denominator", [1, 2, 3, 7, 2**31, 2**53 + 3, -5])
def test_true_division_rounds_as_python(numerator, denominator):
    env = ShapeEnv()
    a, b = env.create_int(numerator, "a"), env.create_int(denominator, "b")
    assert (a / b).hint == numerator / denominator
    assert math.floor(a / b).hint == math.floor(numerator / denominator)
