"""Guards of every kind on values that are read anew in each call, and what changes about them must or must not be noticed."""

import collections
import functools
import gc

import pytest
import torch
from guarding import Builder, one, program_for


class Plain:
    def method(self): ...


class Slotted:
    __slots__ = ("field", "other")


class WithProperty:
    @property
    def field(self):
        raise AssertionError("a guard ran Python code")


class Hostile:
    """Equal to everything, and says so loudly."""

    def __init__(self, hash_of):
        self.hash = hash(hash_of)

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        raise AssertionError("a guard ran Python code")


Named = collections.namedtuple("Named", "a b")


class EqualNamed(Named):
    def __eq__(self, other):
        raise AssertionError("a guard ran Python code")

    __hash__ = Named.__hash__


EQUAL = [
    3,
    -1,
    0,
    2**30,
    -(2**30),
    2**62,
    -(2**63),
    2**63,
    10**40,
    True,
    False,
    None,
    ...,
    1.5,
    0.0,
    -0.0,
    float("nan"),
    float("inf"),
    2j,
    complex(0.0, -0.0),
    "",
    "text",
    "\N{SNOWMAN}",
    b"",
    b"bytes",
    (),
    (1, "a", (2.0, None)),
    (1, "a", (2, None)),
    (True,),
    (1,),
    (1.0,),
    slice(1, None, 2),
    slice(1, None, 3),
    frozenset({1, "a"}),
    frozenset(),
    torch.float32,
    torch.int64,
    torch.device("cpu"),
    torch.device("meta"),
    torch.Size([2, 3]),
    (2, 3),
    Named(1, 2),
    Named(1, 3),
    torch.contiguous_format,
    torch.strided,
]


def rebuilt(value):
    """An equal value that is another object, where there can be one."""
    if type(value) is int:
        return int(str(value))
    if type(value) is str:
        return "".join(list(value))
    if type(value) is float:
        return torch.tensor(value, dtype=torch.double).item()
    if type(value) is bytes:
        return bytes(bytearray(value))
    if type(value) is tuple:
        return tuple(rebuilt(v) for v in value)
    if type(value) is torch.device:
        return torch.device(str(value))
    if type(value) is torch.Size:
        return torch.Size(list(value))
    if type(value) is Named:
        return Named(*value)
    return value


@pytest.mark.parametrize("i", range(len(EQUAL)), ids=repr)
def test_equals(i):
    value = EQUAL[i]
    program = program_for(value, lambda b, x: b.guard("equals", x, payload=value))
    assert program(rebuilt(value))
    for j, other in enumerate(EQUAL):
        assert program(other) == (i == j), other
    assert not program(Hostile(1))
    assert not program([])


def test_equals_refuses_values_that_compare_in_python():
    for value in (Hostile(1), [1], {}, (1, [2]), Plain(), EqualNamed(1, [])):
        with pytest.raises(RuntimeError, match="not of an exact builtin type"):
            program_for(value, lambda b, x: b.guard("equals", x, payload=value))


def test_equals_of_a_tuple_subclass_compares_items_not_eq():
    program = program_for(EqualNamed(1, 2), lambda b, x: b.guard("equals", x, payload=EqualNamed(1, 2)))
    assert program(EqualNamed(1, 2)) and not program(EqualNamed(1, 3)) and not program(Named(1, 2))


def test_type():
    program = program_for(Plain(), lambda b, x: b.guard("type", x, payload=Plain))
    assert program(Plain()) and not program(type("Sub", (Plain,), {})()) and not program(1)
    value = Plain()
    value.__class__ = type("Sub", (Plain,), {})
    assert not program(value)


def test_subclass_of():
    program = program_for(Plain(), lambda b, x: b.guard("subclass_of", x, payload=Plain))
    assert program(type("Sub", (Plain,), {})()) and not program(1)


def test_dead_class_makes_it_invalid():
    def make():
        cls = type("Gone", (), {})
        return program_for(cls(), lambda b, x: b.guard("type", x, payload=cls)).program

    program = make()
    gc.collect()
    assert not program.valid and not program.check(one, (1,))


def test_id_is_weak_and_strict():
    value = Plain()
    program = program_for(value, lambda b, x: b.guard("id", x, payload=value))
    assert not program(Plain())
    value = None
    gc.collect()
    assert not program.program.valid and not program(Plain())


def test_id_of_what_cannot_be_referenced_weakly_is_kept():
    def make():
        value = [1]
        return program_for(value, lambda b, x: b.guard("id", x, payload=value)), id(value)

    program, address = make()
    gc.collect()
    assert all(id([1]) != address for _ in range(100))
    assert program.program.valid and not program([1])


