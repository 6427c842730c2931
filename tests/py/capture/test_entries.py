"""What real captures leave behind: entries and their guards, recompiles and what causes none, failing backends, interrupts, threads."""

import asyncio
import builtins
import contextlib
import gc
import logging
import re
import signal
import sys
import threading
import weakref

import pytest
import torch
from harness import Describer, Recorder

import pellucid
from pellucid import _bytecode as b
from pellucid import config, exc, guard_text


def optimized(fn, **settings):
    recorder = Recorder()
    return pellucid.optimize(fn, backend=recorder, **settings), recorder


# ---- backends that fail


class Holder:
    def __init__(self):
        self.items, self.count, self.t = [], 0, torch.zeros(3)


def changes_everything(x, holder):
    holder.count += 1
    holder.items.append(x * 2)
    holder.t.add_(1)
    x.mul_(3)
    global CHANGED
    CHANGED = holder.count
    return x + holder.t


CHANGED = 0


def boom(gm, example_inputs):
    raise LookupError("no compiler here")


def not_callable(gm, example_inputs):
    return 42


@pytest.mark.parametrize("backend, cause", [(boom, LookupError), (not_callable, type(None))])
def test_a_failing_backend_leaves_the_state_as_before_the_call(backend, cause):
    global CHANGED
    CHANGED = 0
    x, holder = torch.ones(3), Holder()
    wrapper = pellucid.optimize(changes_everything, backend=backend)
    before = Describer()((x, holder, CHANGED))
    for _ in range(2):
        with pytest.raises(exc.BackendCompilerFailed) as caught:
            wrapper(x, holder)
        assert type(caught.value.__cause__) is cause and caught.value.inner is caught.value.__cause__
        assert Describer()((x, holder, CHANGED)) == before
    assert pellucid.cache_entries(wrapper, nested=True) == []
    assert backend.__name__ in str(caught.value)


@pytest.mark.parametrize("backend", [boom, not_callable])
def test_backend_errors_can_be_left_to_eager(backend, caplog):
    x, holder = torch.ones(3), Holder()
    wrapper = pellucid.optimize(changes_everything, backend=backend)
    with config.patch(backend_errors="eager"), caplog.at_level(logging.WARNING, "pellucid"):
        assert wrapper(x, holder).tolist() == [4.0] * 3
        assert wrapper(x, holder).tolist() == [11.0] * 3
    assert holder.count == 2 and len(holder.items) == 2 and "runs as written" in caplog.text


def test_a_backend_that_fails_after_a_graph_break():
    seen = []

    def fails_second(gm, inputs):
        seen.append(gm)
        if len(seen) == 2:
            raise ArithmeticError("second")
        return gm.forward

    def fn(x, out):
        out.append(x + 1)
        pellucid.graph_break()
        out.append(x + 2)
        return x * 3

    wrapper = pellucid.optimize(fn, backend=fails_second)
    out = []
    with pytest.raises(exc.BackendCompilerFailed) as caught:
        wrapper(torch.zeros(1), out)
    assert isinstance(caught.value.__cause__, ArithmeticError) and [t.item() for t in out] == [1.0]
    out = []
    assert wrapper(torch.ones(1), out).item() == 3 and [t.item() for t in out] == [2.0, 3.0]


def test_the_program_s_own_exceptions_are_not_the_backend_s():
    def compiled(*inputs):
        raise FloatingPointError("when run")

    wrapper = pellucid.optimize(lambda x: x + 1, backend=lambda gm, inputs: compiled)
    for _ in range(2):
        with pytest.raises(FloatingPointError, match="when run"):
            wrapper(torch.ones(1))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_passes_through(error):
    asked = []

    def interrupted(gm, inputs):
        asked.append(gm)
        if len(asked) == 1:
            raise error
        return gm.forward

    holder = Holder()
    x = torch.ones(3)
    wrapper = pellucid.optimize(changes_everything, backend=interrupted)
    with pytest.raises(error):
        wrapper(x, holder)
    assert not b.hook_installed() and b.hook_busy() == 0
    assert holder.count == 0 and holder.items == [] and x.tolist() == [1.0] * 3
    assert pellucid.cache_entries(wrapper) == []
    assert wrapper(x, holder).tolist() == [4.0] * 3 and len(asked) == 2


def test_an_interrupt_in_a_callee_of_the_captured_program():
    armed = [True]

    def callee(x):
        if armed.pop() if armed else False:
            signal.raise_signal(signal.SIGINT)
        return x

    def fn(x):
        return callee(x + 1) * 2

    wrapper, recorder = optimized(fn)
    with pytest.raises(KeyboardInterrupt):
        wrapper(torch.ones(2))
    assert not b.hook_installed() and b.hook_busy() == 0
    assert wrapper(torch.ones(2)).tolist() == [4.0, 4.0]


