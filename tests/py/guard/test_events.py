"""Every event of the tables: noticed after a capture, and nothing else lost.

In one thread, in four with a program each, and in four with one program.
"""

import event_modules
import event_objects
import event_state
import pytest
from event_runs import run_alone, run_apart, run_together

TABLES = (
    event_modules.tensors,
    event_modules.modules,
    event_modules.hooks,
    event_modules.shadows,
    event_state.states,
    event_state.changed_states,
    event_state.harmless_states,
    event_state.tracing,
    event_state.duals,
    event_objects.global_names,
    event_objects.cells,
    event_objects.functions,
    event_objects.objects,
    event_objects.containers,
    event_objects.aliases,
    event_objects.held_aliases,
)
EVENTS = [event for table in TABLES for event in table()]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_alone(event):
    run_alone(event)


IN_THREADS = [event for event in EVENTS if event.threads]


@pytest.mark.parametrize("event", IN_THREADS, ids=lambda event: event.name)
def test_apart(event):
    run_apart(event)


@pytest.mark.parametrize("event", [event for event in IN_THREADS if event.repeatable], ids=lambda event: event.name)
def test_together(event):
    run_together(event)