@pytest.mark.parametrize("value", [[1, 2], (1, 2), {1: 2, 3: 4}, {1, 2}, frozenset({1, 2})], ids=repr)
def test_length(value):
    program = program_for(value, lambda b, x: b.guard("length", x, number=2))
    assert not program(type(value)()) and not program("ab") and not program(3)
    if isinstance(value, list):
        value.append(3)
        assert not program(value)


def test_dict_keys_are_ordered():
    program = program_for({"a": 1, 2: 0}, lambda b, x: b.guard("dict_keys", x, payload=("a", 2)))
    assert program({"a": 5, 2: 6}) and program(collections.OrderedDict([("a", 1), (2, 1)]))
    assert not program({2: 0, "a": 1}) and not program({"a": 1}) and not program({"a": 1, 2: 0, 3: 0}) and not program(1)
    shrunk = {"b": 1, "a": 1, 2: 1}
    del shrunk["b"]
    assert program(shrunk)


def test_dict_keys_of_an_ordered_dict_follow_its_own_order():
    value = collections.OrderedDict(a=1, b=2)
    program = program_for(value, lambda b, x: b.guard("dict_keys", x, payload=("a", "b")))
    value.move_to_end("a")
    assert not program(value)
    value.move_to_end("b")
    assert program(value)
    constant = program_for(value, lambda b, x: b.guard("dict_keys", b.guard("id", x, payload=value), payload=("a", "b")))
    value.move_to_end("a")
    assert not constant(value)


def test_dict_keys_of_instances_that_share_keys():
    first, second = Plain(), Plain()
    first.a, first.b = 1, 2
    second.b, second.a = 1, 2
    program = program_for(first.__dict__, lambda b, x: b.guard("dict_keys", x, payload=("a", "b")))
    assert not program(second.__dict__)


def test_dict_has_and_lacks():
    def build(b, x):
        b.guard("dict_has", x, payload="in")
        b.guard("dict_has", x, payload=(1, "two"))
        b.guard("dict_lacks", x, payload="out")
        b.guard("dict_lacks", x, payload=7)

    program = program_for({"in": 1, (1, "two"): 2}, build)
    assert program({"in": None, (1, "two"): 0, 3: 4})
    assert not program({"in": 1, (1, "two"): 2, "out": 3}) and not program({"in": 1, (1, "two"): 2, 7.0: 3}) and not program({"in": 1})
    assert not program([])


def test_a_key_that_compares_in_python_is_never_asked():
    program = program_for({"a": 1}, lambda b, x: b.guard("dict_lacks", x, payload="out")).program
    assert program.check(one, ({Hostile("out"): 1},)) is False  # nobody can tell: not a hit
    assert program.check(one, ({Hostile("other"): 1},)) is True
    reads = program_for({"k": 1}, lambda b, x: b.guard("equals", b.step("dict_item", x, "k"), payload=1)).program
    assert reads.check(one, ({Hostile("k"): 1},)) is False


def test_dict_items_of_many_key_types():
    key = Plain()
    value = {"a": 1, 2: 2, None: 3, (1, 2): 4, key: 5, int: 6, 2.5: 7, b"b": 8, torch.float32: 9}

    def build(b, x):
        for k, v in value.items():
            b.guard("equals", b.step("dict_item", x, k), payload=v)

    program = program_for(value, build)
    assert program(dict(reversed(list(value.items()))))
    for k in value:
        assert not program({**value, k: 0})
        assert not program({q: v for q, v in value.items() if q is not k})


def test_dict_with_many_deleted_and_colliding_keys():
    keys = [i << 32 for i in range(50)]
    value = {k: k for k in keys}

    def build(b, x):
        for k in keys[::7]:
            b.guard("equals", b.step("dict_item", x, k), payload=k)

    program = program_for(value, build)
    for k in keys:
        if k not in keys[::7]:
            del value[k]
    assert program(value)
    del value[keys[7]]
    assert not program(value)
    value[keys[7]] = keys[7]
    assert program(value)


def instance_program(value):
    def build(b, x):
        b.guard("equals", b.step("instance_item", x, "a"), payload=1)
        b.guard("instance_lacks", x, payload="b")

    return program_for(value, build)


@pytest.mark.parametrize("materialised", [False, True])
def test_instances(materialised):
    cls = type("Fresh", (), {})

    def make(**values):
        result = cls()
        for name, value in values.items():
            setattr(result, name, value)
        if materialised:
            assert result.__dict__ == values
        return result

    program = instance_program(make(a=1)).program
    assert program.check(one, (make(a=1),)) and program.check(one, (make(c=2, a=1),))
    assert not program.check(one, (make(a=2),)) and not program.check(one, (make(c=1),)) and not program.check(one, (make(a=1, b=2),))
    deleted = make(a=1)
    del deleted.a
    assert not program.check(one, (deleted,))
    assert not program.check(one, (1,)) and not program.check(one, (Slotted(),))


