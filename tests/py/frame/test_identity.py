"""Programs run as written give the same results, exceptions, tracebacks and trace events through a wrapper and under the hook."""

import asyncio
import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
import traceback
import types
import weakref

import pytest

pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

import programs

import pellucid
from pellucid import _bytecode as b
from pellucid._regions import ready_core


def backend(gm, example_inputs):
    return gm.forward


def optimized(fn):
    return pellucid.optimize(fn, backend=backend)


@pytest.fixture(autouse=True)
def balanced():
    yield
    assert not b.hook_installed() and b.hook_busy() == 0


def outcome(fn, args, kwargs):
    """The result, or the exception with its chain and the places in its traceback below the caller."""
    try:
        return "returned", fn(*args, **kwargs)
    except BaseException as error:
        chain, one = [], error
        while one is not None:
            places = [(f.name, f.lineno, f.line) for f in traceback.extract_tb(one.__traceback__) if f.name != "outcome"]
            chain.append((type(one), one.args, one.__suppress_context__, places))
            one = one.__cause__ or one.__context__
        return "raised", chain


ROWS = [pytest.param(fn, calls, id=fn.__name__) for fn, calls in programs.CALLS]


def fresh(fn):
    """Another function with the same code and cells of its own, for those that count calls."""
    cells = tuple(types.CellType(copy.copy(c.cell_contents)) if c.cell_contents is not None else c for c in fn.__closure__ or ())
    made = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, cells)
    made.__kwdefaults__, made.__qualname__ = fn.__kwdefaults__, fn.__qualname__
    return made


@pytest.mark.parametrize("fn, calls", ROWS)
def test_same_outcome_through_a_wrapper(fn, calls):
    plain, wrapper = fresh(fn), optimized(fresh(fn))
    for _ in range(2):
        for args, kwargs in calls:
            assert outcome(wrapper, args, kwargs) == outcome(plain, args, kwargs)


@pytest.mark.parametrize("fn, calls", ROWS)
def test_same_outcome_as_a_nested_frame(fn, calls):
    plain, nested = fresh(fn), fresh(fn)
    wrapper = optimized(lambda args, kwargs: nested(*args, **kwargs))

    def eager(args, kwargs):
        return plain(*args, **kwargs)

    for args, kwargs in calls:
        got, expected = outcome(wrapper, (args, kwargs), {}), outcome(eager, (args, kwargs), {})
        if expected[0] == "raised":  # the one frame that differs is the lambda itself
            strip = [[(name, line) for name, _, line in row[3] if name not in ("<lambda>", "eager")] for row in got[1]]
            assert strip == [[(name, line) for name, _, line in row[3] if name not in ("<lambda>", "eager")] for row in expected[1]]
            assert [row[:3] for row in got[1]] == [row[:3] for row in expected[1]]
        else:
            assert got == expected


def transformed(fn):
    """The function's own code as transformed code has to be: every parameter positional, in the order of the fast locals."""
    code = fn.__code__
    rest = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.replace(
        co_argcount=code.co_argcount + code.co_kwonlyargcount + rest,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
    )


@pytest.mark.parametrize("calls_python", [True, False])
@pytest.mark.parametrize("fn, calls", ROWS)
def test_same_outcome_from_entries_that_do_the_same(fn, calls, calls_python):
    core = ready_core()
    plain, own, nested = fresh(fn), fresh(fn), fresh(fn)
    wrapper, outer = optimized(own), optimized(lambda args, kwargs: nested(*args, **kwargs))
    for region in (wrapper._region, outer._region):
        core.testing_add_entry(region, fn.__code__, transformed(fn), None, calls_python)
    for args, kwargs in calls:
        expected = outcome(plain, args, kwargs)
        assert outcome(wrapper, args, kwargs) == expected
        got = outcome(outer, (args, kwargs), {})
        if got[0] == "raised":
            got = got[0], [(*row[:3], [place for place in row[3] if place[0] != "<lambda>" or fn.__name__ == "<lambda>"]) for row in got[1]]
        assert got == expected
    assert pellucid.cache_entries(wrapper)[0].hits > 0


