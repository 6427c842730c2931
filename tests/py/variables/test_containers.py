"""Methods of list, tuple, dict, set, slice and their views, on values made inside and on arguments."""

import collections

import pytest


def test_list_methods(check, x):
    def f(x, outside):
        a = [3, 1, 2]
        a.append(x)
        popped = a.pop()
        a.extend((5, 4))
        a.insert(0, 9)
        a.insert(-100, 8)
        a.insert(100, 7)
        first = a.pop(0)
        a.remove(9)
        copy = a.copy()
        a.sort()
        b = sorted(copy, reverse=True)
        copy.reverse()
        outside.append(x + 1)
        outside.extend(a)
        return popped * 2, first, a, b, copy, a.index(4), a.index(7, 2), a.count(1), outside.clear(), outside

    check(f, x, ["old"])


def test_list_sort_is_stable_and_takes_keys(check, x):
    def f(x):
        words = ["bb", "a", "ccc", "dd", "e", "fff"]
        by_length = sorted(words, key=len)
        words.sort(key=lambda w: (-len(w), w))
        backwards = sorted(["b1", "a1", "b2", "a2"], key=lambda w: w[0], reverse=True)
        pairs = sorted([(2, "b"), (1, "z"), (2, "a")])
        return x + 1, by_length, words, backwards, pairs

    check(f, x)


def test_list_argument_is_written_back(check, x):
    def f(x, items, nested):
        items.append(x * 2)
        items.sort(key=lambda v: 0)
        nested["list"].append(3)
        nested["list"][0] = x
        return len(items)

    check(f, x, [], {"list": [1, 2]})


def test_tuple_methods(check, x):
    def f(x):
        t = (1, 2, None, 1)
        return x + 1, t.count(1), t.index(2), (1, 2, 3).index(3, 1)

    check(f, x)


def test_slices(check, x):
    def f(x, n):
        s = slice(None, n, -1)
        return x + 1, s.indices(5), s.start, s.stop, s.step, slice(1, n) == slice(1, 3)

    check(f, x, 3)


def test_dict_methods(check, x):
    def f(x, d):
        d.update({"b": 2}, c=x)
        d.update([("p", 1), ("q", 2)])
        got = (d.get("a"), d.get("none"), d.get("none", 5), d.setdefault("a", 7), d.setdefault("new", 8), d.pop("p"), d.pop("p", None))
        last = d.popitem()
        copy = d.copy()
        copy["only"] = 1
        keys, values, items = list(d), list(d.values()), list(d.items())
        inner = {}
        inner.update(k=1)
        inner.clear()
        return x + 1, got, last, copy, keys, values, items, inner, d

    check(f, x, {"a": 1})


def test_ordered_dict(check, x):
    def f(x):
        d = collections.OrderedDict(a=1, b=2, c=3)
        d.move_to_end("a")
        d.move_to_end("c", last=False)
        order = list(d)
        first = d.popitem(last=False)
        last = d.popitem()
        same = collections.OrderedDict(a=1, b=2) == collections.OrderedDict(b=2, a=1)
        loose = collections.OrderedDict(a=1, b=2) == {"b": 2, "a": 1}
        return x + 1, order, first, last, same, loose, dict(d)

    check(f, x)


def test_views_are_live(check, x):
    def f(x):
        d = {"a": 1}
        keys, items = d.keys(), d.items()
        d["b"] = 2
        return (
            x + len(keys),
            list(keys),
            list(items),
            "b" in keys,
            ("b", 2) in items,
            2 in d.values(),
            keys.isdisjoint(["z"]),
            keys == {"a", "b"},
        )

    check(f, x)


