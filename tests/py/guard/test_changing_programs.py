"""Programs that change state between calls, in ways nobody announces: as captured they give what they give as written.

The tables changing_*.py hold one generator for a program. Each call of what it captures may hit, miss or break; only what is seen from
outside counts here, and that something was captured at all.
"""

import inspect
import os
import sys
import warnings

import changing_classes
import changing_containers
import changing_functions
import changing_modules
import changing_state
import changing_tensors
import pytest
import torch

import pellucid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "capture"))
from harness import Describer

TABLES = (changing_classes, changing_containers, changing_functions, changing_modules, changing_state, changing_tensors)
PROGRAMS = [
    program
    for table in TABLES
    for program in vars(table).values()
    if inspect.isgeneratorfunction(program) and program.__module__ == table.__name__
]
# There is nothing in them for a graph.
WITHOUT_GRAPHS = {"tensors_two_one_out"}


def observe(program, wrap):
    seen = []
    torch.manual_seed(0)
    try:
        for value in program(wrap):
            seen.append(Describer()(value))
    except Exception as error:  # compared with the other run's
        seen.append((type(error).__name__, str(error)))
    return seen


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_as_written(program):
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    with warnings.catch_warnings(), pellucid.config.patch(suppress_errors=False):
        warnings.simplefilter("ignore")
        expected = observe(program, lambda function: function)
        actual = observe(program, lambda function: pellucid.optimize(function, backend=backend))
    assert actual == expected
    assert len(expected) > 1
    assert graphs or program.__name__ in WITHOUT_GRAPHS
