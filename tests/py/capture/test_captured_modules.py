"""torch.nn.Module programs: containers, hooks, shared parameters, modes, wrappers written to and used as modules, training."""

import copy

import pytest
import torch
from harness import Describer, Recorder, check, ones, program, rand
from torch import nn

import pellucid


def run_both(make, steps, *, graphs=None, settings=None):
    """Takes one model as written and one wrapped through the same steps; a step is called as step(callable, model)."""
    __tracebackhide__ = True
    recorder = Recorder()
    torch.manual_seed(5)
    eager = make()
    torch.manual_seed(5)
    model = make()
    wrapper = pellucid.compile(model, backend=recorder, **(settings or {}))
    for number, step in enumerate(steps):
        torch.manual_seed(number)
        expected = step(eager, eager)
        torch.manual_seed(number)
        seen = step(wrapper, model)
        assert Describer()((expected, eager)) == Describer()((seen, model)), (number, step)
    if graphs is not None:
        assert len(recorder.graphs) == graphs, [str(g.graph) for g in recorder.graphs]
    return wrapper, recorder


def call(*shape):
    def step(fn, model):
        return fn(torch.ones(*(shape or (2, 3))))

    return step


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.table = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Sequential(nn.Linear(3, 3), nn.Tanh())})
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(3) * i) for i in range(2)])
        self.scales = nn.ParameterDict({"x": nn.Parameter(torch.ones(3))})
        self.plain = [nn.Linear(3, 3)]

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for name, module in self.table.items():
            x = module(x) * len(name)
        for w in self.weights:
            x = x + w
        x = x * self.scales["x"] + self.plain[0](x)
        return self.layers[-1](x), len(self.layers), "a" in self.table, list(self.table), self.layers[1:][0](x)


def test_containers():
    run_both(Containers, [call(), call(), call(4, 3)])


def test_containers_that_change():
    def grow(fn, model):
        model.layers.append(nn.Linear(3, 3))

    def swap(fn, model):
        model.table["a"] = nn.Sigmoid()

    def replace(fn, model):
        model.weights[0] = nn.Parameter(torch.ones(3) * 9)

    def remove(fn, model):
        del model.table["b"]

    def other(fn, model):
        model.plain[0] = nn.Linear(3, 3, bias=False)

    run_both(Containers, [call(), grow, call(), swap, call(), replace, call(), remove, call(), other, call(), call()])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 3)
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(1))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.count += 1
        y = self.drop(self.norm(self.first(x)))
        return self.second(y) if self.training else self.second(y) * 2


def test_modes():
    def mode(on):
        return lambda fn, model: model.train(on)

    def one(fn, model):
        model.drop.eval()

    wrapper, recorder = run_both(Net, [call(), call(), mode(False), call(), call(), mode(True), call(), one, call()])


def test_mode_of_the_wrapper():
    def evaluate(fn, model):
        return fn.eval() is fn, model.training, model.drop.training

    run_both(Net, [call(), evaluate, call(), lambda fn, model: fn.train().training, call()])


def test_training_steps():
    def train(fn, model):
        optimizer = torch.optim.SGD(fn.parameters(), lr=0.1, momentum=0.9)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = fn(torch.arange(6.0).reshape(2, 3)).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses

    run_both(Net, [train, train], graphs=None)


def test_hooks_added_and_removed():
    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.log = []

        def forward(self, x):
            return self.inner(x) + 1

    def add(kind, on=lambda model: model):
        def step(fn, model):
            if kind == "pre":
                hook = on(model).register_forward_pre_hook(lambda module, args: (args[0] * 2,))
            elif kind == "post":
                hook = on(model).register_forward_hook(lambda module, args, result: result - 5)
            elif kind == "kwargs":
                hook = on(model).register_forward_pre_hook(lambda module, args, kwargs: ((args[0] + 7,), kwargs), with_kwargs=True)
            elif kind == "none":
                hook = on(model).register_forward_hook(lambda module, args, result: None)
            else:
                hook = on(model).register_full_backward_hook(lambda module, gi, go: (gi[0] * 3,))
            handles.setdefault(id(model), []).append(hook)

        return step

    def remove(fn, model):
        handles[id(model)].pop().remove()

    def results(fn, model):
        x = torch.ones(2, 3, requires_grad=True)
        y = fn(x)
        (grad,) = torch.autograd.grad(y.sum(), x)
        return y.detach(), grad

    handles = {}
    inner = lambda model: model.inner
    steps = [results]
    for kind in ("pre", "post", "kwargs", "none", "backward"):
        steps += [add(kind), results, results, add(kind, inner), results, remove, results, remove, results]
    recorder = Recorder()
    torch.manual_seed(5)
    eager = Hooked()
    model = copy.deepcopy(eager)
    wrapper = pellucid.compile(model, backend=recorder)
    with pellucid.config.patch(cache_size_limit=64):
        for number, step in enumerate(steps):
            assert Describer()(step(eager, eager)) == Describer()(step(wrapper, model)), (number, step)