def test_inline_values_stay_inline():
    import sys

    value = Plain()
    value.a = 1
    before = sys.getsizeof(value)
    program = instance_program(value).program
    for _ in range(3):
        assert program.check(one, (value,))
    assert sys.getsizeof(value) == before


def test_slots_and_getters():
    value = Slotted()
    value.field = 5
    program = program_for(value, lambda b, x: b.guard("equals", b.step("attr", x, "field"), payload=5))
    other = Slotted()
    assert not program(other)
    other.field = 5
    assert program(other)
    other.field = 6
    assert not program(other)
    assert not program.program.check(one, (WithProperty(),))


def test_class_attributes():
    class Base:
        field = 1

    class Derived(Base):
        pass

    def build(b, x):
        b.guard("class_attr", x, payload="field", expected=1)
        b.guard("class_attr", x, payload="nothing")
        b.guard("equals", b.step("class_attr", x, "field"), payload=1)

    for with_type in (False, True):

        def whole(b, x):
            if with_type:
                b.guard("type", x, payload=Derived)
            build(b, x)

        program = program_for(Derived(), whole)
        Derived.unrelated = 0
        assert program(Derived())
        Derived.field = 2
        assert not program(Derived())
        del Derived.field
        assert program(Derived())
        Base.nothing = 1
        assert not program(Derived())
        del Base.nothing
        Base.field = 1.0
        assert not program(Derived())
        Base.field = 1
        assert program(Derived())


def test_a_guard_that_raises_is_an_error_that_names_it():
    program = program_for(torch.ones(2, 3), lambda b, x: b.guard("type", b.step("attr", x, "H"), payload=torch.Tensor)).program
    assert program.check(one, (torch.ones(3, 4),))
    with pytest.raises(RuntimeError, match=r"evaluating the guard on L\['x'\]\.H raised") as error:
        program.check(one, (torch.ones(1, 2, 3),))  # .H is for matrices
    assert "only supported on matrices" in str(error.value.__cause__)
    assert program.failures(one, (torch.ones(1, 2, 3),)) == ["reading L['x'].H raised RuntimeError"]
    assert program.check(one, (torch.ones(3, 4),))


def test_getters_of_tensors_that_may_run_python_are_not_read():
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("a guard ran Python code")

    program = program_for(torch.ones(2), lambda b, x: b.guard("equals", b.step("attr", x, "ndim"), payload=1)).program
    assert not program.check(one, (torch.ones(2).as_subclass(Loud),))
    assert program.check(one, (torch.nn.Parameter(torch.ones(3)),))


def test_sequences():
    def build(b, x):
        b.guard("length", x, number=2)
        b.guard("equals", b.step("item", x, 0), payload="a")
        inner = b.step("item", x, 1)
        b.guard("type", inner, payload=list)
        b.guard("equals", b.step("item", inner, 1), payload=2)

    program = program_for(["a", [1, 2]], build)
    assert program(["a", [3, 2]]) and program(("a", [1, 2, 3]))
    assert not program(["a", (1, 2)]) and not program(["a", [1]]) and not program(["b", [1, 2]]) and not program(["a"]) and not program({})


def test_lists_of_a_known_object_are_read_every_time():
    class Holder:
        pass

    value = Holder()
    value.numbers = [1, 2]

    def build(b, x):
        b.guard("id", x, payload=value)
        numbers = b.guard("id", b.step("instance_item", x, "numbers"), payload=value.numbers)
        b.guard("length", numbers, number=2)
        b.guard("equals", b.step("item", numbers, 1), payload=2)

    program = program_for(value, build)
    value.numbers[0] = 5
    assert program(value)
    value.numbers[1] = 3
    assert not program(value)
    value.numbers[1] = 2
    value.numbers.append(1)
    assert not program(value)
    value.numbers.pop()
    assert program(value)
    value.numbers = [5, 2]
    assert not program(value)


def test_tuples_of_known_objects_cost_nothing():
    value = Plain()
    value.pair = (Plain(), 2)

    def build(b, x):
        b.guard("id", x, payload=value)
        pair = b.guard("id", b.step("instance_item", x, "pair"), payload=value.pair)
        inner = b.guard("id", b.step("item", pair, 0), payload=value.pair[0])
        b.guard("type", inner, payload=Plain)
        b.guard("instance_lacks", inner, payload="extra")

    program = program_for(value, build)
    assert "load" not in program.program.program_text()
    value.pair[0].extra = 1
    assert not program(value)
    del value.pair[0].extra
    assert program(value)
    value.pair[0].__class__ = type("Other", (Plain,), {})
    assert not program(value)


