"""Exceptions of the captured program: made, raised, matched, chained, shown."""

import torch


def test_texts_and_args(check, x):
    class Err(Exception):
        def __init__(self, message, payload):
            super().__init__(message)
            self.payload = payload

    class Named(ValueError):
        def __str__(self):
            return "named " + self.args[0]

    def f(x):
        out = []
        for error in (ValueError("a"), ValueError(), ValueError("a", 2), KeyError("k"), KeyError("a", "b"), RuntimeError(3), Named("n")):
            try:
                raise error
            except Exception as e:
                out.append((str(e), repr(e), e.args, type(e).__name__))
        try:
            raise Err("m", x * 2)
        except Err as e:
            out.append((str(e), e.payload, e.args))
        return x + 1, out

    check(f, x)


def test_which_handler(check, x):
    def f(x, k):
        try:
            if k == 0:
                raise KeyError("k")
            if k == 1:
                [][1]
            if k == 2:
                raise ValueError
            if k == 3:
                {}["missing"]
            if k == 4:
                None.thing
            if k == 5:
                1 / 0
            y = "none"
        except (IndexError, KeyError) as e:
            y = type(e).__name__, str(e)
        except ValueError as e:
            y = "value", str(e)
        except Exception as e:
            y = type(e).__name__, str(e)
        else:
            y = "else"
        finally:
            x = x + 1
        return x, y

    for k in range(7):
        check(f, x, k)


def test_chaining(check, x):
    def f(x, k):
        try:
            try:
                raise KeyError("a")
            except KeyError as e:
                if k == 0:
                    raise ValueError("b") from e
                if k == 1:
                    raise
                if k == 2:
                    raise RuntimeError("ctx")
                if k == 3:
                    raise ValueError("c") from None
        except Exception as e:
            return x + 1, type(e).__name__, type(e.__cause__).__name__, type(e.__context__).__name__, e.__suppress_context__
        return x - 1

    for k in range(5):
        check(f, x, k)


def test_exceptions_through_calls(check, x):
    def f(x, n):
        log = []

        def deep(x, n):
            log.append(n)
            if n == 0:
                raise LookupError("bottom")
            try:
                return deep(x + 1, n - 1)
            finally:
                log.append(-n)

        try:
            deep(x, n)
        except LookupError as e:
            return x * 2, str(e), log

    check(f, x, 3)


def test_raise_of_other_things(check, x):
    def f(x):
        out = []
        try:
            raise 3
        except TypeError as e:
            out.append(str(e))
        try:
            raise int
        except TypeError as e:
            out.append(str(e))
        return x + 1, out

    check(f, x)


def test_fields(check, x):
    def f(x):
        out = []
        try:
            raise StopIteration(5)
        except StopIteration as e:
            out.append((e.value, e.args))
        try:
            raise AttributeError("no", name="n", obj=3)
        except AttributeError as e:
            out.append((e.name, e.obj, str(e)))
        try:
            raise ImportError("m", name="mod")
        except ImportError as e:
            out.append((e.msg, e.name, e.path, str(e)))
        e = ValueError(1)
        e.args = (2, 3)
        e.note = "n"
        out.append((e.args, str(e), e.note, e.__cause__, e.__context__))
        return x + 1, out

    check(f, x)


def test_uncaught_exception_is_the_programs(check, x):
    def f(x, k):
        y = x + 1
        if k:
            raise KeyError(k)
        return y

    check(f, x, "key", breaks=True, calls=1)


def test_exception_returned(check, x):
    class Err(Exception):
        pass

    def f(x):
        e = Err("text", 2)
        try:
            raise ValueError("v")
        except ValueError as caught:
            return x + 1, e, caught

    check(f, x)


def test_context_managers(check, x):
    import contextlib

    class Manager:
        def __init__(self, log, swallow):
            self.log, self.swallow = log, swallow

        def __enter__(self):
            self.log.append("in")
            return self

        def __exit__(self, kind, value, traceback):
            self.log.append((kind and kind.__name__, value and str(value)))
            return self.swallow

    def f(x):
        log = []
        with Manager(log, True) as m:
            x = x + len(m.log)
            raise ValueError("inside")
        with Manager(log, False):
            x = x + 1
        with contextlib.suppress(KeyError):
            {}["a"]
        with contextlib.nullcontext(3) as n:
            x = x * n
        with torch.no_grad():
            y = x * 2
        return x, y, log, y.requires_grad

    check(f, x.clone().requires_grad_())


def test_contextmanager_generators(check, x):
    import contextlib

    def f(x, z):
        log = []

        @contextlib.contextmanager
        def cm(k):
            log.append(("in", k))
            try:
                yield k * 2
            except ZeroDivisionError:
                log.append("zde")
            finally:
                log.append(("out", k))

        with cm(1) as a, cm(2) as b:
            x = x + a * b
            x = x * (1 / z)
        return x, log

    check(f, x, 2)
    check(f, x, 0)
