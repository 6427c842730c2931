"""One way to talk to two shape engines: torch's ShapeEnv and ours. A case is a function of a world; what it returns must be the same."""

import math

import torch
from torch._dynamo.source import LocalSource
from torch.fx.experimental import symbolic_shapes as theirs

import pellucid
from pellucid import exc, shapes

POLICIES = {
    "duck": theirs.DimDynamic.DUCK,
    "dynamic": theirs.DimDynamic.DYNAMIC,
    "static": theirs.DimDynamic.STATIC,
}


class Ours:
    """Pellucid's."""

    name = "ours"

    def __init__(self, zero_one=True, duck=True):
        self.env = pellucid.ShapeEnv(specialize_zero_one=zero_one, duck_shapes=duck)
        self.names = []

    def _source(self):
        self.names.append(f"x{len(self.names)}")
        return self.names[-1]

    def size(self, hint, policy="dynamic", strict=None, relaxed=False):
        if strict:
            return self.env.create_size(hint, self._source(), policy=policy, min=strict[0], max=strict[1])
        return self.env.create_size(hint, self._source(), policy=policy, constraint="relaxed" if relaxed else None)

    def number(self, hint):
        return self.env.create_int(hint, self._source())

    def real(self, hint):
        return self.env.create_float(hint, self._source())

    def unbacked(self):
        return self.env.create_unbacked_int()

    def unbacked_real(self):
        return self.env.create_unbacked_float()

    def unbacked_truth(self):
        return self.env.create_unbacked_bool()

    def known(self, condition):
        if self.env.statically_known_true(condition):
            return True
        return False if self.env.statically_known_false(condition) else None

    def or_false(self, condition):
        return self.env.guard_or_false(condition)

    def or_true(self, condition):
        return self.env.guard_or_true(condition)

    def check(self, condition):
        self.env.check(condition)

    def constrain(self, number, least, most):
        pellucid.constrain_range(number, min=least, max=most)

    def as_size(self, number):
        self.env.use_as_size(number)

    def suppressed(self):
        return self.env.suppress_guards()

    def freeze(self):
        self.env.freeze()

    def errors_on_guards(self):
        self.env.freeze(errors=True)

    def guard_count(self):
        return self.env.guard_count

    def assert_count(self):
        return len(self.env.runtime_asserts)

    def simple(self, number):
        return self.env.simplify(number)

    def range(self, number):
        return tuple(None if bound is None or abs(bound) >= 2**60 else bound for bound in self.env.range(number))

    def constant(self, number):
        return number if isinstance(number, (int, float)) else None

    def hint(self, number):
        return number if isinstance(number, (int, float, bool)) else number.hint

    def value(self, number, point):
        """At a point: values of the inputs by place."""
        if isinstance(number, (int, float)):
            return number
        scope = {"math": math, **{str(symbol): value for (_, symbol), value in zip(self.env.inputs, point)}}
        return eval(number.raw, scope)

    def guard_texts(self):
        return [guard.text for guard in self.env.guards]

    def holds(self, texts, point):
        scope = {"math": math, **dict(zip(self.names, point))}
        return all(eval(text, dict(scope)) for text in texts)

    minimum = staticmethod(shapes.sym_min)
    maximum = staticmethod(shapes.sym_max)
    choose = staticmethod(shapes.sym_ite)
    negate = staticmethod(shapes.sym_not)
    floating = staticmethod(shapes.sym_float)
    total = staticmethod(shapes.sym_sum)

    def sqrt(self, number):
        return shapes.sym_math("sqrt", number)


