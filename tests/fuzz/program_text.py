"""Random programs as source text, over tensors, numbers, containers, objects, closures and control flow, and the world they run in.

Every variable has one kind all along (t0 to t2: 2x3 tensors; i0 to i2: ints), so that most programs run through; those that raise are
welcome too. Loops are bounded. Knows nothing of capture.
"""

import os
import re

import torch
from harness import HERE
from hypothesis import strategies as st
from program_templates import KINDS, SUPPORT, TEMPLATES

FILE = os.path.join(HERE, "random_program.py")  # no such file: what tracebacks are compared by
TENSORS = ("t0", "t1", "t2")
INTS = ("i0", "i1", "i2")
KEYS = ("a", "b", "c")


class Writer:
    """Writes one program; every choice is hypothesis's, so that failures shrink."""

    def __init__(self, draw):
        self.draw = draw
        self.lines = []
        self.names = 0

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def one_of(self, choices):
        return self.draw(st.sampled_from(choices))

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    # ---- expressions

    def int_expression(self, depth=0):
        kind = self.number(0, 9 if depth < 2 else 3)
        if kind == 0:
            return str(self.number(-3, 5))
        if kind == 1:
            return self.one_of(INTS)
        if kind == 2:
            return self.one_of(("n", "G", "obj.count", "len(items)", "len(d)", "len(GL)", "GL[-1]"))
        if kind == 3:
            return f"{self.one_of(TENSORS)}.shape[{self.number(-2, 1)}]"
        left, right = self.int_expression(depth + 1), self.int_expression(depth + 1)
        if kind == 4:
            return f"({left} {self.one_of(('+', '-', '*', '%', '//', '&', '|', '<', '=='))} {right})"
        if kind == 5:
            return f"({left} if {self.condition(depth + 1)} else {right})"
        if kind == 6:
            return f"{self.one_of(('min', 'max'))}({left}, {right})"
        if kind == 7:
            return f"sum([{left} for q in range({self.number(0, 3)})], {right})"
        if kind == 8:
            return f"bump({left})"
        return f"(lambda p, q={left}: p + q)({right})"

    def condition(self, depth=0, data=False):
        kind = self.number(0, 6 if data else 5)
        if kind == 0:
            return f"{self.int_expression(depth + 1)} {self.one_of(('<', '<=', '==', '!='))} {self.int_expression(depth + 1)}"
        if kind == 1:
            return f"'{self.one_of(KEYS)}' {self.one_of(('in', 'not in'))} d"
        if kind == 2:
            return f"{self.one_of(TENSORS)} {self.one_of(('is', 'is not'))} {self.one_of(TENSORS)}"
        if kind == 3:
            return f"obj.flag {self.one_of(('and', 'or'))} {self.int_expression(depth + 1)}"
        if kind == 4:
            return f"not {self.one_of(('items', 'd', 'GL', 'obj.flag'))}"
        if kind == 5:
            looked_at = self.one_of(("d.get('a')", "items and items[-1]", "obj.last"))
            return f"isinstance({looked_at}, {self.one_of(('int', 'torch.Tensor'))})"
        return f"{self.one_of(TENSORS)}.sum() > {self.number(-2, 2)}"

    def tensor(self, depth=0):
        """A 2x3 tensor."""
        kind = self.number(0, 12 if depth < 3 else 1)
        if kind <= 1:
            return self.one_of((*TENSORS, "x", "y", "obj.t"))
        inner = self.tensor(depth + 1)
        if kind <= 3:
            return f"({inner} {self.one_of(('+', '-', '*'))} {self.one_of((self.int_expression(1), self.tensor(depth + 1), '0.5'))})"
        if kind == 4:
            return f"{inner}.{self.one_of(('sin', 'relu', 'abs', 'neg', 'clone', 'detach', 'tanh', 'contiguous'))}()"
        if kind == 5:
            return f"torch.maximum({inner}, {self.tensor(depth + 1)})"
        if kind == 6:
            return f"torch.where({inner} > 0, {inner}, {self.tensor(depth + 1)})"
        if kind == 7:
            return f"({inner} + {self.tensor(depth + 1)}.sum({self.one_of(('0', '1, keepdim=True', ''))}))"
        if kind == 8:
            return f"({inner} @ W)"
        if kind == 9:
            views = (".reshape(3, 2).reshape(2, 3)", ".t().t()", ".view(6)[:6].view(2, 3)", ".expand(2, 3)", "[:, :]", "[:2]")
            return inner + self.one_of(views)
        if kind == 10:
            return f"torch.stack([{inner}[0], {self.tensor(depth + 1)}[1]])"
        if kind == 11:
            more = self.one_of(("", f", k={self.int_expression(2)}", ", *GL[:1]"))
            return f"twice({inner}{more})"
        return f"({inner} if {self.condition(2)} else {self.tensor(depth + 1)})"

    # ---- statements

    def block(self, depth, size, loop=False):
        for _ in range(self.number(1, size)):
            self.statement(depth, loop)

    def statement(self, depth, loop):
        kinds = ["tensor", "int", "inplace", "list", "dict", "object", "global", "print", "leave", "nested_list"]
        if depth < 4:
            kinds += ["branch", "branch", "for", "each", "while", "try", "with", "closure", "unpack"]
        if depth < 5:
            kinds += ["template"] * len(kinds)
        getattr(self, "write_" + self.one_of(kinds))(depth, loop)

    def write_template(self, depth, loop):
        names = {}

        def fill(hole):
            name = hole.group(1)
            if name is None:
                return hole.group(0)[0]
            if name in ("v", "w"):
                return names.setdefault(name, self.fresh(name))
            if name in ("t", "i"):
                return names.setdefault(name, self.one_of(TENSORS if name == "t" else INTS))
            return {
                "te": lambda: self.tensor(2),
                "ie": lambda: self.int_expression(1),
                "c": lambda: self.condition(1),
                "d": lambda: str(self.number(0, 4)),
                "d01": lambda: str(self.number(0, 1)),
                "d12": lambda: str(self.number(1, 2)),
                "v0": lambda: "0",
                "b": lambda: self.one_of(("True", "False", "obj.flag")),
                "k": lambda: self.one_of(KEYS),
            }[name]()

        for row in self.one_of(TEMPLATES[self.one_of(KINDS)]).split("\n"):
            text = row.lstrip()
            deeper = depth + (len(row) - len(text)) // 4
            if text in ("<block>", "<loop>"):
                self.block(deeper, 2, loop or text == "<loop>")
            else:
                self.line(deeper, re.sub(r"\{\{|\}\}|\{(\w+)\}", fill, text))

    def write_tensor(self, depth, loop):
        self.line(depth, f"{self.one_of(TENSORS)} = {self.tensor()}")

    def write_int(self, depth, loop):
        self.line(depth, f"{self.one_of(INTS)} {self.one_of(('=', '+=', '-='))} {self.int_expression()}")

    def write_inplace(self, depth, loop):
        name = self.one_of((*TENSORS, "obj.t", "x"))
        self.line(
            depth,
            self.one_of(
                (
                    f"{name}.add_({self.one_of(('1', 'y', 't0', '0.25'))})",
                    f"{name}.mul_({self.one_of(('2', 'G', '0.5'))})",
                    f"{name}[{self.number(0, 1)}] = {self.int_expression(1)}",
                    f"{name}[:, {self.number(0, 2)}] += {self.number(1, 3)}",
                    f"{name} += {self.one_of(TENSORS)}",
                    f"torch.add(x, y, out={name})",
                    f"{name}[0].zero_()",
                )
            ),
        )

    def write_list(self, depth, loop):
        value = self.one_of((self.tensor(1), self.int_expression(1)))
        self.line(
            depth,
            self.one_of(
                (
                    f"items.append({value})",
                    f"items.insert({self.number(-2, 2)}, {value})",
                    f"items += [{value}]",
                    f"items[{self.number(-2, 2)}] = {value}",
                    f"{self.one_of(INTS)} = len(items[{self.number(-2, 1)}:])",
                    f"obj.last = items.pop({self.one_of(('', '0'))})",
                    "items.reverse()",
                    "del items[1:]",
                    f"items = [*items, {value}]",
                    f"items.extend(q for q in GL[:{self.number(0, 2)}])",
                )
            ),
        )

    def write_dict(self, depth, loop):
        key = f"'{self.one_of(KEYS)}'"
        value = self.one_of((self.tensor(1), self.int_expression(1)))
        self.line(
            depth,
            self.one_of(
                (
                    f"d[{key}] = {value}",
                    f"d.setdefault({key}, {value})",
                    f"obj.last = d.pop({key}, None)",
                    f"del d[{key}]",
                    f"d.update({{{key}: {value}}}, b={self.number(0, 3)})",
                    f"obj.last = d[{key}]",
                    f"d = {{**d, {key}: {value}}}",
                    f"obj.last = [k for k in d if d[k] is not {self.one_of(TENSORS)}]",
                )
            ),
        )

    def write_object(self, depth, loop):
        self.line(
            depth,
            self.one_of(
                (
                    f"obj.count += {self.number(1, 2)}",
                    f"obj.t = {self.tensor(1)}",
                    f"obj.flag = {self.condition(1)}",
                    f"{self.one_of(TENSORS)} = obj.scale({self.tensor(2)})",
                    "del obj.extra",
                    f"obj.extra = {self.int_expression(1)}",
                    f"{self.one_of(INTS)} = getattr(obj, 'extra', 7)",
                    f"obj.size = {self.int_expression(1)}",
                    f"{self.one_of(INTS)} = obj.size",
                )
            ),
        )

    def write_global(self, depth, loop):
        self.line(depth, self.one_of((f"G = {self.int_expression(1)}", "G += 1", f"GL.append({self.int_expression(1)})", "GL = [*GL, 1]")))

    def write_print(self, depth, loop):
        self.line(depth, f"print({self.one_of((self.int_expression(1), 'items and 1', 'sorted(d)', 't0.sum().item() > 0'))})")

    def write_nested_list(self, depth, loop):
        self.line(depth, f"obj.last = [[q, {self.int_expression(1)}] for q in range({self.number(0, 2)}) if {self.condition(1)}]")

    def write_leave(self, depth, loop):
        if depth < 2:
            return self.line(depth, "pass")
        choices = [f"return t0, {self.int_expression(1)}"]
        choices += ["raise ValueError(i0)", "raise obj.Error('own', i1)", f"assert {self.condition(1)}"]
        self.line(depth, self.one_of([*choices, *(["break", "continue"] * 2 if loop else ())]))

    def write_branch(self, depth, loop):
        self.line(depth, f"if {self.condition(data=True)}:")
        self.block(depth + 1, 2, loop)
        if self.number(0, 1):
            self.line(depth, "else:")
            self.block(depth + 1, 2, loop)

    def write_for(self, depth, loop):
        self.line(
            depth, f"for {self.one_of((self.fresh('k'), 'i0'))} in range({self.one_of(('2', '3', 'min(abs(n), 4)', 'len(items[:3])'))}):"
        )
        self.block(depth + 1, 3, True)
        if self.number(0, 3) == 0:
            self.line(depth, "else:")
            self.block(depth + 1, 1, loop)

    def write_each(self, depth, loop):
        name = self.fresh("e")
        kind = self.number(0, 3)
        head = (
            f"for {name} in items[:3]:",
            f"for {name}, v{name} in list(d.items()):",
            f"for {name}, v{name} in enumerate(zip(items[:2], GL)):",
            f"for {name} in t0:",
        )[kind]
        self.line(depth, head)
        if kind == 0:
            self.line(depth + 1, f"t1 = t1 + {name}")
        self.block(depth + 1, 2, True)

    def write_while(self, depth, loop):
        name = self.fresh("w")
        self.line(depth, f"{name} = {self.number(1, 3)}")
        self.line(depth, f"while {name} > 0{self.one_of(('', ' and obj.flag', ' and len(items) < 6'))}:")
        self.line(depth + 1, f"{name} -= 1")
        self.block(depth + 1, 2, True)

    def write_try(self, depth, loop):
        self.line(depth, "try:")
        self.block(depth + 1, 3, loop)
        handlers = self.number(0, 2)
        if handlers:
            self.line(depth, f"except {self.one_of(('(ValueError, IndexError)', 'KeyError', 'Exception', 'obj.Error'))} as error:")
            self.line(
                depth + 1,
                self.one_of(("obj.last = str(error)", "obj.last = error.args", "raise", "i2 = 5", "raise KeyError('k') from error")),
            )
        if not handlers or handlers == 2:
            self.line(depth, "finally:")
            self.block(depth + 1, 2)

    def write_with(self, depth, loop):
        self.line(depth, f"with {self.one_of(('torch.no_grad()', 'obj', 'obj as m', 'torch.enable_grad(), obj'))}:")
        self.block(depth + 1, 3, loop)

    def write_closure(self, depth, loop):
        name = self.fresh("f")
        # A cell of its own: names of the whole program that became cells would make every program one with cells.
        self.line(depth, f"c{name} = {self.int_expression(1)}")
        self.line(depth, f"def {name}(p, q={self.int_expression(1)}):")
        self.line(depth + 1, f"nonlocal c{name}")
        self.line(depth + 1, f"c{name} += {self.number(1, 2)}")
        self.line(depth + 1, self.one_of(("obj.count += 1", "p = p * 2", "print('in', q)", f"p = p + c{name}")))
        self.line(depth + 1, self.one_of(("return p * q", "return p + q", "return p")))
        self.line(depth, f"{self.one_of(TENSORS)} = {name}({self.tensor(2)})")
        self.line(depth, f"i1 = {name}(i1, q=1) + c{name}")

    def write_unpack(self, depth, loop):
        self.line(
            depth,
            self.one_of(
                (
                    "t0, t1 = t1, t0",
                    "i0, i1, i2 = i2, i0, i1",
                    "i0, *obj.last = GL",
                    "i1, (i2, *_) = 3, [G, n]",
                    "(obj.last, items[0:0]) = [1], [2]",
                    "t2, = (t0 * 1,)",
                )
            ),
        )


