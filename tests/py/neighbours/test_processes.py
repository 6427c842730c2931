"""Processes and signals: fork, multiprocessing, handlers that raise in the middle of captures and hits, the interpreter's end."""

import concurrent.futures
import multiprocessing
import os
import signal
import threading

import programs
import pytest
import torch
from programs import Backend, arguments, optimized, run_script

import pellucid


def in_child(function):
    """Runs a function in a forked child; its exit status, 0 where nothing was raised."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_hits_and_captures():
    backend = Backend()
    wrapper, other = optimized(programs.broken, backend), optimized(programs.catching, backend)
    expected = wrapper(*arguments())

    def child():
        graphs = len(backend.graphs)
        assert torch.equal(wrapper(*arguments()), expected) and len(backend.graphs) == graphs
        assert torch.equal(other(*arguments()), programs.catching(*arguments())) and len(backend.graphs) > graphs
        assert torch.equal(wrapper(torch.ones(4), 3), programs.broken(torch.ones(4), 3))
        pellucid.reset()
        assert torch.equal(wrapper(*arguments()), expected)

    assert in_child(child) == 0
    graphs = len(backend.graphs)
    assert torch.equal(wrapper(*arguments()), expected) and len(backend.graphs) == graphs


def test_a_fork_in_captured_code_goes_on_in_both():
    def program(x):
        y = x + 1
        child = os.fork()
        y = programs.broken(y, 2)
        if child == 0:
            good = torch.equal(y, programs.helper((x + 1) * 2) + 2)
            os._exit(0 if good else 1)
        return y, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    wrapper = optimized(program)
    for _ in range(3):
        y, status = wrapper(torch.ones(3))
        assert status == 0 and torch.equal(y, programs.broken(torch.ones(3) + 1, 2))


def test_a_fork_while_another_thread_captures():
    inside, go_on = threading.Event(), threading.Event()

    def slow(graph_module, example_inputs):
        inside.set()
        go_on.wait(30)
        return graph_module.forward

    thread = threading.Thread(target=optimized(programs.whole, slow), args=arguments())
    thread.start()
    inside.wait(30)
    try:
        # The child has this thread alone: a capture that goes on elsewhere must not keep it from its own.
        def child():
            assert torch.equal(optimized(programs.broken)(*arguments()), programs.broken(*arguments()))

        assert in_child(child) == 0
    finally:
        go_on.set()
        thread.join()


def work(n):
    """What workers run: a wrapper that they make themselves."""
    backend = Backend()
    wrapper = optimized(programs.broken, backend)
    results = [wrapper(torch.ones(3), n).tolist() for _ in range(2)]
    return results, len(backend.graphs)


whole_here = optimized(programs.whole)  # goes by reference, as functions do
programs.whole_here = whole_here


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers(method):
    context = multiprocessing.get_context(method)
    expected = [programs.broken(torch.ones(3), n).tolist() for n in range(2)]
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        for (results, graphs), value in zip(pool.map(work, range(2)), expected):
            assert results == [value] * 2 and graphs >= 3


# ---- signals


class Alarm(BaseException):
    """Raised by the handler."""


@pytest.fixture
def alarm():
    def handler(number, frame):
        raise Alarm

    old = signal.signal(signal.SIGALRM, handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def deep(x, n):
    for i in range(n):
        x = programs.helper(x) / 2 - 1
    return x


@pytest.mark.parametrize("program", [programs.whole, programs.broken, programs.catching, programs.generating, deep])
def test_a_signal_handler_that_raises_during_captures(program, alarm):
    """At ever later moments of a first call: it raises, or the call went through; afterwards all is as if nothing had been."""
    expected = program(*arguments())
    raised = 0
    for step in range(1, 60):
        wrapper = optimized(program)
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, step * 1e-4)
                result = wrapper(*arguments())
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Alarm:
            raised += 1
        else:
            assert torch.equal(result, expected)
        assert not pellucid._bytecode.hook_installed() and pellucid._bytecode.hook_busy() == 0
        assert torch.is_grad_enabled()
        for _ in range(2):
            assert torch.equal(wrapper(*arguments()), expected)
    assert raised


def test_a_signal_handler_that_raises_during_hits(alarm):
    wrapper = optimized(programs.broken)
    given = arguments()
    expected = wrapper(*given)
    for step in range(40):
        with pytest.raises(Alarm):
            signal.setitimer(signal.ITIMER_REAL, 2e-4 + step * 3e-6)
            while True:
                wrapper(*given)
        assert not pellucid._bytecode.hook_installed() and pellucid._bytecode.hook_busy() == 0
        assert torch.equal(wrapper(*given), expected)


def test_a_keyboard_interrupt_ends_a_capture_and_the_next_call_captures():
    backend = Backend()

    def interrupting(graph_module, example_inputs):
        if not backend.graphs:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                backend.graphs and None
        return backend(graph_module, example_inputs)

    wrapper = optimized(programs.whole, interrupting)
    with pytest.raises(KeyboardInterrupt):
        wrapper(*arguments())
    assert not backend.graphs
    backend.graphs.append(None)
    assert torch.equal(wrapper(*arguments()), programs.whole(*arguments())) and len(backend.graphs) == 2


def test_a_signal_handler_that_captures_itself(alarm):
    inner = optimized(programs.broken)
    seen = []

    def handler(number, frame):
        seen.append(inner(*arguments()))

    signal.signal(signal.SIGALRM, handler)
    expected = programs.catching(*arguments())
    for step in range(1, 30):
        pellucid.reset()
        wrapper = optimized(programs.catching)
        signal.setitimer(signal.ITIMER_REAL, step * 1e-4)
        for _ in range(3):
            assert torch.equal(wrapper(*arguments()), expected)
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert seen and all(torch.equal(one, programs.broken(*arguments())) for one in seen)


# ---- the interpreter's end


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "atexit.register(lambda: print('at exit', wrapper(*given).tolist()))",
        "atexit.register(lambda: print('at exit', pellucid.optimize(programs.catching, backend=backend)(*given).tolist()))",
        "sys.modules.clear()",
        "del sys.modules['torch'], sys.modules['pellucid']; programs.__dict__.clear()",
        "gc.disable(); loop = [wrapper]; loop.append(loop)",
        "raise SystemExit(0)",
    ],
    ids=["plain", "hit at exit", "capture at exit", "no modules", "modules gone", "cycle", "exit"],
)
def test_the_interpreter_ends_with_live_entries(ending):
    text = run_script(
        f"""
        import atexit, gc, sys, torch, pellucid, programs
        backend = programs.Backend()
        wrapper = pellucid.optimize(programs.broken, backend=backend)
        class Late:
            def __del__(self):
                try:
                    self.wrapper(*self.given)
                except Exception:  # by now anything may be gone
                    pass
        late = Late()
        given = late.given = programs.arguments()
        late.wrapper = wrapper
        wrapper(*given)
        model = pellucid.optimize(torch.nn.Linear(3, 3), backend=backend)
        model(torch.ones(2, 3))
        print("ran")
        {ending}
        """
    )
    lines = text.splitlines()
    assert lines[0] == "ran" and "Fatal" not in text and "Error" not in text, text
    assert ("at exit" in ending) == (len(lines) == 2), text


@pytest.mark.parametrize("busy", ["pellucid.optimize(program, backend=backend)", "pellucid.optimize(program, backend=slow)"])
def test_the_interpreter_ends_while_daemon_threads_are_in_captured_code(busy):
    # In Python, that is: PyTorch itself aborts where a daemon thread is in one of its kernels then.
    text = run_script(
        f"""
        import threading, time, torch, pellucid, programs
        backend = programs.Backend()

        def slow(graph_module, example_inputs):
            while True:
                time.sleep(0.001)

        def program(x):
            y = x + 1
            while True:
                time.sleep(0.001)

        for _ in range(3):
            threading.Thread(target={busy}, args=(torch.ones(3),), daemon=True).start()
        time.sleep(0.5)
        print("ends")
        """
    )
    assert text == "ends\n"


def test_the_first_captures_of_a_process_in_many_threads():
    text = run_script(
        """
        import faulthandler, sys, threading, torch, pellucid, programs
        faulthandler.dump_traceback_later(120, exit=True, file=sys.stdout)
        sys.setswitchinterval(1e-5)
        results = []

        def work(program):
            backend = programs.Backend()
            wrapper = pellucid.optimize(program, backend=backend)
            given = programs.arguments()
            results.append(torch.equal(wrapper(*given), program(*given)) and torch.equal(wrapper(*given), program(*given)))

        threads = [threading.Thread(target=work, args=(program,)) for program in programs.PROGRAMS * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(results), all(results))
        """
    )
    assert text == "12 True\n", text
