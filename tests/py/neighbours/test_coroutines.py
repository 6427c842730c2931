"""asyncio, context variables and greenlets: captured functions and coroutines that take turns."""

import asyncio
import contextvars
import gc

import programs
import pytest
import torch
from programs import Backend, optimized

import pellucid

level = contextvars.ContextVar("level", default=1)


def scaled(x):
    y = x * level.get()
    print(end="")
    return y + level.get()


async def coroutine(x, n):
    total = x
    for i in range(n):
        total = programs.broken(total, i)
        await asyncio.sleep(0)
        total = total - scaled(x)
    return total


async def failing(x, n):
    await asyncio.sleep(0)
    return programs.failing(x, n)


async def together(run, fail, scale):
    async def task(n):
        level.set(n)
        first = await run(torch.ones(3), n)
        try:
            await fail(first, n)
        except ValueError as error:
            return first, str(error), scale(first)
        return first, scale(first)

    return await asyncio.gather(*(task(n) for n in range(5)))


def same(a, b):
    return len(a) == len(b) and all(
        torch.equal(p, q) if isinstance(p, torch.Tensor) else p == q for one, other in zip(a, b) for p, q in zip(one, other)
    )


@pytest.mark.parametrize("times", [1, 3])
def test_captured_coroutines_and_functions_in_tasks_that_take_turns(times):
    expected = asyncio.run(together(coroutine, failing, scaled))
    backend = Backend()
    wrapped = [optimized(f, backend) for f in (coroutine, failing, scaled)]
    for _ in range(times):
        assert same(asyncio.run(together(*wrapped)), expected)
    assert backend.graphs


def test_a_context_variable_is_read_at_each_call():
    wrapper = optimized(scaled)
    x = torch.ones(2)
    for value in (1, 5, 1, 7):
        assert torch.equal(contextvars.Context().run(lambda value=value: (level.set(value), wrapper(x))[1]), x * value + value)


def test_a_captured_function_that_runs_an_event_loop():
    def program(x):
        y = x + 1
        y = asyncio.run(coroutine(y, 2))
        return y * 2

    wrapper = optimized(program)
    for _ in range(3):
        assert torch.equal(wrapper(torch.ones(3)), program(torch.ones(3)))


def test_asynchronous_generators_and_cancellation():
    async def steps(x):
        try:
            for i in range(10):
                yield programs.broken(x, i)
                await asyncio.sleep(0)
        finally:
            log.append("closed")

    async def main(source):
        total = torch.zeros(3)
        async for one in source(torch.ones(3)):
            total = total + one
            if total.sum() > 40:
                break
        task = asyncio.ensure_future(run(torch.ones(3), 1000))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return total

    log, run = [], coroutine
    expected = asyncio.run(main(steps))
    run = optimized(coroutine)
    wrapper = optimized(steps)
    for _ in range(2):
        assert torch.equal(asyncio.run(main(wrapper)), expected)
    assert log == ["closed"] * 3


def test_greenlets_that_end_in_any_order():
    greenlet = pytest.importorskip("greenlet")

    def make(k):
        def work(x, main):
            y = x + k
            main.switch(y)
            y = y * 2
            main.switch(y)
            if y.sum() > 1000:
                y = y + 1
            return y - k

        return work

    def run(wrap, order):
        main = greenlet.getcurrent()
        lets = [greenlet.greenlet(wrap(make(k))) for k in range(3)]
        out = [let.switch(torch.ones(3), main).tolist() for let in lets]
        out += [lets[i].switch().tolist() for i in order]
        for i in order:
            out.append(lets[i].switch().tolist())
            lets[i] = None
            gc.collect()  # its wrapper's region too
        return out

    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        assert run(optimized, order) == run(lambda f: f, order)
    assert pellucid._bytecode.hook_busy() == 0