def test_an_interrupt_during_capture():
    """A signal arrives while a long program is looked at; whenever that is, the next call works."""

    def fn(x):
        for i in range(3000):
            x = x + i
        return x

    wrapper, recorder = optimized(fn)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for delay in (0.001, 0.004, 0.015):
            signal.setitimer(signal.ITIMER_REAL, delay)
            with contextlib.suppress(KeyboardInterrupt):
                wrapper(torch.ones(1))
                while signal.getitimer(signal.ITIMER_REAL)[0]:
                    pass
            assert not b.hook_installed() and b.hook_busy() == 0
            pellucid.reset(wrapper)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert wrapper(torch.ones(1)).item() == 1 + sum(range(3000))


# ---- the cache


def test_the_limit_is_warned_about_once_and_hits_go_on(caplog):
    wrapper, recorder = optimized(lambda x, k: x * k)
    x = torch.ones(2)
    with config.patch(cache_size_limit=3), caplog.at_level(logging.WARNING, "pellucid"):
        assert [wrapper(x, k)[0].item() for k in (1, 2, 3, 4, 5, 6)] == [1, 2, 3, 4, 5, 6]
        assert len(recorder.graphs) == 3
        before = [entry.hits for entry in pellucid.cache_entries(wrapper)]
        assert [wrapper(x, k)[0].item() for k in (1, 2, 3, 7)] == [1, 2, 3, 7]
    after = [entry.hits for entry in pellucid.cache_entries(wrapper)]
    assert sorted(a - b for a, b in zip(after, before, strict=True)) == [1, 1, 1]
    assert len([r for r in caplog.records if "cache_size_limit" in r.getMessage()]) == 1


# ---- one guard kind at a time: what must recompile, and what must not

GLOBAL = 1
GLOBAL_LIST = [1, 2]


class Config:
    scale = 2

    def __init__(self):
        self.width = 3
        self.nested = {"a": 1, "b": [1, 2]}


class Sub(Config):
    pass


def reads_global(x, w):
    return x * GLOBAL


def reads_global_list(x, w):
    return x * GLOBAL_LIST[0] + len(GLOBAL_LIST)


def reads_attribute(x, w):
    return x * w.width


def reads_class_attribute(x, w):
    return x * w.scale


def reads_nested(x, w):
    return x * w.nested["b"][1]


def reads_type(x, w):
    return x + 1 if isinstance(w, Sub) else x + 2


def reads_keys(x, w):
    for key in w.nested:
        x = x + len(key)
    return x


def reads_missing(x, w):
    return x + getattr(w, "absent", 5)


def reads_presence(x, w):
    return x + 1 if "c" in w.nested else x * 2


def reads_identity(x, w):
    return x + 1 if w.nested is w.width else x * 2


def reads_function(x, w):
    return helper(x)


def helper(x, by=2):
    return x * by


def other_helper(x, by=3):
    return x - by


def reads_grad_mode(x, w):
    return (x * w.t) if w.t is not None else x


def set_global(value):
    def change(x, w):
        globals()["GLOBAL"] = value

    return change


def set_attribute(name, value):
    return lambda x, w: setattr(w, name, value)


def set_defaults(x, w):
    helper.__defaults__ = (7,)


def set_class(x, w):
    w.__class__ = Sub


@pytest.fixture
def restored():
    saved = GLOBAL, list(GLOBAL_LIST), Config.scale, helper, helper.__defaults__
    yield
    globals().update(GLOBAL=saved[0], helper=saved[3])
    GLOBAL_LIST[:] = saved[1]
    Config.scale = saved[2]
    helper.__defaults__ = saved[4]


