"""What all Python tests share: goldens, texts that a test's output must equal, and an interrupt that arrives."""

import os
import pathlib
import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"


@pytest.fixture
def golden():
    """`golden(name, text)`: `text` must be what tests/golden/NAME holds. tools/update_goldens.py writes what the code prints now."""

    def check(name, text):
        path = GOLDEN / name
        if os.environ.get("PELLUCID_UPDATE_GOLDENS") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"no golden {path}: make it with tools/update_goldens.py and read it"
        assert text == path.read_text()

    return check
