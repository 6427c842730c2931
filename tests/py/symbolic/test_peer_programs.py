"""Random programs on torch's ShapeEnv and on ours: what is asked in order is answered alike, and what torch knows then we know too."""

from generating import SMALL_COMPARISONS, run
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from peers import Ours, Theirs

# What torch's numbers have operators for, and gets right.
USED = {"add", "sub", "mul", "floordiv", "mod", "neg", "abs", "x", "const", "lt", "le", "gt", "ge", "eq", "ne"}


def uses_only(tree):
    return not isinstance(tree, tuple) or (tree[0] in USED and (tree[0] in ("x", "const") or all(map(uses_only, tree[1:]))))


PROGRAMS = st.lists(SMALL_COMPARISONS.filter(uses_only), min_size=1, max_size=3)
HINTS = st.lists(st.integers(2, 12), min_size=3, max_size=3, unique=True)


def computed(tree, numbers):
    try:
        return run(tree, numbers)
    except ZeroDivisionError:
        return None


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(HINTS, PROGRAMS, SMALL_COMPARISONS.filter(uses_only))
def test_questions_in_order(hints, trees, probe):
    ours, theirs = Ours(), Theirs()
    worlds = [(world, [world.size(hint) for hint in hints]) for world in (ours, theirs)]
    for tree in trees:
        expected = computed(tree, hints)
        assume(expected is not None)
        for _, numbers in worlds:
            assert bool(run(tree, numbers)) == expected
    plain = computed(probe, hints)
    assume(plain is not None)
    (known, torch_knows) = (world.known(run(probe, numbers)) for world, numbers in worlds)
    assert known in (None, plain) and torch_knows in (None, plain)
    if torch_knows is not None:
        assert known == torch_knows, probe
