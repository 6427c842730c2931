"""Names for values that compilers keep on the stack: hand-made code, run beside what it decompiles to, and graded."""

import random
import sys

import pytest

import pellucid
from pellucid import _bytecode as bytecode

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the instructions are written for 3.11")


def base(a, b):
    x = y = z = log(0)  # noqa: F821
    return x, y, z, None, 1, 2


NAMES = {name: i for i, name in enumerate(base.__code__.co_varnames)}
LOG = base.__code__.co_names.index("log")
CONSTS = {value: i for i, value in enumerate(base.__code__.co_consts)}


def instruction(op, arg=0, target=None):
    return bytecode.Instruction((op, arg, target, None, 0, None, None, None, None))


def assembled(instructions):
    decoded = bytecode.decode(base.__code__)
    decoded.instructions = [instruction("RESUME"), *instructions]
    return bytecode.assemble(decoded)


def call(number):
    return [
        instruction("LOAD_GLOBAL", LOG << 1 | 1),
        instruction("LOAD_CONST", CONSTS[number]),
        instruction("PRECALL", 1),
        instruction("CALL", 1),
    ]


def load(name):
    return instruction("LOAD_FAST", NAMES[name])


def run(function):
    """What it returns or raises, what it called, and which of the lists in all that are one."""
    calls, seen = [], {}

    def shape(value):
        if isinstance(value, (list, tuple)):
            if id(value) in seen and isinstance(value, list):
                return seen[id(value)]
            seen[id(value)] = f"#{len(seen)}"
            return [type(value).__name__, seen[id(value)], *map(shape, value)]
        return value

    def log(number):
        calls.append(number)
        kept.append([number])
        return kept[-1]

    kept = []  # so that no address is used twice
    function.__globals__["log"] = log
    kept.extend(([7], [8]))
    try:
        result = function(kept[0], kept[1])
    except (TypeError, UnboundLocalError) as error:
        return type(error), calls
    kept.append(result)
    return shape(result), calls, shape(kept[:2])


def function_of(source):
    namespace = {}
    exec(source, namespace)
    return namespace["base"]


def original(code):
    return type(base)(code, {"__builtins__": __builtins__})


def check(code):
    found = pellucid.decompile(code, check=True)
    assert run(function_of(found.source)) == run(original(code)), found.source
    return found