GUARD_CASES = {
    "global": (reads_global, set_global(5), True),
    "another global": (reads_global, lambda x, w: GLOBAL_LIST.append(3), False),
    "equal global": (reads_global, set_global(1), False),
    "global of another type": (reads_global, set_global(1.0), True),
    "item of a global list": (reads_global_list, lambda x, w: GLOBAL_LIST.__setitem__(0, 9), True),
    "length of a global list": (reads_global_list, lambda x, w: GLOBAL_LIST.append(9), True),
    "attribute": (reads_attribute, set_attribute("width", 4), True),
    "another attribute": (reads_attribute, set_attribute("other", 4), False),
    "attribute back": (reads_attribute, set_attribute("width", 3), False),
    "attribute over the class": (reads_class_attribute, set_attribute("scale", 4), True),
    "class attribute": (reads_class_attribute, lambda x, w: setattr(Config, "scale", 8), True),
    "deep item": (reads_nested, lambda x, w: w.nested["b"].__setitem__(1, 7), True),
    "replaced list of equal items": (reads_nested, lambda x, w: w.nested.update(b=[1, 2]), False),
    "class of an instance": (reads_type, set_class, True),
    "new key": (reads_keys, lambda x, w: w.nested.update(ccc=1), True),
    "value of a key that is not read": (reads_keys, lambda x, w: w.nested.update(a=5), False),
    "missing attribute appears": (reads_missing, set_attribute("absent", 1), True),
    "missing attribute on the class": (reads_missing, lambda x, w: setattr(type(w), "absent", 1), True),
    "missing key appears": (reads_presence, lambda x, w: w.nested.update(c=1), True),
    "function replaced": (reads_function, lambda x, w: globals().update(helper=other_helper), True),
    "defaults replaced": (reads_function, set_defaults, True),
    "object replaced by an equal one": (reads_attribute, lambda x, w: None, False),
}


@pytest.mark.parametrize("case", GUARD_CASES)
def test_recompile_for_each_guard_kind(case, restored):
    fn, change, expected = GUARD_CASES[case]

    class Fresh(Config):
        pass

    w = Config() if change is set_class else Fresh()
    if change is set_class:
        w.__class__ = Config
    wrapper, recorder = optimized(fn)
    x = torch.ones(2, 3)
    for _ in range(3):
        assert torch.equal(wrapper(x, w), fn(x, w))
    assert len(recorder.graphs) == 1
    if case == "object replaced by an equal one":
        w = Fresh()
    change(x, w)
    for _ in range(3):
        assert torch.equal(wrapper(x, w), fn(x, w))
    assert (len(recorder.graphs) == 2) == expected and len(recorder.graphs) <= 2


TENSOR_CASES = {
    "values": (torch.zeros(2, 3), False),
    "a view of the same layout": (torch.ones(4, 3)[1:3], False),
    "size": (torch.ones(4, 3), True),
    "rank": (torch.ones(2, 3, 1), True),
    "dtype": (torch.ones(2, 3, dtype=torch.double), True),
    "strides": (torch.ones(3, 2).t(), True),
    "requires_grad": (torch.ones(2, 3, requires_grad=True), True),
    "parameter": (torch.nn.Parameter(torch.ones(2, 3)), True),
    "a buffer": (torch.nn.Buffer(torch.ones(2, 3)), None),
    "conjugate": (torch.ones(2, 3, dtype=torch.cfloat).conj(), True),
    "number": (3.0, True),
    "none": (None, True),
}


@pytest.mark.parametrize("case", TENSOR_CASES)
def test_recompile_for_each_property_of_a_tensor(case):
    other, expected = TENSOR_CASES[case]

    def fn(x):
        return torch.ones(1) if x is None else x * 2

    wrapper, recorder = optimized(fn)
    wrapper(torch.ones(2, 3)), wrapper(torch.ones(2, 3))
    assert len(recorder.graphs) == 1
    for _ in range(2):
        result = wrapper(other)
        assert type(result) is type(fn(other)) and torch.equal(torch.as_tensor(result), torch.as_tensor(fn(other)))
    entries = len(pellucid.cache_entries(wrapper))
    assert expected is None or (entries == 2) == expected


def test_aliases_among_arguments():
    def fn(x, y):
        x.add_(1)
        return x + y, x is y

    wrapper, recorder = optimized(fn)
    t = torch.ones(2)
    for a, c in ((torch.ones(2), torch.ones(2)), (t, t), (torch.ones(2), torch.ones(2)), (t, t)):
        copies = [a.clone()] * 2 if a is c else [a.clone(), c.clone()]
        assert str(wrapper(a, c)) == str(fn(*copies))
    assert len(recorder.graphs) == 2


def test_grad_mode_dtype_and_autocast_recompile():
    def fn(x):
        return x @ x, torch.ones(1)

    wrapper, recorder = optimized(fn)
    x = torch.ones(2, 2, requires_grad=True)
    contexts = [contextlib.nullcontext, torch.no_grad, lambda: torch.autocast("cpu", torch.bfloat16), torch.inference_mode]
    for _ in range(2):
        for context in contexts:
            with context():
                seen, expected = wrapper(x), fn(x)
                assert [(t.dtype, t.requires_grad, t.is_inference()) for t in seen] == [
                    (t.dtype, t.requires_grad, t.is_inference()) for t in expected
                ]
    assert len(recorder.graphs) == 4
    torch.set_default_dtype(torch.double)
    try:
        assert wrapper(x)[1].dtype is torch.double
    finally:
        torch.set_default_dtype(torch.float)
    assert len(recorder.graphs) == 5


