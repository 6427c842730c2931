"""What a miss does: entries kept, the limit, skips, faults, errors, interrupts. Captures are made by hand."""

import logging
import os
import signal
import sys
import threading

import pytest

pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

import pellucid
from pellucid import _bytecode as b
from pellucid import config, exc
from pellucid._regions import ready_core

core = ready_core()


def backend(gm, example_inputs):
    return gm.forward


def optimized(fn):
    return pellucid.optimize(fn, backend=backend)


@pytest.fixture
def translate():
    """Sets the translator for one test; checks afterwards that nothing is left installed."""

    class Calls(list):
        answer = None

    calls = Calls()

    def ask(function, code, arguments):
        calls.append((code.co_name, arguments))
        return calls.answer(function, code, arguments)

    core.testing_set_translate(ask)
    yield calls
    core.testing_set_translate(None)
    assert not b.hook_installed() and b.hook_busy() == 0


def fn(a):
    return "written", a


def by_value(function, code, arguments):
    """Captures a variant for one value of the argument."""
    value = arguments[0]
    namespace = {}
    exec(f"def hit(a): return ('captured for', {value!r})", namespace)
    return "captured", namespace["hit"].__code__, lambda a: a == value, False


def test_captured_entries_are_kept_and_hit(translate):
    translate.answer = by_value
    wrapper = optimized(fn)
    assert [wrapper(x) for x in (1, 2, 1, 2, 1)] == [("captured for", x) for x in (1, 2, 1, 2, 1)]
    assert translate == [("fn", [1]), ("fn", [2])]
    pellucid.reset(wrapper)
    assert wrapper(1) == ("captured for", 1) and len(translate) == 3


def test_arguments_are_given_as_bound(translate):
    translate.answer = lambda *_: ("as is", "test")

    def every(p, /, a, b=10, *rest, k, d=20, **more):
        local = 1
        return local

    assert optimized(every)(1, 2, 3, 4, k=5, z=6) == 1
    assert translate == [("every", [1, 2, 3, 5, 20, (4,), {"z": 6}])]


def test_the_limit_warns_once_and_hits_go_on(translate, caplog):
    translate.answer = by_value
    wrapper = optimized(fn)
    with config.patch(cache_size_limit=3), caplog.at_level(logging.WARNING, "pellucid"):
        assert [wrapper(x)[0] for x in range(6)] == ["captured for"] * 3 + ["written"] * 3
        assert [wrapper(x)[0] for x in (0, 7, 2)] == ["captured for", "written", "captured for"]
    assert len(translate) == 3
    (record,) = [r for r in caplog.records if "cache_size_limit" in r.getMessage()]
    assert "fn (" in record.getMessage() and record.getMessage().count("the test's guard does not hold") == 3
    other = optimized(fn)  # the limit is of one optimize() call
    assert other(0)[0] == "captured for"


def test_recompile_reasons_are_logged(translate, caplog):
    translate.answer = by_value
    wrapper = optimized(fn)
    with caplog.at_level(logging.DEBUG, "pellucid.recompiles"):
        wrapper(1)
        assert not caplog.records
        wrapper(2)
    assert "entry 0: the test's guard does not hold" in caplog.text


def test_a_skip_is_remembered_and_logged(translate, caplog):
    translate.answer = lambda *_: ("skip", "cannot be captured")
    wrapper = optimized(fn)
    with caplog.at_level(logging.DEBUG, "pellucid.graph_breaks"):
        assert [wrapper(x) for x in (1, 2)] == [("written", 1), ("written", 2)]
    assert len(translate) == 1 and "cannot be captured" in caplog.text
    (cache,) = core.describe_region(wrapper._region)
    assert (cache["state"], cache["reason"]) == ("skip", "cannot be captured")


def test_running_as_is_once_switches_nothing_off(translate):
    translate.answer = lambda f, code, args: ("as is", "no tensor work") if args[0] == 0 else by_value(f, code, args)
    wrapper = optimized(fn)
    assert [wrapper(x)[0] for x in (0, 0, 1, 0)] == ["written", "written", "captured for", "written"]


def test_nested_frames_of_a_frame_that_runs_as_written(translate):
    def inner(x):
        return "inner written"

    def outer(x):
        return inner(x), [inner(x + 1) for _ in "a"]

    def answer(function, code, arguments):
        return by_value(function, code, arguments) if code.co_name == "inner" else ("skip", "outer")

    translate.answer = answer
    assert optimized(outer)(1) == (("captured for", 1), [("captured for", 2)])
    assert [name for name, _ in translate] == ["outer", "inner", "<listcomp>", "inner"]


def test_what_is_skipped_by_rule_is_never_asked_about(translate):
    import json

    translate.answer = lambda *_: ("as is", "test")

    def generator():
        yield 1

    async def coroutine():
        return 1

    def outer():
        class Body:
            def method(self):
                return 1

        exec("def made(): return 2\nmade()", {})
        return list(generator()), coroutine().close(), json.dumps({"a": [1]}), Body().method()

    optimized(outer)()
    assert [name for name, _ in translate] == ["outer", "made", "method"]


