"""Run by test_interpreters.py with another Python: argv[1] is the folder of the extension modules. Needs nothing but that."""

import importlib.machinery
import importlib.util
import sys


def load(folder):
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    finder = importlib.machinery.FileFinder(folder, (importlib.machinery.ExtensionFileLoader, suffixes))
    spec = finder.find_spec("_bytecode")
    spec.name = spec.loader.name = "pellucid._bytecode"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


b = load(sys.argv[1])


def callee(x):
    return x


def caller(a, b=2, *rest, k=3, **more):
    return callee(a) + b


def recorded(run):
    rows = []
    b.hook_record(rows)
    b.hook_acquire()
    assert b.hook_installed() and b.hook_busy() == 1
    try:
        run()
    finally:
        b.hook_release()
        b.hook_record(None)
    assert not b.hook_installed() and b.hook_busy() == 0
    return [(code.co_name, function, entry, bound) for code, function, entry, bound in rows]


def check_calls():
    rows = [row for row in recorded(lambda: (caller(1), caller(1, 2, 3, k=4, z=5))) if row[0] in ("caller", "callee")]
    assert rows == [("caller", caller, True, 5), ("callee", callee, True, 1)] * 2, rows


def check_generators():
    def steps():
        try:
            yield 1
            yield 2
        finally:
            callee(0)

    def run():
        one = steps()
        next(one)
        one.close()
        two = steps()
        next(two)
        try:
            two.throw(KeyError())
        except KeyError:
            pass

    rows = [(name, entry) for name, _, entry, _ in recorded(run) if name in ("steps", "callee")]
    step, call = ("steps", False), ("callee", True)
    assert rows == [("steps", True), step, step, call] * 2, rows


def check_exceptions_and_recursion():
    def down(n):
        if n == 0:
            raise KeyError("bottom")
        return down(n - 1)

    def run():
        for depth in (20, -1):
            try:
                down(depth)
            except (KeyError, RecursionError):
                pass
            else:
                raise AssertionError("no exception")

    rows = recorded(run)
    assert sum(row[0] == "down" for row in rows) > 40


def check_references():
    x = object()
    before = sys.getrefcount(x), sys.getrefcount(callee), sys.getrefcount(callee.__code__)

    def run():
        for _ in range(1000):
            callee(x)

    recorded(run)
    after = sys.getrefcount(x), sys.getrefcount(callee), sys.getrefcount(callee.__code__)
    assert before == after, (before, after)


def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


def check_depth_at_the_default_limit():
    depths = []
    recorded(lambda: depths.append(deep(500)))
    assert depths == [500]


def check_where_the_stack_ends():
    limit = sys.getrecursionlimit()
    ended = []

    def run():
        sys.setrecursionlimit(10**6)
        try:
            deep(-1)
        except RecursionError as error:
            ended.append(type(error))
        finally:
            sys.setrecursionlimit(limit)

    b.hook_acquire()
    try:
        run()
    finally:
        b.hook_release()
    assert ended == [RecursionError]


def check_monitoring():
    if not hasattr(sys, "monitoring"):
        return
    tool, events = 3, sys.monitoring.events
    seen = []
    sys.monitoring.use_tool_id(tool, "test")
    sys.monitoring.register_callback(tool, events.PY_START, lambda code, offset: seen.append(code.co_name))
    sys.monitoring.register_callback(tool, events.PY_RETURN, lambda code, offset, value: seen.append((code.co_name, value)))
    sys.monitoring.set_events(tool, events.PY_START | events.PY_RETURN)
    try:
        recorded(lambda: caller(1))
    finally:
        sys.monitoring.set_events(tool, 0)
        sys.monitoring.free_tool_id(tool)
    rows = [row for row in seen if row in ("caller", "callee", ("callee", 1), ("caller", 3))]
    assert rows == ["caller", "callee", ("callee", 1), ("caller", 3)], seen


if sys.version_info >= (3, 11):
    for check in (
        check_calls,
        check_generators,
        check_exceptions_and_recursion,
        check_references,
        check_depth_at_the_default_limit,
        check_where_the_stack_ends,
        check_monitoring,
    ):
        check()
else:
    try:
        b.hook_acquire()
    except NotImplementedError:
        assert not b.hook_installed()
    else:
        raise AssertionError("a hook without frame access")
print("ok")
