"""Random programs, and code with random control flow, do the same in block form; damaged files are read or refused, never worse."""

import importlib.util
import marshal
import sys
import types

import pytest
import random_programs
from hypothesis import event, given
from hypothesis import strategies as st

from pellucid import _bytecode as bytecode
from pellucid import decompiling


def in_blocks(function):
    result = decompiling.block_form(function.__code__)
    space = {**function.__globals__, **result.bindings}
    exec(compile(result.source, "<blocks>", "exec"), space)
    made = space[next(iter(result.renamed), function.__name__)]
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


def without_lines(behaviour):
    """A log with a result, or with the exception's type and text: lines are those of another text."""
    return behaviour[:3]


@given(random_programs.sources, st.integers(-3, 300), st.integers(-3, 3))
def test_random_programs_in_blocks(source, a, b):
    function = random_programs.function_of(source)
    expected = random_programs.behaviour(function, a, b)
    event(f"ended by {expected[1] if isinstance(expected[1], str) else 'return'}")
    assert without_lines(random_programs.behaviour(in_blocks(function), a, b)) == without_lines(expected)


@given(random_programs.sources)
def test_what_a_check_accepts(source):
    function = random_programs.function_of(source)
    result = decompiling.decompile(function.__code__, check=True)
    event(result.grade)
    assert result.source


# Code with random control flow: each block starts and ends with so many values on the stack, and jumps to blocks that take as many.

SIMPLE = {  # what a step does to the number of values: opcodes of 3.11, with arguments
    "load": (0, 1, [("LOAD_FAST", 2)]),
    "constant": (0, 1, [("LOAD_CONST", 1)]),
    "add": (2, 1, [("BINARY_OP", 0)]),
    "subtract": (2, 1, [("BINARY_OP", 10)]),
    "store": (1, 0, [("STORE_FAST", 2)]),
    "swap": (2, 2, [("SWAP", 2)]),
    "deep swap": (3, 3, [("SWAP", 3)]),
    "copy": (1, 2, [("COPY", 1)]),
    "deep copy": (2, 3, [("COPY", 2)]),
    "pop": (1, 0, [("POP_TOP", 0)]),
    "pair": (2, 1, [("BUILD_TUPLE", 2), ("LOAD_CONST", 2), ("BINARY_SUBSCR", 0)]),
    "log": (1, 1, [("LOAD_GLOBAL", 0), ("SWAP", 2), ("PUSH_NULL", 0), ("SWAP", 3), ("SWAP", 2), ("PRECALL", 1), ("CALL", 1)]),
}
HEIGHTS = 4


@st.composite
def random_flow(draw):
    """Instructions of a function `f(log, step, a)` that keeps going round until `step` raises or it returns."""
    count = draw(st.integers(1, 7))
    heights = [0] + [draw(st.integers(0, HEIGHTS - 1)) for _ in range(count - 1)]
    blocks = []
    for number in range(count):
        height = heights[number]
        body = [("PUSH_NULL", 0), ("LOAD_FAST", 1), ("PRECALL", 0), ("CALL", 0), ("POP_TOP", 0)]
        for _ in range(draw(st.integers(0, 6))):
            needs, leaves, instructions = SIMPLE[draw(st.sampled_from(sorted(SIMPLE)))]
            if height >= needs and height - needs + leaves <= HEIGHTS + 1:
                body += instructions
                height += leaves - needs
        ends = [("return", None)]
        ends += [("jump", target) for target in range(count) if heights[target] == height]
        for kind, left in (("if", height - 1), ("unless", height - 1), ("or pop", height)):
            ends += [(kind, target) for target in range(count) if heights[target] == left]
        # The other way on is the first block of that height, or the end.
        kind, target = draw(st.sampled_from(ends))
        rest = height - 1
        onward = [other for other in range(count) if heights[other] == (height if kind == "return" else rest)]
        blocks.append((body, height, kind, target, draw(st.sampled_from(onward)) if onward else None))
    return blocks


