"""Trace and profile functions: what they see, what runs under them, debuggers, coverage, profiles, faulthandler."""

import bdb
import cProfile
import io
import pdb
import pstats
import sys
import threading

import coverage
import programs
import pytest
import torch
from programs import PROGRAMS, Backend, arguments, optimized, run_script

import pellucid


def events_of(install, function, files=(programs.__file__,)):
    """The events of a call, as a trace or profile function sees them, and the call's result."""
    seen = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename in files:
            name = arg.__name__ if event.startswith("c_") else type(arg).__name__
            seen.append((event, frame.f_code.co_name, frame.f_lineno, name, sorted(frame.f_locals)))
        return trace

    given = arguments()
    install(trace)
    try:
        result = function(*given)
    finally:
        install(None)
    return seen, result


@pytest.mark.parametrize("warm", [False, True], ids=["first call", "after capture"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_trace_function_sees_the_program_as_written(program, warm):
    expected, result = events_of(sys.settrace, program)
    backend = Backend()
    wrapper = optimized(program, backend)
    if warm:
        wrapper(*arguments())
    graphs = len(backend.graphs)
    seen, again = events_of(sys.settrace, wrapper)
    assert seen == expected and {event for event, *_ in seen} >= {"call", "line", "return"}
    assert torch.equal(again, result)
    assert len(backend.graphs) == graphs and bool(graphs) == warm  # nothing is captured under a trace function
    assert torch.equal(wrapper(*arguments()), result) and backend.graphs  # and all is as ever without one


def test_a_trace_function_is_not_captured_itself():
    backend = Backend()
    wrapper = optimized(programs.broken, backend)
    rows = []

    def trace(frame, event, arg):
        rows.append(torch.ones(1) + len(rows))
        return trace

    sys.settrace(trace)
    try:
        wrapper(*arguments())
    finally:
        sys.settrace(None)
    assert rows and not backend.graphs


def test_a_profile_function_sees_calls_and_returns_in_pairs_and_is_not_captured():
    for program in PROGRAMS:
        backend = Backend()
        wrapper = optimized(program, backend)
        expected = wrapper(*arguments())
        graphs = len(backend.graphs)
        seen, result = events_of(sys.setprofile, wrapper)
        assert torch.equal(result, expected)
        assert len(backend.graphs) == graphs  # what is captured runs, the profile function is none of it
        depth = 0
        for event, *_ in seen:
            depth += event in ("call", "c_call")
            depth -= event in ("return", "c_return", "c_exception")
            assert depth >= 0
        assert depth == 0 and seen[0][:2] == ("call", program.__name__)


def test_a_trace_function_set_in_captured_code_sees_what_follows():
    seen = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename == programs.__file__:
            seen.append((event, frame.f_code.co_name, frame.f_lineno))
        return trace

    def program(x, n):
        y = x + n
        sys.settrace(trace)
        y = programs.broken(y, n)
        sys.settrace(None)
        return y * 2

    expected = program(*arguments())
    as_written = list(seen)
    wrapper = optimized(program)
    for _ in range(3):
        seen.clear()
        assert torch.equal(wrapper(*arguments()), expected)
        assert seen == as_written and len(seen) > 10


def test_a_trace_function_of_one_thread_leaves_captures_of_another_alone():
    backend = Backend()
    wrapper = optimized(programs.broken, backend)
    results = []
    sys.settrace(lambda *_: None)
    try:
        thread = threading.Thread(target=lambda: results.append(wrapper(*arguments())))
        thread.start()
        thread.join()
    finally:
        sys.settrace(None)
    assert torch.equal(results[0], programs.broken(*arguments())) and backend.graphs


# ---- debuggers


def session(function, commands, breakpoints=()):
    """What pdb says while a call runs under it."""
    bdb.Breakpoint.clearBreakpoints()  # their numbers are counted for the whole process
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=out, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    for name in breakpoints:
        code = getattr(programs, name).__code__
        assert debugger.set_break(programs.__file__, code.co_firstlineno + 1) is None
    try:
        result = debugger.runcall(function, *arguments())
    finally:
        debugger.clear_all_breaks()
        sys.settrace(None)
    return out.getvalue(), result


@pytest.mark.parametrize("warm", [False, True], ids=["first call", "after capture"])
@pytest.mark.parametrize(
    "commands, breakpoints",
    [
        (["c", "p x", "n", "p y", "w", "c", "c"], ["broken", "helper"]),
        (["s"] * 30 + ["c"], []),
        (["s", "s", "n", "n", "p y", "r", "c"], []),
        (["b programs.helper", "c", "u", "p n", "d", "p x", "c"], []),
    ],
    ids=["breakpoints", "stepping", "next and return", "up and down"],
)
def test_pdb_in_captured_functions(commands, breakpoints, warm):
    def entered(function):  # the frame that runcall starts, and the wrapper has none of
        return lambda x, n: function(x, n)

    expected, result = session(entered(programs.broken), commands, breakpoints)
    wrapper = optimized(programs.broken)
    if warm:
        wrapper(*arguments())
    seen, again = session(entered(wrapper), commands, breakpoints)
    assert seen == expected and "programs.py" in seen
    assert torch.equal(again, result)


def test_breakpoint_in_a_captured_function(monkeypatch):
    said = []

    def hook():
        out = io.StringIO()
        debugger = pdb.Pdb(stdin=io.StringIO("p y\nn\np z\nn\nc\n"), stdout=out, nosigint=True, readrc=False)
        debugger.use_rawinput = False
        said.append(out)
        debugger.set_trace(sys._getframe(1))

    def program(x, n):
        y = x * 2
        breakpoint()
        z = y + n
        return z

    monkeypatch.setattr(sys, "breakpointhook", hook)
    expected = program(*arguments())
    wrapper = optimized(program)
    for _ in range(2):
        assert torch.equal(wrapper(*arguments()), expected)
    texts = [out.getvalue() for out in said]
    assert "tensor([2., 2., 2.])" in texts[0] and "tensor([4., 4., 4.])" in texts[0]
    assert texts == [texts[0]] * 3


@pytest.mark.parametrize("calls", [1, 3])
def test_post_mortem_shows_the_line_that_raised_and_locals_still_needed(calls):
    wrapper = optimized(programs.failing)
    for _ in range(calls):
        with pytest.raises(ValueError) as caught:
            wrapper(torch.ones(3), 5)
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("p n\nw\nq\n"), stdout=out, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    debugger.reset()
    debugger.interaction(None, caught.value.__traceback__)
    assert "\n(Pdb) 5\n(Pdb) " in out.getvalue(), out.getvalue()
    assert 'raise ValueError("n is too large")' in out.getvalue()


# ---- measuring


def measured(function, branch):
    data = coverage.Coverage(branch=branch, data_file=None, include=[programs.__file__], config_file=False)
    data.start()
    try:
        result = function(*arguments())
    finally:
        data.stop()
    lines = data.get_data().lines(programs.__file__)
    arcs = data.get_data().arcs(programs.__file__)
    return (sorted(lines or ()), sorted(arcs or ())), result


@pytest.mark.parametrize("branch", [False, True], ids=["lines", "branches"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_coverage_of_captured_programs_is_that_of_the_programs(program, branch):
    expected, result = measured(program, branch)
    wrapper = optimized(program)
    for warm in (False, True):
        seen, again = measured(wrapper, branch)
        assert seen == expected and expected[0]
        assert torch.equal(again, result)
        wrapper(*arguments())  # captured now


def test_coverage_of_what_is_not_captured_is_the_same_below_a_wrapper():
    off = pellucid.disable(programs.broken)

    def program(x, n):
        return off(x, n) + 1

    expected, result = measured(program, True)
    wrapper = optimized(program)
    wrapper(*arguments())
    seen, again = measured(wrapper, True)
    assert seen == expected and torch.equal(again, result)


def test_cprofile_counts_what_runs():
    wrapper = optimized(programs.broken)
    expected = wrapper(*arguments())
    profile = cProfile.Profile()
    profile.enable()
    try:
        for _ in range(5):
            result = wrapper(*arguments())
    finally:
        profile.disable()
    assert torch.equal(result, expected)
    stats = pstats.Stats(profile, stream=io.StringIO()).stats
    counts = {name: calls for (_, _, name), (_, calls, *_) in stats.items()}
    assert counts["broken"] == 5 and counts["helper"] == 5
    assert all(total >= own for _, _, own, total, _ in stats.values())


def test_faulthandler_shows_the_lines_of_captured_code():
    text = run_script(
        """
        import faulthandler, os, sys, torch, pellucid, programs

        def stop(x):
            y = x + 1
            os.kill(os.getpid(), 11)
            return y

        faulthandler.enable(sys.stdout)
        pellucid.optimize(stop, backend=programs.Backend())(torch.ones(2))
        """,
        ok=False,
    )
    assert "Segmentation fault" in text and 'File "<string>", line 6 in stop' in text, text
    assert 'File "<string>", line 10 in <module>' in text, text


def test_faulthandler_dumps_all_threads_while_one_captures():
    text = run_script(
        """
        import faulthandler, sys, threading, torch, pellucid, programs

        def slow(graph_module, example_inputs):
            faulthandler.dump_traceback(sys.stdout, all_threads=True)
            return graph_module.forward

        thread = threading.Thread(target=pellucid.optimize(programs.broken, backend=slow), args=programs.arguments())
        thread.start()
        thread.join()
        """
    )
    assert "in slow" in text and "Current thread" in text, text
