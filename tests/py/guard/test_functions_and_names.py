"""Guards on functions, methods, cells, globals, modules and classes, and on which objects are one."""

import types

import pytest
import torch
from guarding import Builder, one, program_for, two


class Plain:
    def method(self): ...


def test_fixed_members_of_functions_and_methods_cost_nothing():
    value = Plain()
    method = value.method

    def build(b, x):
        b.guard("id", x, payload=method)
        function = b.step("attr", x, "__func__")
        b.guard("id", function, payload=Plain.method)
        b.guard("id", b.step("attr", function, "__globals__"), payload=globals())
        b.guard("id", b.step("attr", x, "__self__"), payload=value)

    program = program_for(method, build)
    assert "load" not in program.program.program_text()
    assert not program(value.method)  # another method object


def test_functions():
    def function(x, *, key=2):
        return x

    def other(x, *, key=2): ...

    def build(b, x):
        b.guard("function_code", x, payload=function.__code__)
        b.guard("no_defaults", x)
        b.guard("equals", b.step("kwdefault", x, "key"), payload=2)

    program = program_for(function, build)
    again = types.FunctionType(function.__code__, {})
    assert not program(again)
    again.__kwdefaults__ = {"key": 2}
    assert program(again) and not program(other) and not program(1)
    again.__defaults__ = (1,)
    assert not program(again)
    again.__defaults__ = ()
    assert program(again)
    with_defaults = program_for(again, lambda b, x: b.guard("no_defaults", x))
    again.__defaults__ = (2,)
    assert not with_defaults(again)
    reads = program_for(again, lambda b, x: b.guard("equals", b.step("default", x, 0), payload=2))
    again.__defaults__ = (3,)
    assert not reads(again)
    no_keywords = program_for(one, lambda b, x: b.guard("no_defaults", x, number=1))
    assert no_keywords(two) and not no_keywords(again)


def test_cells_and_closures():
    def make(value):
        def inner():
            return value

        return inner

    def build(b, x):
        b.guard("equals", b.step("cell_contents", b.step("closure_cell", x, 0)), payload=3)

    program = program_for(make(3), build)
    assert program(make(3)) and not program(make(4)) and not program(one)
    empty = program_for(types.CellType(), lambda b, x: b.guard("cell_empty", x))
    assert empty(types.CellType()) and not empty(types.CellType(1)) and not empty(None)
    assert not program_for(make(3), build)(types.FunctionType(make(0).__code__, {}, "f", None, (types.CellType(),)))


def test_free_variables_of_the_function_itself():
    def make(value):
        def inner(x):
            return value

        return inner

    first = make(5)
    b = Builder(first, 0)
    b.guard("equals", b.step("cell_contents", b.sources.free_cell(0, "value")), payload=5)
    program = b.compile().program
    assert program.check(first, (0,)) and program.check(make(5), (0,)) and not program.check(make(6), (0,))
    assert program.evaluate_text(make(5), (0,)) and not program.evaluate_text(make(6), (0,))


def test_bound_methods():
    value = Plain()

    def build(b, x):
        b.guard("type", x, payload=types.MethodType)
        b.guard("id", b.step("bound_self", x), payload=value)
        b.guard("id", b.step("bound_func", x), payload=Plain.method)

    program = program_for(value.method, build)
    assert program(value.method) and not program(Plain().method) and not program(Plain.method)


def test_same_and_distinct():
    b = Builder(two, [], [])
    b.guard("distinct", b.local(0), other=b.local(1))
    program = b.compile()
    value = []
    assert program([], []) and not program(value, value)
    b = Builder(two, value, value)
    b.guard("same", b.local(0), other=b.local(1))
    program = b.compile()
    assert program(value, value) and not program([], [])


