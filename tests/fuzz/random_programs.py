"""Random functions for property-based tests: statements of every kind that shapes bytecode, over a few integer variables.

Each takes `log` (a list), `step` (raises when the program ran for too long) and two numbers; what it did shows in the log and in the
result or exception. Knows nothing of what is tested with them.
"""

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "größe")
CELLS = "    nonlocal " + ", ".join(NAMES)
MAX_STEPS = 200


class TooLong(Exception):
    """Raised by `step`."""


class Context:
    """A context manager that logs, and swallows ValueError if asked to."""

    def __init__(self, log, swallow):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return len(self.log)

    def __exit__(self, kind, value, traceback):
        self.log.append(("exit", kind and kind.__name__))
        return self.swallow and kind is ValueError


names = st.sampled_from(NAMES)
numbers = st.integers(-3, 300).map(str)


def _expressions(inner):
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "//", "%", "&", "<", "==", "and", "or"]), inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("(-{})".format, inner),
        st.builds("max({}, {}, key=lambda v: (v, {}))".format, inner, inner, inner),
        st.builds("sum([v + {} for v in range(3) if v != {}])".format, inner, inner),
        st.builds("len(f'{{{}}}:{{{}!r:>5}}')".format, names, names),  # names: quotes do not nest before 3.12
        st.builds("(lambda *args, **kwargs: args[0] + len(kwargs))(*({}, 1), **{{'k': {}}})".format, inner, inner),
        st.builds("[{}, {}][0]".format, inner, inner),
    )


expressions = st.recursive(st.one_of(names, numbers), _expressions, max_leaves=5)


def _indent(lines):
    return ["    " + line for line in lines]


def _blocks(statements):
    return st.lists(statements, min_size=1, max_size=3).map(lambda parts: [line for part in parts for line in part])


def _compound(inner):
    block = _blocks(inner).map(_indent)
    return st.one_of(
        st.builds(lambda e, x, y: [f"if {e}:", *x, "else:", *y], expressions, block, block),
        st.builds(lambda e, x, y: [f"while step() and {e}:", *x, "else:", *y], expressions, block, block),
        st.builds(lambda n, e, x: [f"for {n} in range({e} % 4):", "    step()", *x], names, expressions, block),
        st.builds(
            lambda x, y, z: (
                ["try:", *x, "except (ValueError, ZeroDivisionError) as error:", "    log.append(type(error).__name__)", *y]
                + ["finally:", *z]
            ),
            block,
            block,
            block,
        ),
        st.builds(lambda n, s, x: [f"with Context(log, {s}) as {n}:", *x], names, st.booleans(), block),
        st.builds(lambda n, x: ["def inner():", CELLS, "    step()", *x, f"    return {n}", "log.append(inner())"], names, block),
    )


_simple = st.one_of(
    st.builds(lambda n, e: [f"{n} = {e}"], names, expressions),
    st.builds(lambda n, e: [f"{n} += {e}"], names, expressions),
    st.builds(lambda n, m, e: [f"{n}, *{m} = {e}, 1, 2", f"{m} = {m}[0]"], names, names, expressions),
    st.builds(lambda e: [f"log.append({e})"], expressions),
    st.builds(lambda e: [f"return {e}"], expressions),
    st.builds(lambda e: [f"if {e}: raise ValueError({e})"], expressions),
    st.builds(lambda e: [f"assert {e}, 'failed'"], expressions),
)

bodies = _blocks(st.recursive(_simple, _compound, max_leaves=8))


def source_of(body):
    """The text of a function."""
    return "\n".join(["def f(log, step, a, b, *, c=2):", "    größe = 1", *_indent(body), "    return (a, b, c, größe)", ""])


sources = bodies.map(source_of)


def function_of(source):
    """The function that a source defines."""
    space = {"Context": Context, "__name__": "fuzz"}
    exec(compile(source, "<fuzz>", "exec"), space)
    return space["f"]


def behaviour(function, *arguments):
    """What a call did: its log, then its result, or its exception with the lines it passed."""
    log = []

    def step():
        log.append("step")
        if len(log) > MAX_STEPS:
            raise TooLong
        return True

    try:
        result = function(log, step, *arguments)
    except Exception as error:
        lines, traceback = [], error.__traceback__.tb_next
        while traceback is not None:
            lines.append((traceback.tb_frame.f_code.co_name, traceback.tb_lineno))
            traceback = traceback.tb_next
        return log, type(error).__name__, str(error), lines
    return log, result
