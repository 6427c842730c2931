"""Memory: what was captured dies with the program it was captured from, rounds leave nothing behind, failing captures neither."""

import ctypes
import gc
import os
import weakref

import pytest
import torch

import pellucid

ROUNDS = 100 if "PELLUCID_SANITIZED" in os.environ else 400
malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: 0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.pair = (self.linear, 2)

    def forward(self, x):
        return self.linear(x) * self.pair[1]


def forward_of(gm, example_inputs):
    return gm.forward


BACKENDS = ["eager", forward_of]


def dies(*objects):
    """Whether the caller, which has let go of them, was the last one. Takes weak references."""
    gc.collect()
    return [reference() for reference in objects] == [None] * len(objects)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_module_and_its_wrapper(backend):
    wrapped = pellucid.optimize(Net(), backend=backend)
    wrapped(torch.ones(1, 3))
    gone = [weakref.ref(x) for x in (wrapped.__wrapped__, wrapped.linear, wrapped.linear.weight, wrapped._optimized_call)]
    del wrapped
    assert dies(*gone)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_class_that_was_only_there_for_a_while(backend):
    class Local(Net):
        pass

    wrapped = pellucid.optimize(Local(), backend=backend)
    wrapped(torch.ones(1, 3))
    gone = [weakref.ref(Local), weakref.ref(type(wrapped))]
    del wrapped, Local
    assert dies(*gone)


@pytest.mark.parametrize("backend", BACKENDS)
def test_modules_that_a_living_function_was_called_with(backend):
    fn = pellucid.optimize(lambda model, x: model(x), backend=backend)
    model = Net()
    fn(model, torch.ones(1, 3))
    gone = weakref.ref(model)
    del model
    assert dies(gone)
    other = Net()
    assert fn(other, torch.ones(1, 3)).shape == (1, 3)
    assert len(pellucid.cache_entries(fn)) == 1


def cycles():
    """Objects whose only way to die is the garbage collector's, through what was captured."""

    def in_attribute(backend):
        model = Net()
        model.compiled = pellucid.optimize(model.forward, backend=backend)
        return model, model.compiled

    def in_closure(backend):
        model = Net()

        def call(x):
            return model(x) + len(call.notes)

        call.notes = [1]
        call.compiled = pellucid.optimize(call, backend=backend)
        return call, call.compiled

    def in_namespace(backend):
        namespace = {"torch": torch, "pellucid": pellucid, "Holder": type("Holder", (), {})}
        exec("holder = Holder()\ndef call(x):\n    x = x + 1\n    pellucid.graph_break()\n    return x * 2\n", namespace)
        namespace["compiled"] = pellucid.optimize(namespace["call"], backend=backend)
        return namespace["holder"], namespace["compiled"]

    def in_a_tuple_that_is_guarded(backend):
        class Slots:
            __slots__ = ("value", "compiled", "__weakref__")

        slots = Slots()
        holder = (slots, 1)

        def call(x):
            return x + holder[1] if holder[0] is slots else x

        slots.compiled = pellucid.optimize(call, backend=backend)
        return slots, slots.compiled

    def in_a_function_of_the_graph(backend):
        class Owner:
            pass

        owner = Owner()

        @pellucid.disable
        def aside(x):
            return x * owner.factor

        owner.factor = 2
        owner.compiled = pellucid.optimize(lambda x: aside(x + 1) + 1, backend=backend)
        return owner, owner.compiled

    return in_attribute, in_closure, in_namespace, in_a_tuple_that_is_guarded, in_a_function_of_the_graph


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", cycles(), ids=lambda make: make.__name__)
def test_cycles(make, backend):
    made, compiled = make(backend)
    compiled(torch.ones(1, 3))
    compiled(torch.ones(1, 3))
    gone = weakref.ref(made)
    del made, compiled
    assert dies(gone)


def test_a_backend_that_knows_the_program():
    class Compiler:
        def __init__(self):
            self.graphs = []
            self.compiled = pellucid.optimize(lambda x: x + 1, backend=self.compile)

        def compile(self, gm, example_inputs):
            self.graphs.append((gm, example_inputs))
            return gm.forward

    compiler = Compiler()
    compiler.compiled(torch.ones(2))
    gone = weakref.ref(compiler)
    del compiler
    assert dies(gone)


