# ruff: noqa: E501
"""Statements of random programs, as text with holes: containers, classes, modules, views, generators, exceptions, closures.

Holes in braces are filled by the writer of the program (`{t}` the name of a tensor, `{te}` an expression that gives one, `{i}` and `{ie}`
the same for ints, `{v}` a fresh name, kept within one statement, `{c}` a condition, `{d}` a digit, `{k}` a key); a line `<block>` stands
for statements, `<loop>` for statements in which break and continue may be. `SUPPORT` is what the statements use. Knows nothing of capture.
"""

SUPPORT = """
import collections, contextlib, dataclasses, enum, functools, itertools, operator

class Vec:
    made = 0
    def __init__(self, data, by=1):
        self.data, self.by, self.log = data, by, []
        type(self).made += 1
    def __add__(self, other):
        return type(self)(self.data + (other.data if isinstance(other, Vec) else other), self.by)
    __radd__ = __add__
    def __iadd__(self, other):
        self.data = self.data + other
        return self
    def __call__(self, p, *rest, k=1):
        self.log.append(len(rest))
        return p * self.by + k
    def __getitem__(self, i):
        return self.data[i]
    def __setitem__(self, i, value):
        self.data[i] = value
    def __len__(self):
        return self.by
    def __bool__(self):
        return self.by > 1
    def __iter__(self):
        for q in range(self.by):
            yield self.data + q
    def __contains__(self, q):
        return q == self.by
    def __eq__(self, other):
        return isinstance(other, Vec) and self.by == other.by
    __hash__ = None
    def __getattr__(self, name):
        if name.startswith("lazy_"):
            self.__dict__[name] = value = len(name) + self.by
            return value
        raise AttributeError(name)
    @property
    def twice(self):
        return self.data * 2
    @twice.setter
    def twice(self, value):
        self.data = value / 2
    @classmethod
    def of(cls, data):
        return cls(data, 2)
    @staticmethod
    def plus(p, q=1):
        return p + q

class Sub(Vec):
    made = 10
    def __call__(self, p, *rest, k=2):
        return super().__call__(p, 1, *rest, k=k) - 1

@dataclasses.dataclass
class Row:
    t: object
    n: int = 1
    tags: list = dataclasses.field(default_factory=list)

Pair = collections.namedtuple("Pair", "left right")

class Color(enum.Enum):
    RED = 1
    BLUE = 2

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.parts = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Linear(3, 3)])
        self.register_buffer("count", torch.zeros(1))
        self.calls = 0
    def forward(self, p, k=1):
        self.calls += 1
        self.count.add_(1)
        p = self.lin(p) * k
        if self.training:
            p = self.norm(p)
        for part in self.parts:
            p = part(p)
        return p

@contextlib.contextmanager
def scope(thing, name):
    thing.depth += 1
    try:
        yield thing.depth
    except ValueError as error:
        thing.last = error.args
    finally:
        thing.depth -= 1

def boom(p, n):
    if n > 1:
        raise ValueError(n)
    return p + n

def careful(p, n):
    try:
        return boom(p, n)
    except ValueError as error:
        if n > 3:
            raise KeyError(n) from error
        return p - 1
    finally:
        GT.append(n)

def down(p, n):
    return p if n <= 0 else down(p * 0.5, n - 1) + n

def keeps(p, seen=[]):
    seen.append(len(seen))
    return p + seen[-1]

def steps(p, n):
    try:
        for q in range(n):
            got = yield p + q
            if got is not None:
                p = p * got
    finally:
        GT.append("closed")
    return p

def nested(p):
    done = yield from steps(p, 2)
    yield done

def counter():
    n = 0
    def more(by=1):
        nonlocal n
        n += by
        return n
    return more
"""

