"""Interleaved timing: every round measures all candidates, one after another, so that a busy moment meets them alike.

Times are CPU time of the thread: other programs on the machine do not count.
"""

import itertools
import statistics
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

clock = time.thread_time


def timed(function: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = clock()
    function()
    return clock() - start


def interleaved(candidates: Dict[str, Callable[[], float]], rounds: int) -> Dict[str, List[float]]:
    """`rounds` results of each candidate, which measures itself. Who is first changes from round to round."""
    results: Dict[str, List[float]] = {name: [] for name in candidates}
    names = list(candidates)
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            results[name].append(candidates[name]())
    return results


def summary(times: Sequence[float]) -> Dict[str, float]:
    """What tables show of several times."""
    return {"median": statistics.median(times), "min": min(times), "rounds": len(times)}


class CallLoop:
    """Repeats calls with as little as possible around them: written out, not looped over."""

    def __init__(
        self, calls: Sequence[Tuple[Callable[..., Any], Tuple[Any, ...]]], before_each: Optional[Callable[[], Any]] = None
    ) -> None:
        repeats = max(1, 16 // len(calls))
        self.calls_each = repeats * len(calls)
        names = [f"f{i}, a{i}" for i in range(len(calls))]
        before = "        before_each()\n" if before_each else ""
        body = "".join(f"{before}        f{i}(*a{i})\n" for i in range(len(calls))) * repeats
        scope: Dict[str, Any] = {"repeat": itertools.repeat, "before_each": before_each}
        exec(f"def loop(times, {', '.join(names)}):\n    for _ in repeat(None, times):\n{body}", scope)
        self._loop = scope["loop"]
        self._values = [value for call in calls for value in call]
        self._times = 1

    def calibrate(self, seconds: float) -> None:
        """Makes one measurement take about this long."""
        while timed(lambda: self._loop(self._times, *self._values)) < seconds / 2 and self._times < 1 << 20:
            self._times *= 2

    def __call__(self) -> float:
        """Seconds of one call, measured over many."""
        start = clock()
        self._loop(self._times, *self._values)
        return (clock() - start) / (self._times * self.calls_each)
