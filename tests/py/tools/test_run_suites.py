"""The suite runner fails where a suite failed, where a suite found no test, and where no suite is left."""

import sys

import pytest
import run_suites


def use_suites(monkeypatch, **suites):
    monkeypatch.setattr(run_suites, "SUITES", suites)


def test_success_and_times(monkeypatch, capsys):
    use_suites(monkeypatch, good=lambda jobs: run_suites.run([sys.executable, "-c", "pass"]))
    assert run_suites.main([]) == 0
    assert "good: ok in" in capsys.readouterr().out


def test_one_failure_fails_all_but_the_rest_still_runs(monkeypatch, capsys):
    ran = []
    use_suites(
        monkeypatch,
        bad=lambda jobs: run_suites.run([sys.executable, "-c", "raise SystemExit(3)"]),
        good=lambda jobs: ran.append(jobs),
    )
    assert run_suites.main(["--jobs", "7"]) == 1
    out = capsys.readouterr().out
    assert "bad: FAILED" in out and "exit status 3" in out and ran == [7]


def test_every_command_of_a_suite_runs():
    commands = [[sys.executable, "-c", f"raise SystemExit({status})"] for status in (0, 4, 5)]
    with pytest.raises(run_suites.SuiteError, match="exit status 4.*exit status 5"):
        run_suites.all_commands(iter(commands))


def test_no_test_is_a_failure(tmp_path, monkeypatch):
    with pytest.raises(run_suites.SuiteError, match="no tests under"):
        run_suites.test_areas(tmp_path)
    with pytest.raises(run_suites.SuiteError, match="ctest"):
        run_suites.run(run_suites.ctest(tmp_path))
    (tmp_path / "test_nothing.py").write_text("")
    with pytest.raises(run_suites.SuiteError, match="exit status 5"):
        run_suites.run([sys.executable, "-m", "pytest", "-c", "/dev/null", "-p", "no:cacheprovider", str(tmp_path)])


def test_no_suite_is_a_failure(monkeypatch):
    use_suites(monkeypatch, only=lambda jobs: None)
    assert run_suites.main(["--skip", "only"]) == 1


def row(name, message=None):
    return {"file": "g01", "case": name, "ok": message is None, "message": message or ""}


def test_cases_may_miss_counts_only_by_name(monkeypatch, capsys):
    monkeypatch.setattr(run_suites, "MAY_MISS_COUNTS", frozenset({"g01:counted"}))
    missed = "AssertionError: compiles: 3, expected 2"
    run_suites.judge_cases([row("fine"), row("counted", missed)])
    assert "1 passed, 1 failed, 1 of these" in capsys.readouterr().out
    with pytest.raises(run_suites.SuiteError, match="g01:other: .*compiles: 3"):
        run_suites.judge_cases([row("counted", missed), row("other", missed)])
    with pytest.raises(run_suites.SuiteError, match="g01:counted: .*tensor differs"):
        run_suites.judge_cases([row("fine"), row("counted", "AssertionError: tensor differs")])
    with pytest.raises(run_suites.SuiteError, match="no case"):
        run_suites.judge_cases([])


def test_absent_cases_are_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(run_suites, "CASES", tmp_path)
    run_suites.cases(1)
    assert "NOT RUN" in capsys.readouterr().out
