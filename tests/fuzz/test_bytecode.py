"""Random functions, taken apart and put together: unchanged the bytes are the same, with NOPs between they do the same."""

import types

import random_programs
from budget import for_a_share
from hypothesis import event, given
from hypothesis import strategies as st

from pellucid import _bytecode as bytecode


def code_objects(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from code_objects(const)


@for_a_share(0.1)
@given(random_programs.sources)
def test_assembling_gives_the_same_bytes(source):
    for code in code_objects(compile(source, "<fuzz>", "exec")):
        decoded = bytecode.decode(code)
        assert bytecode.validate(decoded) == ""
        again = bytecode.assemble(decoded)
        for part in ("co_code", "co_linetable", "co_exceptiontable"):
            assert getattr(again, part) == getattr(code, part), (code.co_name, part)
        assert again.co_stacksize >= max(depth for depth in bytecode.stack_depths(decoded) if depth is not None)


def insertion_points(instructions):
    """Where a NOP may go: behind the start of the function, and not between instructions that CPython reads together."""
    body = next(index for index, instruction in enumerate(instructions) if instruction.op == "RESUME") + 1
    return [index for index in range(body, len(instructions)) if instructions[index - 1].op not in ("PRECALL", "KW_NAMES")]


def with_nops(code, places):
    """The code with NOPs inserted: {index of an instruction: how many before it}."""
    decoded = bytecode.decode(code)
    old = decoded.instructions
    moved, shift = [], 0
    for index in range(len(old) + 1):
        shift += places.get(index, 0)
        moved.append(index + shift)
    new = []
    for index, instruction in enumerate(old):
        nop = bytecode.Instruction(("NOP", 0, None, -1, 0, *instruction[5:]))
        new += [nop] * places.get(index, 0)
        target = None if instruction.target is None else moved[instruction.target]
        new.append(bytecode.Instruction((instruction.op, instruction.arg, target, *instruction[3:])))
    decoded.rows = [
        bytecode.ExceptionRow((moved[row.start], moved[row.end], moved[row.target], row.depth, row.lasti)) for row in decoded.rows
    ]
    decoded.instructions = new
    assert bytecode.validate(decoded) == ""
    return bytecode.assemble(decoded)


@for_a_share(0.1)
@given(random_programs.sources, st.integers(-3, 300), st.integers(-3, 3), st.data())
def test_nops_change_nothing(source, a, b, data):
    function = random_programs.function_of(source)
    points = insertion_points(bytecode.decode(function.__code__).instructions)
    places = data.draw(st.dictionaries(st.sampled_from(points), st.sampled_from([1, 2, 40, 300]), max_size=4))
    if any(count >= 300 for count in places.values()):
        event("jumps grow an EXTENDED_ARG")
    changed = types.FunctionType(with_nops(function.__code__, places), function.__globals__, "f", None, None)
    changed.__kwdefaults__ = function.__kwdefaults__
    expected = random_programs.behaviour(function, a, b)
    event(f"ended by {expected[1] if isinstance(expected[1], str) else 'return'}")
    assert random_programs.behaviour(changed, a, b) == expected