# ---- guard text


def objects_named_in(text, known, local_values, function):
    """The V of a text: by the names in its comments, and else what stands left of `is` now, while the entry holds."""
    values = [function.__globals__] if "G is not V[0]" in text else []
    names = dict(guard_text.HELPERS, V=values, L=local_values, G=function.__globals__, F=function)
    for line in text.splitlines():
        for number, name in re.findall(r"V\[(\d+)\]: ([^;]+)", line.partition("  # ")[2]):
            assert int(number) == len(values)
            if name == "a dict":
                values.append(vars(builtins))
            elif name in known:
                values.append(known[name])
            elif mro := re.search(r"if not \((mro\(.*\)) == \((V\[.*), \)\):", line):
                values.append(eval(mro.group(1), names)[mro.group(2).split(", ").index(f"V[{number}]")])
            else:
                values.append(eval(re.search(rf"if not \((.*) is V\[{number}\]\):", line).group(1), names))
    assert {int(n) for n in re.findall(r"V\[(\d+)\]", text)} == set(range(len(values)))
    return tuple(values)


@pytest.mark.parametrize("case", GUARD_CASES)
def test_the_text_of_an_entry_s_guards_agrees_with_the_call(case, restored):
    fn, change, _ = GUARD_CASES[case]

    class Fresh(Config):
        pass

    w = Config() if change is set_class else Fresh()
    wrapper, recorder = optimized(fn)
    x = torch.ones(2, 3)
    wrapper(x, w)
    (entry,) = pellucid.cache_entries(wrapper)
    arguments = {"x": x, "w": w}
    values = objects_named_in(entry.check_fn, {"Tensor": torch.Tensor, type(w).__name__: type(w)}, arguments, fn)
    assert guard_text.evaluate(entry.check_fn, arguments, fn, values)
    change(x, w)
    held = guard_text.evaluate(entry.check_fn, arguments, fn, values)
    wrapper(x, w)
    assert held == (len(recorder.graphs) == 1), entry.check_fn


# ---- lifetimes


def test_a_guarded_object_that_dies_takes_its_entry_along():
    def fn(x, key):
        return x + 1 if key is None else x + 2

    class Key:
        def __call__(self, x):
            return x

    def calls(x, f):
        return f(x) * 2

    wrapper, recorder = optimized(calls)
    f = lambda x: x + 1
    assert wrapper(torch.ones(1), f).item() == 4
    assert len(pellucid.cache_entries(wrapper)) == 1
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None, "the entry keeps a guarded function alive"


def test_ids_that_are_used_again():
    """Objects of one class come and go at the same address; results follow the object, not its id."""

    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by

    def calls(x, f):
        return f(x)

    wrapper, recorder = optimized(calls)
    x = torch.ones(1)
    with config.patch(cache_size_limit=64):
        for k in range(30):
            assert wrapper(x, Scale(k % 3)).item() == k % 3
    assert len(recorder.graphs) == 3
    wrapper, recorder = optimized(calls)
    with config.patch(cache_size_limit=64):
        for k in range(30):
            namespace = {}
            exec(f"def f(x): return x + {k % 3}", namespace)
            assert wrapper(x, namespace.pop("f")).item() == 1 + k % 3
            del namespace


def test_wrappers_graphs_and_results_are_freed():
    def fn(x, box):
        box.append(x + 1)
        return x * 2

    freed = []
    wrapper, recorder = optimized(fn)
    x, box = torch.ones(2), []
    result = wrapper(x, box)
    for thing in (x, result, box[0]):
        weakref.finalize(thing, freed.append, 1)
    del x, box, result, thing
    gc.collect()
    assert len(freed) == 3
    graph = weakref.ref(recorder.graphs[0])
    recorder.graphs.clear()
    del wrapper, recorder
    gc.collect()
    assert graph() is None


def test_references_do_not_leak():
    def fn(x, items, table):
        items = [*items, x]
        table["k"] = (x, None, len(items))
        pellucid.graph_break()
        return [t + 1 for t in items], table

    wrapper, recorder = optimized(fn)
    x, y, table, key = torch.ones(1), torch.ones(1), {}, "some key of its own"
    watched = (x, y, key, None, fn)
    for _ in range(3):
        wrapper(x, [y], {key: 1})
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(50):
        wrapper(x, [y], {key: 1})
    after = [sys.getrefcount(thing) for thing in watched]
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True)), (before, after)


# ---- threads, generators, coroutines


