"""optimize, compile, disable and what goes with them: forms of use, settings, errors, other Pythons."""

import functools
import os
import pathlib
import pickle
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

import pellucid
from pellucid import _bytecode as b
from pellucid import _regions


def backend(gm, example_inputs):
    return gm.forward


class Counting:
    def __init__(self):
        self.calls = 0

    def __call__(self, gm, example_inputs):
        self.calls += 1
        return gm.forward


def f(a, b=2):
    return a, b


def run_python(code):
    source = str(pathlib.Path(pellucid.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": source})


@pytest.fixture(autouse=True)
def balanced():
    yield
    assert not b.hook_installed() and b.hook_busy() == 0


def test_all_forms():
    @pellucid.optimize(backend)
    def one(a):
        return a

    @pellucid.optimize(backend=backend, dynamic=False)
    def two(a):
        return a

    @pellucid.compile(backend=backend, fullgraph=False)
    def three(a):
        return a

    for fn in (
        one,
        two,
        three,
        pellucid.optimize(f, backend=backend),
        pellucid.compile(f, backend=backend),
        pellucid.optimize(Counting())(f),
    ):
        assert type(fn).__name__ == "OptimizedFunction" and fn(5) in (5, (5, 2))
    assert pellucid.optimize(f)._region.backend_name == "inductor"


def test_a_backend_given_alone_decorates():
    counting = Counting()
    for candidate in (backend, counting, functools.partial(counting.__call__), lambda gm, inputs, extra=None: gm.forward):
        wrapper = pellucid.optimize(candidate, fullgraph=True)(f)
        settings = _regions.settings_of(wrapper._region)
        assert wrapper.__wrapped__ is f and settings.backend is candidate and settings.fullgraph
    module = pellucid.optimize(backend)(torch.nn.ReLU())
    assert isinstance(module, torch.nn.ReLU)


def test_a_function_given_alone_is_captured():
    def takes_function(fn):
        return fn(1)

    def takes_two(a, b):
        return a, b

    assert pellucid.optimize(takes_function)(abs) == 1
    wrapper = pellucid.optimize(takes_two)
    assert wrapper(1, 2) == (1, 2) and wrapper(a=len, b=2) == (len, 2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        wrapper(1)
    with pytest.raises(TypeError, match="missing"):
        pellucid.compile(takes_two, backend=backend)(len)  # no backend of its own to be taken for


@pytest.mark.parametrize("thing", [1, None, [], b"bytes", property(lambda self: 1)])
def test_non_callables_are_type_errors(thing):
    for decorator in (pellucid.optimize(backend=backend), pellucid.compile(backend=backend)):
        with pytest.raises(TypeError, match="only callables"):
            decorator(thing)
    with pytest.raises(TypeError):
        pellucid.optimize(backend)(thing)
    if thing is not None:
        for call in (pellucid.optimize, pellucid.compile, pellucid.disable, pellucid.allow_in_graph):
            if not (call is pellucid.allow_in_graph and thing == []):
                with pytest.raises(TypeError):
                    call(thing)


def test_arguments_that_contradict():
    with pytest.raises(TypeError, match="two backends"):
        pellucid.optimize("eager", backend=backend)
    with pytest.raises(RuntimeError, match="mode or options"):
        pellucid.compile(f, backend=backend, mode="default", options={})


def test_disable_argument_gives_the_function_back():
    assert pellucid.compile(f, disable=True) is f and pellucid.optimize(disable=True)(f) is f


def test_disable_forms():
    @pellucid.disable
    def one():
        return 1

    @pellucid.disable()
    def two():
        return 2

    class C:
        @pellucid.disable
        def method(self):
            return self

        @pellucid.disable
        @staticmethod
        def static():
            return 3

    c = C()
    assert (one(), two(), c.method() is c, c.static()) == (1, 2, True, 3)
    assert one._torchdynamo_disable and pellucid.disable(one) is one and one.__name__ == "one"
    assert pellucid.optimize(one, backend=backend) is one
    assert pellucid.disable(pellucid.optimize(f, backend=backend)).__wrapped__ is f
    assert pellucid.disable(c.method)() is c
    assert pickle.loads(pickle.dumps(pellucid.disable(len)))([1]) == 1
    only_itself = pellucid.disable(lambda: 4, recursive=False)
    assert only_itself() == 4 and only_itself._torchdynamo_disable
    module = torch.nn.ReLU()
    assert pellucid.disable(module) is module and torch.equal(module(torch.ones(2)), torch.ones(2))


def test_graph_break_and_is_compiling_do_nothing_outside():
    assert pellucid.graph_break() is None and pellucid.graph_break("why") is None and pellucid.is_compiling() is False


def test_allow_in_graph_keeps_what_it_is_given():
    from pellucid import api

    assert pellucid.allow_in_graph(f) is f and api.allowed_in_graph[id(f)] is f
    assert pellucid.allow_in_graph([len, abs]) == [len, abs]


def test_marks():
    t = torch.zeros(2, 3, 4)
    pellucid.mark_dynamic(t, -1, min=2, max=9)
    pellucid.mark_dynamic(t, [0])
    pellucid.maybe_mark_dynamic(t, 1)
    pellucid.mark_unbacked(t, 1)
    assert t._dynamo_dynamic_indices == {0, 2} and {tuple(r) for r in t._dynamo_dynamic_range} == {(2, 2, 9), (0, None, None)}
    assert t._dynamo_weak_dynamic_indices == {1} and t._dynamo_unbacked_indices == {1}
    pellucid.mark_static(t)
    assert t._dynamo_static_indices == {0, 1, 2}
    with pytest.raises(IndexError):
        pellucid.mark_dynamic(t, 3)


def test_reset_and_cache_entries_want_a_wrapper():
    for call in (pellucid.cache_entries, pellucid.reset):
        with pytest.raises(TypeError, match="optimize"):
            call(f)
    wrapper = pellucid.optimize(f, backend=backend)
    assert pellucid.cache_entries(wrapper) == [] and pellucid.reset(wrapper) is None


def test_importing_pellucid_imports_no_torch():
    code = "import sys, pellucid; pellucid.optimize; assert 'torch' not in sys.modules, [m for m in sys.modules if 'torch' in m]"
    run_python(code)


def test_disable_and_marks_do_not_import_dynamo():
    code = (
        "import sys, torch, pellucid\n"
        "before = 'torch._dynamo' in sys.modules\n"
        "pellucid.optimize(pellucid.disable(lambda x: x), backend=lambda gm, ex: gm.forward)(1)\n"
        "pellucid.optimize(torch.nn.ReLU(), backend=lambda gm, ex: gm.forward)(torch.ones(1))\n"
        "assert before or 'torch._dynamo' not in sys.modules\n"
    )
    run_python(code)


# ---- where nothing can be captured


@pytest.fixture
def no_capture(monkeypatch):
    from types import SimpleNamespace

    from pellucid import _build_info

    monkeypatch.setattr(_regions, "sys", SimpleNamespace(version_info=(3, 13, 0), modules=sys.modules))
    monkeypatch.setattr(_regions, "_warned", False)
    assert _build_info.torch_version is not None


def test_other_pythons_run_eagerly_and_say_so_once(no_capture):
    with pytest.warns(RuntimeWarning, match="eagerly"):
        assert pellucid.compile(f, backend=backend) is f
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pellucid.optimize("inductor")(f) is f and pellucid.optimize(f, backend="no such") is f
        assert pellucid.disable(f) is f and pellucid.reset() is None
        decorated = pellucid.optimize(backend)(f)  # the toy example's form
        assert decorated is f
        assert pellucid.optimize(f)(3) == (3, 2)
        module = torch.nn.ReLU()
        assert pellucid.optimize(module) is module


def test_a_torch_of_another_version_is_an_error(monkeypatch):
    from pellucid import _native, exc

    def unavailable():
        raise exc.CoreUnavailable("this pellucid was built for torch 1, but torch 2 is installed")

    monkeypatch.setattr(_regions, "_ready", None)
    monkeypatch.setattr(_native, "core", unavailable)
    with pytest.raises(exc.CoreUnavailable, match="built for torch"):
        pellucid.optimize(f, backend=backend)
