"""Random programs, and code with random control flow, do the same in block form; damaged files are read or refused, never worse."""

import functools
import pathlib
import subprocess
import sys
import types

import find_pythons
import pytest
import random_programs
from budget import for_a_share
from hypothesis import event, given
from hypothesis import strategies as st

from pellucid import _bytecode as bytecode
from pellucid import _grading, _recompile, block_support, decompiling


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


@for_a_share(0.06)
@given(random_programs.sources, st.integers(-3, 300), st.integers(-3, 3))
def test_random_programs_in_blocks(source, a, b):
    function = random_programs.function_of(source)
    expected = random_programs.behaviour(function, a, b)
    event(f"ended by {expected[1] if isinstance(expected[1], str) else 'return'}")
    assert without_lines(random_programs.behaviour(in_blocks(function), a, b)) == without_lines(expected)


@for_a_share(0.06)
@given(random_programs.sources)
def test_what_a_check_accepts(source):
    function = random_programs.function_of(source)
    result = decompiling.decompile(function.__code__, check=True)
    event(result.grade)
    assert result.grade != decompiling.DIFFERS, result.reason


# Code with random control flow: each block starts and ends with so many values on the stack, and goes on to blocks that take as many, so
# there are loops with several entries and values where paths meet. Rows cover any stretch of a block.

SIMPLE = {  # what a step needs, what it leaves: opcodes of 3.11, with arguments
    "load": (0, 1, [("LOAD_FAST", 2)]),
    "constant": (0, 1, [("LOAD_CONST", 1)]),
    "add": (2, 1, [("BINARY_OP", 0)]),
    "subtract": (2, 1, [("BINARY_OP", 10)]),
    "compare": (2, 1, [("COMPARE_OP", 0)]),
    "negate": (1, 1, [("UNARY_NOT", 0)]),
    "store": (1, 0, [("STORE_FAST", 2)]),
    "delete": (0, 0, [("DELETE_FAST", 2)]),
    "swap": (2, 2, [("SWAP", 2)]),
    "deep swap": (3, 3, [("SWAP", 3)]),
    "copy": (1, 2, [("COPY", 1)]),
    "deep copy": (2, 3, [("COPY", 2)]),
    "pop": (1, 0, [("POP_TOP", 0)]),
    "list": (2, 1, [("BUILD_LIST", 2)]),
    "pair": (2, 1, [("BUILD_TUPLE", 2), ("LOAD_CONST", 2), ("BINARY_SUBSCR", 0)]),
    "unpack": (1, 2, [("BUILD_LIST", 1), ("COPY", 1), ("BINARY_OP", 13), ("UNPACK_SEQUENCE", 2)]),
    "log": (1, 1, [("LOAD_GLOBAL", 0), ("SWAP", 2), ("PUSH_NULL", 0), ("SWAP", 3), ("SWAP", 2), ("PRECALL", 1), ("CALL", 1)]),
}
YIELD = {"yield": (1, 1, [("YIELD_VALUE", 0), ("RESUME", 1)])}
STEP = [("PUSH_NULL", 0), ("LOAD_FAST", 1), ("PRECALL", 0), ("CALL", 0), ("POP_TOP", 0)]  # counts, and raises now and then
HEIGHTS = 4


