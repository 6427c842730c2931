"""Models captured with the backend "eager" beside the same models uncaptured: what capturing costs, or gains, where nothing is compiled.

Inference is the forward pass without gradients, training the forward pass and the backward pass from its sum.
"""

import contextlib
import gc
import statistics
from typing import Any, Callable, Dict, List, Tuple

from bench import timing

CAPTURED, PLAIN = "captured", "uncaptured"


def models() -> List[Tuple[str, Any, Tuple[Any, ...]]]:
    """Names, models, arguments."""
    from bench import workloads

    made = [workloads.mlp(), workloads.resnet(), workloads.encoder_training()]
    return [(workload.name.replace(", training", ""), workload.target, workload.calls[0]) for workload in made]


def loop(model: Any, arguments: Tuple[Any, ...], training: bool, times: int) -> Callable[[], float]:
    """Measures `times` steps; seconds of one."""

    def steps() -> None:
        for _ in range(times):
            result = model(*arguments)
            if training:
                result.sum().backward()

    return lambda: timing.timed(steps) / times


def measure(name: str, model: Any, arguments: Tuple[Any, ...], training: bool, rounds: int, round_seconds: float) -> Dict[str, Any]:
    """One row of the table: medians over interleaved rounds; `ratio` is the median of what one round shows."""
    import torch

    import pellucid

    pellucid.reset()
    model.train(training)
    sides = {CAPTURED: pellucid.optimize(model, backend="eager", fullgraph=True), PLAIN: model}
    with contextlib.nullcontext() if training else torch.no_grad():
        for side in sides.values():
            loop(side, arguments, training, 2)()
        times = max(1, int(round_seconds / loop(model, arguments, training, 3)()))
        gc.collect()
        results = timing.interleaved({side: loop(sides[side], arguments, training, times) for side in sides}, rounds)
    if len(pellucid.cache_entries(sides[CAPTURED])) != 1:
        raise RuntimeError(f"{name} was captured more than once")
    row: Dict[str, Any] = {"workload": f"{name}, {'training' if training else 'inference'}"}
    for side, seconds in results.items():
        row[side] = timing.summary(seconds)
    row["ratio"] = statistics.median(plain / captured for plain, captured in zip(results[PLAIN], results[CAPTURED]))
    model.zero_grad()
    pellucid.reset()
    return row
