"""A ShapeEnv for PyTorch's Python code that computes on Pellucid's shape engine.

`FakeTensorMode(shape_env=TorchShapeEnv())` and `make_fx` run on it, with the mode's cache off (a cache hit builds PyTorch's own
nodes) and inside `torch._dispatch.python.enable_python_dispatcher()` (without it C++ kernels ask for sizes as ints). It offers what that
code reads of a ShapeEnv; everything about shapes is asked of the engine.
"""

import contextlib
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

import torch

from pellucid import _bytecode, _core, shape_errors, shapes
from pellucid.torch_shapes import numbers

if TYPE_CHECKING:
    import sympy

_environments: "weakref.WeakValueDictionary[int, TorchShapeEnv]" = weakref.WeakValueDictionary()


class _Settings:
    """What PyTorch puts into cache keys: every environment of ours behaves alike."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Settings)

    def __hash__(self) -> int:
        return hash(_Settings)


class TorchShapeEnv:
    """PyTorch's view of a `pellucid.ShapeEnv`.

    Names and meanings are those of torch.fx.experimental.symbolic_shapes.ShapeEnv in torch 2.13; expressions cross as sympy's.
    """

    allow_scalar_outputs = True
    allow_dynamic_output_shape_ops = True
    prefer_deferred_runtime_asserts_over_guards = False
    _translation_validation_enabled = False
    _default_unspecified_value_range = None

    def __init__(self, engine: Optional[shapes.ShapeEnv] = None) -> None:
        """Over a ShapeEnv of ours, or a new one."""
        self.engine = shapes.ShapeEnv() if engine is None else engine
        self.settings = _Settings()
        self.fake_tensor_cache: Dict[Any, Any] = {}
        self.fake_tensor_cache_enabled = False
        self.pending_fresh_unbacked_symbols: List[sympy.Symbol] = []
        self.ignorable_fresh_unbacked_symbols: List[sympy.Symbol] = []
        self.real_tensor_prop_unbacked_vals: Dict[sympy.Symbol, Any] = {}
        self.unbacked_renamings: Dict[sympy.Symbol, sympy.Symbol] = {}
        self.var_to_hint_override: Dict[sympy.Symbol, int] = {}
        self._table: Any = None
        _environments[_bytecode.symbolic_env_key(self.engine)] = self

    def __reduce__(self) -> Any:
        return _loaded, (_bytecode.symbolic_save(self.engine),)

    # What others call.

    @property
    def table(self) -> Any:
        """The way to sympy and back, made when first asked for: it imports sympy."""
        if self._table is None:
            from pellucid.torch_shapes.to_sympy import SympyTable

            self._table = SympyTable(self._adopt_symbol)
        return self._table

    def _adopt_symbol(self, symbol: "sympy.Symbol") -> Any:
        if symbol.is_integer:
            return self.engine.create_unbacked_int()
        return self.engine.create_unbacked_float()

    def sizes_of(self, tensor: torch.Tensor, source: str, **options: Any) -> Tuple[Any, ...]:
        """Symbols for the sizes of a tensor, as `pellucid.ShapeEnv.create_sizes` makes them, as torch.SymInts."""
        return tuple(numbers.to_torch(size) for size in self.engine.create_sizes(tuple(tensor.shape), source, **options))

    # Symbols.

    def create_unbacked_symint(self, source: Any = None) -> torch.SymInt:
        """An int that only the data knows."""
        return self._fresh(self.engine.create_unbacked_int())

    def create_unbacked_symfloat(self) -> torch.SymFloat:
        """A float that only the data knows."""
        return self._fresh(self.engine.create_unbacked_float())

    def create_unbacked_symbool(self) -> torch.SymBool:
        """A bool that only the data knows."""
        return self._fresh(self.engine.create_unbacked_bool())

    def _fresh(self, number: Any) -> Any:
        result = numbers.to_torch(number)
        self.pending_fresh_unbacked_symbols.append(result.node.expr)
        return result

    def is_unbacked_symint(self, symbol: "sympy.Symbol") -> bool:
        """Whether the symbol has no hint."""
        number = self.table.from_sympy(symbol)
        return isinstance(number, shapes.SymInt) and number.is_symbol and number.unbacked

    def create_symintnode(self, sym: "sympy.Expr", *, hint: Optional[int] = None, source: Any = None) -> Any:
        """The number of an expression; `hint` and `source` are known of its symbols."""
        return numbers.to_torch(self.table.from_sympy(sym))

    create_symfloatnode = create_symintnode
    create_symboolnode = create_symintnode

    # Questions.

    def evaluate_sym_node(self, sym_node: Any, size_oblivious: bool = False, fallback_value: Optional[bool] = None) -> Any:
        """The value of a node: a bool, int or float."""
        if fallback_value is not None:
            return sym_node.guard_or(bool(fallback_value))
        if sym_node.is_bool():
            return sym_node.guard_size_oblivious("", 0) if size_oblivious else sym_node.guard_bool("", 0)
        return sym_node.guard_int("", 0) if sym_node.is_int() else sym_node.guard_float("", 0)

    def evaluate_expr(self, orig_expr: "sympy.Basic", hint: Any = None, fx_node: Any = None, **options: Any) -> Any:
        """The value of an expression, with the guards it needs."""
        import sympy

        return sympy.sympify(self.engine.evaluate(self.table.from_sympy(orig_expr)))

    def _maybe_evaluate_static(self, expr: "sympy.Basic", **options: Any) -> Any:
        import sympy

        number = self.table.from_sympy(expr)
        if isinstance(number, shapes.SymBool):
            if self.engine.statically_known_true(number):
                return sympy.true
            return sympy.false if self.engine.statically_known_false(number) else None
        simple = self.engine.simplify(number) if isinstance(number, (shapes.SymInt, shapes.SymFloat)) else number
        return None if isinstance(simple, (shapes.SymInt, shapes.SymFloat)) else sympy.sympify(simple)

    def guard_or_defer_runtime_assert(self, orig_expr: "sympy.Basic", msg: str, fx_node: Any = None) -> bool:
        """States that a condition holds: a guard, or a run-time assertion where only the data knows."""
        condition = self.table.from_sympy(orig_expr)
        return condition if isinstance(condition, bool) else bool(self.engine.expect_true(condition, msg))

    def simplify(self, expr: "sympy.Basic") -> "sympy.Basic":
        """The expression by what is known now."""
        number = self.table.from_sympy(expr)
        return expr if isinstance(number, (bool, int, float)) else numbers.to_torch(number).node.expr

    replace = simplify

    def size_hint(self, expr: "sympy.Basic", *, allow_none: bool = False) -> Any:
        """The value at the hints; an error, or None if allowed, where there is none."""
        import sympy

        number = self.table.from_sympy(expr)
        hint = number if isinstance(number, (bool, int, float)) else number.hint
        if hint is None and not allow_none:
            raise shape_errors.data_dependent(f"{expr} has no hint")
        return None if hint is None else sympy.sympify(hint)

    def optimization_hint(self, expr: "sympy.Basic", fallback: Any = None) -> Any:
        """The value at the hints, or `fallback`."""
        hint = self.size_hint(expr, allow_none=True)
        return fallback if hint is None else int(hint)

    def guarding_hint_or_throw(self, expr: "sympy.Basic") -> int:
        """The value at the hints, or an error."""
        return int(self.size_hint(expr))

    def bound_sympy(self, expr: "sympy.Basic", size_oblivious: bool = False) -> Any:
        """The expression's range as PyTorch's ValueRanges."""
        import sympy
        from torch.utils._sympy.numbers import int_oo
        from torch.utils._sympy.value_ranges import ValueRanges

        number = self.table.from_sympy(expr)
        if isinstance(number, shapes.SymInt):
            least, most = self.engine.range(number)
            return ValueRanges(-int_oo if least is None else least, int_oo if most is None else most)
        if isinstance(number, shapes.SymBool):
            known = self._maybe_evaluate_static(expr)
            return ValueRanges(sympy.false, sympy.true) if known is None else ValueRanges(known, known)
        if isinstance(number, shapes.SymFloat):
            return ValueRanges(-sympy.oo, sympy.oo)
        return ValueRanges(sympy.sympify(number), sympy.sympify(number))

    # Facts.

    def _constrain_range(self, a: "sympy.Expr", min: Optional[int], max: Optional[int]) -> None:
        shapes.constrain_range(self.table.from_sympy(a), min=min, max=max)

    def _constrain_range_for_size(self, a: "sympy.Symbol", min: Optional[int] = None, max: Optional[int] = None) -> None:
        number = self.table.from_sympy(a)
        self.engine.use_as_size(number)
        if min is not None or max is not None:
            shapes.constrain_range(number, min=0 if min is None else min, max=max)

    def _constrain_is_bounded(self, a: "sympy.Symbol", upper_bound: int) -> None:
        shapes.constrain_range(self.table.from_sympy(a), min=None, max=upper_bound)

    @contextlib.contextmanager
    def suppress_guards(self) -> Iterator[None]:
        """Questions are answered by the hints, and no guard remembers it."""
        with self.engine.suppress_guards():
            yield

    def _suppress_guards_enter(self) -> None:
        self.engine._suppress()

    def _suppress_guards_exit(self) -> None:
        self.engine._unsuppress()

    @contextlib.contextmanager
    def ignore_fresh_unbacked_symbols(self) -> Iterator[None]:
        """Symbols without hints that come up inside are nobody's to bind."""
        before = list(self.pending_fresh_unbacked_symbols)
        try:
            yield
        finally:
            self.pending_fresh_unbacked_symbols[:] = before

    def freeze(self) -> None:
        """No new guards from here."""
        self.engine.freeze()

    def freeze_runtime_asserts(self) -> None:
        """Nothing to do: the engine's runtime assertions are read when they are wanted."""

    def cleanup(self) -> None:
        """Nothing to do: the engine keeps no stacks."""

    # What is known, as PyTorch's dictionaries.

    @property
    def frozen(self) -> bool:
        """Whether guards are frozen."""
        return bool(self.engine.frozen)

    @property
    def specialize_zero_one(self) -> bool:
        """Whether sizes 0 and 1 become constants."""
        return bool(self.engine.specialize_zero_one)

    @property
    def duck_shape(self) -> bool:
        """Whether equal sizes share a symbol."""
        return bool(self.engine.duck_shapes)

    @property
    def guards(self) -> List[Any]:
        """The guards in terms of the inputs."""
        return list(self.engine.guards)

    @property
    def replacements(self) -> Dict["sympy.Basic", "sympy.Basic"]:
        """What symbols turned out to be."""
        names = {str(symbol): symbol for symbol in self._symbols()}
        replaced = self.engine.replacements
        return {names[name]: self._sympy(number) for name, number in replaced.items() if name in names}

    @property
    def backed_var_to_val(self) -> Dict["sympy.Symbol", "sympy.Integer"]:
        """The hints of the symbols that have one."""
        import sympy

        return {self._sympy(number): sympy.sympify(number.hint) for number in self._numbers() if number.hint is not None}

    @property
    def var_to_range(self) -> Dict["sympy.Symbol", Any]:
        """The ranges of all symbols."""
        return {self._sympy(number): self.bound_sympy(self._sympy(number)) for number in self._numbers()}

    @property
    def deferred_runtime_asserts(self) -> Dict["sympy.Symbol", List[Any]]:
        """What is left to be checked at run time, by the symbol that must be known."""
        by_symbol: Dict[sympy.Symbol, List[Any]] = {}
        for row in self.engine.runtime_asserts:
            by_symbol.setdefault(self._sympy(row.symbol), []).append(row)
        return by_symbol

    def _numbers(self) -> List[shapes.SymInt]:
        return [number for number in _bytecode.symbolic_symbols(self.engine) if isinstance(number, shapes.SymInt)]

    def _symbols(self) -> List["sympy.Symbol"]:
        return [self._sympy(number) for number in self._numbers()]

    def _sympy(self, number: Any) -> "sympy.Basic":
        return raw_expr_of(numbers.to_torch(number).node) if isinstance(number, numbers._SYMBOLIC) else _plain(number)


