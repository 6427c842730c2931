"""Random programs run as written and captured, again and again, with something they read changed in between."""

from budget import for_a_share
from harness import Describer, Recorder, observe, show_difference
from hypothesis import given
from hypothesis import strategies as st
from program_text import CHANGES, World, programs

import pellucid


def compare(text, changes):
    __tracebackhide__ = True
    eager, captured = World(text), World(text)
    recorder = Recorder()
    wrapper = pellucid.optimize(captured.function, backend=recorder)
    with pellucid.config.patch(suppress_errors=False, cache_size_limit=64):
        for number, change in enumerate(("nothing", "nothing", *changes)):
            eager.change(change)
            captured.change(change)
            expected, _ = observe(eager.function, eager.arguments(), {}, eager.state(), False, True)
            seen, _ = observe(wrapper, captured.arguments(), {}, captured.state(), False, True)
            expected["state"], seen["state"] = Describer()(eager.state()), Describer()(captured.state())
            assert expected == seen, f"{show_difference(expected, seen, number)}\nafter a change of: {change}\n{text}"
    pellucid.reset(wrapper)
    return recorder


@for_a_share(0.65, examples=10)
@given(programs(), st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3))
def test_random_programs(text, changes):
    compare(text, changes)