@pytest.mark.parametrize("install", [sys.settrace, sys.setprofile])
def test_trace_and_profile_functions_see_the_same(install):
    def events(fn):
        seen = []

        def trace(frame, event, arg):
            if frame.f_code.co_filename == programs.__file__:
                seen.append((event, frame.f_code.co_name, frame.f_lineno))
            return trace

        install(trace)
        try:
            fn(4)
        finally:
            install(None)
        return seen

    for fn in (programs.comprehensions, programs.recursive, programs.drive_generator, programs.lambdas):
        expected = events(fn)
        assert expected and events(optimized(fn)) == expected


def test_a_trace_function_may_raise():
    def trace(frame, event, arg):
        if event == "call" and frame.f_code is programs.plain.__code__:
            raise KeyError("from the trace function")
        return None

    wrapper = optimized(programs.plain)
    sys.settrace(trace)
    try:
        with pytest.raises(KeyError):
            wrapper(1)
    finally:
        sys.settrace(None)
    assert wrapper(1) == 1


def test_recursion_limit():
    def down(n):
        return down(n + 1)

    wrapper = optimized(down)
    with pytest.raises(RecursionError):
        wrapper(0)

    def through(n):
        return again(n + 1)

    again = optimized(through)
    with pytest.raises(RecursionError):
        again(0)


def test_generators_and_coroutines_are_what_they_were():
    made = optimized(programs.generator)
    assert inspect.isgeneratorfunction(made) and isinstance(made(2), types.GeneratorType) and list(made(2)) == [0, 1]
    made = optimized(programs.coroutine)
    assert inspect.iscoroutinefunction(made) and asyncio.run(made(2)) == 4
    made = optimized(programs.async_generator)
    assert inspect.isasyncgenfunction(made)

    async def collect():
        return [x async for x in made(3)]

    assert asyncio.run(collect()) == [0, 1, 2]


