"""exc: what each exception shows, and that all survive pickling."""

import pickle

import pytest

from pellucid import exc


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("def f(x):\n    y = größe(x) + item(x)\n    return y\n", encoding="utf-8")
    return str(path)


def columns(line, part):
    start = line.encode().index(part.encode())
    return start, start + len(part.encode())


def test_unsupported_says_reason_hint_and_place(source):
    start, end = columns("    y = größe(x) + item(x)", "item(x)")
    error = exc.Unsupported("data_dependent", "Depends on data", "why not", "do that", "item()", [(source, "f", 2, 2, start, end)])
    assert str(error).splitlines() == [
        "Depends on data [data_dependent]",
        "  detail: item()",
        "  why: why not",
        "  hint: do that",
        "",
        "from user code:",
        f'  File "{source}", line 2, in f',
        "    y = größe(x) + item(x)",
        "                   ^^^^^^^",
    ]
    assert (error.reason, error.user_stack[0].function) == ("data_dependent", "f")


def test_parts_that_are_not_known_are_left_out():
    assert str(exc.Unsupported("id", "Title")) == "Title [id]"


@pytest.mark.parametrize("span", [(-1, -1), (4, 4), (4, 28)])
def test_no_carets_where_they_say_nothing(source, span):
    assert "^" not in str(exc.UserFrame(source, "f", 2, 2, *span))


def test_carets_to_the_end_of_a_line_that_goes_on(source):
    start, _ = columns("    y = größe(x) + item(x)", "item(x)")
    assert str(exc.UserFrame(source, "f", 2, 3, start, 3)).endswith(" " * 15 + "^" * 7)


def test_place_without_source():
    assert str(exc.UserFrame("<string>", "f", 7, 7, 0, 3)) == '  File "<string>", line 7, in f'


def test_backend_failure_carries_its_cause():
    cause = ValueError("no")
    error = exc.BackendCompilerFailed("mine", "it raised ValueError: no", cause)
    assert error.__cause__ is cause and error.inner is cause
    assert str(error) == "backend 'mine' failed: it raised ValueError: no"


def test_internal_error_names_its_reproducer(tmp_path):
    assert str(exc.InternalError("CHECK failed")) == "internal error: CHECK failed"
    assert str(tmp_path / "r.py") in str(exc.InternalError("CHECK failed", str(tmp_path / "r.py")))


def test_guard_error():
    assert str(exc.GuardError("L['x'] == 3", "ValueError()")) == "guard L['x'] == 3 could not be evaluated: ValueError()"


@pytest.mark.parametrize(
    "error",
    [
        exc.Unsupported("id", "Title", "why", "hint", "detail", [("f.py", "f", 1, 1, 0, 3)]),
        exc.BackendCompilerFailed("mine", "text", ValueError("no")),
        exc.InternalError("text", "file.py"),
        exc.GuardError("guard", "text"),
        exc.ConstraintViolationError("text"),
        exc.CoreUnavailable("text"),
        exc.DataDependentError("text"),
        exc.GuardsFrozenError("text"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_exception_survives_pickling_and_is_one_of_ours(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and str(copy) == str(error) and isinstance(copy, exc.PellucidError)


def test_the_list_above_is_complete():
    names = {name for name in exc.__all__ if isinstance(getattr(exc, name), type) and issubclass(getattr(exc, name), exc.PellucidError)}
    assert names == {
        "BackendCompilerFailed",
        "ConstraintViolationError",
        "CoreUnavailable",
        "DataDependentError",
        "GuardError",
        "GuardsFrozenError",
        "InternalError",
        "PellucidError",
        "Unsupported",
    }
