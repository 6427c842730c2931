"""Hits whose code is no more than the graph's call: no frame, nothing allocated, and nothing else that the program could notice."""

import gc
import sys
import traceback
import weakref

import pytest

torch = pytest.importorskip("torch")
import pellucid

X, Y = torch.ones(2, 3), torch.full((2, 3), 2.0)


class Backend:
    """Runs what the test says in place of each graph, and keeps what the graphs were called with."""

    def __init__(self, run=None):
        self.run = run
        self.graphs = 0
        self.calls = []

    def __call__(self, gm, example_inputs):
        self.graphs += 1

        def graph(*inputs):
            self.calls.append((inputs, [frame.name for frame in traceback.extract_stack()[-3:]]))
            return gm.forward(*inputs) if self.run is None else self.run(gm, inputs)

        return graph


def one(x):
    return x + 1


def pair(x, y):
    return x + 1, y + 1


def in_list(x, y):
    return [x + 1, y + 1]


def swapped(x, y):
    a = x + 1
    b = y + 1
    return b, a


def twice(x, y):
    a = x + y
    return a, a


def with_number(x, y):
    return x + y, 3


def of_list(xs):
    return [x + 1 for x in xs]


def rest(x, *others, **named):
    return x + others[0]


DIRECT = [(one, (X,)), (pair, (X, Y)), (in_list, (X, Y)), (of_list, ([X, Y],)), (swapped, (X, Y)), (rest, (X, Y))]
FRAMES = [(twice, (X, Y)), (with_number, (X, Y))]


@pytest.mark.parametrize("function, arguments", DIRECT + FRAMES, ids=lambda value: getattr(value, "__name__", ""))
def test_results_and_frames(function, arguments):
    backend = Backend()
    compiled = pellucid.optimize(function, backend=backend)
    for _ in range(4):
        result, expected = compiled(*arguments), function(*arguments)
        assert type(result) is type(expected)
        torch.testing.assert_close(result, expected)
    assert backend.graphs == 1
    names = backend.calls[-1][1]
    assert (function.__name__ in names) == ((function, arguments) in FRAMES), names


@pytest.mark.parametrize("function, arguments", DIRECT, ids=lambda value: getattr(value, "__name__", ""))
def test_a_hit_allocates_nothing(function, arguments):
    from pellucid import _native

    outputs = (torch.zeros(1),) * (1 if function in (one, rest) else 2)
    prepared = _native.core().prepared_outputs(outputs)
    compiled = pellucid.optimize(function, backend=lambda gm, inputs: prepared)
    results = [None] * 100
    for _ in range(3):
        gc.collect()
        gc.disable()
        before = sys.getallocatedblocks()
        for i in range(100):
            results[i] = compiled(*arguments)
        grown = sys.getallocatedblocks() - before
        gc.enable()
    lists = function in (in_list, of_list)  # the program's own: a list and its items
    assert grown <= 4 + 200 * lists


def test_a_list_is_new_each_time_and_a_tuple_what_the_graph_gave():
    compiled = pellucid.optimize(in_list, backend=Backend(lambda gm, inputs: (X, Y)))
    first, second = compiled(X, Y), compiled(X, Y)
    assert first == second and first is not second
    given = (X, Y)
    compiled = pellucid.optimize(pair, backend=Backend(lambda gm, inputs: given))
    compiled(X, Y)
    assert compiled(X, Y) == (X, Y)


@pytest.mark.parametrize("outputs", [[X, Y], (X, Y), (X, Y, None)], ids=["list", "tuple", "more than asked for"])
def test_whatever_sequence_a_backend_returns(outputs):
    for function, expected in ((pair, (X, Y)), (in_list, [X, Y])):
        compiled = pellucid.optimize(function, backend=Backend(lambda gm, inputs: outputs))
        for _ in range(3):
            result = compiled(X, Y)
            assert type(result) is type(expected) and all(a is b for a, b in zip(result, expected)) and len(result) == 2


@pytest.mark.parametrize("outputs", [(), None, (X,)], ids=repr)
def test_too_few_outputs_are_the_same_error_with_and_without_a_frame(outputs):
    compiled = pellucid.optimize(pair, backend=Backend(lambda gm, inputs: outputs))
    errors = []
    for traced in (True, False, True, False):
        if traced:
            sys.setprofile(lambda *event: None)
        try:
            with pytest.raises((IndexError, TypeError)) as error:
                compiled(X, Y)
        finally:
            sys.setprofile(None)
        errors.append((error.type, [entry.name for entry in traceback.extract_tb(error.tb)]))
    assert errors[0][0] is errors[1][0]
    assert all(names[-1] == "pair" for _, names in errors), errors


def test_an_exception_has_the_function_in_its_traceback():
    def fail(gm, inputs):
        raise ValueError("in the graph")

    compiled = pellucid.optimize(one, backend=Backend(fail))
    found = []
    for traced in (True, False, False):
        if traced:
            sys.setprofile(lambda *event: None)
        try:
            with pytest.raises(ValueError) as error:
                compiled(X)
        finally:
            sys.setprofile(None)
        found.append([(entry.name, entry.filename, entry.lineno) for entry in traceback.extract_tb(error.tb)][1:])
    assert [name for name, *_ in found[0]] == ["one", "graph", "fail"]
    assert found[0] == found[1] == found[2]


