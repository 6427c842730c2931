"""Samples of PyTorch's operator database on symbolic sizes of ours and of PyTorch's ShapeEnv, side by side: results, guards, time.

python tests/py/torch_shapes/peer_samples.py [--samples N] [OPERATOR ...]      N 0: all of them, three minutes
"""

import argparse
import collections
import dataclasses
import logging
import pathlib
import sys
import time
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple

import sympy
import torch
from torch.utils._pytree import tree_leaves, tree_map

if __name__ == "__main__":
    root = pathlib.Path(__file__).resolve().parents[3]
    sys.path[:0] = [str(root / "src"), str(pathlib.Path(__file__).parent)]

from symbols import Symbols, at_hints, static_fakes
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.source import ConstantSource
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from pellucid import _core
from pellucid.torch_shapes import calling

# What they give is not initialised, or they are of another library.
NOT_COMPARED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}


@dataclasses.dataclass
class Run:
    """One operator on one sample with one kind of symbols."""

    symbols: Symbols
    guards: List[Any] = dataclasses.field(default_factory=list)
    count: int = 0
    result: Any = None
    error: str = ""
    seconds: float = 0.0


class TheirSymbols(Symbols):
    """Symbols of PyTorch's ShapeEnv."""

    def __init__(self) -> None:
        super().__init__(self._make)
        self.shape_env = ShapeEnv()

    def _make(self, hint: int) -> torch.SymInt:
        source = ConstantSource(f"d{hint}")
        symbol = self.shape_env.create_symbol(hint, source=source, dynamic_dim=DimDynamic.DYNAMIC)
        return self.shape_env.create_symintnode(symbol, hint=hint, source=source)


def our_run(function: Any, arguments: Any) -> Run:
    run = Run(Symbols())
    engine = run.symbols.env.engine
    fakes = run.symbols.fakes(arguments)
    before = engine.guard_count
    started = time.perf_counter()
    try:
        with _core.FakeScope():
            run.result = calling.call(function, fakes[0], *fakes[1], **fakes[2])
    except Exception as error:
        run.error = f"{type(error).__name__}: {error}"
    run.seconds = time.perf_counter() - started
    run.guards = [line for line in map(str, engine.log) if "[guard added]" in line]
    run.count = engine.guard_count - before
    return run


def their_run(function: Any, arguments: Any) -> Run:
    symbols = TheirSymbols()
    run = Run(symbols)
    mode = FakeTensorMode(shape_env=symbols.shape_env)
    mode.cache_enabled = False
    started = time.perf_counter()
    try:
        with enable_python_dispatcher(), mode:
            fakes = tree_map(
                lambda x: FakeTensor(mode, x, torch.device("cpu")) if isinstance(x, torch.Tensor) else x, symbols.metas(arguments)
            )
            before = len(symbols.shape_env.guards)
            run.result = function(fakes[0], *fakes[1], **fakes[2])
    except Exception as error:
        run.error = f"{type(error).__name__}: {error}"
    run.seconds = time.perf_counter() - started
    if not run.error:
        run.guards = [guard.expr for guard in symbols.shape_env.guards[before:]]
        run.count = len(run.guards)
    return run


def _at(number: Any, values: Dict[Any, Any]) -> Any:
    """A number of either kind where the symbols have these values; None where only the data knows."""
    if not isinstance(number, torch.SymInt):
        return number
    value = number.node.expr.xreplace(values)
    return None if value.free_symbols else int(value)


