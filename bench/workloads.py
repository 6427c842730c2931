"""The programs that are measured. Knows nothing of who captures them."""

import contextlib
import dataclasses
import itertools
import linecache
import random
from typing import Any, Callable, ContextManager, Dict, List, Optional, Tuple

import torch


@dataclasses.dataclass(frozen=True)
class Workload:
    """A callable and the calls that make up one round. Everything is captured once all calls were made."""

    name: str
    target: Any
    calls: List[Tuple[Any, ...]]
    context: Callable[[], ContextManager[Any]] = contextlib.nullcontext
    sections: Tuple[str, ...] = ("capture", "calls")  # what is measured of it
    before_each: Optional[Callable[[], Any]] = None  # what the rest of the program does between two calls; measured with them


def from_source(name: str, text: str) -> Callable[..., Any]:
    """A function of a generated program, whose lines are found by whoever looks for them."""
    filename = f"<bench {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: Dict[str, Any] = {"torch": torch}
    exec(compile(text, filename, "exec"), scope)
    return scope[name]


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def toy() -> Workload:
    # One side of the branch: prepared outputs always answer alike.
    return Workload("toy_example", toy_example, [(torch.randn(10), -torch.rand(10))])


def plus_one(count: int) -> Workload:
    names = [f"x{i}" for i in range(count)]
    results = ", ".join(f"{name} + 1" for name in names)
    function = from_source(f"plus_one_{count}", f"def plus_one_{count}({', '.join(names)}):\n    return {results}\n")
    return Workload(f"x + 1, {count} tensor{'s' * (count > 1)}", function, [tuple(torch.randn(4) for _ in names)])


def plus_one_list(xs):
    return [x + 1 for x in xs]


def plus_one_in_list(count: int = 64) -> Workload:
    return Workload(f"x + 1, list of {count} tensors", plus_one_list, [([torch.randn(4) for _ in range(count)],)])


def mlp() -> Workload:
    layers: List[torch.nn.Module] = []
    for _ in range(10):
        layers += [torch.nn.Linear(32, 32), torch.nn.ReLU()]
    return Workload("MLP, 10 layers", torch.nn.Sequential(*layers), [(torch.randn(8, 32),)])


class BasicBlock(torch.nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(outputs)
        self.relu = torch.nn.ReLU(inplace=True)
        self.conv2 = torch.nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            shortcut = torch.nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = torch.nn.Sequential(shortcut, torch.nn.BatchNorm2d(outputs))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet18(torch.nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(64)
        self.relu = torch.nn.ReLU(inplace=True)
        self.maxpool = torch.nn.MaxPool2d(3, 2, 1)
        self.layer1 = torch.nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2 = torch.nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.layer3 = torch.nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256, 1))
        self.layer4 = torch.nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, 512, 1))
        self.avgpool = torch.nn.AdaptiveAvgPool2d((1, 1))
        self.fc = torch.nn.Linear(512, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


def resnet() -> Workload:
    return Workload("ResNet-18, training", ResNet18(), [(torch.randn(2, 3, 32, 32),)])


def encoder(layers: int = 12, width: int = 256, heads: int = 4) -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(width, heads, dim_feedforward=4 * width, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def encoder_training() -> Workload:
    return Workload("TransformerEncoder, training", encoder().train(), [(torch.randn(2, 16, 256),)])


def encoder_inference() -> Workload:
    return Workload("TransformerEncoder, inference", encoder().eval(), [(torch.randn(2, 16, 256),)], torch.no_grad)


def parameters(count: int = 1000) -> Workload:
    """One module that owns all of them and reads each by its name."""
    body = "".join(f"    x = x + self.p{i}\n" for i in range(count))
    forward = from_source(f"add_{count}", f"def add_{count}(self, x):\n{body}    return x\n")
    module = type("Parameters", (torch.nn.Module,), {"forward": forward})()
    for i in range(count):
        module.register_parameter(f"p{i}", torch.nn.Parameter(torch.randn(4)))
    return Workload(f"{count:,} parameters", module, [(torch.randn(4),)], sections=("calls",))


def linears(count: int = 1000) -> Workload:
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(count)])
    return Workload(f"{count:,} Linear modules", model, [(torch.randn(2, 4),)], sections=("calls",))


def changing(make: Callable[[], Workload], what: str) -> Workload:
    """Real programs write to dictionaries between calls: none changed at all is the best that can happen to guards behind version tags.

    "elsewhere": to one that has nothing to do with the program; "of a module": to that of a module which the program runs.
    """
    workload = make()
    modules = list(workload.target.modules())
    written = {} if what == "elsewhere" else vars(modules[len(modules) // 2])
    number = itertools.count()
    name = f"{workload.name}; before each call a dictionary {what} changes"
    return dataclasses.replace(
        workload, name=name, sections=("calls",), before_each=lambda: written.__setitem__("seen", float(next(number)))
    )


def pointwise(count: int = 1000) -> Workload:
    lines = ["x = torch.sin(x)", "x = x + 1", "x = torch.relu(x)", "x = x * 0.5"]
    body = "".join(f"    {lines[i % len(lines)]}\n" for i in range(count))
    name = f"pointwise_{count}"
    return Workload(f"{count:,} pointwise operators", from_source(name, f"def {name}(x):\n{body}    return x\n"), [(torch.randn(4),)])


def plus_number(x, number):
    return x + number


def entries(count: int, order: str = "round robin") -> Workload:
    """As many cache entries as calls. In random order each call of the round still has an entry of its own."""
    x = torch.randn(4)
    numbers = list(range(count))
    if order == "random order":
        numbers = random.Random(0).choices(numbers, k=8 * count)
        numbers = [*range(count), *numbers]
    return Workload(f"{count} entr{'ies' if count > 1 else 'y'}, {order}", plus_number, [(x, number) for number in numbers])


def all_workloads() -> List[Callable[[], Workload]]:
    """Makers, in the order of the tables: a workload is made when its turn comes."""
    plus_ones = [lambda count=count: plus_one(count) for count in (1, 4, 16, 64)]
    models = [mlp, resnet, encoder_training, encoder_inference, parameters, linears, pointwise]
    several = [lambda count=count: entries(count) for count in (1, 8, 32)]
    changed = [
        lambda make=make, what=what: changing(make, what) for make in (encoder_inference, linears) for what in ("elsewhere", "of a module")
    ]
    return [toy, *plus_ones, plus_one_in_list, *models, *changed, *several, lambda: entries(32, "random order")]
