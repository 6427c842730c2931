"""What decoding, checking and assembling code objects costs, beside the standard library's `dis`.

    python bench/bytecode.py

Prints microseconds for functions of the standard library of different lengths, and their means over all of argparse.
"""

import argparse
import dis
import inspect
import json.decoder
import sys
import tarfile
import timeit
import types

from pellucid import _bytecode as bytecode

SAMPLES = (json.decoder.JSONDecoder.raw_decode, tarfile.TarFile.add, inspect._signature_from_function)


def micros(function, argument):
    """The fastest of several runs, in microseconds a call."""
    timer = timeit.Timer(lambda: function(argument))
    number, _ = timer.autorange()
    return min(timer.repeat(repeat=5, number=max(1, number // 10))) / max(1, number // 10) * 1e6


def row(code):
    """Length and costs of one code object."""
    decoded = bytecode.decode(code)
    return (
        len(decoded.instructions),
        micros(bytecode.decode, code),
        micros(bytecode.assemble, decoded),
        micros(bytecode.validate, decoded),
        micros(lambda c: list(dis.get_instructions(c)), code),
    )


def main():
    print(f"{'function':32s} {'instr.':>7s} {'decode':>8s} {'assemble':>9s} {'validate':>9s} {'dis':>8s}   (microseconds)")
    for function in SAMPLES:
        count, *times = row(function.__code__)
        print(f"{function.__qualname__:32s} {count:7d} {times[0]:8.2f} {times[1]:9.2f} {times[2]:9.2f} {times[3]:8.0f}")
    classes = [value for value in vars(argparse).values() if isinstance(value, type)]
    functions = [value for a_class in classes for value in vars(a_class).values() if isinstance(value, types.FunctionType)]
    rows = [row(function.__code__) for function in functions]
    count, *times = (sum(column) / len(rows) for column in zip(*rows))
    label = f"mean of {len(rows)} in argparse"
    print(f"{label:32s} {count:7.0f} {times[0]:8.2f} {times[1]:9.2f} {times[2]:9.2f} {times[3]:8.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
