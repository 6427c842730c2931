"""The call path of _core with entries made by hand: hits, misses, tail calls, nested frames, the hook's balance."""

import gc
import sys
import threading
import types
import weakref

import pytest

pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

import pellucid
from pellucid import _bytecode as b
from pellucid._regions import ready_core

core = ready_core()


def backend(gm, example_inputs):
    return gm.forward


def optimized(fn):
    return pellucid.optimize(fn, backend=backend)


def add(wrapper, transformed, original=None, check=None, calls_python=True):
    """An entry for `original` (the wrapped function) that runs a copy of `transformed`'s code."""
    code = (original or wrapper.__wrapped__).__code__
    core.testing_add_entry(wrapper._region, code, transformed.__code__.replace(), check, calls_python)


@pytest.fixture(autouse=True)
def balanced():
    yield
    assert not b.hook_installed() and b.hook_busy() == 0


def test_a_hit_runs_the_transformed_code_in_no_frame_of_ours():
    def fn(a, b=2):
        return "written"

    def other(a, b):
        return a, b, sys._getframe(1).f_code.co_name

    wrapper = optimized(fn)
    add(wrapper, other, calls_python=False)
    assert wrapper(1) == (1, 2, "test_a_hit_runs_the_transformed_code_in_no_frame_of_ours")
    assert wrapper(b=3, a=4)[:2] == (4, 3)


def test_a_whole_graph_hit_never_touches_the_hook():
    def fn(a):
        return "written"

    def other(a):
        return a, b.hook_installed()

    wrapper = optimized(fn)
    add(wrapper, other, calls_python=False)
    frames = b.hook_frames()
    assert wrapper(1) == (1, False) and b.hook_frames() == frames


def test_all_parameter_kinds_arrive_positionally_in_order():
    def fn(p, /, a, b=10, *rest, k, d=20, **more):
        return "written"

    def other(p, a, b, k, d, rest, more):
        return p, a, b, k, d, rest, more

    wrapper = optimized(fn)
    add(wrapper, other, calls_python=False)
    assert wrapper(1, 2, k=3) == (1, 2, 10, 3, 20, (), {})
    assert wrapper(1, 2, 3, 4, 5, k=6, z=7, p=8) == (1, 2, 3, 6, 20, (4, 5), {"z": 7, "p": 8})
    assert wrapper(1, d=5, a=2, k=3) == (1, 2, 10, 3, 5, (), {})
    fn.__defaults__, fn.__kwdefaults__ = (11,), {"d": 21, "k": 22}
    assert wrapper(1, 2) == (1, 2, 11, 22, 21, (), {})
    key = "".join(["", "k"])  # another string object than the code's
    assert wrapper(1, 2, **{key: 3})[3] == 3


def test_binding_errors_are_cpython_s_own():
    def fn(p, /, a, *, k=1):
        return "written"

    wrapper = optimized(fn)
    add(wrapper, lambda p, a, k: "hit", calls_python=False)
    for args, kwargs in [((), {}), ((1,), {}), ((1, 2, 3), {}), ((1, 2), {"z": 1}), ((1, 2), {"a": 3}), ((), {"p": 1, "a": 2})]:
        with pytest.raises(TypeError) as expected:
            fn(*args, **kwargs)
        with pytest.raises(TypeError) as got:
            wrapper(*args, **kwargs)
        assert str(got.value) == str(expected.value)
    assert wrapper(1, a=2) == "hit"


def test_guards_choose_the_entry():
    def fn(a):
        return "written"

    wrapper = optimized(fn)
    add(wrapper, lambda a: "int", check=lambda a: type(a) is int, calls_python=False)
    add(wrapper, lambda a: "str", check=lambda a: type(a) is str, calls_python=False)
    assert [wrapper(x) for x in (1, "a", "b", 2, 1.5, 3)] == ["int", "str", "str", "int", "written", "int"]
    assert [entry.hits for entry in pellucid.cache_entries(wrapper)] == [3, 2]


def test_a_guard_that_raises_is_an_error():
    def fn(a):
        return "written"

    def check(a):
        raise ZeroDivisionError("guard")

    wrapper = optimized(fn)
    add(wrapper, lambda a: "hit", check=check)
    with pytest.raises(ZeroDivisionError, match="guard"):
        wrapper(1)


def test_globals_and_closure_are_the_function_s_own():
    def make(value):
        def fn():
            return "written", value

        return fn

    def make_other(value):
        def other():
            return "hit", value

        return other

    one, two = make(1), make(2)
    wrapper = optimized(one)
    add(wrapper, make_other(0), calls_python=False)
    assert wrapper() == ("hit", 1)
    one.__closure__[0].cell_contents = 5
    assert wrapper() == ("hit", 5)

    def outer(f):
        return f()

    def outer_too(f):
        return f(), "hit too"

    both = optimized(outer)
    add(both, outer_too)
    add(both, make_other(0), original=one)
    assert both(one) == (("hit", 5), "hit too") and both(two) == (("hit", 2), "hit too") and both(one) == (("hit", 5), "hit too")


