"""`python -m pellucid COMMAND`: the command line. Knows its commands' arguments, and leaves the work to the modules they name."""

import argparse
import importlib
import os
import sys
from typing import Any, List, Optional

_VERSIONS = range(308, 314)


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs a command; the exit status is 0 if it did what was asked, 1 if not, 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m pellucid", description="Tools for looking at Python programs.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_decompile(commands)
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
    except BrokenPipeError:
        # Whoever reads has enough (head, say).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except (OSError, ValueError, TypeError, ImportError, AttributeError) as error:
        print("pellucid {}: {}".format(options.command, error), file=sys.stderr)
        status = 1
    return status


def _add_decompile(commands: Any) -> None:
    parser = commands.add_parser("decompile", help="source from bytecode", description="Prints the source of bytecode.")
    parser.add_argument("what", metavar="FILE.py | FILE.pyc | MODULE:QUALNAME", help="a file of any Python from 3.8 to 3.13, or a function")
    parser.add_argument("--python", metavar="3.N", type=_version, help="the Python that compiles FILE.py (default: this one)")
    parser.add_argument("--check", action="store_true", help="compile the source again, compare, and print the grade to standard error")
    parser.set_defaults(run=_decompile)


def _version(text: str) -> int:
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts) or int(parts[0]) * 100 + int(parts[1]) not in _VERSIONS:
        raise argparse.ArgumentTypeError("{!r} is no Python from 3.8 to 3.13".format(text))
    return int(parts[0]) * 100 + int(parts[1])


def _decompile(options: argparse.Namespace) -> int:
    from pellucid import decompiling

    code = _code(options.what, options.python)
    failed = False
    if options.check:
        result = decompiling.decompile(code, check=True)
        print("{}{}".format(result.grade, ": " + result.reason if result.reason else ""), file=sys.stderr)
        source = result.source
        failed = result.grade == decompiling.DIFFERS
    else:
        source = decompiling.decompile(code)
    data = source.encode("utf-8", "backslashreplace")
    sys.stdout.buffer.write(data if data.endswith(b"\n") else data + b"\n")
    sys.stdout.buffer.flush()
    return 1 if failed else 0


def _code(what: str, version: Optional[int]) -> Any:
    import pellucid._bytecode as _bytecode
    from pellucid import _interpreters, decompiling

    if what.endswith(".pyc"):
        if version is not None:
            raise ValueError("a .pyc file says itself which Python it is of: leave --python out")
        with open(what, "rb") as file:
            return _bytecode.load_pyc(file.read())
    if what.endswith(".py"):
        if version is None or version == _interpreters.OWN_VERSION:
            return _interpreters.compile_own(what)
        python = _interpreters.find(version)
        if python is None:
            raise ValueError(
                "no Python {} is found: neither on PATH nor installed by a version manager".format(_interpreters.version_name(version))
            )
        return _interpreters.compile_file(what, version, python)
    if version is not None:
        raise ValueError("--python is for source files")
    module_name, _, qualname = what.partition(":")
    sys.path.insert(0, os.getcwd())
    found: Any = importlib.import_module(module_name)
    for name in qualname.split(".") if qualname else ():
        found = getattr(found, name)
    return decompiling.code_of(found)


if __name__ == "__main__":
    sys.exit(main())
