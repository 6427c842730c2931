"""Edited instruction streams assemble to code that does the same; broken ones are refused."""

import itertools

import pellucid._bytecode as bytecode
import pytest
from editing import insert, insert_gap, insert_nops, made, move_block, rebuild
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import PROGRAMS, handlers, loops, outcome

TURNED: set = set()  # opcodes of code whose blocks were moved
FUNCTIONS = [function for function, _ in PROGRAMS]
ARGUMENTS = dict(PROGRAMS)


def same_behaviour(function, edited):
    for arguments in ARGUMENTS[function]:
        expected = outcome(function, arguments)
        for _ in range(30):  # the interpreter specialises instructions after some runs
            assert outcome(edited, arguments) == expected


EDITS = st.tuples(st.sampled_from(["nops", "gap", "move"]), st.integers(0, 10**6))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(FUNCTIONS), st.lists(st.tuples(st.sampled_from(["nops", "gap", "move"]), st.integers(0, 10**6)), max_size=8), st.data()
)
def test_random_edits_keep_the_meaning(function, edits, data):
    def edit(decoded):
        for kind, place in edits:
            if kind == "move":
                move_block(decoded, place % len(bytecode.blocks(decoded)))
                continue
            # Behind the function's opening (MAKE_CELL, COPY_FREE_VARS, RESUME), where the interpreter wants nothing else.
            opening = 1 + next(i for i, one in enumerate(decoded.instructions) if one.op == "RESUME")
            index = opening + place % (len(decoded.instructions) - opening)
            index -= decoded.instructions[index].op == "CALL"  # it stays with its PRECALL
            if kind == "nops":
                insert_nops(decoded, index, data.draw(st.integers(1, 300)))
            else:
                insert_gap(decoded, index, data.draw(st.sampled_from([1, 200, 254, 255, 256, 300])))

    same_behaviour(function, rebuild(function, edit))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("distance", [255, 256, 65_535, 65_536])