def test_new_code_is_looked_up_again():
    def fn(a):
        return "written"

    def later(a, c=3):
        return "later", a, c

    wrapper = optimized(fn)
    add(wrapper, lambda a: "hit", calls_python=False)
    assert wrapper(1) == "hit"
    fn.__code__, fn.__defaults__ = later.__code__, later.__defaults__
    assert wrapper(1) == ("later", 1, 3)


def test_nested_frames_take_the_same_path_and_only_in_the_region():
    def inner(x):
        return "written"

    def fn(x):
        return [inner(x), (lambda: inner(x))()]

    wrapper = optimized(fn)
    add(wrapper, lambda x: ("hit", x), original=inner, calls_python=False)
    assert wrapper(1) == [("hit", 1)] * 2  # fn runs as written, the frames it starts are looked at
    assert fn(1) == ["written"] * 2
    assert optimized(fn)(1) == ["written"] * 2  # another optimize() call has entries of its own


def test_frames_under_a_whole_graph_are_not_looked_at():
    def inner(x):
        return "written"

    def fn(x):
        return inner(x)

    def other(x):
        return inner(x)

    namespace = {"inner": inner}
    for calls_python, expected in ((False, "written"), (True, "hit")):
        wrapper = optimized(types.FunctionType(fn.__code__, namespace, closure=fn.__closure__))
        add(wrapper, lambda x: "hit", original=inner, calls_python=False)
        add(wrapper, other, calls_python=calls_python)
        assert wrapper(1) == expected

    def outermost(x):
        return fn(x)

    wrapper = optimized(outermost)  # the same from a frame that the hook met
    add(wrapper, lambda x: "hit", original=inner, calls_python=False)
    add(wrapper, other, original=fn, calls_python=False)
    assert wrapper(1) == "written"


def test_wrappers_nest_and_put_the_outer_region_back():
    def leaf():
        return "written"

    inner = optimized(lambda: leaf())
    add(inner, lambda: "inner", original=leaf, calls_python=False)

    def fn():
        return leaf(), inner(), leaf()

    outer = optimized(fn)
    add(outer, lambda: "outer", original=leaf, calls_python=False)
    assert outer() == ("outer", "inner", "outer")


def test_disabled_functions_and_what_they_call_run_as_written():
    def leaf():
        return "written"

    @pellucid.disable
    def off():
        return leaf()

    def once():
        return leaf()

    pellucid.disable(once, recursive=False)
    wrapper = optimized(lambda: (leaf(), off(), leaf(), once()))
    add(wrapper, lambda: "hit", original=leaf, calls_python=False)
    add(wrapper, lambda: ("never", leaf), original=once, calls_python=False)
    assert wrapper() == ("hit", "written", "hit", "hit")
    assert off() == "written" and off.__name__ == "off"


def test_torch_compiler_disable_is_honoured():
    import torch

    def leaf():
        return "written"

    off = torch.compiler.disable(lambda: leaf())
    wrapper = optimized(lambda: (leaf(), off(), leaf()))
    add(wrapper, lambda: "hit", original=leaf, calls_python=False)
    assert wrapper() == ("hit", "written", "hit")


def test_exceptions_and_their_tracebacks():
    def fn(x):
        raise AssertionError("written")

    def other(x):
        raise KeyError(x)

    for calls_python in (False, True):
        wrapper = optimized(fn)
        add(wrapper, other, calls_python=calls_python)
        with pytest.raises(KeyError) as caught:
            wrapper(7)
        assert [entry.name for entry in caught.traceback] == ["test_exceptions_and_their_tracebacks", "other"]


# ---- tail calls


def make_tail_loop(depth_seen=None):
    seen = depth_seen

    def step(i, n, acc):
        raise AssertionError("the resume function's own code is not run", seen, step)

    def transformed(i, n, acc):
        if i % 1000 == 0:
            depth, frame = 0, sys._getframe()
            while frame is not None:
                depth, frame = depth + 1, frame.f_back
            seen.append(depth)
        if i == n:
            return acc
        return core.tail_call(step, i + 1, n, acc + 1)

    wrapper = optimized(step)
    assert transformed.__code__.co_freevars == step.__code__.co_freevars
    add(wrapper, transformed)
    return wrapper, step


def test_a_hundred_thousand_tail_calls_at_constant_depth():
    depths = []
    wrapper, step = make_tail_loop(depths)
    assert wrapper(0, 100_000, 0) == 100_000
    assert len(depths) == 101 and len(set(depths)) == 1


def test_tail_calls_from_a_frame_that_the_hook_met():
    depths = []
    wrapper, step = make_tail_loop(depths)

    def fn(n):
        return step(0, n, 0), step(0, 5, 0)

    outer = optimized(fn)
    core.testing_add_entry(outer._region, step.__code__, wrapper_code(wrapper), None, True)
    assert outer(20_000) == (20_000, 5)
    assert len(set(depths)) == 1