class Theirs:
    """PyTorch's."""

    name = "theirs"

    def __init__(self, zero_one=True, duck=True):
        self.env = theirs.ShapeEnv(
            specialize_zero_one=zero_one, duck_shape=duck, allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True
        )
        self.inputs = []

    def _make(self, hint, policy, constraint, positive):
        source = LocalSource(f"x{len(self.inputs)}")
        symbol = self.env.create_symbol(hint, source, dynamic_dim=POLICIES[policy], constraint_dim=constraint, positive=positive)
        made = self.env.create_symintnode(symbol, hint=hint, source=source)
        self.inputs.append((made, source, constraint, symbol))
        return made

    def size(self, hint, policy="dynamic", strict=None, relaxed=False):
        constraint = None
        if strict:
            from torch.utils._sympy.value_ranges import ValueRanges

            constraint = theirs.StrictMinMaxConstraint(warn_only=False, vr=ValueRanges(*strict))
        elif relaxed:
            constraint = theirs.RelaxedUnspecConstraint(warn_only=False)
        return self._make(hint, policy, constraint, True)

    def number(self, hint):
        return self._make_unspecified(hint)

    def _make_unspecified(self, hint):
        source = LocalSource(f"x{len(self.inputs)}")
        symbol = self.env.create_unspecified_symbol(hint, source, dynamic_dim=theirs.DimDynamic.DYNAMIC)
        made = self.env.create_symintnode(symbol, hint=hint, source=source)
        self.inputs.append((made, source, None, symbol))
        return made

    def real(self, hint):
        source = LocalSource(f"x{len(self.inputs)}")
        symbol = self.env.create_unspecified_symbol(hint, source, dynamic_dim=theirs.DimDynamic.DYNAMIC)
        made = self.env.create_symfloatnode(symbol, hint=hint, source=source)
        self.inputs.append((made, source, None, symbol))
        return made

    def unbacked(self):
        return self.env.create_unbacked_symint()

    def unbacked_real(self):
        return self.env.create_unbacked_symfloat()

    def unbacked_truth(self):
        return self.env.create_unbacked_symbool()

    def known(self, condition):
        if theirs.statically_known_true(condition):
            return True
        return False if theirs.statically_known_false(condition) else None

    def or_false(self, condition):
        return theirs.guard_or_false(condition)

    def or_true(self, condition):
        return theirs.guard_or_true(condition)

    def check(self, condition):
        torch._check(condition)

    def constrain(self, number, least, most):
        theirs.constrain_range(number, min=least, max=most)

    def as_size(self, number):
        torch._check(number >= 0)
        theirs._constrain_range_for_size(number)

    def suppressed(self):
        return self.env.suppress_guards()

    def freeze(self):
        self.env.freeze()

    def errors_on_guards(self):
        self.env._error_on_new_guards = True

    def guard_count(self):
        return len(self.env.guards)

    def assert_count(self):
        return sum(map(len, self.env.deferred_runtime_asserts.values()))

    def simple(self, number):
        return number

    def range(self, number):
        if isinstance(number, int):
            return number, number
        bounds = self.env.bound_sympy(self.env.simplify(number.node.expr))
        return tuple(int(bound) if bound.is_Integer and abs(int(bound)) < 2**60 else None for bound in (bounds.lower, bounds.upper))

    def constant(self, number):
        if isinstance(number, (int, float)):
            return number
        node = number.node
        for read in (node.maybe_as_int, node.maybe_as_float, node.maybe_as_bool):
            try:
                value = read()
            except TypeError:
                continue
            if value is not None:
                return value
        return None

    def hint(self, number):
        return number if isinstance(number, (int, float, bool)) else number.node.hint

    def value(self, number, point):
        if isinstance(number, (int, float)):
            return number
        replaced = number.node._expr.xreplace({symbol: value for (*_, symbol), value in zip(self.inputs, point)})
        if isinstance(number, torch.SymBool):
            return bool(replaced)
        return int(replaced) if isinstance(number, torch.SymInt) else float(replaced)

    def guard_texts(self):
        values = [made for made, *_ in self.inputs]
        sources = [source for _, source, *_ in self.inputs]
        contexts = None
        if any(constraint is not None for _, _, constraint, _ in self.inputs):
            contexts = [theirs.SymIntSymbolicContext(constraint) for _, _, constraint, _ in self.inputs]
        return self.env.produce_guards(values, sources, input_contexts=contexts)

    def holds(self, texts, point):
        scope = {"math": math, "torch": torch, "L": {f"x{i}": value for i, value in enumerate(point)}}
        return all(eval(text, dict(scope)) for text in texts)

    minimum = staticmethod(torch.sym_min)
    maximum = staticmethod(torch.sym_max)
    choose = staticmethod(torch.sym_ite)
    negate = staticmethod(torch.sym_not)
    floating = staticmethod(torch.sym_float)
    total = staticmethod(torch.sym_sum)
    sqrt = staticmethod(torch._sym_sqrt)


ERRORS = (
    ("data-dependent", (theirs.GuardOnDataDependentSymNode, exc.DataDependentError)),
    ("constraint", (theirs.ConstraintViolationError, exc.ConstraintViolationError)),
    ("frozen", (theirs._ShapeEnvGuardError, exc.GuardsFrozenError)),
    ("division", (ZeroDivisionError,)),
    ("value", (ValueError, AssertionError, RuntimeError, OverflowError, TypeError)),
)


def outcome(case, world):
    """What the case returns, or which kind of error it raises."""
    try:
        return case(world)
    except Exception as error:
        for name, types in ERRORS:
            if isinstance(error, types):
                return f"error: {name}"
        raise