PRELUDE = """
def twice(p, *rest, k=2):
    return p * k

def bump(p):
    global G
    G += 1
    return p + G

def fn(x, y, n, items, d, obj):
    global G, GL
    t0, t1, t2 = x, y * 1, obj.t
    i0, i1, i2 = n, 1, G
"""


@st.composite
def programs(draw):
    writer = Writer(draw)
    writer.block(1, 7)
    return SUPPORT + PRELUDE + "\n".join(writer.lines) + "\n    return t0, t1, t2, i0, i1, i2, items, d\n"


class Thing:
    """Attributes, a property, a context manager, an exception class."""

    class Error(Exception):
        pass

    def __init__(self):
        self.t = torch.arange(6.0).reshape(2, 3)
        self.count, self.flag, self.last, self.depth = 0, True, None, 0

    @property
    def size(self):
        return self.count + 1

    @size.setter
    def size(self, value):
        self.count = value

    def scale(self, tensor, by=2):
        return tensor * by + self.count

    def __enter__(self):
        self.depth += 1
        return self

    def __exit__(self, kind, error, tb):
        self.depth -= 1
        return isinstance(error, Thing.Error)


class World:
    """What one run of a program reads and changes; two worlds start equal."""

    def __init__(self, text):
        self.globals = {"torch": torch, "G": 1, "GL": [1, 2, 3], "GT": [], "W": torch.eye(3), "__name__": "random_program"}
        exec(compile(text, FILE, "exec"), self.globals)
        torch.manual_seed(1)
        self.net = self.globals["net"] = self.globals["Net"]()
        self.function = self.globals["fn"]
        self.thing = Thing()
        self.thing.vec = self.globals["Vec"](torch.ones(2, 3), 2)
        self.items = [torch.ones(2, 3), 2, torch.zeros(2, 3)]
        self.table = {"a": 1, "b": torch.full((2, 3), 0.5)}
        self.grad = False
        self.n = 2
        self.same = False

    def state(self):
        made = [self.globals[name].__dict__.get("made") for name in ("Vec", "Sub")]
        kept = [
            self.globals["keeps"].__defaults__,
            vars(self.globals["twice"]).get("calls"),
            self.globals["W"],
            self.net,
            self.globals["GT"],
        ]
        return [self.globals["G"], self.globals["GL"], self.thing, self.items, self.table, made, kept]

    def arguments(self):
        torch.manual_seed(3)
        x, y = torch.randn(2, 3), torch.randn(2, 3)
        if self.grad:
            x, y = x.requires_grad_() * 1, y.requires_grad_()
        if self.same:
            y = x
        return x, y, self.n, self.items, self.table, self.thing

    def change(self, how):
        if how == "global":
            self.globals["G"] += 3
        elif how == "global list":
            self.globals["GL"] = [*self.globals["GL"], 4]
        elif how == "attribute":
            self.thing.flag = not self.thing.flag
        elif how == "count":
            self.thing.count += 1
        elif how == "instance tensor":
            self.thing.t = torch.ones(2, 3) * 2
        elif how == "list":
            self.items[:] = [3, torch.ones(2, 3)]
        elif how == "dict":
            self.table.clear()
            self.table.update(c=torch.ones(2, 3), a=2.5)
        elif how == "number":
            self.n += 1
        elif how == "grad":
            self.grad = not self.grad
        elif how == "same tensor":
            self.same = not self.same
        elif how == "weight":
            self.globals["W"] = torch.eye(3) * 2
        elif how == "function":
            self.globals["twice"] = lambda p, *rest, k=3: p + k
        elif how == "module mode":
            self.net.train(not self.net.training)
        elif how == "module weight":
            torch.manual_seed(2)
            self.net.lin = torch.nn.Linear(3, 3)
        elif how == "class attribute":
            self.globals["Vec"].made = 5
        elif how == "method":
            self.globals["Vec"].__call__ = lambda self, p, *rest, k=1: p - k
        elif how == "defaults":
            self.globals["bump"].__defaults__, self.globals["twice"].__kwdefaults__ = None, {"k": 5}
        elif how == "alias":
            self.items[:1] = [self.thing.t]
        else:
            assert how == "nothing"


CHANGES = (
    "nothing",
    "global",
    "global list",
    "attribute",
    "count",
    "instance tensor",
    "list",
    "dict",
    "number",
    "grad",
    "same tensor",
    "weight",
    "function",
    "module mode",
    "module weight",
    "class attribute",
    "method",
    "defaults",
    "alias",
)