def test_set_methods(check, x):
    def f(x):
        s = {1, 2}
        s.add(3)
        s.discard(7)
        s.remove(1)
        s.update([5, 6], (7,))
        s.difference_update({5})
        s.intersection_update({2, 3, 6})
        s.symmetric_difference_update([6, 8])
        f = frozenset(s)
        answers = (
            s.union([1]),
            s.intersection([2]),
            s.difference([2]),
            s.issubset(range(9)),
            s.issuperset({2}),
            s.isdisjoint({100}),
            s.copy() == s,
        )
        only = {4}
        popped = only.pop()
        s2 = set(s)
        s2.clear()
        return x + 1, sorted(s), [sorted(a) if isinstance(a, set) else a for a in answers], popped, len(only), len(s2), sorted(f)

    check(f, x)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: [].pop(),
        lambda: [1].pop(5),
        lambda: [1].remove(2),
        lambda: [1].index(2),
        lambda: (1,).index(2),
        lambda: {}.pop("a"),
        lambda: {}.popitem(),
        lambda: collections.OrderedDict().popitem(),
        lambda: collections.OrderedDict().move_to_end("k"),
        lambda: set().pop(),
        lambda: {1}.remove((1, 2)),
        lambda: {1}.add([]),
        lambda: {}.update([(1, 2, 3)]),
        lambda: {}.setdefault([], 1),
        lambda: [1, "a"].sort(),
        lambda: "a".index("b"),
        lambda: int("x"),
        lambda: ",".join([1]),
        lambda: frozenset().add(1),
        lambda: (1).append(2),
    ],
)
def test_wrong_calls_raise_what_cpython_raises(check, x, wrong):
    def f(x):
        try:
            wrong()
        except Exception as error:
            return x + 1, type(error).__name__, error.args

    check(f, x)


def test_keys_of_many_kinds(check, x):
    class Plain:
        pass

    p = Plain()

    def f(x):
        d = {int: "type", len: "builtin", f_key: "function", x.dtype: "dtype", p: "instance", True: "one", frozenset([1]): "set"}
        d[1] = "still one"
        return x + 1, d[int], d[len], d[f_key], d[x.dtype], d[p], d[1], d[True], d[frozenset([1])], len(d), list(d.values())

    def f_key():
        pass

    check(f, x)


def test_tensor_as_key_of_a_lookup(check, x):
    def f(x):
        return x + 1, x in {"a": 1}, {"a": 1}.get(x + 1, "absent")

    check(f, x)


def test_names_of_special_methods(check, x):
    def f(x):
        a, d = [1, 2], {"k": 3}
        a.__setitem__(0, 5)
        return (
            x + 1,
            a.__len__(),
            a.__getitem__(0),
            a.__contains__(2),
            d.__contains__("k"),
            d.__getitem__("k"),
            a.__eq__([5, 2]),
            list(a.__iter__()),
        )

    check(f, x)


def test_mutation_seen_by_every_alias(check, x):
    def f(x, a, b):
        a.append(1)
        b.append(2)
        a.append(x + 1)
        return len(a), len(b), a is b

    shared = []
    check(f, x, shared, shared)
    check(f, x, [], [])


class Stack(list):
    def push(self, item):
        self.append(item)

    def __len__(self):
        return 100 + super().__len__()


def test_list_subclass(check, x):
    def f(x):
        s = Stack()
        s.push(x)
        s.append(2)
        return len(s), s[0] + 1, s[-1], [v for v in s][1], [v for v in reversed(s)][0]

    check(f, x)


class Named(dict):
    """Attributes beside items, as configuration classes have them."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def test_dict_subclass_with_attributes(check, x):
    def f(x):
        c = Named(width=3)
        c["depth"] = x
        c.update(extra=1)
        merged = {**c, "z": 0}
        return c.width, c.depth + 1, len(c), "width" in c, sorted(c), c.get("none"), c == {"width": 3}, merged["z"], hasattr(c, "nothing")

    check(f, x)


@pytest.mark.parametrize("make", [dict, collections.OrderedDict])
def test_dict_written_back_in_order(check, x, make):
    def f(x, d):
        first = d.pop("a")
        d["c"] = x + 1
        d["a"] = first
        d["b"] = 20
        return list(d)

    check(f, x, make(a=1, b=2))


def test_repeated_call_of_a_growing_argument_is_captured_again(x):
    import torch

    import pellucid

    captured = pellucid.optimize(lambda x, items: items.append(x) or x + len(items), backend="eager")
    items, expected = [], []
    for i in range(3):
        assert torch.equal(captured(x, items), x + i + 1)
        expected.append(x)
    assert len(items) == 3 and all(item is x for item in items)


def test_failed_operation_leaves_no_trace(check, x):
    def f(x, items, d):
        for attempt in (lambda: items.extend(i // (2 - i) for i in range(4)), lambda: d.update([("k", 1), ("l",)]), lambda: items.sort()):
            try:
                attempt()
            except Exception as error:
                items.append(type(error).__name__)
        return x + 1, items, d

    check(f, x, [3, "a"], {"b": 1})