def test_hits_captures_and_recompiles_from_four_threads():
    class Shared:
        def __init__(self):
            self.k = 1

    def fn(x, k, box):
        box.k = k
        y = x * k
        if k % 3 == 0:
            pellucid.graph_break()
        return y.relu() + box.k, [y]

    wrapper, recorder = optimized(fn)
    failures = []
    start = threading.Barrier(4)

    def work(seed):
        try:
            start.wait()
            for i in range(120):
                k = (i * (seed + 1)) % 7
                x = torch.full((2 + i % 2,), float(seed))
                result, (y,) = wrapper(x, k, Shared())
                assert result.tolist() == [float(seed * k + k)] * (2 + i % 2) and y[0].item() == seed * k
        except BaseException as error:
            failures.append(error)

    with config.patch(cache_size_limit=64):
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)
    assert not b.hook_installed() and b.hook_busy() == 0


def test_a_thread_resets_while_others_run():
    wrapper, recorder = optimized(lambda x, k: (x + k).sin() * k)
    stop, failures = threading.Event(), []

    def work():
        try:
            while not stop.is_set():
                for k in range(3):
                    assert torch.equal(wrapper(torch.ones(2), k), (torch.ones(2) + k).sin() * k)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        pellucid.reset(wrapper)
        pellucid.cache_entries(wrapper)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_a_thread_outside_the_region_is_not_captured():
    seen = []

    def plain(x):
        seen.append(pellucid.is_compiling())
        return x + 1

    def fn(x):
        thread = threading.Thread(target=lambda: seen.append(plain(x).item()))
        thread.start()
        thread.join()
        return x * 2

    wrapper, recorder = optimized(fn)
    assert wrapper(torch.ones(1)).item() == 2 and seen == [False, 2.0]


def test_generators_and_coroutines_just_run():
    def generator(x, n):
        for i in range(n):
            got = yield x * i
            if got:
                x = x + got
        return x

    async def inner(x):
        await asyncio.sleep(0)
        return x + 1

    async def coroutine(x):
        return (await inner(x)) * 2

    async def asynchronous(x):
        for i in range(3):
            yield x + i

    async def collect(make, x):
        return [item.item() async for item in make(x)]

    x = torch.ones(1)
    made = optimized(generator)[0](x, 3)
    assert next(made).item() == 0 and made.send(2).item() == 3 and next(made).item() == 6
    with pytest.raises(StopIteration) as stop:
        next(made)
    assert stop.value.value.item() == 3
    assert asyncio.run(optimized(coroutine)[0](x)).item() == 4
    assert asyncio.run(collect(optimized(asynchronous)[0], x)) == [1, 2, 3]

    def uses(x):
        total = x
        for item in generator(x, 3):
            total = total + item
        return total, list(generator(x, 2)), asyncio.run(coroutine(x))

    wrapper, recorder = optimized(uses)
    for _ in range(2):
        assert str(wrapper(x)) == str(uses(x))


# ---- many entries


class Odd(int): ...


def doubled(x, what):
    return x * 2, what


MANY = {
    "ints": lambda: [(torch.ones(2), number) for number in (0, 1, -1, 2**40, 2**62, 7, 2**29, -(2**31))],
    "types": lambda: [(torch.ones(2), value) for value in (None, True, "a", 1.5, (1,), [], {}, Odd(3))],
    "sizes": lambda: [(torch.ones(size), 1) for size in ((2,), (3,), (2, 3), (3, 2), (1,), (0,), (), (2, 3, 4), (2, 1, 2, 1, 2, 1))],
    "dtypes": lambda: [(torch.ones(2, dtype=d), 1) for d in (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64)],
    "layouts": lambda: [(t, 1) for t in (torch.ones(4, 4), torch.ones(4, 4).t(), torch.ones(8, 8)[::2, ::2], torch.ones(4, 8)[:, :4])],
    "objects": lambda: [(torch.ones(2), value) for value in (len, abs, torch.add, torch.mul, print, min)],
}


@pytest.mark.parametrize("kind", MANY)
def test_many_entries_are_found_in_any_order(kind):
    calls = MANY[kind]()
    captured, recorder = optimized(doubled, dynamic=False)
    order = list(range(len(calls)))
    graphs = []
    for round_ in range(4):
        for i in order[round_ % len(calls) :] + order[: round_ % len(calls)]:
            result, expected = captured(*calls[i]), doubled(*calls[i])
            assert torch.equal(result[0], expected[0]) and result[1] == expected[1] and type(result[1]) is type(expected[1])
        order = order[::-2] + order[-2::-2]
        graphs.append(len(recorder.graphs))
    assert len(set(graphs)) == 1 and graphs[0] <= len(calls)