def test_threads():
    wrapper = optimized(programs.recursive)
    results = []

    def work():
        for _ in range(200):
            results.append(wrapper(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [programs.recursive(20)] * 800


# ---- the wrapper as an object


@pellucid.optimize(backend=backend)
def decorated(a, b: int = 2, *, c=3) -> tuple:
    """What it does."""
    return a, b, c


def other(a):
    return a


def test_it_looks_like_the_function():
    fn = decorated.__wrapped__
    assert type(decorated).__name__ == "OptimizedFunction" and isinstance(fn, types.FunctionType)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__kwdefaults__", "__annotations__", "__code__"):
        assert getattr(decorated, name) == getattr(fn, name)
    assert inspect.signature(decorated) == inspect.signature(fn) == decorated.__signature__
    assert inspect.unwrap(decorated) is fn and "decorated" in repr(decorated)
    assert inspect.getsource(decorated) == inspect.getsource(fn) and inspect.getdoc(decorated) == "What it does."
    assert callable(decorated)


def test_attributes_are_the_function_s():
    wrapper = optimized(other)
    wrapper.note = 1
    assert other.note == 1 and wrapper.__dict__ is other.__dict__
    del wrapper.note
    assert not hasattr(other, "note")
    with pytest.raises(AttributeError):
        wrapper.absent
    wrapper.__defaults__ = (5,)
    assert wrapper() == 5
    other.__defaults__ = None


def test_pickle_copy_weakref():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.copy(decorated) is decorated and copy.deepcopy(decorated) is decorated
    assert weakref.ref(decorated)() is decorated
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(optimized(other))  # the name finds the function, not the wrapper
    assert hash(decorated) == hash(decorated) and decorated == decorated and decorated != optimized(decorated)


def test_methods_of_every_kind():
    class C:
        tag = "C"

        @pellucid.optimize(backend=backend)
        def method(self, x, y=1):
            return self.tag, x, y

        @staticmethod
        @pellucid.optimize(backend=backend)
        def static(x):
            return x

        @classmethod
        @pellucid.optimize(backend=backend)
        def made(cls, x):
            return cls.tag, x

        @property
        @pellucid.optimize(backend=backend)
        def prop(self):
            return self.tag

        @pellucid.optimize(backend=backend)
        @staticmethod
        def outside_static(x):
            return x

        @pellucid.optimize(backend=backend)
        @classmethod
        def outside_made(cls, x):
            return cls.tag, x

        @functools.lru_cache(maxsize=None)
        @pellucid.optimize(backend=backend)
        def cached(self):
            return object()

    c = C()
    assert c.method(1) == ("C", 1, 1) and c.method(x=1, y=2) == ("C", 1, 2) and C.method(c, 3) == ("C", 3, 1)
    assert C.static(1) == c.static(1) == 1 and C.made(1) == c.made(1) == ("C", 1) and c.prop == "C"
    assert c.outside_static(1) == 1 and c.outside_made(2) == ("C", 2) and c.cached() is c.cached()
    bound = c.method
    assert isinstance(bound, types.MethodType) and bound.__self__ is c and bound.__name__ == "method"

    class D(C):
        tag = "D"

        def method(self, x):
            return super().method(x)

    assert D().method(1) == ("D", 1, 1)


def test_bound_methods_callables_partials_builtins_classes():
    base = programs.Derived()
    wrapper = optimized(base.method)
    assert isinstance(wrapper, types.MethodType) and wrapper(7) == base.method(7) and wrapper.__self__ is base
    wrapper = optimized(base)
    assert wrapper(1, 2) == ("called", (1, 2)) and wrapper.prop == "prop" and wrapper.__wrapped__ is base
    partial = optimized(functools.partial(programs.defaults, 1, c=4))
    assert partial(2) == (1, 2, 4) and partial.func is programs.defaults and partial.keywords == {"c": 4}
    assert optimized(len)([1]) == 1 and optimized(max)(1, 2, key=lambda v: -v) == 1

    class Adds:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return self.n + x

    made = optimized(Adds)
    assert made is Adds and made(1)(2) == 3 and type(Adds.__call__).__name__ == "OptimizedFunction"
    with pytest.raises(TypeError):
        optimized(object)
    for thing in (1, None, "x", [], property(lambda self: 1)):
        with pytest.raises(TypeError):
            pellucid.compile(thing if thing is not None else 3, backend=backend)


def test_wrapping_again_wraps_what_was_wrapped():
    twice = optimized(decorated)
    assert twice.__wrapped__ is decorated.__wrapped__ and twice(1) == (1, 2, 3)


def test_a_callable_object_in_a_class_is_no_method():
    class Holder:
        call = optimized(programs.Derived())

    assert Holder().call(1) == ("called", (1,))


def test_arguments_are_not_kept_alive():
    class Thing:
        pass

    wrapper = optimized(programs.everything)
    thing = Thing()
    held = weakref.ref(thing)
    wrapper(thing, thing, thing, thing, d=thing, z=thing)
    with pytest.raises(TypeError):
        wrapper(thing, a=thing)
    del thing
    gc.collect()
    assert held() is None


def test_reference_counts_stay_balanced():
    wrapper = optimized(programs.everything)
    key, value = "some_key", object()
    wrapper(value, d=value, **{key: value})
    before = sys.getrefcount(value), sys.getrefcount(wrapper), sys.getrefcount(programs.everything)
    for _ in range(100):
        wrapper(value, value, value, value, d=value, **{key: value})
        with pytest.raises(TypeError):
            wrapper(value)
    assert (sys.getrefcount(value), sys.getrefcount(wrapper), sys.getrefcount(programs.everything)) == before
