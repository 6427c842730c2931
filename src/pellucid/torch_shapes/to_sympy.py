"""Expressions of the shape engine as sympy's, in the functions of torch.utils._sympy, and back.

The way out is cached by node, the way back by expression: both are per `SympyTable`, one for each ShapeEnv. Only the way out makes
symbols; a symbol that PyTorch made itself is given one of ours, one to one.
"""

import functools
import operator
from typing import Any, Callable, Dict, List, Optional, Tuple

import sympy
from torch.utils._sympy import functions as torch_functions

from pellucid import _core, shapes
from pellucid.torch_shapes import numbers

_F = torch_functions


def _sides(difference: sympy.Expr) -> Tuple[sympy.Expr, sympy.Expr]:
    """What stands left and right of the comparison of a difference with 0, without negative terms: s0 - s1 + 3 is (s0 + 3, s1)."""
    left: List[sympy.Expr] = []
    right: List[sympy.Expr] = []
    for term in sympy.Add.make_args(difference):
        if term.is_number or term.as_coeff_Mul()[0] < 0:
            right.append(-term)
        else:
            left.append(term)
    if not left:
        return -sympy.Add(*right), sympy.Integer(0)
    return sympy.Add(*left), sympy.Add(*right)


def _where(condition: sympy.Basic, a: sympy.Basic, b: sympy.Basic) -> sympy.Basic:
    return sympy.Piecewise((a, condition), (b, True))


# By the name of the kind (csrc/symbolic/expr_kinds.def); kinds with something beyond their arguments are in SympyTable._make.
_OUT: Dict[str, Callable[..., sympy.Basic]] = {
    "Product": sympy.Mul,
    "FloorDiv": _F.FloorDiv,
    "Mod": _F.PythonMod,
    "Pow": _F.PowByNatural,
    "Min": _F.Min,
    "Max": _F.Max,
    "Abs": sympy.Abs,
    "ShiftLeft": _F.LShift,
    "ShiftRight": _F.RShift,
    "BitAnd": _F.BitwiseFn_bitwise_and,
    "BitOr": _F.BitwiseFn_bitwise_or,
    "BitXor": _F.BitwiseFn_bitwise_xor,
    "Floor": _F.FloorToInt,
    "Ceil": _F.CeilToInt,
    "Trunc": _F.TruncToInt,
    "Round": _F.RoundToInt,
    "Where": _where,
    "Eq0": lambda difference: sympy.Eq(*_sides(difference)),
    "Ne0": lambda difference: sympy.Ne(*_sides(difference)),
    "Le0": lambda difference: sympy.Le(*_sides(difference)),
    "And": sympy.And,
    "Or": sympy.Or,
    "Not": sympy.Not,
    "FloatEq": sympy.Eq,
    "FloatLt": sympy.Lt,
    "FloatLe": sympy.Le,
    "ToFloat": _F.ToFloat,
    "IntTrueDiv": _F.IntTrueDiv,
    "FloatAdd": operator.add,
    "FloatSub": operator.sub,
    "FloatMul": operator.mul,
    "FloatDiv": _F.FloatTrueDiv,
    "FloatFloorDiv": lambda a, b: _F.ToFloat(_F.FloorToInt(_F.FloatTrueDiv(a, b))),
    "FloatMod": _F.Mod,
    "FloatPow": _F.FloatPow,
    "FloatMin": _F.Min,
    "FloatMax": _F.Max,
    "FloatNeg": operator.neg,
    "FloatAbs": sympy.Abs,
    "Sqrt": _F.OpaqueUnaryFn_sqrt,
    "Cos": _F.OpaqueUnaryFn_cos,
    "Cosh": _F.OpaqueUnaryFn_cosh,
    "Sin": _F.OpaqueUnaryFn_sin,
    "Sinh": _F.OpaqueUnaryFn_sinh,
    "Tan": _F.OpaqueUnaryFn_tan,
    "Tanh": _F.OpaqueUnaryFn_tanh,
    "Asin": _F.OpaqueUnaryFn_asin,
    "Acos": _F.OpaqueUnaryFn_acos,
    "Atan": _F.OpaqueUnaryFn_atan,
    "Log2": _F.OpaqueUnaryFn_log2,
}

_Number = Any  # int, float, bool or one of shapes.SymInt, SymFloat, SymBool


def _reduced(function: Callable[[_Number, _Number], _Number]) -> Callable[..., _Number]:
    return lambda *arguments: functools.reduce(function, arguments)


def _power(base: _Number, exponent: _Number) -> _Number:
    return base**exponent


def _piecewise(*pairs: Tuple[_Number, _Number]) -> _Number:
    *rest, (last, condition) = pairs
    if condition is not True:
        raise NotImplementedError("a Piecewise without a last case")
    for value, when in reversed(rest):
        last = shapes.sym_ite(when, value, last)
    return last


