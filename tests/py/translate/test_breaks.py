"""Graph breaks anywhere: the prefix stays in the graph, the rest of every frame goes on in resume functions."""

import pytest
import torch
from comparing import compare

import pellucid

X = torch.arange(3.0)


def show(*values):
    print(*values)
    return values[0] if values else None


def ten_functions():
    """f9 calls f8 calls ... f0, which breaks; each works on both sides of its call."""
    scope = {"show": show}
    source = "def f0(x):\n    y = x + 1\n    show('bottom')\n    return y * 2\n"
    for n in range(1, 10):
        source += f"def f{n}(x):\n    y = x + {n}\n    z = f{n - 1}(y)\n    return z - {n}\n"
    exec(compile(source, "<ten functions>", "exec"), scope)
    return scope["f9"]


def test_ten_inlined_calls_deep():
    captured = compare(ten_functions(), (X,))
    assert captured.counter.operators == 20  # ten before the break, in one graph, and ten behind it
    assert len(captured.counter.graphs) == 11
    assert sum(node.op == "call_function" for node in captured.counter.graphs[0].graph.nodes) == 10


def test_a_loop_that_breaks_a_thousand_times_does_not_nest():
    def f(x):
        for _ in range(1000):
            x = x + 1
            show()
        return x

    captured = compare(f, (X,))
    assert len(captured.counter.graphs) == 2  # the first turn, and every other


@pytest.mark.parametrize("breaks", [5, 50, 100])
def test_a_frame_with_many_breaks_is_translated_once(breaks):
    body = "\n".join("    x = x + 1; show()" for _ in range(breaks))
    scope = {"show": show}
    exec(compile(f"def f(x):\n{body}\n    return x", "<many breaks>", "exec"), scope)
    captured = compare(scope["f"], (X,))
    assert len(captured.counter.graphs) == breaks
    # Each statement is executed symbolically about twice: on the way to its break, and show()'s own frame.
    assert captured.instructions <= 40 * breaks


@pytest.mark.parametrize("turns", [4, 8, 16])
def test_runs_that_are_repeated_are_counted_and_stay_proportional(turns):
    """Each statement breaks inside of a generator, which has to be left outside of the graph: its run is repeated."""
    noisy = "def noisy(n):\n    for i in range(n):\n        show(i)\n        yield i\n"
    body = "\n".join("    x = x + sum(noisy(2))" for _ in range(turns))
    scope = {"show": show}
    exec(compile(f"{noisy}def f(x):\n{body}\n    return x", "<repeated>", "exec"), scope)
    captured = compare(scope["f"], (X,))
    assert 10 * turns <= captured.instructions <= 120 * turns


def in_no_grad(x):
    with torch.no_grad():
        y = x * 2
        show("inside")
        z = y + 1
    return z * x, torch.is_grad_enabled()


def in_try(x, k):
    try:
        y = x + 1
        show("try")
        if k:
            raise ValueError("k")
        z = y * 2
    except ValueError as error:
        z = y * 3
        show(str(error))
    finally:
        show("finally")
    return z + 1


def callee_raises_behind_a_break(x, k):
    def inner(x):
        w = x * 2
        show("inner")
        if k:
            raise KeyError("inner")
        return w

    for i in range(2):
        try:
            x = inner(x) + i
        except KeyError:
            x = x - 5
    return x


def in_comprehensions(x):
    return [v + show(i) for i, v in enumerate([x, x + 1]) if i >= 0], {k: x * k for k in (1, 2)}


def in_a_generator(x):
    def g():
        for i in range(3):
            show(i)
            yield x + i

    return sum(g())


def with_shared_cells(x):
    n = 0

    def increment(v):
        nonlocal n
        n += 1
        show(n)
        return v + n

    a = increment(x)
    b = increment(a)
    return a, b, n


def on_the_stack(x):
    return (x + 1, show(1), [x * 2, show(2)], {"k": show(3), **{"z": x}}, f"{show(4)}-{x.dim()}")


def loop_with_else(x, n):
    while n > 0:
        n -= 1
        x = x * 1.5
        if x.sum() > 1e9:
            break
    else:
        x = x + 100
    return x


def in_with_of_the_program(x, k):
    class Manager:
        def __enter__(self):
            show("enter")
            return x + 1

        def __exit__(self, kind, value, traceback):
            show("exit", kind and kind.__name__)
            return k > 1

    with Manager() as y:
        z = y * 2
        show("body")
        if k:
            raise RuntimeError("body")
        return z
    return y


