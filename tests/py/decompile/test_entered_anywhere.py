"""Code that is entered in the middle, as functions that go on behind a graph break are: block form never fails, and does the same."""

import pathlib
import random
import sys
import sysconfig
import types

import pytest

if sys.version_info[:2] != (3, 11):
    pytest.skip("the entries are written in 3.11's opcodes", allow_module_level=True)

from pellucid import _bytecode as bytecode
from pellucid import decompiling

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bytecode"))
from editing import insert, made


def entered_at(code, index):
    """The code with a jump to an instruction behind its beginning, with constants for what the stack holds there; None: not possible."""
    decoded = bytecode.decode(code)
    starts = [number for number, each in enumerate(decoded.instructions) if each.op == "RESUME" and each.arg == 0]
    depth = bytecode.stack_depths(decoded)[index]
    if not starts or depth is None or index <= starts[-1]:
        return None
    values = [made("LOAD_CONST", 0)] * depth
    insert(decoded, starts[-1] + 1, [*values, made("JUMP_FORWARD", 0, index + depth + 1)])
    return None if bytecode.validate(decoded) else bytecode.assemble(decoded)


def compiled(result, code):
    """The code object of block form, with the free variables of the original."""
    names = [name for name in code.co_freevars if name.isidentifier()]
    lines = ["def around():", "  pass", *(f"  {name} = None" for name in names), *("  " + line for line in result.source.splitlines())]
    module = compile("\n".join(lines) + "\n", "<blocks>", "exec")
    around = next(const for const in module.co_consts if isinstance(const, types.CodeType))
    return next(const for const in around.co_consts if isinstance(const, types.CodeType))


def library_functions(count):
    files = sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))
    random.Random(7).shuffle(files)
    for file in files[:count]:
        pending = [compile(file.read_bytes(), str(file), "exec")]
        while pending:
            code = pending.pop()
            pending += [const for const in code.co_consts if isinstance(const, types.CodeType)]
            if code.co_flags & 1:  # CO_OPTIMIZED: a function
                yield code


@pytest.mark.slow
def test_it_never_fails():
    choose = random.Random(11)
    tried = 0
    for code in library_functions(40):
        for _ in range(2):
            entered = entered_at(code, choose.randrange(len(bytecode.decode(code).instructions)))
            if entered is not None:
                compiled(decompiling.block_form(entered), entered)
                tried += 1
    assert tried > 1000


def branches(log, a, b=3):
    if a > 2:
        log.append(a)
        b = a * 2
    elif a:
        b = b - a
    else:
        del b
    return a, b


def bounded(log, value):
    """Ends what would never end."""
    log.append(value)
    if len(log) > 30:
        raise OverflowError(value)


def loops(log, a, b=0):
    log.append("begin")  # the jump to the entry stands in front: a loop must not lead there
    while a < 5:
        a = a + 1
        bounded(log, a)
        if a == b:
            continue
        while b < a:
            b += 2
            bounded(log, b)
            if b == 4:
                break
        else:
            log.append("else")
    return b


def handlers(log, a, b=None):
    try:
        log.append(b)
        b = 6 // a
        try:
            b = [].pop(a)
        finally:
            log.append("finally")
    except ZeroDivisionError as error:
        log.append(str(error))
        return "zero"
    except IndexError:
        a = 7
    else:
        log.append("else")
    finally:
        log.append(sys.exc_info()[0])
    return a, b


def managers(log, a, b=None):
    with Manager(log) as b:
        log.append(a)
        if a == 1:
            return "returned"
        b = 1 // a
    log.append(b)


class Manager:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        return "entered"

    def __exit__(self, kind, error, traceback):
        self.log.append(kind)
        return True


def generator(log, a, b=None):
    b = yield a
    log.append(b)
    try:
        yield from (x * 2 for x in range(a))
    finally:
        log.append("closed")


def closes_over(log, a, b=1):
    def inner():
        nonlocal a
        a += b
        return a

    log.append(inner())
    return inner, a


def outcome(code, arguments):
    log = []
    function = types.FunctionType(code, globals(), code.co_name, (9,), tuple(types.CellType() for _ in code.co_freevars) or None)
    try:
        result = function(log, *arguments)
        if isinstance(result, types.GeneratorType):
            result = list(result)
        elif isinstance(result, tuple) and callable(result[0]):
            result = result[0](), result[1]
    except Exception as error:
        result = type(error), str(error).split(" where ")[0]
    return result, log


@pytest.mark.parametrize("function", [branches, loops, handlers, managers, generator, closes_over], ids=lambda function: function.__name__)
def test_it_does_the_same(function):
    code = function.__code__
    decoded = bytecode.decode(code)
    tried = 0
    for index, depth in enumerate(bytecode.stack_depths(decoded)):
        entered = entered_at(code, index) if depth == 0 else None
        if entered is None:
            continue
        again = compiled(decompiling.block_form(entered), entered)
        for arguments in ((0,), (1,), (3, 4), (2, 0)):
            assert outcome(again, arguments) == outcome(entered, arguments), index
        tried += 1
    assert tried >= (1 if function is closes_over else 5)


def test_a_send_without_its_loop():
    decoded = bytecode.decode((lambda it: None).__code__)
    decoded.consts, decoded.names, decoded.stacksize = [None, 5], [], 10
    decoded.instructions = [
        made("RESUME", 0),
        made("LOAD_FAST", 0),
        made("LOAD_CONST", 0),
        made("SEND", 0, 7),  # with what the iterator returns to the end
        made("BUILD_TUPLE", 1),
        made("SWAP", 2),
        made("POP_TOP", 0),
        made("RETURN_VALUE", 0),
    ]
    assert bytecode.validate(decoded) == ""
    code = bytecode.assemble(decoded)
    result = decompiling.decompile(code, check=True)
    assert result.grade == decompiling.BLOCK_FORM, result.reason
    again = types.FunctionType(compiled(result, code), {})
    original = types.FunctionType(code, {})

    def ends():
        return 9
        yield

    for make in (ends, lambda: iter([4])):
        assert again(make()) == original(make())
    assert again(ends()) == 9
