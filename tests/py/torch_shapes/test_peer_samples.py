"""PyTorch's operator database, every size of 2 or more a symbol: what PyTorch's ShapeEnv gives, with not more guards in total."""

import logging
import warnings

import pytest

pytest.importorskip("expecttest")

import peer_samples

SAMPLES, PEERS = 4, 1  # of each operator, ours and theirs; peer_samples.py as a program takes them all


@pytest.fixture(scope="module")
def rows():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            return list(peer_samples.compared(SAMPLES, PEERS))
        finally:
            logging.disable(logging.NOTSET)


def test_results_are_those_of_the_hint_sizes(rows):
    assert len(rows) > 1000
    assert [f"{row.name} {row.sample}" for row in rows if not row.right] == []


def test_results_are_those_of_pytorchs_shape_env_also_at_other_sizes(rows):
    assert sum(row.elsewhere > 0 for row in rows) > 550
    assert [f"{row.name} {row.sample}: {row.difference}" for row in rows if row.difference] == []


def test_what_works_with_pytorchs_shape_env_works(rows):
    assert [f"{row.name} {row.sample}: {row.ours.error}" for row in rows if row.ours.error and row.theirs and not row.theirs.error] == []


def test_there_are_not_more_guards_in_total(rows):
    both = [row for row in rows if row.theirs and not row.ours.error and not row.theirs.error]
    ours, theirs = (sum(getattr(row, side).count for row in both) for side in ("ours", "theirs"))
    print(f"guards over {len(both)} samples: ours {ours}, PyTorch's {theirs}")
    assert len(both) > 600
    assert ours <= theirs
