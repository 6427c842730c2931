"""Every test starts with nothing captured."""

import pytest

import pellucid


@pytest.fixture(autouse=True)
def nothing_captured():
    pellucid.reset()
    yield
    pellucid.reset()
