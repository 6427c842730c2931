"""Small programs that are captured beside something else: with and without graph breaks, nested calls, exceptions, generators."""

import os
import subprocess
import sys
import textwrap

import torch

import pellucid

FILE = __file__


class Backend:
    """Keeps the graphs and runs them as they are."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph_module, example_inputs):
        self.graphs.append(graph_module)
        return graph_module.forward


def whole(x, n):
    y = x * 2
    for i in range(n):
        y = y + i
    return y


def helper(x):
    y = x + 1
    print(end="")
    return y * 2


def broken(x, n):
    y = x * 2
    if y.sum() > 0:
        y = helper(y)
    else:
        y = y - 1
    return y + n


def failing(x, n):
    y = x + 1
    print(end="")
    if n > 1:
        raise ValueError("n is too large")
    return y


def catching(x, n):
    try:
        return failing(x, n + 1)
    except ValueError as error:
        return x - len(str(error))


def steps(x, n):
    for i in range(n):
        yield x + i


def generating(x, n):
    total = x
    for one in steps(x, n):
        total = total + one
        print(end="")
    return total


PROGRAMS = [whole, broken, catching, generating]


def arguments():
    return torch.ones(3), 2


def optimized(function, backend=None):
    return pellucid.optimize(function, backend=backend or Backend())


def run_script(text, *, env=None, timeout=300, ok=True):
    """Runs a program in an interpreter of its own, with this folder and Pellucid's to import from; its output."""
    path = os.pathsep.join([os.path.dirname(FILE), os.path.dirname(os.path.dirname(pellucid.__file__))])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": path, **(env or {})},
        text=True,
        timeout=timeout,
    )
    assert not ok or done.returncode == 0, (done.returncode, done.stdout)
    return done.stdout
