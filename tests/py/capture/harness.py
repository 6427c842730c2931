"""Runs programs as written and captured, on equal fresh inputs, and compares everything a user could observe.

`check(fn, *argmakers)` calls each argmaker twice for equal arguments, runs one of the two as written and the other captured, and
compares results, arguments, state, gradients, exceptions with their tracebacks, output, warnings and PyTorch's global state. What was
captured is checked too: the number of graphs, their operators and the reasons of graph breaks. Knows nothing of how capture works.
"""

import contextlib
import enum
import io
import os
import traceback
import types
import warnings

import numpy
import torch

import pellucid

HERE = os.path.dirname(os.path.abspath(__file__))
PLAIN = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    type(...),
    type(NotImplemented),
    torch.dtype,
    torch.device,
    torch.Size,
    slice,
    range,
)


class Program:
    """A function together with the state it changes: made anew for each run. `make()` returns the function and what to look at."""

    def __init__(self, make):
        self.make = make
        self.__name__ = make.__name__


def program(make):
    return Program(make)


# ---- what can be seen of a value


class Describer:
    """Turns values into plain tuples; which objects and which storages are the same ones is part of it."""

    def __init__(self):
        self.objects = {}
        self.storages = {}
        self.keep = []  # ids stay their owners'

    def number(self, table, key):
        return table.setdefault(key, len(table))

    def __call__(self, value):
        if isinstance(value, enum.Enum):
            return repr(value)
        if type(value) in PLAIN or isinstance(value, (numpy.generic, torch.dtype)):
            return type(value).__name__, repr(value)
        if type(value) is tuple:
            return ("tuple", *map(self, value))
        if isinstance(value, (type, types.BuiltinFunctionType, types.ModuleType)):
            return type(value).__name__, getattr(value, "__qualname__", value.__name__)
        if isinstance(value, types.CodeType):
            return "code", value.co_name
        if id(value) in self.objects:
            return "seen", self.objects[id(value)]
        self.keep.append(value)
        return (self.number(self.objects, id(value)), *self.contents(value))

    def contents(self, value):
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        name = type(value).__name__
        if isinstance(value, tuple):
            return (name, *map(self, value), *self.attributes(value))
        if isinstance(value, list):
            return (name, *map(self, value), *self.attributes(value))
        if isinstance(value, (dict, types.MappingProxyType)):
            return (name, *((self(k), self(v)) for k, v in value.items()), *self.attributes(value))
        if isinstance(value, (set, frozenset)):
            return (name, *sorted(map(repr, value)))
        if isinstance(value, types.FunctionType):
            cells = [self(cell.cell_contents) for cell in value.__closure__ or ()]
            return name, value.__qualname__, self(value.__defaults__), self(value.__kwdefaults__), *cells
        if isinstance(value, types.MethodType):
            return name, value.__func__.__qualname__, self(value.__self__)
        if isinstance(value, BaseException):
            return name, str(value), self(value.args)
        if isinstance(value, numpy.ndarray):
            return name, str(value.dtype), value.tolist()
        if isinstance(value, torch.nn.Module):
            return (name, *self.module(value))
        return (name, *self.attributes(value))

    def module(self, module):
        module = getattr(module, "__wrapped__", module)
        yield from ((key, self(item)) for key, item in vars(module).items() if key not in ("_non_persistent_buffers_set",))

    def attributes(self, value):
        for key, item in (getattr(value, "__dict__", None) or {}).items():
            yield key, self(item)
        for cls in type(value).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot != "__dict__" and hasattr(value, slot):
                    yield slot, self(getattr(value, slot))

    def tensor(self, tensor):
        head = type(tensor).__name__, str(tensor.dtype), tuple(tensor.shape), str(tensor.layout), str(tensor.device)
        flags = tensor.requires_grad, tensor.is_leaf, tensor.is_inference(), tensor._is_view()
        if tensor.layout is not torch.strided:
            return head, flags
        storage = self.number(self.storages, tensor.untyped_storage()._cdata) if tensor.numel() else None
        plain = tensor.detach()
        values = repr(plain.tolist())
        version = None if tensor.is_inference() else tensor._version
        grad = self(tensor.grad) if tensor.is_leaf and tensor.grad is not None else None
        extra = [(k, self(v)) for k, v in tensor.__dict__.items()]
        return head, tensor.stride(), tensor.storage_offset(), flags, storage, version, values, grad, extra


def user_lines(tb):
    lines = []
    for frame in traceback.extract_tb(tb):
        if os.path.dirname(frame.filename) == HERE and not frame.filename.endswith("harness.py"):
            lines.append((frame.name, frame.lineno, frame.colno, frame.end_colno))
    return lines


def traceback_lines(error, depth=0):
    """The user's lines in the tracebacks of an exception and of those it came from."""
    if error is None or depth > 4:
        return []
    return [user_lines(error.__traceback__), traceback_lines(error.__cause__, depth + 1), traceback_lines(error.__context__, depth + 1)]


def describe_error(error, depth=0):
    if error is None or depth > 4:
        return None
    own = [(k, repr(v)) for k, v in vars(error).items() if isinstance(v, (int, str, float))]
    return (
        type(error).__name__,
        str(error),
        repr(error.args) if all(type(a) in PLAIN for a in error.args) else len(error.args),
        own,
        ("cause", describe_error(error.__cause__, depth + 1)),
        ("context", describe_error(error.__context__, depth + 1)),
        error.__suppress_context__,
    )


def global_state():
    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "autocast_dtype": str(torch.get_autocast_dtype("cpu")),
        "dtype": str(torch.get_default_dtype()),
        "random": hash(torch.random.get_rng_state().numpy().tobytes()),
        "anomaly": torch.is_anomaly_enabled(),
    }


