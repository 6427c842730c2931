"""Random values, random guards on random paths into them, random changes: rows, text and explanation must agree after each."""

import torch
from budget import for_a_share
from guarding import Builder
from hypothesis import given
from hypothesis import strategies as st


class Box:
    kind = "box"

    def method(self): ...


class Other(Box):
    __slots__ = ("slot",)


def function(x, y): ...


SCALARS = [None, True, 0, 1, -7, 10**30, 1.5, float("nan"), "a", "text", b"b", (1, "a")]
NAMES = ["a", "b", "c"]
KEYS = ["a", "b", 1, 2.5, None, (1, 2)]


def tensors(draw):
    shape = draw(st.sampled_from([(), (2,), (2, 3), (3, 2)]))
    return torch.ones(shape, dtype=draw(st.sampled_from([torch.float, torch.long])))


@st.composite
def values(draw, depth=3):
    kind = draw(st.sampled_from(["scalar", "tensor", "list", "tuple", "dict", "box", "other"] if depth else ["scalar", "tensor"]))
    below = values(depth=depth - 1) if depth else None
    if kind == "scalar":
        return draw(st.sampled_from(SCALARS))
    if kind == "tensor":
        return tensors(draw)
    if kind == "list":
        return draw(st.lists(below, max_size=3))
    if kind == "tuple":
        return tuple(draw(st.lists(below, max_size=3)))
    if kind == "dict":
        return {k: draw(below) for k in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3))}
    box = Box() if kind == "box" else Other()
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
        setattr(box, name, draw(below))
    if kind == "other":
        box.slot = draw(below)
    if draw(st.booleans()):
        box.__dict__
    return box


def paths(b, source, value, found):
    """Every source below a value, with what it gives now."""
    found.append((source, value))
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            paths(b, b.step("item", source, i), item, found)
    elif isinstance(value, dict):
        for key, item in value.items():
            paths(b, b.step("dict_item", source, key), item, found)
    elif isinstance(value, Box):
        for name in [n for n in NAMES if n in vars(value)]:
            paths(b, b.step("instance_item", source, name), vars(value)[name], found)
        if isinstance(value, Other):
            paths(b, b.step("attr", source, "slot"), value.slot, found)
        found.append((b.step("type_of", source), type(value)))
        found.append((b.step("dict_of", source), vars(value)))
        found.append((b.step("class_attr", source, "method"), Box.method))


def possible(value):
    """Guards that hold for a value, as (kind, fields)."""
    result = [("type", {"payload": type(value)}), ("id", {"payload": value}), ("subclass_of", {"payload": type(value).__mro__[-1]})]
    if any(value is s for s in SCALARS):
        result.append(("equals", {"payload": value}))
    if isinstance(value, torch.Tensor):
        result += [("tensor", {"payload": value})] * 3
    if isinstance(value, (list, tuple, dict)):
        result.append(("length", {"number": len(value)}))
    if isinstance(value, dict):
        result.append(("dict_keys", {"payload": tuple(value)}))
        result += [("dict_has" if k in value else "dict_lacks", {"payload": k}) for k in KEYS]
        if not value:
            result.append(("empty_dict", {}))
    if isinstance(value, Box):
        result += [("instance_lacks", {"payload": n}) for n in NAMES if n not in vars(value)]
        result += [("class_attr", {"payload": "kind", "expected": type(value).kind}), ("class_attr", {"payload": "nothing"})]
    return result


def containers(value, found):
    if isinstance(value, (list, dict, Box, torch.Tensor)):
        found.append(value)
    below = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if isinstance(value, Box):
        below = [*vars(value).values(), *([value.slot] if hasattr(value, "slot") else [])]
    for item in below:
        containers(item, found)
    return found


def change(draw, target):
    """One change of a container, and how to take it back."""
    if isinstance(target, torch.Tensor):
        old, shape = target.data, draw(st.sampled_from([(2,), (2, 3), (9,)]))
        target.data = torch.zeros(shape, dtype=old.dtype)
        return lambda: setattr(target, "data", old)
    new = draw(values(depth=1))
    if isinstance(target, list):
        old = list(target)
        if target and draw(st.booleans()):
            target[draw(st.integers(0, len(target) - 1))] = new
        elif draw(st.booleans()):
            target.append(new)
        else:
            target.clear()
        return lambda: target.__setitem__(slice(None), old)
    if isinstance(target, dict):
        old = dict(target)
        key = draw(st.sampled_from(KEYS))
        if draw(st.booleans()):
            target.pop(key, None)
        else:
            target[key] = new
        return lambda: (target.clear(), target.update(old))
    what = draw(st.sampled_from(["set", "delete", "dict", "class", "class attribute"]))
    if what == "class":
        old = type(target)
        if isinstance(target, Other):
            return lambda: None
        target.__class__ = type("Sub", (Box,), {})
        return lambda: setattr(target, "__class__", old)
    if what == "class attribute":
        Box.kind = draw(st.sampled_from(["box", "changed"]))
        if draw(st.booleans()):
            Box.nothing = 1
        return reset_class
    old = dict(vars(target))
    name = draw(st.sampled_from(NAMES))
    if what == "dict":
        target.__dict__ = dict(old) if draw(st.booleans()) else {name: new}
    elif what == "delete":
        vars(target).pop(name, None)
    else:
        setattr(target, name, new)

    def back():
        vars(target).clear()
        vars(target).update(old)

    return back


def reset_class():
    Box.kind = "box"
    if "nothing" in Box.__dict__:
        del Box.nothing


@for_a_share(0.15)
@given(st.data())
def test_rows_text_and_explanation_agree(data):
    reset_class()
    x, y = data.draw(values()), data.draw(values(depth=2))
    b = Builder(function, x, y)
    found = []
    paths(b, b.local(0), x, found)
    paths(b, b.local(1), y, found)
    chosen = data.draw(st.lists(st.integers(0, len(found) - 1), min_size=1, max_size=8))
    if data.draw(st.booleans()):  # anchored: identity all the way down
        chosen = list(range(len(found)))[:40]
    made = set()
    for i in chosen:
        source, value = found[i]
        guards = possible(value)
        kinds = range(len(guards)) if data.draw(st.booleans()) else [data.draw(st.integers(0, len(guards) - 1))]
        for k in kinds:
            if guards[k][0] != "tensor" or (i, "tensor") not in made:
                made.add((i, guards[k][0]))
                b.guard(guards[k][0], source, **guards[k][1])
    inputs = [(s, v) for s, v in found if isinstance(v, torch.Tensor) and not s.is_(b.local(0)) and not s.is_(b.local(1))]
    for source, value in inputs[:3]:
        b.guard("tensor", source, payload=value)
        b.block.append(source)
    program = b.compile()
    assert program(x, y)
    del found
    for _ in range(data.draw(st.integers(1, 6))):
        targets = containers(x, containers(y, []))
        if not targets:
            break
        back = change(data.draw, data.draw(st.sampled_from(targets)))
        program(x, y)  # asserts the agreement
        if data.draw(st.booleans()):
            back()
            program(x, y)
    reset_class()
    other = data.draw(values())
    program(other, y)
    program(x, other)
