"""Where capture time went, by `explain` and PELLUCID_LOGS=perf: the phases, that their exclusive times add up, and the counts. No test
looks at how long anything took."""

import re
import sys
import time

import pytest

torch = pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

import pellucid
from pellucid import logging as plog
from pellucid.profile import Profile

PHASES = ["decode", "translate", "fake", "guards", "codegen", "fx", "backend"]
COUNTS = [
    "attempts",
    "instructions",
    "inlined_calls",
    "operators",
    "fake_calls",
    "inputs",
    "variables",
    "sources",
    "guards",
    "comparisons",
    "guard_rows",
    "code_units",
]


def helper(x):
    return torch.relu(x) + 1


def program(x, y):
    return helper(x) * helper(y)


def breaks(x):
    x = helper(x)
    if x.sum() > 0:
        return helper(x)
    return x - 1


def test_explain_tells_phases_and_counts_of_each_capture():
    x = torch.ones(3)
    result = pellucid.explain(breaks)(x)
    assert len(result.profiles) == len(result.entries) == 2
    for profile, entry in zip(result.profiles, result.entries):
        assert list(profile.seconds) == PHASES and list(profile.counts) == COUNTS
        assert profile.seconds == entry.report["profile"]["seconds"]
        assert all(seconds >= 0 for seconds in profile.seconds.values())
        assert profile.place.endswith(f"{entry.code_before.co_filename}:{entry.code_before.co_firstlineno})")
    text = str(result)
    assert all(str(profile) in text for profile in result.profiles)


def test_times_add_up_to_the_capture():
    spans = []

    def backend(gm, inputs):
        time.sleep(0.02)
        return gm.forward

    captured = pellucid.optimize(program, backend=backend)
    x = torch.ones(3)
    started = time.perf_counter()
    captured(x, x + 1)
    spans.append(time.perf_counter() - started)
    (entry,) = pellucid.cache_entries(captured)
    seconds = entry.report["profile"]["seconds"]
    profile = Profile("here", **entry.report["profile"])
    assert profile.total == pytest.approx(sum(seconds.values()))
    assert 0.02 <= seconds["backend"] <= profile.total <= spans[0]
    assert sum(seconds[name] for name in PHASES if name != "backend") <= spans[0] - 0.02


def test_phases_that_did_work_took_time():
    pellucid.reset()  # forgets decoded code
    (profile,) = pellucid.explain(program)(torch.ones(3), torch.zeros(3)).profiles
    assert all(profile.seconds[phase] > 0 for phase in PHASES)
    (again,) = pellucid.explain(program)(torch.ones(3), torch.zeros(3)).profiles
    assert again.seconds["decode"] == 0  # met before
    assert again.counts == profile.counts


def test_counts_are_those_of_the_program():
    (profile,) = pellucid.explain(program)(torch.ones(3), torch.zeros(3)).profiles
    counts = profile.counts
    assert (counts["attempts"], counts["inlined_calls"], counts["operators"], counts["inputs"]) == (1, 2, 5, 2)
    assert counts["fake_calls"] >= counts["operators"]
    assert counts["guards"] >= 2 and counts["guard_rows"] >= 2 and counts["sources"] >= 2
    assert counts["variables"] > counts["operators"] and counts["instructions"] > 10


@pellucid.disable
def shown(value):
    pass


def test_a_capture_that_runs_again_counts_both_runs():
    def noisy(n):
        for i in range(n):
            shown(i)
            yield i

    def breaks_inside_a_wait(x):
        x = helper(x)
        return x + sum(noisy(2))

    captured = pellucid.optimize(breaks_inside_a_wait, backend="eager")
    captured(torch.ones(2))
    (entry,) = pellucid.cache_entries(captured)
    counts = entry.report["profile"]["counts"]
    assert counts["attempts"] >= 2 and counts["operators"] == 2
    assert counts["inlined_calls"] > 2 and counts["fake_calls"] >= 4  # helper and noisy, then helper again
    assert counts["instructions"] == entry.report["instructions"]


def test_an_entry_without_a_graph_has_a_profile_without_fx():
    captured = pellucid.optimize(lambda x: x, backend="eager")
    captured(1)
    (entry,) = pellucid.cache_entries(captured)
    seconds = entry.report["profile"]["seconds"]
    assert seconds["fx"] == seconds["backend"] == seconds["fake"] == 0 < seconds["translate"]


def test_replayed_records_have_no_backend():
    captured = pellucid.optimize(program, backend="eager")
    captured(torch.ones(3), torch.zeros(3))
    (entry,) = pellucid.cache_entries(captured)
    assert entry.report["profile"]["seconds"]["backend"] == 0 < entry.report["profile"]["seconds"]["fx"]


def test_the_log_has_one_line_for_each_capture(caplog):
    pellucid.reset()
    plog.enable("perf")
    try:
        pellucid.optimize(breaks, backend="eager")(torch.ones(3))
    finally:
        plog.disable()
    texts = [record.getMessage() for record in caplog.records if record.name == "pellucid.perf"]
    assert len(texts) == 2 and all(text.startswith("breaks (") for text in texts)
    for text in texts:
        found = re.search(r": captured in (\d+) µs: (.*); (.*)$", text)
        total, times, counts = found.groups()
        parts = dict(part.rsplit(" ", 1) for part in times.split(", "))
        assert list(parts) == PHASES
        assert abs(sum(map(int, parts.values())) - int(total)) <= len(PHASES)  # each is rounded
        assert [part.split(" ", 1)[1].replace(" ", "_") for part in counts.split(", ")] == COUNTS


def test_threads_have_profiles_of_their_own():
    import threading

    def capture_in_backend(gm, inputs):
        other = threading.Thread(target=lambda: results.append(pellucid.explain(program)(torch.ones(2), torch.zeros(2)).profiles[0]))
        other.start()
        other.join()
        return gm.forward

    results = []
    alone = pellucid.explain(program)(torch.ones(2), torch.zeros(2)).profiles[0]
    captured = pellucid.optimize(program, backend=capture_in_backend)
    captured(torch.ones(2), torch.zeros(2))
    (entry,) = pellucid.cache_entries(captured)
    assert entry.report["profile"]["counts"] == results[0].counts == alone.counts
