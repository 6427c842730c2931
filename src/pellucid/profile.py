"""Where the time of a capture went, for `explain` and for the log artifact "perf". The core measures; here it is named and printed."""

from types import CodeType
from typing import Dict, NamedTuple


def place_of(code: CodeType) -> str:
    """How reports call a code object."""
    return f"{getattr(code, 'co_qualname', code.co_name)} ({code.co_filename}:{code.co_firstlineno})"


class Profile(NamedTuple):
    """Where the time of one capture went: exclusive seconds by phase, which add up to `total`, and how much it had to do.

    Phases: "decode" (bytecode that was not met before), "translate" (symbolic execution and what no other phase is), "fake" (operators on
    fake tensors), "guards", "codegen" (the transformed code), "fx" (the graph's nodes, or the replayed record), "backend".
    """

    place: str
    seconds: Dict[str, float]
    counts: Dict[str, int]

    @property
    def total(self) -> float:
        """Seconds of the capture."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        times = ", ".join(f"{phase} {seconds * 1e6:.0f}" for phase, seconds in self.seconds.items())
        counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in self.counts.items())
        return f"captured in {self.total * 1e6:.0f} µs: {times}; {counts}"
