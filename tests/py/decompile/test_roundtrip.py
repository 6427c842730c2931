"""Some of each standard library there and back: nothing fails, and what is identical stays so."""

import argparse
import os

import find_pythons
import pytest
import roundtrip

FOUND, SKIPPED = find_pythons.find()
FILES = r"/(json|collections|email|concurrent/futures)/|/(dataclasses|inspect|argparse|tarfile|typing|contextlib|_pydecimal)\.py$"
FEWEST_IDENTICAL = 95  # per cent of functions


@pytest.mark.skipif("PELLUCID_SANITIZED" in os.environ, reason="other processes are not what sanitizers look at here")
@pytest.mark.parametrize("tag", [308, 309, 310, 311, 312, 313])
def test_sample(tag, tmp_path, capsys):
    interpreter = next((each for each in FOUND if each.tag == tag), None)
    if interpreter is None:
        pytest.skip(next((line for line in SKIPPED if f"3.{tag % 100}:" in line), "not found"))
    options = argparse.Namespace(
        kind=roundtrip.KINDS,
        name=None,
        file=FILES,
        sample=400,
        seed=1,
        jobs=2,
        limit=60.0,
        no_layout=False,
        no_search=False,
        show_failures=0,
    )
    corpus, left_out = roundtrip.collect(interpreter, tmp_path, FILES)
    assert left_out == []
    tasks = roundtrip.plan(corpus, tag, options)
    results = roundtrip.run_all(tasks, interpreter, options)
    assert len(results) == 400
    assert {result.kind for result in results} == set(roundtrip.KINDS)
    assert [(result.path, result.name, result.reason) for result in results if result.outcome == "failed"] == []
    functions = [result.outcome for result in results if result.kind == "function"]
    assert 100 * functions.count("identical") / len(functions) >= FEWEST_IDENTICAL


def test_buckets_put_like_failures_together():
    first = roundtrip.bucket_of("C.f: 12 LOAD_FAST x / 12 LOAD_CONST 'a'")
    assert first == roundtrip.bucket_of("g.<locals>.h: 7 LOAD_FAST other / 9 LOAD_CONST 5")
    assert first != roundtrip.bucket_of("f: 12 LOAD_FAST x / 12 LOAD_NAME a")