CASES = {
    "a callable waits while others are called": (
        [*call(1), *call(2), *call(1), instruction("SWAP", 3), instruction("BUILD_LIST", 3), instruction("RETURN_VALUE")],
        "_v0 = log(1)\n_v1 = log(2)\nreturn [log(1), _v1, _v0]",
    ),
    "a copy": (
        [*call(1), instruction("COPY", 1), instruction("BUILD_TUPLE", 2), instruction("RETURN_VALUE")],
        "_v0 = log(1)\nreturn _v0, _v0",
    ),
    "a copy that is stored has its variable's name": (
        [*call(1), instruction("COPY", 1), instruction("STORE_FAST", NAMES["x"]), *call(2), instruction("SWAP", 2)]
        + [instruction("BUILD_TUPLE", 2), instruction("RETURN_VALUE")],
        "x = log(1)\nreturn log(2), x",
    ),
    "a tuple is tested": (
        [load("a"), load("b"), instruction("BUILD_TUPLE", 2), instruction("POP_JUMP_FORWARD_IF_FALSE", 0, 7)]
        + [load("a"), instruction("RETURN_VALUE"), load("b"), instruction("RETURN_VALUE")],
        "if (a, b):\n    return a\nreturn b",
    ),
    "a list that is extended from afar": (
        [*call(1), load("a"), load("b"), instruction("LIST_EXTEND", 2), instruction("BUILD_LIST", 2), instruction("RETURN_VALUE")],
        "_v0 = log(1)\n_v0 += b\nreturn [_v0, a]",
    ),
    "an argument that is extended is not assigned": (
        [load("a"), load("b"), instruction("LIST_EXTEND", 1), *call(2), instruction("BUILD_LIST", 2), instruction("RETURN_VALUE")],
        "_v0 = a\n_v0 += b\nreturn [_v0, log(2)]",
    ),
    "a variable is stored while its value waits": (
        [load("a"), *call(1), instruction("STORE_FAST", NAMES["a"]), load("a"), instruction("BUILD_LIST", 2), instruction("RETURN_VALUE")],
        "_v0 = a\na = log(1)\nreturn [_v0, a]",
    ),
    "values wait in both branches": (
        [*call(1), *call(2), load("a"), instruction("POP_JUMP_FORWARD_IF_FALSE", 0, 13), instruction("SWAP", 2)]
        + [instruction("RETURN_VALUE"), instruction("RETURN_VALUE")],
        "_v0 = log(1)\n_v1 = log(2)\nif a:\n    return _v0\nreturn _v1",
    ),
    "a dictionary with constant keys": (
        [instruction("LOAD_CONST", CONSTS[1]), *call(1), instruction("LOAD_CONST", CONSTS[2]), *call(2), instruction("BUILD_MAP", 2)]
        + [*call(1), instruction("SWAP", 2), instruction("BUILD_TUPLE", 2), instruction("RETURN_VALUE")],
        "_v0 = {1: log(1), 2: log(2)}\nreturn log(1), _v0",
    ),
    "what nobody wants is evaluated all the same": (
        [*call(1), instruction("BUILD_LIST", 0), *call(2), instruction("RETURN_VALUE")],
        "log(1)\nreturn log(2)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_source(name):
    instructions, expected = CASES[name]
    code = assembled(instructions)
    assert check(code).grade in ("identical", "equal flow")
    body = "\n".join(line[4:] for line in pellucid.decompile(code).splitlines()[1:])
    assert body.rstrip() == expected


def test_a_name_that_is_taken():
    source = "def base(a, b):\n    _v0 = log(1)\n    return _v0\n"
    namespace = {}
    exec(source, namespace)
    decoded = bytecode.decode(namespace["base"].__code__)
    copied = [*call_in(decoded), instruction("COPY", 1), instruction("BUILD_LIST", 2), instruction("RETURN_VALUE")]
    decoded.instructions = decoded.instructions[:-2] + copied
    found = check(bytecode.assemble(decoded))
    assert found.source.splitlines()[1:] == ["    _v0 = log(1)", "    _vv0 = log(1)", "    return [_vv0, _vv0]"]


def call_in(decoded):
    """The first call of that code once more."""
    return decoded.instructions[1:5]


def test_what_meets_from_two_paths_has_no_name():
    """One value from either side, while others wait: a variable for it would be assigned in both, which no form of it says yet."""
    instructions = [
        *call(1),
        load("a"),
        instruction("POP_JUMP_FORWARD_IF_FALSE", 0, 14),
        *call(2),
        instruction("COPY", 1),
        instruction("BUILD_LIST", 2),
        instruction("JUMP_FORWARD", 0, 16),
        load("b"),
        instruction("BUILD_LIST", 1),
        instruction("RETURN_VALUE"),
    ]
    assert check(assembled(instructions)).grade in ("equal flow", "block form")


def test_unreached_code_may_be_anything():
    """What a resume function keeps of the original's beginning: its variables are of another kind now."""
    k = log = None

    def base(a, b):
        return k, log

    decoded = bytecode.decode(base.__code__)
    slot = decoded.instructions[2].arg
    jump = [instruction("JUMP_FORWARD", 0, 5), instruction("MAKE_CELL", slot), instruction("COPY_FREE_VARS", 7)]
    rest = decoded.instructions[2:]
    decoded.instructions = decoded.instructions[:2] + jump + rest
    assert bytecode.validate(decoded) == ""
    found = pellucid.decompile(bytecode.assemble(decoded), check=True)
    assert "return k, log" in found.source


def test_values_that_wait_across_a_handler_keep_their_place():
    """Nothing follows values there, so there are no names: what is called in which order shows in the form that needs none."""
    decoded = bytecode.decode(base.__code__)
    body = [*call(1), instruction("NOP"), *call(2), instruction("POP_TOP"), *call(1), instruction("POP_TOP"), instruction("RETURN_VALUE")]
    handler = [instruction("PUSH_EXC_INFO"), *call(1), instruction("POP_TOP"), instruction("RERAISE", 0)]
    cleanup = [instruction("COPY", 3), instruction("POP_EXCEPT"), instruction("RERAISE", 1)]
    decoded.instructions = [instruction("RESUME"), *body, *handler, *cleanup]
    first = 1 + len(body)
    decoded.rows = [(5, 11, first, 1, False), (first, first + len(handler), first + len(handler), 2, True)]
    assert bytecode.validate(decoded) == ""
    check(bytecode.assemble(decoded))


class Programs:
    """Random instructions that keep the stack as they should."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.out = []
        self.bound = {"a", "b"}
        self.kinds = []  # of what is on the stack: list, tuple, other

    def push(self, kind, *instructions):
        self.out.extend(instructions)
        self.kinds.append(kind)

    def step(self):
        depth = len(self.kinds)
        choice = self.random.randrange(12)
        if choice < 3 or depth == 0:
            if self.random.random() < 0.5:
                self.push("list", *call(self.random.choice((1, 2))))
            else:
                self.push("other", load(self.random.choice(sorted(self.bound))))
        elif choice == 3:
            n = self.random.randint(1, depth)
            self.push(self.kinds[-n], instruction("COPY", n))
        elif choice == 4 and depth > 1:
            n = self.random.randint(2, depth)
            self.kinds[-1], self.kinds[-n] = self.kinds[-n], self.kinds[-1]
            self.out.append(instruction("SWAP", n))
        elif choice == 5:
            self.kinds.pop()
            self.out.append(instruction("POP_TOP"))
        elif choice in (6, 7):
            n = self.random.randint(0, min(3, depth))
            kind = self.random.choice(("list", "tuple"))
            del self.kinds[depth - n :]
            self.push(kind, instruction("BUILD_" + kind.upper(), n))
        elif choice == 8 and depth > 1 and self.kinds[-1] != "other":
            lists = [n for n in range(2, depth + 1) if self.kinds[-n] == "list"]
            if lists:
                self.kinds.pop()
                self.out.append(instruction("LIST_EXTEND", self.random.choice(lists) - 1))
        elif choice == 9:
            name = self.random.choice(("a", "x", "y"))
            self.kinds.pop()
            self.bound.add(name)
            self.out.append(instruction("STORE_FAST", NAMES[name]))
        elif choice == 10 and len(self.bound) > 1:
            name = self.random.choice(sorted(self.bound))
            self.bound.remove(name)
            self.out.append(instruction("DELETE_FAST", NAMES[name]))
        elif choice == 11 and self.kinds[-1] in ("list", "tuple"):
            self.out.append(instruction("LOAD_CONST", CONSTS[None]))
            self.out.append(instruction("LOAD_CONST", CONSTS[1]))
            self.out.append(instruction("BUILD_SLICE", 2))
            self.out.append(instruction("BINARY_SUBSCR"))

    def end(self):
        self.out.append(instruction("BUILD_TUPLE", len(self.kinds)))
        self.out.append(instruction("RETURN_VALUE"))

    def program(self):
        for _ in range(self.random.randint(3, 25)):
            self.step()
        if self.random.random() < 0.4 and self.kinds:
            self.kinds.pop()
            jump = len(self.out)
            self.out.append(None)
            bound, kinds = set(self.bound), list(self.kinds)
            for _ in range(self.random.randint(0, 8)):
                self.step()
            self.end()
            self.out[jump] = instruction("POP_JUMP_FORWARD_IF_FALSE", 0, len(self.out) + 1)
            self.bound, self.kinds = bound, kinds
            for _ in range(self.random.randint(0, 8)):
                self.step()
        self.end()
        return assembled(self.out)


def test_random_programs():
    grades = {}
    for seed in range(400):
        found = check(Programs(seed).program())
        grades[found.grade] = grades.get(found.grade, 0) + 1
    assert grades.get("block form", 0) < 20, grades
