"""Events on the state of a thread or of the process: modes, dtypes, devices, flags, tracing."""

import contextlib

import torch
from event_runs import After, Case, Event
from states import Dispatch, Function, default_dtype, deterministic, functorch_level, put_back
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx


class Halving(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        return made / 2 if func is torch.ones else made


X = torch.arange(6.0).reshape(2, 3)
W = torch.arange(12.0).reshape(3, 4).requires_grad_()


def product():
    def program(x, w):
        return (x @ w).sin() + torch.ones(4), torch.is_grad_enabled()

    return Case(program, X, W)


def elementwise():
    def program(x):
        return x.sin() + 1

    return Case(program, X)


@contextlib.contextmanager
def default_device(device):
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


def precision(value):
    return put_back(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, value)


def fill_memory(value):
    def write(on):
        torch.utils.deterministic.fill_uninitialized_memory = on

    return put_back(lambda: torch.utils.deterministic.fill_uninitialized_memory, write, value)


def saved_hooks():
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


@contextlib.contextmanager
def nested(*makers):
    with contextlib.ExitStack() as stack:
        for make in makers:
            stack.enter_context(make())
        yield


def under(make):
    """From now on calls are made under this state."""
    return lambda case: setattr(case, "around", make)


def visited(make):
    """Harmless: the state is entered and left again before the call."""

    def change(case):
        with make():
            pass

    return change


def captured_under(state, make=None):
    def made():
        case = (make or product)()
        case.around = state
        return case

    return made


OF_THREADS = {
    "no_grad": torch.no_grad,
    "inference mode": torch.inference_mode,
    "set_grad_enabled": lambda: torch.set_grad_enabled(False),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "a default device": lambda: torch.device("meta"),
    "a torch function mode": Function,
    "a torch function mode that changes results": Halving,
    "a dispatch mode": Dispatch,
    "torch function disabled": torch._C.DisableTorchFunction,
    "torch function of subclasses disabled": torch._C.DisableTorchFunctionSubclass,
    "saved-tensor hooks": saved_hooks,
    "saved-tensor hooks disabled": lambda: torch.autograd.graph.disable_saved_tensors_hooks("no"),
    "single-threaded autograd": lambda: torch.autograd.set_multithreading_enabled(False),
    "a functorch grad level": lambda: functorch_level("grad"),
    "a functorch vmap level": lambda: functorch_level("vmap"),
    "set_default_device": lambda: default_device("meta"),
}
OF_THE_PROCESS = {
    "default dtype": lambda: default_dtype(torch.double),
    "deterministic algorithms": deterministic,
    "deterministic algorithms, warn only": lambda: deterministic(warn_only=True),
    "filling uninitialized memory": lambda: fill_memory(False),
    "matmul precision": lambda: precision("medium"),
    "a forward-AD level": forward_ad.dual_level,
}


def states():
    for name, state in OF_THREADS.items():
        yield Event(f"{name} entered", product, under(state), visited(state))
        mode = state() if "mode" in name else None  # of a mode its identity counts
        same = (lambda mode=mode: mode) if isinstance(mode, (Function, Halving, Dispatch)) else state
        yield Event(f"{name} left", captured_under(same), under(contextlib.nullcontext), visited(contextlib.nullcontext))
    for name, state in OF_THE_PROCESS.items():
        harmless = visited(state) if name != "a forward-AD level" else None  # which cannot be entered twice at once
        yield Event(f"{name} on", product, lambda c, state=state: state(), harmless, process_wide=True)
        yield Event(f"{name} off", captured_under(state), under(contextlib.nullcontext), under(state), threads=False)


def changed_states():
    bfloat = lambda: torch.autocast("cpu", torch.bfloat16)
    half = lambda: torch.autocast("cpu", torch.float16)
    yield Event("autocast's dtype", captured_under(bfloat), under(half), under(bfloat))
    yield Event("autocast's cache", captured_under(bfloat), under(lambda: torch.autocast("cpu", torch.bfloat16, cache_enabled=False)))
    yield Event("autocast twice is autocast", captured_under(bfloat), under(half), under(lambda: nested(bfloat, bfloat)))
    meta, cpu = lambda: torch.device("meta"), lambda: torch.device("cpu")
    yield Event("another default device", captured_under(cpu), under(meta), under(cpu))
    yield Event(
        "no_grad twice is no_grad",
        captured_under(torch.no_grad),
        under(torch.enable_grad),
        under(lambda: nested(torch.no_grad, torch.no_grad)),
    )
    yield Event("inference mode instead of no_grad", captured_under(torch.no_grad), under(torch.inference_mode))
    for kind in (Function, Dispatch):
        first, second = kind(), kind()
        yield Event(f"another {kind.__name__} mode", captured_under(lambda: first), under(lambda: second), under(lambda: first))
        yield Event(f"two {kind.__name__} modes", captured_under(lambda: first), under(lambda: nested(lambda: first, lambda: second)))
    yield Event("another functorch transform", captured_under(lambda: functorch_level("grad")), under(lambda: functorch_level("vmap")))
    grad = lambda: functorch_level("grad")
    yield Event("one more functorch level", captured_under(grad), under(lambda: nested(grad, grad)), under(grad))


def harmless_states():
    def row(name, harmless, make=product, process_wide=False):
        change = (lambda c: default_dtype(torch.double)) if process_wide else under(torch.no_grad)
        return Event(f"{name} is harmless", make, change, harmless, process_wide=process_wide)

    yield row("grad mode set to what it is", under(torch.enable_grad))
    yield row("inference mode off", under(lambda: torch.inference_mode(False)))
    yield row("autocast off", under(lambda: torch.autocast("cpu", enabled=False)))
    yield row(
        "autocast's dtype while it is off",
        under(lambda: put_back(lambda: torch.get_autocast_dtype("cpu"), lambda d: torch.set_autocast_dtype("cpu", d), torch.half)),
    )
    yield row("matmul precision without products", lambda c: precision("medium"), elementwise, process_wide=True)
    yield row("matmul precision set to what it is", lambda c: precision("highest"), process_wide=True)
    yield row("the default dtype set to what it is", lambda c: default_dtype(torch.float), process_wide=True)
    yield row("the number of threads", lambda c: put_back(torch.get_num_threads, torch.set_num_threads, 1), process_wide=True)
    yield row("a random seed", lambda c: torch.manual_seed(3), process_wide=True)


def by_jit(function, arguments):
    arguments = tuple(argument.detach() for argument in arguments)
    traced = torch.jit.trace(lambda *a: function(*a)[0], arguments, check_trace=False)
    return traced(*arguments), sorted(node.kind() for node in traced.inlined_graph.nodes())


def by_make_fx(function, arguments):
    arguments = tuple(argument.detach() for argument in arguments)
    traced = make_fx(lambda *a: function(*a)[0])(*arguments)
    return traced(*arguments), [str(node.target) for node in traced.graph.nodes]


def by_symbolic_trace(function, arguments):
    traced = torch.fx.symbolic_trace(lambda x, w: function(x, w)[0])
    return traced(*arguments), [str(node.target) for node in traced.graph.nodes]


def tracing():
    """The tracer must see the program's own operators, not a call of a graph. Those of torch.fx patch the whole process."""
    for how in (by_jit, by_make_fx, by_symbolic_trace):
        yield Event(
            f"traced {how.__name__}",
            product,
            lambda c, how=how: setattr(c, "how", how),
            after=After.AS_WRITTEN,
            threads=how is by_jit,
        )


@contextlib.contextmanager
def dual(case, number):
    old = case.arguments
    with forward_ad.dual_level():
        arguments = list(old)
        arguments[number] = forward_ad.make_dual(arguments[number].detach(), torch.ones_like(arguments[number]))
        case.arguments = arguments
        case.how = lambda function, arguments: forward_ad.unpack_dual(function(*arguments)[0])
        yield
        case.arguments = old


def duals():
    for number in range(2):
        yield Event(
            f"argument {number} becomes a dual tensor", product, lambda c, n=number: dual(c, n), after=After.OTHERWISE, threads=False
        )