def test_global_hooks():
    model = nn.Linear(3, 3)
    wrapper = pellucid.compile(model, backend=Recorder())
    x = torch.ones(2, 3)
    assert torch.equal(wrapper(x), model(x))
    hook = nn.modules.module.register_module_forward_hook(lambda module, args, result: result * 0 + 4)
    try:
        assert torch.equal(wrapper(x), torch.full((2, 3), 4.0))
    finally:
        hook.remove()
    assert torch.equal(wrapper(x), model(x))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.again = self.a

    def forward(self, x):
        return self.b(self.a(x)) + self.again(x), self.a.weight is self.b.weight, self.again is self.a


def test_shared_parameters_and_modules():
    def untie(fn, model):
        model.b.weight = nn.Parameter(model.a.weight.detach() * 2)

    def gradients(fn, model):
        fn(torch.ones(2, 3))[0].sum().backward()

    def replace(fn, model):
        model.again = model.b

    run_both(Tied, [call(), gradients, untie, call(), gradients, replace, call(), gradients], graphs=3)


def test_writes_to_the_wrapper():
    def scale(fn, model):
        fn.scale = 3
        return model.scale

    def layer(fn, model):
        fn.first = nn.Linear(3, 4, bias=False)
        return "first" in model._modules

    def forward(fn, model):
        fn.forward = lambda x: x * 5

    def back(fn, model):
        del fn.forward

    def state(fn, model):
        fn.load_state_dict({k: v * 0 + 1 for k, v in fn.state_dict().items()}), list(fn.state_dict())

    def cast(fn, model):
        fn.double()
        return fn(torch.ones(2, 3, dtype=torch.double))

    run_both(Net, [lambda fn, m: m.eval() is None, call(), scale, call(), layer, call(), state, call(), cast])
    run_both(lambda: nn.Linear(3, 3), [call(), forward, call(), call(), back, call()])


def test_a_wrapper_inside_a_model_inside_a_wrapper():
    def make():
        inner = pellucid.compile(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), backend=Recorder())
        return nn.Sequential(inner, nn.Linear(3, 3))

    run_both(make, [call(), call(), lambda fn, m: [n for n, _ in fn.named_parameters()]])


def test_copies_of_a_captured_model():
    model = nn.Linear(3, 3)
    recorder = Recorder()
    wrapper = pellucid.compile(model, backend=recorder)
    x = torch.ones(2, 3)
    first = wrapper(x)
    clone = copy.deepcopy(wrapper)
    with torch.no_grad():
        clone.weight.mul_(2)
    assert torch.equal(wrapper(x), first) and torch.equal(clone(x), nn.functional.linear(x, model.weight * 2, model.bias))
    pellucid.reset(wrapper)
    assert torch.equal(wrapper(x), first)


def test_compile_as_torch_compile_is_used():
    recorder = Recorder()

    @pellucid.compile(backend=recorder, fullgraph=True, dynamic=False)
    def step(model, x):
        return model(x).relu()

    model = nn.Linear(3, 3)
    compiled = pellucid.compile(model, backend=recorder, fullgraph=True, dynamic=False)
    x = torch.ones(2, 3)
    assert torch.equal(step(model, x), model(x).relu()) and torch.equal(compiled(x), model(x))
    assert isinstance(compiled, nn.Linear) and list(compiled.parameters())[0] is model.weight
    assert torch.equal(compiled.forward(x), model(x))
    other = nn.Linear(3, 3)
    assert torch.equal(step(other, x), other(x).relu())

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        @pellucid.compile(backend=recorder)
        def forward(self, x):
            return self.layer(x) * 2

        @pellucid.compile(backend=recorder)
        def other(self, x, k=2):
            return self.layer(x) * k

    own = Own()
    assert torch.equal(own(x), own.layer(x) * 2) and torch.equal(own.other(x, k=3), own.layer(x) * 3)


def test_a_captured_model_within_one_graph():
    compiled = pellucid.compile(nn.Linear(3, 3), backend=Recorder())
    step = pellucid.compile(lambda x: compiled(x).relu(), backend=Recorder(), fullgraph=True)
    x = torch.ones(2, 3)
    assert torch.equal(step(x), compiled(x).relu())


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache, self.step, self.history = None, 0, []
        self.linear = nn.Linear(3, 3)

    def forward(self, x, *, keep=True):
        self.step += 1
        y = self.linear(x)
        y = y if self.cache is None else torch.cat([self.cache, y])
        if keep:
            self.cache = y
        self.history.append(tuple(y.shape))
        return y