def test_long_jumps(function, distance):
    """A gap at each kind of place; the longest jumps need two EXTENDED_ARGs."""
    instructions = bytecode.decode(function.__code__).instructions
    for index in (len(instructions) // 3, 2 * len(instructions) // 3):
        index -= instructions[index].op == "CALL"
        same_behaviour(function, rebuild(function, lambda decoded, index=index: insert_gap(decoded, index, distance)))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_block_can_be_moved(function):
    """Conditional and plain jumps turn round: the assembler picks the opcode of the other direction."""
    moved = 0

    def edit(decoded):
        nonlocal moved
        for block in range(1, len(bytecode.blocks(decoded))):
            moved += move_block(decoded, block)

    edited = rebuild(function, edit)
    same_behaviour(function, edited)
    assert moved > 0 or len(bytecode.blocks(bytecode.decode(function.__code__))) < 3
    TURNED.update(i.op for i in bytecode.decode(edited.__code__).instructions)


def test_all_directions_were_seen_by_then():
    assert TURNED >= {
        "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE",
        "POP_JUMP_FORWARD_IF_FALSE", "JUMP_FORWARD", "JUMP_BACKWARD",
    }  # fmt: skip


def test_directions_follow_the_targets():
    decoded = bytecode.decode(loops.__code__)
    kinds = {"POP_JUMP_FORWARD_IF_FALSE": "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE": "POP_JUMP_BACKWARD_IF_TRUE"}
    back = {old: new for pair in kinds.items() for old, new in (pair, pair[::-1])}
    back.update(JUMP_FORWARD="JUMP_BACKWARD", JUMP_BACKWARD="JUMP_FORWARD")
    # The wrong direction written everywhere: the assembler puts it right, and the bytes are the original's.
    decoded.instructions = [(back.get(i.op, i.op), *i[1:]) for i in decoded.instructions]
    code = bytecode.assemble(decoded)
    assert (code.co_code, code.co_linetable) == (loops.__code__.co_code, loops.__code__.co_linetable)


def test_positions_of_untouched_instructions_stay():
    decoded = bytecode.decode(handlers.__code__)
    before = [tuple(i[5:]) for i in decoded.instructions]
    for index in range(len(before) - 1, 2, -1):
        insert_nops(decoded, index, 1)
    again = bytecode.decode(bytecode.assemble(decoded))
    assert [tuple(i[5:]) for i in again.instructions if i.op != "NOP" or i.line is not None] == before


POSITIONS = st.one_of(
    st.just((None,) * 4),
    st.builds(
        lambda line, more, column, width: (line, line + more, column, column + width if more == 0 else width),
        st.integers(0, 4000), st.sampled_from([0, 0, 0, 1, 2, 70]), st.integers(0, 300), st.integers(0, 300),
    ),
    st.builds(lambda line: (line, line, None, None), st.integers(0, 4000)),
)  # fmt: skip


@given(st.lists(POSITIONS, min_size=1, max_size=40), st.integers(0, 4000))
def test_any_positions_survive(positions, firstlineno):
    decoded = bytecode.decode((lambda: None).__code__)
    decoded.firstlineno = firstlineno
    resume, *rest = decoded.instructions
    decoded.instructions = [resume, *(("NOP", 0, None, None, 0, *position) for position in positions), *rest]
    code = bytecode.assemble(decoded)
    assert [tuple(i[5:]) for i in bytecode.decode(code).instructions[1:-2]] == positions
    assert list(code.co_positions())[1:-2] == positions


def test_redundant_prefixes_are_kept_for_original_instructions_only():
    decoded = bytecode.decode(loops.__code__)
    index = next(i for i, one in enumerate(decoded.instructions) if one.op == "LOAD_CONST")
    with_prefix = list(decoded.instructions)
    with_prefix[index] = (*with_prefix[index][:4], 1, *with_prefix[index][5:])
    decoded.instructions = with_prefix
    assert bytecode.decode(bytecode.assemble(decoded)).instructions[index].extended == 1
    with_prefix[index] = (*with_prefix[index][:3], None, 1, *with_prefix[index][5:])
    decoded.instructions = with_prefix
    assert bytecode.decode(bytecode.assemble(decoded)).instructions[index].extended == 0


def test_stack_size_is_raised():
    decoded = bytecode.decode((lambda: None).__code__)
    count = 50
    resume, *rest = decoded.instructions
    decoded.instructions = [resume, *[made("LOAD_CONST")] * count, *[made("POP_TOP")] * count, *rest]
    assert bytecode.assemble(decoded).co_stacksize == count
    decoded.stacksize = 200
    assert bytecode.assemble(decoded).co_stacksize == 200


def broken(function, change):
    decoded = bytecode.decode(function.__code__)
    instructions = [list(i) for i in decoded.instructions]
    rows = [list(row) for row in decoded.rows]
    change(instructions, rows)
    decoded.instructions, decoded.rows = instructions, rows
    return decoded


def at(op, field, value):
    def change(instructions, rows):
        next(i for i in instructions if i[0] == op)[field] = value

    return change


def remove(op):
    def change(instructions, rows):
        index = next(k for k, i in enumerate(instructions) if i[0] == op)
        instructions[index][0], instructions[index][1], instructions[index][2] = "NOP", 0, None

    return change


def row(field, value):
    def change(instructions, rows):
        rows[0][field] = value

    return change


def drop_tail(instructions, rows):
    while instructions[-1][0] != "LOAD_FAST":
        instructions.pop()


def separate_call(instructions, rows):
    index = next(k for k, i in enumerate(instructions) if i[0] == "CALL")
    instructions[index], instructions[index + 1] = ["NOP", 0, *instructions[index][2:]], instructions[index]


def closing(x):
    return lambda: x


BROKEN = [
    (loops, at("LOAD_CONST", 1, 999), "constant 999 is out of range"),
    (loops, at("LOAD_GLOBAL", 1, 999), "name 499 is out of range"),
    (loops, at("LOAD_FAST", 1, 999), "local 999 is out of range"),
    (loops, at("FOR_ITER", 2, 9999), "the target is out of range"),
    (loops, at("FOR_ITER", 2, None), "a jump without a target"),
    (loops, at("LOAD_FAST", 2, 3), "a target, but no jump"),
    (loops, at("GET_ITER", 1, 3), "takes no argument"),
    (loops, at("LOAD_CONST", 0, "RETURN_CONST"), "no such opcode in 311"),
    (loops, at("LOAD_CONST", 0, "CACHE"), "placed by the assembler"),
    (loops, remove("LOAD_GLOBAL"), "needs 3 values, but the stack holds"),
    (loops, remove("FOR_ITER"), "disagree"),
    (loops, at("JUMP_BACKWARD", 2, 1), "disagree"),
    (loops, at("STORE_FAST", 0, "POP_TOP"), "takes no argument"),
    (loops, drop_tail, "runs off the end"),
    (handlers, row(0, -1), "its instructions are out of range"),
    (handlers, row(1, 9999), "its instructions are out of range"),
    (handlers, row(2, 9999), "its target is out of range"),
    (handlers, row(3, 40), "keeps 40 values"),
    (handlers, row(3, -1), "its depth is negative"),
    (handlers, lambda instructions, rows: rows.append(rows[0]), "covered by another row"),
    (loops, separate_call, "CALL with the same argument must follow"),
    (loops, at("PRECALL", 1, 2), "CALL with the same argument must follow"),
    (lambda: loops.x, at("RESUME", 0, "MAKE_CELL"), "local 0 is out of range"),
]  # fmt: skip


@pytest.mark.parametrize("function, change, problem", BROKEN, ids=itertools.count())
def test_broken_streams_are_refused(function, change, problem):
    decoded = broken(function, change)
    assert problem in bytecode.validate(decoded)
    with pytest.raises(ValueError):
        bytecode.stack_depths(decoded)


def unbound(x):
    y = x
    return y


def cells(x):
    def inner():
        nonlocal x
        x += 1
        return x

    return inner() + x


def test_unbound_reads_are_refused():
    decoded = broken(unbound, at("STORE_FAST", 0, "POP_TOP"))
    decoded.instructions = [(i.op, 0 if i.op == "POP_TOP" else i.arg, *i[2:]) for i in decoded.instructions]
    assert "y cannot be bound there" in bytecode.validate(decoded)


def test_cells_must_have_been_made():
    assert bytecode.validate(broken(cells, lambda instructions, rows: None)) == ""
    assert "x may hold no cell there" in bytecode.validate(broken(cells, remove("MAKE_CELL")))
    inner = next(const for const in cells.__code__.co_consts if hasattr(const, "co_code"))
    decoded = bytecode.decode(inner)
    assert decoded.instructions[0].op == "COPY_FREE_VARS"
    decoded.instructions = [("NOP", 0, *decoded.instructions[0][2:]), *decoded.instructions[1:]]
    assert "x may hold no cell there" in bytecode.validate(decoded)
    decoded.instructions = [("COPY_FREE_VARS", 2, *decoded.instructions[0][2:]), *decoded.instructions[1:]]
    assert "there are 1 free variables" in bytecode.validate(decoded)


@pytest.mark.parametrize(
    "change, message",
    [
        (at("FOR_ITER", 2, 9999), "target is out of range"),
        (at("FOR_ITER", 2, 0), "cannot jump backwards"),
        (at("LOAD_CONST", 0, "RETURN_CONST"), "no such opcode"),
        (lambda instructions, rows: instructions.clear(), "no instructions"),
        (lambda instructions, rows: rows.extend([(2, 6, 8, 0, False), (4, 7, 8, 0, False)]), "two exception rows cover instruction 4"),
    ],
)
def test_assembling_what_cannot_be_encoded_is_an_error(change, message):
    with pytest.raises(ValueError, match=message):
        bytecode.assemble(broken(loops, change))


def test_setters_refuse_nonsense_and_keep_the_old_value():
    decoded = bytecode.decode(loops.__code__)
    before = decoded.instructions
    for bad in ([("NO_SUCH_OP", 0, None, None, 0, *[None] * 4)], [("NOP", 0)], [("NOP", 1 << 32, None, None, 0, *[None] * 4)], 5):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            decoded.instructions = bad
    with pytest.raises(TypeError):
        del decoded.rows
    with pytest.raises(TypeError):
        decoded.names = [1]
    assert decoded.instructions == before


def test_new_constants_and_names():
    def edit(decoded):
        decoded.consts = [*decoded.consts, 42]
        insert(decoded, 1, [made("LOAD_CONST", len(decoded.consts) - 1), made("RETURN_VALUE")])

    assert rebuild(closing, edit)(1) == 42