def wrapper_code(wrapper):
    return pellucid.cache_entries(wrapper)[0].code_after


def test_tail_calls_of_other_callables_and_with_defaults():
    def target(a, b=5, *rest):
        return a, b, rest

    def fn(kind):
        return "written", target

    def other(kind):
        if kind == 0:
            return core.tail_call(max, 3, 9)
        if kind == 1:
            return core.tail_call(target, 1)
        if kind == 2:
            return core.tail_call(target, 1, 2, 3)
        return core.tail_call(target)

    wrapper = optimized(fn)
    add(wrapper, other)
    assert [wrapper(k) for k in range(3)] == [9, (1, 5, ()), (1, 2, (3,))]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        wrapper(3)


class Thing:
    pass


def drops_its_argument(thing):
    ref = weakref.ref(thing)
    del thing
    return ref() is None


def calls_with_a_new_object():
    return core.tail_call(drops_its_argument, Thing())


@pytest.mark.parametrize("transformed", [False, True])
@pytest.mark.parametrize("calls_python", [False, True])
def test_arguments_of_tail_calls_die_when_the_callee_drops_them(transformed, calls_python):
    wrapper, outer = optimized(written), optimized(lambda: written())
    for one in (wrapper, outer):
        add(one, calls_with_a_new_object, original=written)
        if transformed:
            add(one, drops_its_argument, original=drops_its_argument, calls_python=calls_python)
    assert wrapper() is True and outer() is True


def written():
    return "written"


def ends_in_a_call():
    thing = Thing()
    return core.tail_call(is_dead, weakref.ref(thing))


def is_dead(ref):
    return ref() is None


def test_locals_of_a_frame_that_ended_in_a_tail_call_are_gone():
    wrapper = optimized(lambda: written())
    add(wrapper, ends_in_a_call, original=written)
    assert wrapper() is True


def needs_little_room(n):
    return "written"


def needs_more_room(n):
    a = b = c = d = e = f = g = h = n
    spread = (a, b, c, [d, e, (f, g, h, {1: a, 2: b, 3: (c, d, e, f, g)})])
    return 1 + needs_little_room(n - 1) if n > 0 else len(spread)


def test_transformed_code_that_needs_more_room_than_the_frame_has():
    wrapper = optimized(needs_little_room)
    add(wrapper, needs_more_room)
    for n in (1, 5, 100, 300):  # past the end of a chunk of the data stack
        assert wrapper(n) == n + 4


def failing_tail_call():
    def step(i):
        raise KeyError(i)

    def fn():
        return "written", step

    def other():
        return core.tail_call(step, 3)

    wrapper = optimized(fn)
    add(wrapper, other)
    for _ in range(3):
        with pytest.raises(KeyError, match="3"):
            wrapper()
    return weakref.ref(step)


def test_exceptions_leave_tail_calls_cleanly():
    held = failing_tail_call()
    gc.collect()
    assert held() is None


def test_tail_calls_in_threads():
    results = []

    def work():
        wrapper, _ = make_tail_loop([])
        results.append(wrapper(0, 3000, 0))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [3000] * 4


# ---- lifetime


def test_regions_and_wrappers_in_cycles_are_collected():
    def build():
        def fn(a):
            return wrapper, fn

        wrapper = optimized(fn)
        add(wrapper, types.FunctionType(fn.__code__, globals(), closure=fn.__closure__))
        wrapper(1)
        return weakref.ref(wrapper), weakref.ref(wrapper._region), weakref.ref(fn)

    refs = build()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 3


def test_reset_drops_entries_even_of_running_code():
    wrapper = None

    def fn(a):
        return "written", wrapper

    def other(a):
        pellucid.reset(wrapper)
        return "hit"

    wrapper = optimized(fn)
    add(wrapper, other)
    assert wrapper(1) == "hit"
    assert pellucid.cache_entries(wrapper) == [] and wrapper(1) == ("written", wrapper)


def test_an_entry_that_is_dropped_while_it_runs_lives_until_it_returns():
    seen = []
    wrapper = held = None

    def check(a):
        return True

    def fn(a):
        return "written", held, seen, wrapper

    def other(a):
        pellucid.reset(wrapper)
        gc.collect()
        seen.append(held() is not None)
        return "hit"

    wrapper = optimized(fn)
    add(wrapper, other, check=check)
    held = weakref.ref(check)
    del check
    assert wrapper(1) == "hit" and seen == [True]
    gc.collect()
    assert held() is None


def test_reset_all():
    wrappers = []
    for _ in range(3):
        wrapper = optimized(lambda: "written")
        add(wrapper, lambda: "hit")
        wrappers.append(wrapper)
    assert [w() for w in wrappers] == ["hit"] * 3
    pellucid.reset()
    assert [w() for w in wrappers] == ["written"] * 3