def test_a_cache_kept_on_the_module():
    run_both(Stateful, [call(1, 3), call(1, 3), call(1, 3), lambda fn, m: fn(torch.ones(1, 3), keep=False), call(1, 3)])


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.made = None

    def forward(self, x):
        if self.made is None:
            self.made = nn.Linear(x.shape[-1], 2)
            self.register_buffer("seen", torch.zeros(2))
        self.seen = self.seen + 1
        return self.made(x) + self.seen


def test_modules_that_register_while_they_run():
    run_both(Lazy, [call(), call(), call()])
    run_both(lambda: nn.LazyLinear(2), [call(), call()])


def test_parametrizations_and_weight_norm():
    # The class of a parametrized module is its own: only results are compared.
    for wrap in (torch.nn.utils.parametrizations.weight_norm, torch.nn.utils.parametrizations.spectral_norm):
        torch.manual_seed(5)
        eager = wrap(nn.Linear(3, 3))
        torch.manual_seed(5)
        wrapper = pellucid.compile(wrap(nn.Linear(3, 3)), backend=Recorder())
        x = torch.ones(2, 3)
        for _ in range(3):
            assert torch.equal(eager(x), wrapper(x))
        assert torch.equal(eager.weight, wrapper.weight)


def test_functional_calls_and_vmap():
    model = nn.Linear(3, 3)

    def functional(x):
        return torch.func.functional_call(model, {"weight": torch.ones(3, 3)}, (x,))

    def mapped(x):
        return torch.vmap(lambda row: row.sum() * 2)(x)

    def gradient(x):
        return torch.func.grad(lambda v: (v**2).sum())(x)

    for fn in (functional, mapped, gradient):
        check(fn, ones(2, 3), graphs="any", backward=False)


def test_autograd_functions_and_checkpoints():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * ctx.k + x, None

    check(lambda x: Double.apply(x, 3) + 1, rand(2, grad=True), graphs="any")

    def checkpointed(x):
        return torch.utils.checkpoint.checkpoint(lambda t: (t.sin() * 2).exp(), x, use_reentrant=False)

    check(checkpointed, rand(2, grad=True), graphs="any")


class Sub(torch.Tensor):
    pass


class Logged(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


def logged():
    class Own(Logged):
        pass

    def fn(x):
        y = x.as_subclass(Own) * 2
        return y, Own.calls, type(y + x).__name__

    return fn, None


def test_tensor_subclasses():
    check(lambda x: (x.as_subclass(Sub) + 1, x), ones(2), graphs="any")
    check(lambda x: x * 2, lambda: torch.ones(2).as_subclass(Sub), graphs="any")
    check(program(logged), ones(2), graphs="any", stable=False)


def test_torch_function_modes():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) if func is not torch.add else torch.sub(*args)

    wrapper = pellucid.optimize(lambda x: torch.add(x, 1), backend=Recorder())
    x = torch.ones(2)
    assert wrapper(x).tolist() == [2, 2]
    with Mode():
        assert wrapper(x).tolist() == [0, 0]
    assert wrapper(x).tolist() == [2, 2]

    def inside(x):
        with Mode():
            y = torch.add(x, 1)
        return y, torch.add(x, 1)

    check(inside, ones(2), graphs="any", stable=False)


@pytest.mark.parametrize("kind", ["lstm", "attention", "embedding", "conv", "transformer"])
def test_layers_of_pytorch(kind):
    def make():
        if kind == "lstm":
            return nn.LSTM(3, 4, num_layers=2, batch_first=True)
        if kind == "attention":
            return nn.MultiheadAttention(4, 2, batch_first=True)
        if kind == "embedding":
            return nn.EmbeddingBag(10, 3)
        if kind == "conv":
            return nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.MaxPool1d(2), nn.Flatten())
        return nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

    def step(fn, model):
        if kind == "lstm":
            return fn(torch.ones(2, 5, 3))
        if kind == "attention":
            x = torch.ones(2, 5, 4)
            return fn(x, x, x, need_weights=False)
        if kind == "embedding":
            return fn(torch.tensor([1, 2, 4, 5]), torch.tensor([0, 2]))
        if kind == "conv":
            return fn(torch.ones(2, 2, 8))
        return fn(torch.ones(2, 5, 4))

    run_both(make, [step, step, lambda fn, m: m.eval() is None, step, step])
