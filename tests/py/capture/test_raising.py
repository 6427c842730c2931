"""Exceptions raised, handled and passed on, in one frame and out of inlined calls: with graph breaks before and inside of handlers."""

import contextlib

import pytest
import torch
from harness import check, rand


def note(*values):
    """Ends the graph: output is visible outside."""
    print(*values)


class Custom(Exception):
    def __init__(self, code, detail=None):
        super().__init__(f"code {code}")
        self.code, self.detail = code, detail


def raise_plain(x):
    y = x + 1
    raise ValueError("plain", 1)


def raise_from(x):
    try:
        {}["k"]
    except KeyError as error:
        raise Custom(3, "d") from error


def raise_context(x):
    try:
        raise KeyError("first")
    except KeyError:
        x + 1
        raise Custom(4)


def raise_from_none(x):
    try:
        int("z")
    except ValueError:
        raise Custom(5) from None


def reraise(x):
    try:
        raise Custom(6)
    except Custom:
        x = x * 2
        raise


def raise_in_finally(x):
    try:
        raise KeyError("a")
    finally:
        raise ValueError("b")


def nested_handlers(x):
    log = []
    try:
        try:
            try:
                raise Custom(1)
            except KeyError:
                log.append("wrong")
            except (ValueError, Custom) as error:
                log.append(error.code)
                raise LookupError("look") from error
            finally:
                log.append("f1")
        except LookupError as error:
            log.append((type(error.__cause__).__name__, str(error), error.__context__.code))
        else:
            log.append("else")
        finally:
            log.append("f2")
    except Exception:
        log.append("never")
    return x * len(log), log


def operator_error(x):
    return x @ x.new_ones(7, 7)


def operator_error_caught(x):
    try:
        return x.reshape(17)
    except RuntimeError as error:
        return x * 2, "shape" in str(error)


def index_errors(x):
    out = []
    for f in (
        lambda: [1][3],
        lambda: (1,)[-4],
        lambda: {}[2],
        lambda: x[9],
        lambda: int("a"),
        lambda: 1 // 0,
        lambda: x.nope,
        lambda: undefined_name,  # noqa: F821
        lambda: next(iter([])),
        lambda: None + 1,
        lambda: len(3),
        lambda: "a" + 1,
        lambda: [].pop(),
        lambda: [1].remove(2),
        lambda: (1).bit,
        lambda: {}.popitem(),
        lambda: dict(a=1)["b"],
        lambda: torch.ones(2).view(3),
        lambda: x(),
        lambda: (1, 2)(),
        lambda: [*3],
        lambda: 1 < "a",
        lambda: torch.cat([]),
        lambda: float("1e"),
        lambda: range(0, 1, 0),
    ):
        try:
            f()
        except Exception as error:
            out.append((type(error).__name__, str(error).splitlines()[0]))
        else:
            out.append("no error")
    return x + 1, out


def unbound(x):
    if x is None:
        y = 1
    return y + x


def assert_fails(x):
    if x.dim() != 7:
        raise AssertionError(f"dims {x.dim()}")


def stop_iteration(x):
    it = iter([x])
    next(it)
    next(it)


def raise_class(x):
    raise Custom


def raise_non_exception(x):
    raise x  # type: ignore[misc]


def exception_value_used(x):
    try:
        raise Custom(x.shape[0], x * 2)
    except Custom as error:
        return error.detail + error.code, error.args


def exception_returned(x):
    try:
        raise Custom(9, x + 1)
    except Custom as error:
        kept = error
    return kept.detail * 2, kept.code, isinstance(kept, Exception)


def except_star(x):
    names = []
    try:
        raise ExceptionGroup("g", [KeyError(1), Custom(2)])
    except* KeyError as group:
        names.append(len(group.exceptions))
    except* Custom:
        names.append("custom")
    return x + 1, names


def deep_raise(x):
    def c(y):
        z = y.sin()
        raise Custom(7, None)

    def b(y):
        try:
            return c(y + 1)
        finally:
            y * 3

    def a(y):
        with contextlib.suppress(KeyError):
            return b(y * 2)

    return a(x)


EXCEPTIONS = [
    raise_plain,
    raise_from,
    raise_context,
    raise_from_none,
    reraise,
    raise_in_finally,
    nested_handlers,
    operator_error,
    operator_error_caught,
    index_errors,
    unbound,
    assert_fails,
    stop_iteration,
    raise_class,
    raise_non_exception,
    exception_value_used,
    exception_returned,
    except_star,
    deep_raise,
]


@pytest.mark.parametrize("before", ["nothing", "work", "break", "handler"])
@pytest.mark.parametrize("fn", EXCEPTIONS, ids=lambda f: f.__name__)
def test_exceptions(fn, before):
    def call(x):
        y = x.cos() if before != "nothing" else x
        if before == "break":
            note("before")
        if before == "handler":
            try:
                return fn(y), "ok"
            except Exception as error:
                return y + 1, type(error).__name__, str(error)
        return fn(y)

    check(call, lambda: torch.ones(3, 3), graphs="any" if before == "nothing" else None, stable=False, tracebacks=False)


@pytest.mark.parametrize("fn", EXCEPTIONS, ids=lambda f: f.__name__)
def test_tracebacks(fn):
    def call(x):
        try:
            return fn(x.cos())
        finally:
            x = x + 1

    check(call, lambda: torch.ones(3, 3), stable=False, tracebacks=True)
    check(lambda x: fn(x.cos()), lambda: torch.ones(3, 3), stable=False, tracebacks=True)


@pytest.mark.parametrize("where", ["try", "except", "else", "finally", "after"])
def test_break_inside_handlers(where):
    def fn(x, fail):
        log = []
        try:
            x = x + 1
            if where == "try":
                note("t")
            if fail:
                raise Custom(1)
            x = x * 2
        except Custom as error:
            if where == "except":
                note("e", error)
            x = x - error.code
            log.append(str(error))
        else:
            if where == "else":
                note("l")
            x = x * 5
        finally:
            if where == "finally":
                note("f")
            x = x + 100
        if where == "after":
            note("a")
        return x, log

    check(fn, lambda: (torch.ones(2), False), lambda: (torch.ones(2), True))


def test_bare_raise_in_a_helper():
    def helper():
        raise

    def fn(x):
        try:
            raise KeyError("outer")
        except KeyError:
            x = x + 1
            helper()

    check(fn, rand(2), graphs="any")
