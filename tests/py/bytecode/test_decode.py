"""Decoded instructions against `dis`, goldens of the text form, stack depths and liveness against plain reimplementations."""

import argparse
import asyncio.base_events
import dis
import inspect
import os
import tarfile
import timeit
import types

import pellucid._bytecode as bytecode
import pytest
from programs import PROGRAMS, loops


def functions_of(module):
    """The code objects of a module's functions and methods, nested ones included."""
    codes = []
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else [value]
        codes.extend(member.__code__ for member in members if isinstance(member, types.FunctionType))
    for code in codes:
        codes.extend(const for const in code.co_consts if isinstance(const, types.CodeType))
    return codes


CODES = [function.__code__ for function, _ in PROGRAMS] + [
    code for module in (argparse, asyncio.base_events, inspect, tarfile) for code in functions_of(module)
]


def test_there_is_enough_to_compare():
    assert len(CODES) > 550


def test_instructions_are_those_of_dis():
    for code in CODES:
        expected = []
        index_of_offset = {}
        prefixes = 0
        for instruction in dis.get_instructions(code):
            if not prefixes:
                index_of_offset[instruction.offset] = len(expected)
            if instruction.opname == "EXTENDED_ARG":
                prefixes += 1
                continue
            expected.append((instruction, prefixes))
            prefixes = 0
        got = bytecode.decode(code).instructions
        assert len(got) == len(expected)
        for ours, (theirs, prefixes) in zip(got, expected):
            assert (ours.op, ours.offset, ours.extended) == (theirs.opname, theirs.offset, prefixes)
            position = theirs.positions
            assert (ours.line, ours.end_line, ours.column, ours.end_column) == (
                position.lineno, position.end_lineno, position.col_offset, position.end_col_offset,
            )  # fmt: skip
            if theirs.opcode in dis.hasjrel or theirs.opcode in dis.hasjabs:
                assert ours.target == index_of_offset[theirs.argval]
            else:
                assert ours.target is None
                assert ours.arg == (theirs.arg or 0)


def test_exception_rows_are_those_of_dis():
    rows = 0
    for code in CODES:
        decoded = bytecode.decode(code)
        first_offset = [i.offset - 2 * i.extended for i in decoded.instructions] + [len(code.co_code)]
        for ours, theirs in zip(decoded.rows, dis._parse_exception_table(code), strict=True):
            offsets = (first_offset[ours.start], first_offset[ours.end], first_offset[ours.target])
            assert (*offsets, ours.depth, ours.lasti) == (theirs.start, theirs.end, theirs.target, theirs.depth, theirs.lasti)
            rows += 1
    assert rows > 500


def test_localsplus():
    def outer(cell_argument, plain, *args, key, **kwargs):
        local = 1
        cell = 2

        def inner():
            return cell_argument, cell

        return inner, local

    decoded = bytecode.decode(outer.__code__)
    assert list(zip(decoded.localsplus_names, decoded.localsplus_kinds)) == [
        ("cell_argument", "local+cell"), ("plain", "local"), ("key", "local"), ("args", "local"), ("kwargs", "local"),
        ("local", "local"), ("inner", "local"), ("cell", "cell"),
    ]  # fmt: skip
    inner = bytecode.decode(outer(1, 2, key=3)[0].__code__)
    assert inner.localsplus_kinds == ["free", "free"]
    assert (decoded.argcount, decoded.kwonly, decoded.posonly, decoded.name) == (2, 1, 0, "outer")


@pytest.mark.parametrize("function", [function for function, _ in PROGRAMS], ids=lambda function: function.__name__)
def test_text(function, golden):
    golden(f"bytecode/{function.__name__}.txt", bytecode.to_text(bytecode.decode(function.__code__)))


