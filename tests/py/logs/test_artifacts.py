"""Every artifact of PELLUCID_LOGS writes what it promises when a function is captured, and nothing when nobody reads it."""

import logging as standard_logging
import sys

import pytest

torch = pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

import pellucid
from pellucid import logging as plog

SCALE = 3


def scaled(x, y):
    x = x * SCALE
    if x.sum() > 0:
        return x + y
    return x - y


@pytest.fixture
def texts(caplog):
    """`texts(artifact)`: what it wrote during two captures of `scaled`, one after a miss."""

    def capture(artifact):
        pellucid.reset()
        plog.enable(artifact)
        try:
            call = pellucid.optimize("eager")(scaled)
            for size in (3, 4):
                x, y = torch.ones(size), torch.ones(size)
                assert torch.equal(call(x, y), scaled(x, y))
        finally:
            plog.disable()
        assert {record.name for record in caplog.records} <= {f"pellucid.{artifact}"}
        assert all(record.levelno == standard_logging.DEBUG for record in caplog.records)
        return [record.getMessage() for record in caplog.records]

    return capture


def only(texts, start):
    found = [text for text in texts if text.startswith(start)]
    assert found, texts
    return found[0]


def test_guards(texts):
    text = only(texts("guards"), "scaled (")
    assert "L['x']" in text and "SCALE" in text and f"{__file__}:{scaled.__code__.co_firstlineno + 1}" in text
    assert "\nprogram:\n" in text


def test_sources(texts):
    lines = only(texts("sources"), "scaled (").splitlines()
    assert "  L['x']" in lines and "  G['SCALE']" in lines and "  L['y']" in lines


def test_recompiles(texts):
    text = only(texts("recompiles"), "scaled (")
    assert "captured again" in text and "L['x']" in text and "3" in text and "4" in text


def test_graph_breaks(texts):
    text = only(texts("graph_breaks"), "scaled (")
    assert "[data_dependent_branch]" in text and "    if x.sum() > 0:\n       ^^^^^^^^^^^" in text


def test_graph_code(texts):
    assert "def forward(self" in only(texts("graph_code"), "scaled (")


def test_bytecode(texts):
    before, _, after = only(texts("bytecode"), "scaled (").partition("\ntransformed:\n")
    assert "BINARY_OP" in before and "as written:" in before
    assert "BINARY_OP" not in after and "POP_JUMP" in after


def test_perf(texts):
    text = only(texts("perf"), "scaled (")
    assert "captured in" in text and "translate" in text and "operators" in text


def test_nobody_reads(caplog):
    pellucid.optimize("eager")(scaled)(torch.ones(3), torch.ones(3))
    assert not caplog.records