def test_whoever_traces_sees_the_function():
    compiled = pellucid.optimize(one, backend=Backend())
    for _ in range(2):
        compiled(X)
    seen = []
    sys.setprofile(lambda frame, event, argument: seen.append((frame.f_code.co_name, event)))
    try:
        compiled(X)
    finally:
        sys.setprofile(None)
    assert ("one", "call") in seen and ("one", "return") in seen
    names = []
    sys.settrace(lambda frame, event, argument: names.append(frame.f_code.co_name))
    try:
        compiled(X)
    finally:
        sys.settrace(None)
    assert "one" in names
    compiled(X)


def test_items_of_a_list_live_while_the_graph_runs():
    xs = [torch.ones(2, 3), torch.ones(2, 3)]
    alive = []

    def run(gm, inputs):
        refs = [weakref.ref(each) for each in xs]
        del inputs
        xs.clear()  # the program's list no longer holds them: the call does
        gc.collect()
        alive.append([ref() is not None for ref in refs])
        xs.extend(torch.ones(2, 3) for _ in range(2))
        return X, Y

    class Callable:  # takes no reference of its own to what it is called with
        def __init__(self, gm):
            self.gm = gm

        def __call__(self, *inputs):
            return run(self.gm, inputs)

    compiled = pellucid.optimize(of_list, backend=lambda gm, inputs: Callable(gm))
    for _ in range(3):
        compiled(xs)
    assert alive == [[True, True]] * 3


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((3,), 2.0))

    def forward(self, x):
        return x * self.weight


@pytest.mark.parametrize("make", [lambda run: run, lambda run: Method(run).run], ids=["function", "method"])
def test_a_function_s_frame_holds_the_parameters(make):
    module = Scaled()

    def run(x, weight):
        module.weight = torch.nn.Parameter(torch.full((3,), 4.0))  # nobody else holds the old one
        gc.collect()
        return (x * weight,)

    compiled = pellucid.optimize(module, backend=lambda gm, inputs: make(run))
    for expected in (2.0, 4.0, 4.0):
        torch.testing.assert_close(compiled(X), X * expected)


class Method:
    def __init__(self, function):
        self.function = function

    def run(self, *inputs):
        return self.function(*inputs)


class Relies:
    """Not a function, so its arguments are held for it."""

    def __init__(self):
        self.counts = []

    def __call__(self, *inputs):
        self.counts.append([sys.getrefcount(each) for each in inputs])
        return (X,)


class Borrows(Relies):
    pellucid_borrows_inputs = True


def test_who_borrows_its_inputs_is_lent_them():
    counts = []
    for backend in (Relies(), Borrows()):
        compiled = pellucid.optimize(Scaled(), backend=lambda gm, inputs, backend=backend: backend)
        for _ in range(3):
            compiled(X)
        assert backend.counts[1] == backend.counts[2]
        counts.append(sum(backend.counts[-1]))
    assert counts[0] == counts[1] + 2  # each of the two inputs once


def test_a_call_within_the_graph_s_call_has_its_own_arguments():
    depth = []

    def run(gm, inputs):
        if len(depth) < 3:
            depth.append(len(depth))
            value = 10.0 + len(depth)
            inner = compiled(torch.full((2, 3), value), torch.zeros(2, 3))
            assert float(inner[0, 0]) == value
            depth.pop()
        return gm.forward(*inputs)

    compiled = pellucid.optimize(rest, backend=Backend(run))
    for _ in range(3):
        torch.testing.assert_close(compiled(X, Y), X + Y)
        assert not depth


def test_lent_arguments_are_not_mixed_up():
    backend = Backend()
    compiled = pellucid.optimize(rest, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(compiled(X, Y), X + Y)
        torch.testing.assert_close(compiled(X, Y, X), X + Y)
        torch.testing.assert_close(compiled(X, Y, key=1), X + Y)
        with pytest.raises(IndexError):
            compiled(X)
    assert backend.graphs <= 3
    gc.collect()


def test_arguments_die_after_the_call():
    compiled = pellucid.optimize(rest, backend="eager")
    for _ in range(3):
        y = torch.ones(2, 3)
        ref = weakref.ref(y)
        compiled(X, y)
        del y
        assert ref() is None


def test_reset_within_the_graph():
    def run(gm, inputs):
        pellucid.reset()
        gc.collect()
        return gm.forward(*inputs)

    compiled = pellucid.optimize(one, backend=Backend(run))
    for _ in range(5):
        torch.testing.assert_close(compiled(X), X + 1)


def test_a_break_between_two_graphs():
    def broken(x):
        x = x + 1
        print(end="")
        return x * 2

    backend = Backend()
    compiled = pellucid.optimize(broken, backend=backend)
    for _ in range(3):
        torch.testing.assert_close(compiled(X), (X + 1) * 2)
    assert backend.graphs == 2


def test_the_last_call_s_tensors_may_change_places():
    """Aliasing is remembered by address: the same addresses in another order are another call."""
    backend = Backend()
    compiled = pellucid.optimize(pair, backend=backend)
    a, b = torch.ones(2, 3), torch.zeros(2, 3)
    for arguments in ((a, b), (a, b), (b, a), (a, b)):
        compiled(*arguments)
    assert backend.graphs == 1
    result = compiled(a, a)
    assert torch.equal(result[0], result[1])
    for _ in range(2):
        compiled(a, b)
        compiled(a, a)
    assert backend.graphs <= 2