def test_collections_find_what_is_in_use_reachable():
    """The collector looks through entries; what a living wrapper needs is not taken for garbage."""

    def breaking(x):
        x = x + 1
        pellucid.graph_break()
        return x * 2

    for backend in BACKENDS:
        fn = pellucid.optimize(breaking, backend=backend)
        kept = pellucid.optimize(Net(), backend=backend)
        for _ in range(5):
            torch.testing.assert_close(fn(torch.ones(1, 3)), torch.full((1, 3), 4.0))
            kept(torch.ones(1, 3))
            gc.collect()
        (entry,) = pellucid.cache_entries(kept)
        function = entry.code_after
        gc.collect()
        assert function.co_consts == entry.code_after.co_consts and entry.hits == 4


def test_what_reports_show_survives_its_entry():
    fn = pellucid.optimize(lambda x: x + 1, backend=forward_of)
    fn(torch.ones(2))
    (entry,) = pellucid.cache_entries(fn)
    code, graph = entry.code_after, entry.graph
    del fn, entry
    gc.collect()
    assert code.co_consts is not None and graph(torch.ones(2))[0].shape == (2,)


# ---- rounds


def resident():
    malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def flat(one_round, rounds=ROUNDS, slack=6 << 20):
    """Rounds leave neither objects nor memory behind."""
    for number in range(rounds // 4):
        one_round(number)
    gc.collect()
    objects, memory = len(gc.get_objects()), resident()
    for number in range(rounds):
        one_round(number)
        if number % 50 == 0:
            gc.collect()
    gc.collect()
    more = len(gc.get_objects()) - objects
    assert more < rounds // 2, f"{more} objects after {rounds} rounds"
    if "PELLUCID_SANITIZED" not in os.environ:  # where freed memory waits
        assert resident() - memory < slack, f"{(resident() - memory) >> 10} KiB after {rounds} rounds"


@pytest.mark.parametrize("backend", BACKENDS)
def test_rounds_of_capture_and_drop(backend):
    def one_round(number):
        pellucid.optimize(Net(), backend=backend)(torch.ones(1, 3))

    flat(one_round, 1000 if ROUNDS > 100 else ROUNDS)


def test_rounds_of_new_code():
    def one_round(number):
        namespace = {"pellucid": pellucid}
        exec(f"def call(x):\n    x = x + {number}\n    pellucid.graph_break()\n    return x * 2\n", namespace)
        assert pellucid.optimize(namespace["call"], backend="eager")(torch.ones(1)).item() == 2 + 2 * number

    flat(one_round)


def test_rounds_of_resets():
    fn = pellucid.optimize(lambda x: (x + 1).sin(), backend="eager")

    def one_round(number):
        fn(torch.ones(number % 5 + 1))
        pellucid.reset(fn)

    flat(one_round)


def test_rounds_of_failures():
    def failing(gm, example_inputs):
        raise RuntimeError("no")

    def breaking(x):
        x = x + 1
        if x.sum() > 0:
            return x * 2
        return x

    def raising(x):
        x = x + 1
        raise ValueError(x.shape)

    def one_round(number):
        x = torch.ones(1, 3)
        with pytest.raises(pellucid.exc.BackendCompilerFailed):
            pellucid.optimize(Net(), backend=failing)(x)
        with pytest.raises(pellucid.exc.Unsupported):
            pellucid.optimize(breaking, backend="eager", fullgraph=True)(x)
        with pytest.raises(ValueError):
            pellucid.optimize(raising, backend="eager")(x)
        pellucid.optimize(breaking, backend="eager")(x)

    flat(one_round, ROUNDS // 4)


# ---- reports and resets


def test_bytes_of_an_entry():
    small = pellucid.optimize(lambda x: x + 1, backend="eager")
    large = pellucid.optimize(torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(50)]), backend="eager")
    small(torch.ones(1, 3))
    large(torch.ones(1, 3))
    (few,), (many,) = pellucid.cache_entries(small), pellucid.cache_entries(large)
    assert 500 < few.bytes < 50_000
    assert 20 * few.bytes < many.bytes < 10_000_000


def test_reset_drops_the_entries_of_one_function():
    one, other = (pellucid.optimize(lambda x: x + 1, backend=forward_of) for _ in range(2))
    for fn in (one, other):
        fn(torch.ones(2))
    entry = pellucid.cache_entries(one)[0]
    graph = weakref.ref(entry.graph)
    del entry
    pellucid.reset(one)
    assert dies(graph)
    assert pellucid.cache_entries(one) == [] and len(pellucid.cache_entries(other)) == 1
    one(torch.ones(2))
    assert len(pellucid.cache_entries(one)) == 1