def floats_in(value, found, seen):
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        if value.requires_grad and value.grad_fn is not None:
            found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            floats_in(item, found, seen)
    elif isinstance(value, dict):
        for item in value.values():
            floats_in(item, found, seen)


def observe(call, args, kwargs, state, backward, tracebacks):
    """Calls and tells all that can be seen afterwards."""
    seen = {}
    describe = Describer()
    torch.manual_seed(11)
    out = io.StringIO()
    result = None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            result = call(*args, **kwargs)
        except BaseException as error:
            seen["error"] = describe_error(error)
            if tracebacks:
                seen["tracebacks"] = traceback_lines(error)
            error.__traceback__ = None
    seen["output"] = out.getvalue()
    seen["warnings"] = [(w.category.__name__, str(w.message)) for w in caught]
    seen["global state"] = global_state()
    seen["args"], seen["kwargs"] = describe(args), describe(kwargs)
    seen["result"] = describe(result)
    seen["state"] = describe(state)
    if backward and torch.is_grad_enabled():
        found = []
        floats_in(result, found, set())
        if found:
            try:
                sum((t.abs() if t.is_complex() else t).sum().double() for t in found).backward()
            except Exception as error:
                seen["backward error"] = type(error).__name__, str(error).splitlines()[0]
            again = Describer()
            seen["after backward"] = again((args, kwargs, result, state))
    return seen, result


# ---- running captured


class Recorder:
    """A backend that keeps the graphs and runs them as they are."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph_module, example_inputs):
        graph_module.graph.lint()
        self.graphs.append(graph_module)
        return graph_module.forward

    def operators(self):
        return [node.target for graph in self.graphs for node in graph.graph.nodes if node.op.startswith("call_")]


class Captured:
    """What a check leaves for more questions."""

    def __init__(self, wrapper, recorder, results):
        self.wrapper = wrapper
        self.recorder = recorder
        self.results = results
        self.entries = pellucid.cache_entries(wrapper, nested=True)

    @property
    def graphs(self):
        return self.recorder.graphs

    @property
    def break_rows(self):
        return [row for entry in self.entries for row in entry.report.get("breaks", ())]

    @property
    def breaks(self):
        # A break in an inlined call is met again by the function that resumes the callee: one place of the program counts once.
        places = {(row["reason"], tuple(row["user_stack"][-1])) for row in self.break_rows}
        return sorted(reason for reason, place in places)

    def names(self):
        return [getattr(op, "__name__", str(op)) for op in self.recorder.operators()]


def make_arguments(maker):
    torch.manual_seed(7)
    made = maker()
    if isinstance(made, Call):
        return made.args, made.kwargs
    return (made if isinstance(made, tuple) else (made,)), {}


class Call:
    """Arguments of one call, where there are keywords."""

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs


def parts(subject):
    if isinstance(subject, Program):
        torch.manual_seed(5)
        made = subject.make()
        return made if isinstance(made, tuple) else (made, made)
    return subject, None


def show_difference(eager, captured, number):
    rows = [f"call {number} differs from eager:"]
    for key in sorted({*eager, *captured}):
        if eager.get(key) != captured.get(key):
            rows += [f"  {key}:", f"    eager    {eager.get(key)!r}", f"    captured {captured.get(key)!r}"]
    return "\n".join(rows)


def check(
    subject,
    *argmakers,
    graphs=None,
    breaks=None,
    operators=None,
    backward=True,
    tracebacks=True,
    stable=True,
    repeat=2,
    optimize=None,
    fullgraph=False,
):
    """Compares; returns a Captured.

    graphs: how many there must be after all calls (None: at least one, "any": also none). breaks: the ids of all graph breaks, in any
    order (None: not looked at). operators: how many in all graphs. stable: going through the arguments again compiles nothing.
    """
    __tracebackhide__ = True
    eager_fn, eager_state = parts(subject)
    captured_fn, captured_state = parts(subject)
    recorder = Recorder()
    wrapper = (optimize or pellucid.optimize)(captured_fn, backend=recorder, fullgraph=fullgraph)
    results = []
    with pellucid.config.patch(suppress_errors=False):
        for time in range(repeat):
            compiled = len(recorder.graphs)
            for number, maker in enumerate(argmakers):
                eager, _ = observe(eager_fn, *make_arguments(maker), eager_state, backward, tracebacks)
                seen, result = observe(wrapper, *make_arguments(maker), captured_state, backward, tracebacks)
                results.append(result)
                assert eager == seen, show_difference(eager, seen, f"{number} (time {time})")
            if time and stable:
                assert len(recorder.graphs) == compiled, f"compiled again: {[str(e) for e in pellucid.cache_entries(wrapper, nested=True)]}"
    captured = Captured(wrapper, recorder, results)
    if graphs == "any":
        pass
    elif graphs is None:
        assert recorder.graphs, f"nothing was captured: {captured.break_rows}"
    else:
        assert len(recorder.graphs) == graphs, (len(recorder.graphs), [str(g.graph) for g in recorder.graphs], captured.break_rows)
    if breaks is not None:
        assert captured.breaks == sorted(breaks), captured.break_rows
    if operators is not None:
        assert len(captured.names()) == operators, captured.names()
    return captured


def once(fn, *makers, **expected):
    """A program that must be one graph without breaks."""
    __tracebackhide__ = True
    return check(fn, *makers, graphs=expected.pop("graphs", len(makers)), breaks=[], fullgraph=True, **expected)


# ---- arguments


def ones(*shape, grad=False, dtype=None):
    return lambda: torch.ones(*shape, requires_grad=grad, dtype=dtype)


def rand(*shape, grad=False):
    return lambda: torch.randn(*shape, requires_grad=grad)


def pair(*shape):
    return lambda: (torch.randn(*shape), torch.randn(*shape))