def _symbolic_math(name: str) -> Callable[[_Number], _Number]:
    return lambda number: shapes.sym_math(name, number)


# By the name of sympy's or PyTorch's class.
_BACK: Dict[str, Callable[..., _Number]] = {
    "Add": _reduced(operator.add),
    "Mul": _reduced(operator.mul),
    "And": _reduced(operator.and_),
    "Or": _reduced(operator.or_),
    "Not": numbers.negation,
    "Min": _reduced(numbers.smaller),
    "Max": _reduced(numbers.larger),
    "Abs": abs,
    "Pow": _power,
    "PowByNatural": _power,
    "FloatPow": _power,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "CeilDiv": shapes.sym_ceil_div,
    "ModularIndexing": lambda base, divisor, modulus: (base // divisor) % modulus,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "BitwiseFn_bitwise_and": operator.and_,
    "BitwiseFn_bitwise_or": operator.or_,
    "BitwiseFn_bitwise_xor": operator.xor,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "ToFloat": shapes.sym_float,
    "TruncToInt": shapes.sym_int,
    "FloorToInt": numbers.floor,
    "CeilToInt": numbers.ceil,
    "RoundToInt": round,
    "RoundDecimal": round,
    "Identity": lambda number: number,
    "Piecewise": _piecewise,
    "ExprCondPair": lambda value, condition: (value, condition),
    "Equality": operator.eq,
    "Unequality": operator.ne,
    "StrictLessThan": operator.lt,
    "LessThan": operator.le,
    "StrictGreaterThan": operator.gt,
    "GreaterThan": operator.ge,
    **{
        f"OpaqueUnaryFn_{name}": _symbolic_math(name)
        for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")
    },
}


class SympyTable:
    """The expressions of one ShapeEnv beside sympy's."""

    def __init__(self, new_symbol: Callable[[sympy.Symbol], _Number]) -> None:
        """`new_symbol` makes a number for a symbol that isn't ours."""
        self._out: Dict[int, sympy.Basic] = {}
        self._back: Dict[sympy.Basic, _Number] = {}
        self._new_symbol = new_symbol

    def to_sympy(self, node: "_core.SymNode") -> sympy.Basic:
        """The expression of a node. Deep ones are walked without recursion."""
        pending = [node]
        while pending:
            current = pending[-1]
            if current.id in self._out:
                pending.pop()
                continue
            kind, arguments, coefficients, constant, name = current.parts()
            missing = [argument for argument in arguments if argument.id not in self._out]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            expr = self._make(current, kind, [self._out[argument.id] for argument in arguments], coefficients, constant, name)
            self._out[current.id] = expr
            self._back.setdefault(expr, numbers.from_node(current))
        return self._out[node.id]

    def _make(
        self,
        node: "_core.SymNode",
        kind: str,
        arguments: List[sympy.Basic],
        coefficients: Optional[List[int]],
        constant: Any,
        name: Optional[str],
    ) -> sympy.Basic:
        if kind == "Symbol":
            return self._symbol(node, str(name))
        if kind == "Const":
            return sympy.Integer(constant)
        if kind == "Truth":
            return sympy.true if constant else sympy.false
        if kind == "Real":
            return sympy.Float(constant)
        if kind == "Sum":
            terms = [coefficient * argument for coefficient, argument in zip(coefficients or [], arguments)]
            return sympy.Add(*terms, sympy.Integer(constant))
        if kind == "RoundDigits":
            return _F.RoundDecimal(arguments[0], sympy.Integer(constant))
        return _OUT[kind](*arguments)

    @staticmethod
    def _symbol(node: "_core.SymNode", name: str) -> sympy.Symbol:
        if node.pytype is float:
            return sympy.Symbol(name, real=True)
        least, _ = node.bounds()
        if node.pytype is bool or least is None or least < 0:
            return sympy.Symbol(name, integer=True)
        return sympy.Symbol(name, positive=True, integer=True) if least > 0 else sympy.Symbol(name, nonnegative=True, integer=True)

    def from_sympy(self, expr: sympy.Basic) -> _Number:
        """The number that an expression of sympy stands for; NotImplementedError names a function that has no counterpart."""
        known = self._back.get(expr)
        if known is not None:
            return known
        if expr is sympy.true or expr is sympy.false:
            return bool(expr)
        if expr.is_Integer:
            return int(expr)
        if expr.is_Float:
            return float(expr)
        if isinstance(expr, sympy.Symbol):
            number = self._new_symbol(expr)
        else:
            name = type(expr).__name__
            if name not in _BACK:
                raise NotImplementedError(f"{name} of sympy expression {expr} has no counterpart in the shape engine")
            number = _BACK[name](*[self.from_sympy(argument) for argument in expr.args])
        self._back[expr] = number
        return number