def flow(decoded):
    """The successors of each instruction by a plain reading of the rules: (next instructions, handler or None)."""
    ends = {"RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
    result = []
    for index, instruction in enumerate(decoded.instructions):
        following = [] if instruction.op in ends else [index + 1]
        if instruction.target is not None:
            following.append(instruction.target)
        handler = next((row for row in decoded.rows if row.start <= index < row.end), None)
        result.append((following, handler))
    return result


def test_stack_depths_follow_the_compiler():
    for code in CODES:
        decoded = bytecode.decode(code)
        depths = bytecode.stack_depths(decoded)
        expected = {0: 0}
        pending = [0]
        flows = flow(decoded)
        while pending:
            index = pending.pop()
            instruction = decoded.instructions[index]
            following, row = flows[index]
            targets = [(row.target, row.depth + row.lasti + 1)] if row else []
            for target in following:
                jump = target == instruction.target
                targets.append((target, expected[index] + bytecode.stack_effect(311, instruction.op, instruction.arg, jump)))
            for target, depth in targets:
                if target not in expected:
                    expected[target] = depth
                    pending.append(target)
                assert expected[target] == depth
        assert depths == [expected.get(index) for index in range(len(depths))]
        assert max(expected.values()) <= code.co_stacksize


FRAME_READERS = {"locals", "vars", "dir", "eval", "exec", "super"}


def test_liveness_against_a_plain_fixpoint():
    compared = 0
    for code in CODES[::3]:
        if FRAME_READERS & set(code.co_names):
            continue
        decoded = bytecode.decode(code)
        names = decoded.localsplus_names
        flows = flow(decoded)
        live = [set() for _ in range(len(flows) + 1)]
        changed = True
        while changed:
            changed = False
            for index in range(len(flows) - 1, -1, -1):
                following, row = flows[index]
                instruction = decoded.instructions[index]
                now = set().union(*(live[target] for target in following))
                if instruction.op == "STORE_FAST":
                    now.discard(instruction.arg)
                elif instruction.op in ("LOAD_FAST", "DELETE_FAST", "LOAD_CLOSURE") or instruction.op.endswith("_DEREF"):
                    now.add(instruction.arg)
                elif instruction.op == "LOAD_CLASSDEREF":
                    now.add(instruction.arg)
                elif instruction.op == "MAKE_CELL":
                    now.discard(instruction.arg)
                    if decoded.localsplus_kinds[instruction.arg] == "local+cell":
                        now.add(instruction.arg)
                elif instruction.op == "COPY_FREE_VARS":
                    now -= {slot for slot, kind in enumerate(decoded.localsplus_kinds) if kind == "free"}
                if row:
                    now |= live[row.target]
                if now != live[index]:
                    live[index] = now
                    changed = True
        assert bytecode.live_locals(decoded) == [[names[slot] for slot in sorted(slots)] for slots in live[:-1]]
        compared += 1
    assert compared > 150


def live_at(function, op):
    decoded = bytecode.decode(function.__code__)
    index = next(i for i, instruction in enumerate(decoded.instructions) if instruction.op == op)
    return bytecode.live_locals(decoded)[index]


def test_liveness_at_calls_that_look_into_the_frame():
    def reads_frame(a, b):
        c = a
        return locals()

    def reads_attribute(model, b):
        return model.locals()

    class Child(dict):
        def first(self, other):
            return super().first(other)

    assert live_at(reads_frame, "CALL") == ["a", "b", "c"]
    assert live_at(reads_attribute, "CALL") == []
    assert "self" in live_at(Child.first, "CALL")


def test_liveness_over_exception_edges():
    def keeps(a):
        x = a
        try:
            a = None
            a()
        except TypeError:
            return x
        return a

    assert "x" in live_at(keeps, "NOP")
    assert "x" in live_at(keeps, "CALL")


def test_decode_wants_a_code_object():
    with pytest.raises(TypeError, match="expected a code object, not function"):
        bytecode.decode(loops)
    with pytest.raises(TypeError, match="expected a decoded Code"):
        bytecode.assemble(loops.__code__)
    with pytest.raises(ValueError, match="308 to 313"):
        bytecode.opcodes(307)


@pytest.mark.skipif("PELLUCID_SANITIZED" in os.environ, reason="times under sanitizers mean nothing")
def test_decoding_is_fast():
    # 321 instructions; measured 2.5 us at -O2. The limit leaves room for a busy machine and a developer build.
    code = inspect._signature_from_function.__code__
    assert len(bytecode.decode(code).instructions) > 300
    assert min(timeit.repeat(lambda: bytecode.decode(code), number=200, repeat=20)) / 200 < 20e-6