TEMPLATES = {
    "views": (
        "{v} = {t}[{d01}]\n{v}.add_({d})",
        "{v} = {t}.t()\n{v}[{d01}] = {ie}\n{t} = {v}.t() * 1",
        "{v} = {t}.view(6)\n{v}[{d}:] *= 2",
        "{v} = {w} = {t} * 1\n{v} += 1\n{t} = {w}",
        "{v}, {w} = {t}.unbind(0)\n{v}.mul_(2)\n{t} = torch.stack([{w}, {v}])",
        "for {v} in {t}.chunk(2):\n    {v}.sub_({d})",
        "{v} = {t}.detach()\n{v}.mul_({d})",
        "{v} = [{t}, {t}]\n{v}[0].add_(1)\n{t} = {v}[1] + {v}[0]",
        "{v} = {t}\n{t} = {t} + 1\n{v}.add_({t})",
        "{v} = {t}.unsqueeze(0).expand(2, 2, 3)\n{t} = {v}[1] + {v}.sum(0)",
        "{t}[{t} > {d}] = {ie}",
        "{t}[:, {d01}], {t}[0] = {d}, {ie}",
        "{t}.copy_({te})",
        "{v} = {t}.clone()\n{v}.t_()\n{t} = {v}.reshape(2, 3)",
        "x.add_({d})\n{t} = x[:] + y[0]",
        "{t}.data.add_(1)",
        "torch.relu_({t})",
        "{v} = {te}\n{v}.resize_(3, 2)\n{t} = {v}.t().contiguous()",
    ),
    "operators": (
        "{t} = torch.nn.functional.softmax({te}, -1)",
        "{t} = torch.nn.functional.layer_norm({te}, (3,))",
        "{t} = torch.cat([{te}[:1], {te}[1:]], {v0})",
        "{t} = torch.einsum('ij,jk->ik', {te}, W)",
        "{t} = {te} + torch.arange(3) * {ie}",
        "{t} = {te} + torch.zeros(2, 3).fill_({ie})",
        "{t} = torch.rand_like({te})",
        "{t} = {te} + torch.randn(3)",
        "{t} = {te}.double().float()",
        "{t} = ({te} > {d}).float()",
        "{t} = {te}.sort(-1).values",
        "{t}, {v} = {te}.max(0, keepdim=True)\n{t} = {t}.expand(2, 3) + {v}",
        "{i} = {te}.argmax().item()",
        "{i} = int({te}[0, 0])",
        "{i} = len({te}.tolist()[0])",
        "{i} = {te}.numel() + {te}.dim() + {te}.size(1) + len({t})",
        "obj.last = {te}.dtype, {te}.shape, {t}.is_contiguous(), {t}.stride()",
        "obj.last = torch.equal({te}, {te})",
        "{t} = torch.nn.functional.dropout({te}, 0.5, {b})",
        "{t} = torch.where(torch.isnan({te}), 0.0, {te})",
    ),
    "containers": (
        "{v} = {ie}, {te}, {ie}\n{i} = {v}[0] + {v}[-1]\n{t} = {v}[1]",
        "{v} = set(GL) | {{{ie}, {d}}}\n{i} = len({v} & {{1, 2, 3}})",
        "{v} = collections.deque(items, 3)\n{v}.appendleft({ie})\n{v}.rotate({d})\nitems[:] = {v}",
        "{v} = collections.defaultdict(list)\n{v}[{ie}].append({te})\n{i} = len({v}[0]) + len({v})",
        "{v} = collections.OrderedDict(sorted(d.items(), key=lambda q: q[0]))\n{v}.move_to_end(next(iter({v})))\nobj.last = list({v})",
        "{v} = collections.Counter(GL)\n{v}.update([{ie}])\nobj.last = {v}.most_common(1)",
        "{v} = Pair({te}, {ie})\n{t} = {v}.left + {v}[1]\nobj.last = {v}._replace(right={d})",
        "{v} = Row({te}, {ie})\n{v}.tags.append({v}.n)\nobj.last = {v}\n{t} = {v}.t",
        "obj.last = sorted([{ie}, {ie}, {d}], key=lambda q: -q, reverse={b})",
        "obj.last = {{q: {ie} for q in range({d})}}\n{i} = sum(obj.last.values())",
        "{i} = sum(map(lambda q: q + {ie}, filter(None, GL)))",
        "{i} = functools.reduce(operator.add, GL, {ie})",
        "{t} = functools.reduce(torch.add, [{te}, {te}])",
        "obj.last = list(itertools.accumulate(GL[:3]))\n{i} = next(itertools.islice(itertools.chain(GL, [7]), {d}, None), 0)",
        "{v} = functools.partial(twice, {te}, k={ie})\n{t} = {v}()",
        "{i} = operator.itemgetter({d01})(GL) if len(GL) > 1 else 0",
        "{v} = [[{d}] * 2 for _ in range(2)]\n{v}[0][1] += {ie}\nobj.last = {v}",
        "{v} = [None] * 2\n{v}[0] = {v}[1] = [{te}]\n{v}[0].append({ie})\nobj.last = {v}",
        "GT.append({te})",
        "GT[-1:] = [{te}, {ie}]",
        "obj.last = items[:]\nitems.sort(key=lambda q: isinstance(q, int))",
        "{v} = dict(zip('{k}{k}', items))\n{v} |= d\nobj.last = {v}",
        "{i} = {{**d, '{k}': {d}}}['{k}']",
        "del d['{k}'], items[0]",
        'obj.last = f"""{{{ie}:>3}}|{{{t}.shape}}|{{n!r}}""" + "{k}".join(map(str, GL[:2]))',
        "obj.last = '%s-%d' % ('{k}', {ie}), '{k}'.upper().encode()",
        "{v}, *{w} = GL or [0]\n{i} = {v} + len({w})",
        "{i} = divmod({ie}, {d} or 1)[1] + round({ie} / 2)",
        "{i}, {t} = ({v} := {ie}) + 1, {te} + {v}",
    ),
    "classes": (
        "{v} = Vec({te}, {ie})\n{t} = ({v} + {te}).data",
        "{v} = Sub.of({te})\n{t} = {v}({te}, {d})\n{i} = {v}.made + len({v}.log)",
        "{v} = Vec({te}, 2)\n{w} = {v}\n{v} += {te}\n{t} = {w}.data",
        "{v} = Vec({te} * 1, {d})\n{v}[0] = {ie}\n{t} = {v}.twice",
        "{v} = Sub({te}, {d})\n{v}.twice = {te}\n{t} = {v}.data\n{i} = {v}.lazy_a + {v}.lazy_a",
        "for {v} in Vec({te}, {d}):\n    {t} = {t} + {v}\n    <loop>",
        "{i} = {ie} if Vec({te}, {ie}) else len(Sub({te}, {d}))",
        "{i} = int({d} in Vec({te}, {d})) + (Vec({te}) == Sub({te}))",
        "obj.last = Vec({te}, {ie})\nobj.last.extra = {te}",
        "{t} = Vec.plus(Vec.of({te}).data, q={ie})",
        "obj.last = Color({d12}), Color.RED.value, [q.name for q in Color]",
        "Vec.made = {ie}",
        "{i} = getattr(Vec({te}), 'lazy_b', 0) + hasattr(Vec({te}), 'other')",
        "obj.vec.data = obj.vec.data + {te}\n{t} = obj.vec(obj.vec.data)",
        "obj.vec.log.append({ie})\nobj.vec.by = len(obj.vec.log) % 4",
        "{t} = sum(obj.vec, {te})",
        "obj.vec[{d01}] = {ie}\n{t} = obj.vec[:]",
    ),
    "modules": (
        "{t} = net({te})",
        "{t} = net({te}, k={ie})",
        "net.train({b})",
        "with torch.no_grad():\n    net.lin.weight.mul_(0.5)",
        "{t} = torch.nn.functional.linear({te}, net.lin.weight, net.lin.bias)",
        "{i} = net.calls + len(net.parts) + len(list(net.named_parameters()))",
        "net.scale = {ie}\n{t} = {te} * net.scale",
        "for {v} in net.parts:\n    {t} = {v}({t})",
        "{t} = {te} + net.count",
        "{v} = torch.nn.Linear(3, 3)\n{t} = {v}({te})",
        "W.mul_({d12})",
    ),
    "generators": (
        "for {v} in steps({te}, {d}):\n    {t} = {t} + {v}\n    <loop>",
        "{v} = steps({te}, 3)\n{t} = next({v})\n{t} = {v}.send({d12})\n{v}.close()",
        "{v} = steps({te}, 1)\nnext({v})\ntry:\n    {v}.throw(KeyError({d}))\nexcept KeyError as error:\n    obj.last = error.args",
        "{t} = list(nested({te}))[-1]",
        "{v} = nested({te})\n{t} = next({v})\n<block>\n{t} = next({v}) + {t}",
        "{t} = sum(({te} for _ in range({d})), {te})",
        "{i} = sum(q * {ie} for q in GL if q != {d})",
        "{v} = (q + n for q in GL)\n{i} = next({v}, 0)\n{i} += sum({v})",
        "obj.last = any(q > {ie} for q in GL), all(q < {d} for q in GL)",
        "for {v}, {w} in zip(steps({te}, 2), itertools.count({d})):\n    {t} = {v} * {w}\n    <loop>",
        "obj.last = [*steps({te}, {d})]",
        "{v}, {w} = steps({te}, 2)\n{t} = {v} - {w}",
    ),
    "exceptions": (
        "{t} = careful({te}, {ie})",
        "try:\n    {t} = boom({te}, {ie})\n    <block>\nexcept ValueError as error:\n    {i} = error.args[0]\n    <block>\nelse:\n    {i} = 9",
        "with contextlib.suppress(ValueError, KeyError):\n    {t} = careful({te}, {ie})\n    <block>",
        "with scope(obj, '{k}') as {v}:\n    {t} = boom({te}, {v})\n    <block>",
        "for {v} in range(3):\n    try:\n        <loop>\n        {t} = boom({t}, {v})\n    except ValueError:\n        break\n    finally:\n        {i} += 1",
        "try:\n    try:\n        {t} = boom({te}, {ie})\n    finally:\n        <block>\nexcept Exception as error:\n    obj.last = type(error).__name__",
        "try:\n    {t} = {t} @ {te}\nexcept RuntimeError:\n    {i} = -1",
        "try:\n    obj.last = obj.missing\nexcept AttributeError as error:\n    obj.last = str(error)",
        "try:\n    raise KeyError('{k}') from ValueError({d})\nexcept KeyError as error:\n    obj.last = repr(error.__cause__)",
        "while True:\n    try:\n        <block>\n        break\n    finally:\n        {i} = 4",
        "{v} = {te}\ntry:\n    del {v}\n    {t} = {v}\nexcept UnboundLocalError:\n    <block>",
    ),
    "functions": (
        "{t} = down({te}, {d})",
        "{t} = keeps({te})",
        "{v} = counter()\n{v}({d})\n{i} = {v}() + {v}({ie})",
        "{v} = [lambda q={ie}: q + n for _ in range(2)]\n{i} = {v}[1]() + {v}[0](1)",
        "def {v}(*args, k={ie}, **more):\n    return args[0] + k + len(args) + len(more)\n{t} = {v}({te}, {d}, z=1)",
        "def {v}(p):\n    def inner(q):\n        return p + q\n    return inner\n{t} = {v}({te})({te})",
        "{t} = twice(*[{te}, {d}], **{{'k': {ie}}})",
        "{v} = twice\n{t} = (lambda f, *a: f(*a))({v}, {te})",
        "{i} = (lambda: G + {ie})()",
        "def {v}(p, n):\n    return p if n == 0 else {v}(p + 1, n - 1)\n{t} = {v}({te}, {d})",
        "{v} = obj.scale\n{t} = {v}({te}, by={ie})",
        "twice.calls = getattr(twice, 'calls', 0) + 1\n{i} = twice.calls",
        "@functools.wraps(twice)\ndef {v}(p):\n    return twice(p) + 1\n{t} = {v}({te})\nobj.last = {v}.__name__",
    ),
    "flow": (
        "if ({v} := {ie}) > {d}:\n    <block>\nelif {v} < 0:\n    <block>\nelse:\n    {i} = {v}",
        "match {ie}, {d}:\n    case 1, {v}:\n        {i} = {v}\n    case (0 | 2) as {w}, _:\n        <block>\n    case _:\n        {i} = 5",
        "match d:\n    case {{'a': int() as {v}}}:\n        {i} = {v}\n    case {{'b': {v}, **{w}}}:\n        obj.last = {w}\n    case _:\n        <block>",
        "for {v} in range(4):\n    if {c}:\n        continue\n    if {v} > {d}:\n        break\n    <loop>\nelse:\n    {i} = 8",
        "while {c}:\n    {i} += 1\n    if {i} > {d}:\n        break\n    <loop>",
        "for {v} in (0, 1):\n    for {w} in 'ab':\n        if {w} == 'b' and {v}:\n            break\n        <loop>",
        "{i} = 0 < {ie} <= {d} != {ie}",
        "{t} = {te} if {t}.sum() > 0 and {c} else {te}",
        "if {t}.any():\n    <block>",
        "for {v}, {w} in enumerate(reversed(items[:3])):\n    {i} += {v}\n    <loop>",
        "assert {c}, '{k}'",
        "if n > 2:\n    return {te}",
        "with torch.no_grad():\n    {t} = {te}\n    if {t}.sum() > {d}:\n        <block>",
        "with torch.autocast('cpu', dtype=torch.bfloat16, enabled={b}):\n    {t} = ({te} @ W).float()",
    ),
}
KINDS = sorted(TEMPLATES)