def _plain(number: Any) -> "sympy.Basic":
    import sympy

    return sympy.sympify(number)


# What csrc/torch_bridge/sym_node_python.cpp calls.


def env_of(node: "_core.SymNode") -> TorchShapeEnv:
    """The environment a node belongs to, as PyTorch's code wants it."""
    env = _environments.get(node.env_key)
    if env is None:
        engine = shapes.ShapeEnv()
        _bytecode.symbolic_adopt(engine, numbers.from_node(node))
        env = TorchShapeEnv(engine)
    return env


def expr_of(node: "_core.SymNode") -> "sympy.Basic":
    """`node.expr`: after what is known by now."""
    return raw_expr_of(node.simplified())


def raw_expr_of(node: "_core.SymNode") -> "sympy.Basic":
    """`node._expr`: as it was made."""
    return env_of(node).table.to_sympy(node)


def moved_to(node: "_core.SymNode", env: Any) -> "_core.SymNode":
    """The same expression in another environment, which must have a symbol of the same name for each of its symbols."""
    if env is env_of(node):
        return node
    raise NotImplementedError("a node of one ShapeEnv can't be moved into another: copy the ShapeEnv (copy.deepcopy) with all its nodes")


def deepcopy_node(node: "_core.SymNode", memo: Dict[int, Any]) -> "_core.SymNode":
    """As PyTorch's nodes are copied: with their whole ShapeEnv, which is asked the same again."""
    env = env_of(node)
    copied = memo.get(id(env))
    if copied is None:
        copied = memo[id(env)] = TorchShapeEnv(env.engine.replayed())
    return numbers.to_torch(_bytecode.symbolic_translate(copied.engine, numbers.from_node(node))).node


def _loaded(saved: bytes) -> TorchShapeEnv:
    engine = shapes.ShapeEnv()
    _bytecode.symbolic_load(engine, saved)
    return TorchShapeEnv(engine)


def reduce_node(node: "_core.SymNode") -> Any:
    """As PyTorch's nodes are pickled: with their whole ShapeEnv."""
    return _rebuilt_node, (env_of(node), node.id, str(node))


def _rebuilt_node(env: TorchShapeEnv, place: int, text: str) -> "_core.SymNode":
    node = numbers.to_torch(_bytecode.symbolic_expression(env.engine, place)).node
    if str(node) != text:
        raise ValueError(f"the pickled expression {text} came back as {node}: it was pickled by another version")
    return node