PROGRAMS = {
    in_no_grad: [(X,)],
    in_try: [(X, 0), (X, 1)],
    callee_raises_behind_a_break: [(X, 0), (X, 1)],
    in_comprehensions: [(X,)],
    in_a_generator: [(X,)],
    with_shared_cells: [(X,)],
    on_the_stack: [(X,)],
    loop_with_else: [(X, 3), (X * 1e9, 3)],
    in_with_of_the_program: [(X, 0), (X, 1), (X, 2)],
}


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_programs_that_break(function):
    captured = compare(function, *PROGRAMS[function])
    assert captured.reasons


def test_fullgraph_names_the_reason_and_the_place():
    def f(x):
        y = x + 1
        show(y)
        return y

    captured = pellucid.optimize("eager", fullgraph=True)(f)
    with pytest.raises(pellucid.exc.Unsupported) as caught:
        captured(X)
    error = caught.value
    assert error.reason == "side_effect_output" and error.explanation and error.hint
    outermost, innermost = error.user_stack[0], error.user_stack[-1]
    assert outermost.function == "f" and innermost.function == "show" and innermost.column >= 0


def test_modes_come_back_when_a_graph_raises():
    def f(x, i):
        with torch.no_grad():
            y = x + 1
            return y[i]

    captured = pellucid.optimize("eager", fullgraph=True)(f)
    assert torch.equal(captured(X, torch.tensor([1])), (X + 1)[torch.tensor([1])])
    with pytest.raises(IndexError):
        captured(X, torch.tensor([77]))
    assert torch.is_grad_enabled()


def inference(x):
    with torch.inference_mode():
        y = x * 2
    return y, y.is_inference(), torch.is_inference_mode_enabled()


def enabled_inside_disabled(x):
    with torch.no_grad():
        with torch.enable_grad():
            y = x * 2
        z = x * 3
    return y.requires_grad, z.requires_grad, torch.is_grad_enabled()


@torch.no_grad()
def decorated(x):
    return x * 2


def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x.view(3, 1) @ x.view(1, 3)
    return y.dtype, torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("function", [inference, enabled_inside_disabled, autocast], ids=lambda function: function.__name__)
def test_modes_stay_in_one_graph(function):
    captured = compare(function, (X.clone().requires_grad_(),))
    assert len(captured.counter.graphs) == 1 and captured.reasons == []


def test_a_decorated_function_is_captured():
    x = X.clone().requires_grad_()
    captured = pellucid.optimize("eager", fullgraph=True)(decorated)
    assert torch.equal(captured(x), decorated(x)) and not captured(x).requires_grad


def test_a_break_in_a_callee_is_reported_once():
    def callee(x):
        show("callee")
        return x + 1

    explained = pellucid.explain(lambda x: callee(x * 2) * 3)(X)
    assert explained.break_count == 1 and explained.graph_count == 3


def test_an_instruction_that_ran_python_code_is_not_run_twice():

    opaque = object()

    def f(x, log):
        def key(v):
            log.append(v)
            return v if v < 3 else opaque  # the comparison of keys is what can't be modelled

        try:
            return x + 1, sorted([2, 1, 3], key=key)
        except TypeError as error:
            return x + 2, type(error).__name__

    def g(x, log):
        def items():
            for i in range(3):
                log.append(i)
                yield i if i < 2 else opaque

        return x + 1, [a + b for a, b in zip(items(), iter([1, 2]))]

    compare(f, (X, []))
    compare(g, (X, []))


def keywords(x, *, scale=1.0, out=None):
    return show(x * scale, out)


def test_a_breaking_call_in_an_inlined_function_keeps_its_keywords():
    def inner(x):
        y = x + 1
        return keywords(y, scale=3.0, out=print(end="")), y

    def by_torch(x):
        y = x.clone()
        torch.add(y[:-1], 1, out=y[1:])  # overlapping memory: raises
        return y

    def caught(x):
        try:
            return by_torch(x)
        except RuntimeError as error:
            return str(error)

    def builtin(x):
        y = x + 1
        print(float(y.sum()), end="!", sep="")
        return y

    def outer(x):
        return inner(x), builtin(x * 2)

    compare(outer, (X,))
    compare(caught, (X,))