def test_pytorch_internals_are_skipped_and_user_facing_modules_are_not(translate):
    import torch

    translate.answer = lambda *_: ("as is", "test")
    module = torch.nn.Sequential(torch.nn.Linear(2, 2))
    optimized(lambda x: torch.nn.functional.relu(module(x)).sum())(torch.ones(1, 2))
    names = [name for name, _ in translate]
    assert names[:4] == ["<lambda>", "_wrapped_call_impl", "_call_impl", "forward"]
    assert names.count("forward") == 2 and "relu" in names
    from torch._dynamo import utils

    assert core.skip_reason(utils.istensor.__code__) and core.skip_reason(pellucid.optimize.__code__)
    assert core.skip_reason(torch.nn.Linear.forward.__code__) is None and core.skip_reason(fn.__code__) is None
    graph_module = torch.fx.symbolic_trace(torch.nn.ReLU())
    assert core.skip_reason(type(graph_module).forward.__code__)


def test_errors_of_capture_are_raised(translate):
    def answer(*_):
        raise exc.Unsupported("reason", "title")

    translate.answer = answer
    wrapper = optimized(fn)
    for _ in range(2):
        with pytest.raises(exc.Unsupported, match="title"):
            wrapper(1)
    outer = optimized(lambda: fn(1))
    translate.answer = lambda f, code, args: answer() if code.co_name == "fn" else ("as is", "")
    with pytest.raises(exc.Unsupported):
        outer()


def test_an_internal_fault_warns_once_and_runs_as_written(translate, caplog):
    translate.answer = lambda *_: ("fault", "something broke")
    wrapper = optimized(fn)
    with caplog.at_level(logging.WARNING, "pellucid"):
        assert [wrapper(x) for x in (1, 2)] == [("written", 1), ("written", 2)]
    (record,) = caplog.records
    assert "something broke" in record.getMessage() and "CHECK" in record.getMessage()
    path = record.getMessage().rsplit(" ", 1)[1]
    text = open(path).read()
    assert "something broke" in text
    namespace = {"__name__": "loaded"}
    exec(text, namespace)
    assert namespace["code"].co_code == fn.__code__.co_code
    os.unlink(path)


def test_an_internal_fault_is_raised_when_asked(translate):
    translate.answer = lambda *_: ("fault", "something broke")
    with config.patch(suppress_errors=False), pytest.raises(exc.InternalError, match="something broke") as caught:
        optimized(fn)(1)
    os.unlink(caught.value.reproducer)


def test_guards_that_do_not_hold_for_their_own_frame_are_a_fault(translate, caplog):
    translate.answer = lambda f, code, args: (*by_value(f, code, args)[:2], lambda a: False, False)
    wrapper = optimized(fn)
    assert wrapper(1) == ("written", 1) and "guards do not hold" in caplog.text
    assert pellucid.cache_entries(wrapper) == []


def test_transformed_code_with_other_free_variables_is_a_fault(translate, caplog):
    cell = 1

    def other(a):
        return cell

    translate.answer = lambda *_: ("captured", other.__code__, None, False)
    assert optimized(fn)(1) == ("written", 1) and "free variables" in caplog.text


def test_keyboard_interrupt_during_capture(translate):
    def answer(*_):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            pass
        return "as is", "never"

    translate.answer = answer
    wrapper = optimized(fn)
    with pytest.raises(KeyboardInterrupt):
        wrapper(1)
    assert not b.hook_installed() and b.hook_busy() == 0
    translate.answer = by_value
    assert wrapper(1) == ("captured for", 1)


def test_wrappers_called_during_capture_run_as_written(translate):
    inner = optimized(fn)

    def answer(function, code, arguments):
        assert inner(7) == ("written", 7)
        return "as is", ""

    translate.answer = answer
    assert optimized(lambda: 1)() == 1
    assert len(translate) == 1


def test_reset_during_capture(translate):
    wrapper = optimized(fn)

    def answer(function, code, arguments):
        pellucid.reset()
        return by_value(function, code, arguments)

    translate.answer = answer
    assert wrapper(1) == ("captured for", 1) and wrapper(1) == ("captured for", 1) and len(translate) == 1


def test_threads_that_capture_at_once(translate):
    translate.answer = by_value
    wrapper = optimized(fn)
    results = []

    def work():
        for i in range(200):
            results.append(wrapper(i % 5) == ("captured for", i % 5))

    with config.patch(cache_size_limit=64):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(results) and len(results) == 800


def test_explain_counts_entries(translate):
    translate.answer = by_value
    out = pellucid.explain(fn)(1)
    assert out.graph_count == 0 and out.break_count == 0 and len(out.entries) == 1 and "graphs: 0" in str(out)