def assemble(blocks, handled):
    """The code object; blocks in `handled` are covered by a handler that logs the exception's type and returns it."""
    code = []  # (op, arg, block or None)
    starts, covered = {}, []

    def finish(height):
        for _ in range(height):
            code.append(("POP_TOP", 0, None))
        code.extend([("LOAD_FAST", 2, None), ("RETURN_VALUE", 0, None)])

    for number, (body, height, kind, target, onward) in enumerate(blocks):
        starts[number] = len(code) + 1  # behind RESUME
        code.extend((op, arg, None) for op, arg in body)
        if kind == "return":
            finish(height)
        elif kind == "jump":
            code.append(("JUMP", 0, target))
        else:
            backward = target <= number
            if kind == "or pop" and backward:
                kind = "if"
                code.append(("COPY", 1, None))
                height += 1
            op = {"if": "POP_JUMP_{}_IF_TRUE", "unless": "POP_JUMP_{}_IF_FALSE", "or pop": "JUMP_IF_TRUE_OR_POP"}[kind]
            code.append((op.format("BACKWARD" if backward else "FORWARD"), 0, target))
            if onward is None or (kind == "if" and height - 1 != blocks_height(blocks, onward)):
                finish(height - 1)
            else:
                code.append(("JUMP", 0, onward))
        if number in handled:
            covered.append((starts[number], len(code) + 1))
    handler = len(code) + 1
    code += [("PUSH_EXC_INFO", 0, None), *((op, arg, None) for op, arg in SIMPLE["log"][2])]
    code += [("POP_TOP", 0, None), ("POP_EXCEPT", 0, None), ("LOAD_FAST", 2, None), ("RETURN_VALUE", 0, None)]
    decoded = bytecode.decode((lambda log, step, a: None).__code__)
    decoded.consts, decoded.names, decoded.stacksize = [None, 3, 1], ["note"], 20
    instructions = [bytecode.Instruction(("RESUME", 0, None, -1, 0, None, None, None, None))]
    for index, (op, arg, block) in enumerate(code):
        goal = None if block is None else starts[block]
        if op == "JUMP":
            op = "JUMP_BACKWARD" if goal <= index + 1 else "JUMP_FORWARD"
        instructions.append(bytecode.Instruction((op, arg, goal, -1, 0, None, None, None, None)))
    decoded.instructions = instructions
    decoded.rows = [bytecode.ExceptionRow((start, end, handler, 0, False)) for start, end in covered]
    return decoded


def blocks_height(blocks, number):
    """How many values a block starts with: what its steps leave, worked out backwards."""
    body, height = blocks[number][:2]
    for op, arg in reversed(body):
        height -= EFFECTS[op](arg)
    return height


EFFECTS = {
    "LOAD_FAST": lambda arg: 1,
    "LOAD_CONST": lambda arg: 1,
    "LOAD_GLOBAL": lambda arg: 1,
    "PUSH_NULL": lambda arg: 1,
    "BINARY_OP": lambda arg: -1,
    "BINARY_SUBSCR": lambda arg: -1,
    "BUILD_TUPLE": lambda arg: 1 - arg,
    "STORE_FAST": lambda arg: -1,
    "SWAP": lambda arg: 0,
    "COPY": lambda arg: 1,
    "POP_TOP": lambda arg: -1,
    "PRECALL": lambda arg: 0,
    "CALL": lambda arg: -1 - arg,
}


class Stop(Exception):
    pass


def run(function, a):
    """The log, and the result or the exception's type."""
    log, steps = [], 0

    def step():
        nonlocal steps
        steps += 1
        if steps > 60:
            raise Stop
        if steps % 7 == 6:
            raise KeyError(steps)

    def note(value):
        log.append(type(value).__name__ if isinstance(value, BaseException) else value)
        return value

    function = types.FunctionType(function.__code__, {**function.__globals__, "note": note}, "f")
    try:
        return log, function(log, step, a)
    except Exception as error:
        return log, type(error).__name__


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="written in the opcodes of 3.11")
@given(random_flow(), st.sets(st.integers(0, 6)), st.integers(-2, 3))
def test_random_control_flow_in_blocks(blocks, handled, a):
    decoded = assemble(blocks, handled)
    problem = bytecode.validate(decoded)
    event("invalid" if problem else "valid")
    if problem:
        return
    code = bytecode.assemble(decoded)
    original = types.FunctionType(code, {"__builtins__": __builtins__}, "f")
    again = in_blocks(original)
    assert run(again, a) == run(original, a)
    result = decompiling.decompile(code, check=True)
    event(result.grade)


GOOD = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(compile(open(random_programs.__file__).read(), "<file>", "exec"))


change = st.tuples(st.integers(16, len(GOOD) - 1), st.integers(0, 255))
sizes = st.one_of(st.just(len(GOOD)), st.just(len(GOOD)), st.integers(16, len(GOOD)))


@given(st.lists(change, min_size=1, max_size=3), sizes)
def test_damaged_files(changes, size):
    data = bytearray(GOOD)
    for at, value in changes:
        data[at] = value
    try:
        code = bytecode.load_pyc(bytes(data[:size]))
    except ValueError:
        event("refused")
        return
    event("read")
    for action in (decompiling.decompile, decompiling.block_form):
        try:
            assert str(action(code))
        except ValueError:
            event("not decompiled")
