"""Every part of torch's global state that a program is made under must be there again."""

import contextlib
import threading

import pytest
import torch
from guarding import Builder, accessors
from states import Dispatch, Function, default_dtype, deterministic, functorch_level


def one(x): ...


STATES = {
    "nothing": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast bfloat16": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast float16": lambda: torch.autocast("cpu", torch.float16),
    "autocast without cache": lambda: torch.autocast("cpu", torch.bfloat16, cache_enabled=False),
    "deterministic": deterministic,
    "deterministic, warn only": lambda: deterministic(warn_only=True),
    "default dtype": lambda: default_dtype(torch.double),
    "device meta": lambda: torch.device("meta"),
    "device cpu": lambda: torch.device("cpu"),
    "torch function mode": Function,
    "torch function disabled": torch._C.DisableTorchFunction,
    "torch function of subclasses disabled": torch._C.DisableTorchFunctionSubclass,
    "dispatch mode": Dispatch,
    "single-threaded autograd": lambda: torch.autograd.set_multithreading_enabled(False),
    "functorch grad": lambda: functorch_level("grad"),
    "functorch vmap": lambda: functorch_level("vmap"),
}
# Python's text only counts these modes and layers; the compiled program compares them.
ALIKE_IN_TEXT = {
    frozenset({"device meta", "device cpu"}),
    frozenset({"device meta", "torch function mode"}),
    frozenset({"device cpu", "torch function mode"}),
    frozenset({"autocast bfloat16", "autocast without cache"}),
    frozenset({"functorch grad", "functorch vmap"}),
}


def make_program():
    b = Builder(one, 1)
    b.guard("equals", b.local(0), payload=1)
    return b.compile().program


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "accessors"])
@pytest.mark.parametrize("name", STATES)
def test_each_state_only_matches_itself(name, raw):
    with contextlib.nullcontext() if raw else accessors():
        with STATES[name]():
            program = make_program()
        for other, enter in STATES.items():
            fresh_mode = name == other and name in ("torch function mode", "dispatch mode")  # another mode object each time
            with enter():
                hit = program.check(one, (1,))
                text = program.evaluate_text(one, (1,))
                failures = program.failures(one, (1,))
            assert hit == (name == other and not fresh_mode), (other, failures)
            assert hit == (not failures), failures
            assert hit == text or fresh_mode or frozenset({name, other}) in ALIKE_IN_TEXT, (other, failures)


def test_the_same_mode_object_matches():
    for mode in (Function(), Dispatch()):
        with mode:
            program = make_program()
        with mode:
            assert program.check(one, (1,))
        with mode, mode:
            assert not program.check(one, (1,))
        assert not program.check(one, (1,))


def test_default_device():
    try:
        torch.set_default_device("meta")
        program = make_program()
        assert program.check(one, (1,))
        torch.set_default_device("cpu")
        assert not program.check(one, (1,))
        torch.set_default_device("meta")
        assert program.check(one, (1,))
    finally:
        torch.set_default_device(None)
    assert not program.check(one, (1,))


def test_each_thread_has_its_own():
    program = make_program()
    seen = []

    def run():
        seen.append(program.check(one, (1,)))
        with torch.no_grad():
            seen.append(program.check(one, (1,)))
        seen.append(program.check(one, (1,)))

    with torch.no_grad():
        for _ in range(20):  # thread stacks are reused: nothing of an old thread may be
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        assert not program.check(one, (1,))
    assert seen == [True, False, True] * 20
    assert program.check(one, (1,))
