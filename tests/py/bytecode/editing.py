"""Edits of decoded code that keep its meaning: what property tests compose, and an example of how to use the decoded form."""

import types

import pellucid._bytecode as bytecode

FORWARD_ONLY = {"FOR_ITER", "SEND", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"}
NO_PLACE = (None,) * 4


def made(op, arg=0, target=None):
    """An instruction that is in no source: no offset, no position."""
    return bytecode.Instruction((op, arg, target, None, 0, *NO_PLACE))


def insert(decoded, index, new):
    """Puts `new` in front of an instruction; jumps to that instruction reach the new ones first. Targets in `new` are final indexes."""

    def moved(old):
        return old + len(new) if old is not None and old > index else old

    kept = [bytecode.Instruction((i.op, i.arg, moved(i.target), *i[3:])) for i in decoded.instructions]
    decoded.instructions = kept[:index] + list(new) + kept[index:]
    decoded.rows = [(moved(row.start), moved(row.end), moved(row.target), row.depth, row.lasti) for row in decoded.rows]


def insert_nops(decoded, index, count):
    """`count` NOPs, executed."""
    insert(decoded, index, [made("NOP")] * count)


def insert_gap(decoded, index, count):
    """A jump over `count` NOPs, so that every jump across it becomes long."""
    insert(decoded, index, [made("JUMP_FORWARD", target=index + 1 + count)] + [made("NOP")] * count)


def move_block(decoded, block):
    """Moves a basic block to the end, with jumps there and back, so that jumps change direction. False where it cannot be moved."""
    start, end, following, _, _ = bytecode.blocks(decoded)[block]
    instructions = decoded.instructions
    if start == 0 or any(i.op in FORWARD_ONLY for i in instructions[start:end]):
        return False
    home = len(instructions)
    body = instructions[start:end]
    if following is not None:
        body.append(made("JUMP_BACKWARD", target=end))
    stub = [made("JUMP_FORWARD", target=home)] + [made("NOP")] * (end - start - 1)
    row = next((row for row in decoded.rows if row.start <= start < row.end), None)
    decoded.instructions = instructions[:start] + stub + instructions[end:] + body
    if row is not None:
        decoded.rows = [*decoded.rows, (home, home + end - start, row.target, row.depth, row.lasti)]
    return True


def rebuild(function, edit):
    """`function` with its code decoded, edited by `edit`, validated and assembled."""
    decoded = bytecode.decode(function.__code__)
    edit(decoded)
    assert bytecode.validate(decoded) == ""
    code = bytecode.assemble(decoded)
    return types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