@st.composite
def random_flow(draw, generator=False):
    """A code object `f(log, step, a)` in 3.11's opcodes that goes round until `step` raises or it returns, with the names of its parts."""
    count = draw(st.integers(1, 7))
    heights = [0] + [draw(st.integers(0, HEIGHTS - 1)) for _ in range(count - 1)]
    taking = {height: [block for block in range(count) if heights[block] == height] for height in range(-1, HEIGHTS + 2)}
    steps = {**SIMPLE, **YIELD} if generator else SIMPLE
    code, starts, rows, handlers = [], {}, [], []  # code: (op, arg, label); a label is a block, or ("handler", number)

    def finish(height):
        code.extend([("POP_TOP", 0, None)] * height + [("LOAD_FAST", 2, None), ("RETURN_VALUE", 0, None)])

    def go_on(height):
        """Somewhere that takes so many values, or the end."""
        if taking[height] and draw(st.integers(0, 5)):
            code.append(("JUMP", 0, draw(st.sampled_from(taking[height]))))
        else:
            finish(height)

    def cover(start, low):
        """A row over what was made from `start` on, where at least `low` values lie on the stack."""
        number = len(handlers)
        handlers.append((draw(st.integers(0, low)), draw(st.booleans()), draw(st.sampled_from(["return", "raise", "go on", "go on"])), 1))
        rows.append((start, len(code), ("handler", number)))

    for block in range(count):
        height = heights[block]
        starts[block] = len(code)
        start, low = len(code), height
        code.extend((op, arg, None) for op, arg in STEP)
        for _ in range(draw(st.integers(0, 6))):
            needs, leaves, instructions = steps[draw(st.sampled_from(sorted(steps)))]
            if height >= needs and height - needs + leaves <= HEIGHTS + 1:
                code.extend((op, arg, None) for op, arg in instructions)
                height += leaves - needs
                low = min(low, height - leaves)
                if draw(st.integers(0, 5)) == 0:
                    cover(start, low)
                    start, low = len(code), height
        if draw(st.booleans()) and len(code) > start:
            cover(start, low)
        kind = draw(st.sampled_from(["jump", "if", "unless", "none", "or pop"]))
        if kind == "jump" or height == 0:
            go_on(height)
            continue
        kept = height if kind == "or pop" else height - 1
        if not taking[kept]:
            go_on(height)
            continue
        target = draw(st.sampled_from(taking[kept]))
        backward = target <= block
        if kind == "or pop" and backward:  # there is none that goes back
            kind = "if"
            code.append(("COPY", 1, None))
            height += 1
        op = {
            "if": "POP_JUMP_{}_IF_TRUE",
            "unless": "POP_JUMP_{}_IF_FALSE",
            "none": "POP_JUMP_{}_IF_NONE",
            "or pop": "JUMP_IF_FALSE_OR_POP",
        }
        code.append((op[kind].format("BACKWARD" if backward else "FORWARD"), 0, target))
        go_on(height - 1)
    number = 0
    while number < len(handlers):  # handlers of handlers come behind
        depth, lasti, kind, level = handlers[number]
        starts["handler", number] = len(code)
        code.append(("PUSH_EXC_INFO", 0, None))
        start = len(code)
        code.extend((op, arg, None) for op, arg in SIMPLE["log"][2])
        code.extend((op, arg, None) for op, arg in STEP)
        if level < 4 and draw(st.integers(0, 3)) == 0:  # deeper ones see the exceptions of the fifth
            handlers.append((draw(st.integers(0, depth)), draw(st.booleans()), draw(st.sampled_from(["return", "raise again"])), level + 1))
            rows.append((start, len(code), ("handler", len(handlers) - 1)))
        if kind == "raise":
            code.append(("RERAISE", 0, None))
        elif kind == "raise again":
            code.append(("RAISE_VARARGS", 0, None))
        else:
            code.extend([("POP_TOP", 0, None), ("POP_EXCEPT", 0, None)] + [("POP_TOP", 0, None)] * lasti)
            if kind == "return":
                finish(depth)
            else:
                go_on(depth)
        number += 1
    return code, starts, rows, handlers, generator


def assemble(code, starts, rows, handlers, generator):
    """The code object, decoded."""
    before = [("RETURN_GENERATOR", 0), ("POP_TOP", 0)] if generator else []
    before.append(("RESUME", 0))
    decoded = bytecode.decode((lambda log, step, a: None).__code__)
    decoded.consts, decoded.names, decoded.stacksize = [None, 3, 1], ["note"], 40
    if generator:
        decoded.flags |= 0x20  # CO_GENERATOR
    instructions = [bytecode.Instruction((op, arg, None, -1, 0, None, None, None, None)) for op, arg in before]
    shift = len(before)
    for index, (op, arg, label) in enumerate(code):
        goal = None if label is None else starts[label] + shift
        if op == "JUMP":
            op = "JUMP_BACKWARD" if goal <= index + shift else "JUMP_FORWARD"
        instructions.append(bytecode.Instruction((op, arg, goal, -1, 0, None, None, None, None)))
    decoded.instructions = instructions
    decoded.rows = [
        bytecode.ExceptionRow((start + shift, end + shift, starts[label] + shift, *handlers[label[1]][:2]))
        for start, end, label in sorted(rows, key=lambda row: row[:2])
    ]
    return decoded