def test_tensors_in_containers():
    def build(b, x):
        for i in range(2):
            b.guard("tensor", b.step("item", x, i), payload=torch.ones(2, i + 1))

    program = program_for([torch.ones(2, 1), torch.ones(2, 2)], build)
    assert program((torch.zeros(2, 1), torch.zeros(2, 2)))
    assert not program([torch.ones(2, 2), torch.ones(2, 1)]) and not program([torch.ones(2, 1), 3]) and not program([])


def test_block_of_a_list_item():
    value = Plain()
    value.weights = [torch.ones(2), torch.ones(3)]
    b = Builder(one, value)
    x = b.guard("id", b.local(0), payload=value)
    weights = b.step("instance_item", x, "weights")
    for i in (1, 0):
        item = b.step("item", weights, i)
        b.guard("tensor", item, payload=value.weights[i])
        b.block.append(item)
    program = b.compile()
    value.weights[0] = torch.zeros(2)
    assert program(value)
    first, second = program.program.block()
    assert first is value.weights[1] and second is value.weights[0]


def test_a_guard_that_does_not_hold_is_no_program():
    with pytest.raises(RuntimeError, match="do not hold|does not hold"):
        program_for(1, lambda b, x: b.guard("equals", x, payload=2))
    with pytest.raises(RuntimeError, match="hold"):
        program_for({}, lambda b, x: b.guard("dict_has", x, payload=2))
    with pytest.raises(RuntimeError, match="cannot be read|does not exist"):
        program_for([], lambda b, x: b.guard("equals", b.step("item", x, 3), payload=2))
    with pytest.raises(RuntimeError, match="cannot be read|does not exist"):
        program_for(WithProperty(), lambda b, x: b.guard("equals", b.step("attr", x, "field"), payload=2))


def test_failures_name_every_guard_and_value():
    def build(b, x):
        b.guard("length", x, number=2)
        b.guard("equals", b.step("item", x, 0), payload="a")
        b.guard("tensor", b.step("item", x, 1), payload=torch.ones(2, 3))

    program = program_for(["a", torch.ones(2, 3)], build).program
    assert program.failures(one, (["b", torch.ones(3, 2), 0],)) == [
        "len(L['x']) is 3 instead of 2",
        "L['x'][0] is 'b' instead of 'a'",
        "L['x'][1] has size (3, 2) instead of (2, 3)",
    ]
    assert program.failures(one, ([],))[1] == "L['x'][0] is gone"


def test_description_and_texts_are_stable():
    def build(b, x):
        b.guard("type", x, payload=Plain, filename="user.py", line=7)
        b.guard("equals", b.step("instance_item", x, "a"), payload=1, filename="user.py", line=8)

    texts = []
    for _ in range(2):
        value = Plain()
        value.a = 1
        program = program_for(value, build).program
        texts.append((program.check_fn_text(), program.program_text()))
    assert texts[0] == texts[1] and "0x7" not in texts[0][0]
    rows = program.describe()
    assert [(r["kind"], r["source"], r["text"], r["filename"], r["line"]) for r in rows] == [
        ("TYPE", "L['x']", "type(L['x']) is Plain", "user.py", 7),
        ("EQUALS", "L['x'].a", "equals(instance_item(L['x'], 'a'), 1)", "user.py", 8),
    ]


def test_adding_a_guard_twice_is_free():
    def build(b, x):
        for _ in range(3):
            b.guard("type", x, payload=int)
            b.guard("equals", x, payload=int("70000"))

    assert len(program_for(70000, build).program.describe()) == 2


def test_no_references_are_kept_or_lost():
    import sys

    value = [Plain(), (1, 2)]
    value[0].a = 10**20

    def build(b, x):
        b.guard("type", b.step("item", x, 0), payload=Plain)
        b.guard("equals", b.step("instance_item", b.step("item", x, 0), "a"), payload=10**20)
        b.guard("equals", b.step("item", x, 1), payload=(1, 2))
        b.guard("type", b.step("dict_of", b.step("item", x, 0)), payload=dict)

    program = program_for(value, build).program
    objects = [value, *value, value[0].a, Plain, one, value[0].__dict__]
    gc.collect()
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(100):
        assert program.check(one, (value,))
        assert not program.check(one, ([1],))
        program.failures(one, (value,))
    assert [sys.getrefcount(o) for o in objects] == before
    run = functools.partial(program.check, one, (value,))
    blocks = sys.getallocatedblocks()
    for _ in range(1000):
        run()
    assert sys.getallocatedblocks() - blocks < 50