def _shapes(result: Any, values: Dict[Any, Any]) -> List[Tuple[int, ...]]:
    return [tuple(_at(size, values) for size in leaf.shape) for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def _differ(found: List[Tuple[Any, ...]], expected: List[Tuple[Any, ...]]) -> bool:
    if [len(shape) for shape in found] != [len(shape) for shape in expected]:
        return True
    return any(a != b for shapes in zip(found, expected) for a, b in zip(*shapes) if a is not None and b is not None)


def _other_values(hints: List[int]) -> Iterator[Dict[int, int]]:
    """Values that equal no hint, first of all symbols, then of one at a time."""
    for factor, more in ((2, 0), (3, 1), (6, 0)):
        yield {hint: hint * factor + more for hint in hints}
    for one in hints:
        yield {hint: hint * (2 if hint == one else 1) for hint in hints}


def compare_elsewhere(ours: Run, theirs: Run) -> Tuple[int, str]:
    """At how many other values, at which the guards of both hold, sizes were compared; and where they differ."""
    program = ours.symbols.env.engine.guard_program()
    hints = list(ours.symbols.by_hint)
    compared = 0
    for values in _other_values(hints):
        ours_at, theirs_at = (
            {symbols.by_hint[hint].node._expr: sympy.Integer(values[hint]) for hint in symbols.by_hint}
            for symbols in (ours.symbols, theirs.symbols)
        )
        if not program(*(values[hint] for hint in hints)) or not all(bool(guard.xreplace(theirs_at)) for guard in theirs.guards):
            continue
        compared += 1
        found, expected = _shapes(ours.result, ours_at), _shapes(theirs.result, theirs_at)
        if _differ(found, expected):
            return compared, f"{found}, not {expected}, at {values}"
    return compared, ""


@dataclasses.dataclass
class Compared:
    """What became of one sample."""

    name: str
    sample: int
    ours: Run
    theirs: Optional[Run]  # None: not asked
    right: bool  # ours is at the hints what it is of those sizes
    elsewhere: int = 0
    difference: str = ""


def _usable(sample: Any) -> bool:
    tensors = [x for x in tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(x, torch.Tensor)]
    return all(x.layout is torch.strided and not x.storage_offset() for x in tensors)


def compared(samples: int, peers: int, names: Tuple[str, ...] = ()) -> Iterator[Compared]:
    """So many samples of each operator, spread over all it has, and theirs of so many; 0: all.

    Those that need values, or what fakes have not, are left out.
    """
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if torch.float32 not in op.dtypes or op.name in NOT_COMPARED or op.name.startswith("jiterator"):
            continue
        if names and op.name not in names:
            continue
        torch.manual_seed(0)
        usable = [sample for sample in op.sample_inputs("cpu", torch.float32) if _usable(sample)]
        step = max(1, len(usable) // samples) if samples else 1
        for place in range(0, len(usable), step)[: samples or None]:
            sample = usable[place]
            arguments = (sample.input, sample.args, sample.kwargs)
            try:
                with _core.FakeScope():
                    fakes = static_fakes(arguments)
                    expected = at_hints(op.op(fakes[0], *fakes[1], **fakes[2]))
            except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
                continue
            theirs = their_run(op.op, arguments) if not peers or place < peers * step else None
            row = Compared(f"{op.name}.{op.variant_test_name}".rstrip("."), place, our_run(op.op, arguments), theirs, True)
            if not row.ours.error:
                row.right = at_hints(row.ours.result) == expected
                if row.theirs and not row.theirs.error:
                    row.elsewhere, row.difference = compare_elsewhere(row.ours, row.theirs)
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1, help="of each operator; 0: all")
    parser.add_argument("names", nargs="*", help="operators")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows = list(compared(options.samples, 0, tuple(options.names)))
    both = [row for row in rows if row.theirs and not row.ours.error and not row.theirs.error]
    more: Dict[str, int] = collections.Counter()
    for row in both:
        if row.ours.count > row.theirs.count:
            more[row.name] += row.ours.count - row.theirs.count
            if options.names:
                print(row.name, row.sample, "ours", row.ours.guards, "theirs", row.theirs.guards)
    raised: Dict[Any, int] = collections.Counter()
    for row in rows:
        if row.ours.error:
            raised[row.name, row.ours.error[:100], (row.theirs and row.theirs.error[:60]) or "theirs is fine"] += 1
        if not row.right:
            print("WRONG at the hints:", row.name, row.sample)
        if row.difference:
            print("DIFFERS elsewhere:", row.name, row.sample, row.difference)
    for (name, error, theirs), count in sorted(raised.items()):
        print(f"raised {count} times: {name} | {error} | {theirs}")
    python: Dict[str, int] = collections.Counter({op: calls[1] for op, calls in _core.symbolic_stats().items() if calls[1]})
    print("run by PyTorch's Python:", ", ".join(f"{op} {count}" for op, count in python.most_common(40)))
    print("more guards than theirs:", ", ".join(f"{name} {count}" for name, count in more.most_common()) or "nowhere")
    print(f"samples {len(rows)}, compared {len(both)}, also at other values {sum(row.elsewhere > 0 for row in both)}")
    print(f"guards: ours {sum(row.ours.count for row in both)}, theirs {sum(row.theirs.count for row in both)}")
    print(f"seconds: ours {sum(row.ours.seconds for row in rows):.2f}, theirs {sum(row.theirs.seconds for row in rows if row.theirs):.2f}")


if __name__ == "__main__":
    main()
