"""Modules that captured code imports get ready unseen."""

import sys

import torch

import pellucid

SOURCE = """
def helper(n):
    return [n] * n

TABLE = [helper(n) for n in range(20)]
"""


def test_what_an_import_runs_is_not_captured(tmp_path, monkeypatch):
    (tmp_path / "imported_under_capture.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))

    def f(x):
        y = x + 1
        import imported_under_capture

        return y * len(imported_under_capture.TABLE)

    captured = pellucid.optimize("eager")(f)
    try:
        assert torch.equal(captured(torch.ones(2)), torch.full((2,), 40.0))
        names = {entry.code_before.co_name for entry in pellucid.cache_entries(captured, nested=True)}
        assert "f" in names and "helper" not in names
    finally:
        sys.modules.pop("imported_under_capture", None)