class Stop(BaseException):
    pass


def run(function, a):
    """The log, and the result or the exceptions with their contexts."""
    log, steps = [], 0

    def step():
        nonlocal steps
        steps += 1
        if steps > 60:
            raise Stop
        if steps % 5 == 4:
            raise KeyError(steps)

    def note(value):
        log.append((type(value).__name__ if isinstance(value, BaseException) else repr(value), type(sys.exc_info()[1]).__name__))
        return value

    function = types.FunctionType(function.__code__, {**function.__globals__, "note": note}, "f")
    try:
        result = function(log, step, a)
        if isinstance(result, types.GeneratorType):
            log.append(repr(next(result)))
            while len(log) < 200:
                sent = len(log)
                log.append(repr(result.throw(ValueError(sent)) if sent % 6 == 5 else result.send(sent)))
        return log, repr(result)
    except (Exception, Stop) as error:
        kinds = []
        while error is not None and len(kinds) < 4:  # what is nested deeper than the loops are has other contexts
            kinds.append((type(error).__name__, getattr(error, "value", None)))
            error = error.__context__
        return log, kinds


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="written in the opcodes of 3.11")
@for_a_share(0.12)
@given(st.one_of(random_flow(), random_flow(generator=True)), st.integers(-2, 3))
def test_random_control_flow_in_blocks(flow, a):
    decoded = assemble(*flow)
    problem = bytecode.validate(decoded)
    event("invalid" if problem else "valid")
    if problem:
        return
    code = bytecode.assemble(decoded)
    original = types.FunctionType(code, {"__builtins__": __builtins__}, "f")
    again = in_blocks(original)
    assert _grading.block_form_fault(code, again.__code__) == ""
    assert run(again, a) == run(original, a)
    result = decompiling.decompile(code, check=True)
    assert result.grade != decompiling.DIFFERS, result.reason
    event(result.grade)


# Other Pythons: what they make of random programs, and damaged files of theirs.

FOUND, _ = find_pythons.find()
TAGS = [python.tag for python in FOUND]
PYC = """
import importlib.util, marshal, sys, warnings
warnings.simplefilter("ignore")
code = compile(sys.stdin.read(), "<file>", "exec", 0, True)
sys.stdout.buffer.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
"""


@functools.lru_cache(None)
def compiler_of(tag):
    return _grading.Compiler(tag, next(python.path for python in FOUND if python.tag == tag))


@functools.lru_cache(None)
def good_file(tag):
    path = next(python.path for python in FOUND if python.tag == tag)
    source = pathlib.Path(block_support.__file__).read_text() + "\nasync def f(a):\n async with a as b: return [await c async for c in b]\n"
    return subprocess.run([path, "-I", "-c", PYC], input=source.encode(), stdout=subprocess.PIPE, check=True).stdout


@for_a_share(0.06, examples=5)
@given(random_programs.sources, st.sampled_from(TAGS))
def test_random_programs_of_other_pythons(source, tag):
    [code] = compiler_of(tag).compile([_recompile.Request(source, "f", 0)])
    if isinstance(code, str):
        event("newer syntax")
        return
    text, why, bindings = bytecode.decompile_blocks(code)
    assert text is not None, why
    [made] = compiler_of(tag).compile([_grading.request_for(code, text)])
    assert _grading.block_form_fault(code, made, {name: value for name, value, _ in bindings}) == ""
    event(str(tag))


changes = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=3)


@for_a_share(0.06)
@given(st.sampled_from(TAGS), changes, st.one_of(st.none(), st.integers(0, 1 << 20)))
def test_damaged_files(tag, changed, size):
    data = bytearray(good_file(tag))
    for at, value in changed:
        data[16 + at % (len(data) - 16)] = value
    try:
        code = bytecode.load_pyc(bytes(data if size is None else data[: 16 + size % (len(data) - 16)]))
    except ValueError:
        event("refused")
        return
    event("read")
    for action in (decompiling.decompile, decompiling.block_form):
        try:
            assert str(action(code))
        except ValueError:
            event("not decompiled")