@pytest.mark.parametrize("count", [2, 3, 8, 9, 40])
@pytest.mark.parametrize("pairwise", [False, True])
def test_groups_of_distinct_objects(count, pairwise):
    namespace = {}
    exec(f"def many({', '.join(f'a{i}' for i in range(count))}): ...", namespace)
    many = namespace["many"]
    values = [[] for _ in range(count)]
    b = Builder(many, *values)
    sources = [b.local(i) for i in range(count)]
    if pairwise:
        for i in range(count):
            for j in range(i):
                b.guard("distinct", sources[i], other=sources[j])
    else:
        b.guard("distinct", None, group=sources)
    program = b.compile()
    assert program(*values) and program(*[[] for _ in range(count)])
    assert program.program.program_text().count("distinct") + program.program.program_text().count("not_same") == 1
    for i, j in ((0, 1), (0, count - 1), (count // 2, count - 1)):
        if i != j:
            changed = list(values)
            changed[i] = changed[j]
            assert not program(*changed)


@pytest.mark.parametrize("count", [3, 8, 9, 40])
def test_some_of_a_group_are_no_other_of_it(count):
    """Where a program changes two of its arguments, the rest may be one object."""
    namespace = {}
    exec(f"def many({', '.join(f'a{i}' for i in range(count))}): ...", namespace)
    values = [[] for _ in range(count)]
    b = Builder(namespace["many"], *values)
    b.guard("distinct", None, group=[b.local(i) for i in range(count)], number=2)
    program = b.compile()
    assert program(*values)
    assert "first=2" in program.program.check_fn_text()
    for i in range(count):
        for j in range(i):
            changed = list(values)
            changed[i] = changed[j]
            assert bool(program(*changed)) == (j >= 2), (i, j)
    assert program(*values[:2], *[values[2]] * (count - 2))


def test_watched_and_other_objects_behind_tags_and_in_arguments():
    module = torch.nn.Module()
    lists = [[] for _ in range(5)]
    for i, value in enumerate(lists[:4]):
        setattr(module, f"v{i}", value)
    b = Builder(two, module, lists[4])
    b.guard("id", b.local(0), payload=module)
    kept = [b.step("instance_item", b.local(0), f"v{i}") for i in range(4)]
    for source in kept:
        b.guard("type", source, payload=list)
    b.guard("distinct", None, group=[kept[0], b.local(1), *kept[1:]], number=2)
    program = b.compile()
    assert program(module, lists[4])
    assert [bool(program(module, value)) for value in lists] == [False, False, False, False, True]
    module.v3 = module.v2  # neither is watched
    assert program(module, lists[4])
    module.v3 = module.v0
    assert not program(module, lists[4])
    module.v3 = []
    assert program(module, lists[4]) and not program(module, module.v3)


def test_arguments_distinct_from_parameters():
    module = torch.nn.Linear(2, 2)
    x = torch.ones(2)
    b = Builder(two, module, x)
    parameters = b.guard(
        "id", b.step("instance_item", b.guard("id", b.local(0), payload=module), "_parameters"), payload=module._parameters
    )
    items = [b.step("dict_item", parameters, name) for name in ("weight", "bias")]
    for item, value in zip(items, module.parameters()):
        b.guard("tensor", item, payload=value)
    b.guard("distinct", None, group=[*items, b.local(1)])
    program = b.compile()
    assert program(module, x) and not program(module, module.weight) and not program(module, module.bias)
    new = torch.nn.Parameter(torch.zeros(2, 2))
    assert program(module, new)
    module.weight = new  # adopted: from now on it is the one that must not come as an argument
    assert program(module, x) and not program(module, new)
    square = torch.nn.Linear(2, 2)
    shared = Builder(two, square, x)
    inner = shared.guard(
        "id", shared.step("instance_item", shared.guard("id", shared.local(0), payload=square), "_parameters"), payload=square._parameters
    )
    square.bias = torch.nn.Parameter(torch.ones(2, 2))
    pair = [shared.step("dict_item", inner, name) for name in ("weight", "bias")]
    shared.guard("distinct", None, group=pair)
    both = shared.compile()
    square.bias = square.weight
    assert not both(square, x)


GLOBAL = 1


def uses_global(x):
    return GLOBAL


def test_globals():
    b = Builder(uses_global, 0)
    b.guard("equals", b.sources.global_("GLOBAL"), payload=1)
    b.guard("global_lacks", None, payload="len")
    program = b.compile()
    namespace = uses_global.__globals__
    assert program(0)
    namespace["unrelated_global"] = 3
    assert program(0)
    try:
        namespace["GLOBAL"] = 2
        assert not program(0)
        namespace["GLOBAL"] = int("1")
        assert program(0)
        namespace["len"] = len
        assert not program(0)
        del namespace["len"]
        assert program(0)
        del namespace["GLOBAL"]
        assert not program(0)
    finally:
        namespace["GLOBAL"] = 1
        del namespace["unrelated_global"]
    other = types.FunctionType(uses_global.__code__, dict(namespace))
    assert not program.program.check(other, (0,)) and not program.program.evaluate_text(other, (0,))


def test_module_and_type_attributes():
    module = types.ModuleType("of_a_test")
    module.function = one
    module.constant = 4

    class Holder:
        @staticmethod
        def static(): ...

        def plain(self): ...

    b = Builder(one, 0)
    m = b.sources.constant(module)
    b.guard("id", b.step("attr", m, "function"), payload=one)
    b.guard("equals", b.step("attr", m, "constant"), payload=4)
    t = b.sources.constant(Holder)
    static, plain = Holder.static, Holder.plain
    b.guard("id", b.step("attr", t, "static"), payload=static)
    b.guard("id", b.step("attr", t, "plain"), payload=plain)
    program = b.compile()
    assert "load" not in program.program.program_text()  # all behind tags
    module.other = 1
    Holder.other = 1
    assert program(0)
    module.function = two
    assert not program(0)
    module.function = one
    assert program(0)
    Holder.plain = lambda self: None
    assert not program(0)
    Holder.plain = plain
    assert program(0)
    Holder.static = static
    assert program(0)  # the same function, by another way: what the class gives is what counts
    Holder.static = staticmethod(static)
    assert program(0)
    Holder.static = staticmethod(lambda: None)
    assert not program(0)


def test_attributes_of_types_that_are_descriptors_made_in_c():
    class Holder:
        __slots__ = ("slot",)
        field = property(lambda self: 1)

    b = Builder(one, 0)
    for cls, name in ((KeyError, "__init__"), (str, "upper"), (Holder, "slot"), (Holder, "field"), (types.FunctionType, "__code__")):
        b.guard("id", b.step("attr", b.sources.constant(cls), name), payload=getattr(cls, name))
    program = b.compile()
    assert program(0)
    field = Holder.field
    Holder.field = 3
    assert not program(0)
    Holder.field = field
    assert program(0)


def test_dictionaries_below_known_objects_follow_their_place():
    # No guard by identity on the dictionaries: one that replaces another is verified in its place.
    value = Plain()
    value.config = {"sizes": {"a": 1, "b": 2}}

    def build(b, x):
        config = b.step("instance_item", b.guard("id", x, payload=value), "config")
        sizes = b.guard("type", b.step("dict_item", config, "sizes"), payload=dict)
        b.guard("equals", b.step("dict_item", sizes, "a"), payload=1)
        b.guard("dict_lacks", sizes, payload="c")
        b.guard("dict_keys", sizes, payload=("a", "b"))

    program = program_for(value, build)
    assert "load" not in program.program.program_text()
    value.config = {"sizes": {"a": 1, "b": 3}}
    assert program(value)
    value.config["sizes"] = {"a": 1, "b": 4}
    assert program(value)
    value.config["sizes"]["a"] = 2
    assert not program(value)
    value.config["sizes"] = {"b": 1, "a": 1}
    assert not program(value)
    value.config = {"sizes": [("a", 1)]}
    assert not program(value)
    value.config = 3
    assert not program(value)
    value.config = {"sizes": {"a": 1, "b": 2, "c": 3}}
    assert not program(value)
    del value.config["sizes"]["c"]
    assert program(value)


def test_two_places_of_one_dictionary_move_apart():
    value = Plain()
    value.first = value.second = {"a": 1}

    def build(b, x):
        b.guard("id", x, payload=value)
        for name in ("first", "second"):
            b.guard("equals", b.step("dict_item", b.step("instance_item", x, name), "a"), payload=1)

    program = program_for(value, build)
    value.second = {"a": 2}
    assert not program(value)
    value.second = {"a": 1}
    assert program(value)
    value.first["a"] = 2
    assert not program(value)


def test_what_follows_from_a_tracked_object_is_read_again_when_it_moves():
    def first(): ...

    def second(): ...

    value = Plain()
    value.pair = ("a", 5, (6,))
    value.function = first

    def build(b, x):
        b.guard("id", x, payload=value)
        pair = b.guard("type", b.step("instance_item", x, "pair"), payload=tuple)
        b.guard("equals", b.step("item", pair, 1), payload=5)
        b.guard("equals", b.step("item", b.guard("type", b.step("item", pair, 2), payload=tuple), 0), payload=6)
        function = b.guard("function_code", b.step("instance_item", x, "function"), payload=first.__code__)
        b.guard("id", b.step("attr", function, "__globals__"), payload=globals())
        b.guard("equals", b.step("attr", function, "__defaults__"), payload=None)

    program = program_for(value, build)
    value.pair = ("b", 5, (6, 7))
    assert program(value)
    value.pair = ("b", 6, (6,))
    assert not program(value)
    value.pair = ["b", 5, (6,)]
    assert not program(value)
    value.pair = ("b", 5, (7,))
    assert not program(value)
    value.pair = ("b", 5, [6])
    assert not program(value)
    value.pair = ("b", 5, (6,))
    assert program(value)
    value.function = types.FunctionType(first.__code__, {})
    assert not program(value)
    value.function = types.FunctionType(first.__code__, globals())
    assert program(value)
    value.function.__code__ = second.__code__
    assert not program(value)
    value.function.__code__ = first.__code__
    assert program(value)
    value.function.__defaults__ = (1,)
    assert not program(value)


def test_sameness_behind_tags_is_tested_when_something_moved():
    value = Plain()
    value.a = value.b = Plain()
    value.c = Plain()

    def build(b, x):
        b.guard("id", x, payload=value)
        a, same, other = (b.step("instance_item", x, name) for name in "abc")
        b.guard("same", a, other=same)
        b.guard("distinct", a, other=other)

    program = program_for(value, build)
    for name, new in (("a", Plain()), ("b", Plain()), ("c", value.a)):
        old = getattr(value, name)
        setattr(value, name, new)
        assert not program(value)
        setattr(value, name, old)
        assert program(value)
    value.a = value.b = Plain()
    assert program(value)
