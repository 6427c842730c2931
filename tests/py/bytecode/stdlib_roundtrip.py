"""Decodes and assembles every code object of a standard library, and compares with what CPython's compiler wrote.

A program, run once per interpreter by test_stdlib.py: `python stdlib_roundtrip.py FOLDER_OF_BYTECODE_MODULE`. It prints one
JSON object and keeps to what all supported versions know.
"""

import importlib.machinery
import importlib.util
import json
import os
import sys
import sysconfig
import types
import warnings

EQUAL = ("co_code", "co_linetable", "co_exceptiontable", "co_consts", "co_names", "co_varnames", "co_cellvars", "co_freevars",
         "co_flags", "co_firstlineno", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_qualname", "co_filename",
         "co_stacksize")  # fmt: skip


def load(folder):
    """The _bytecode module of this interpreter that lies in `folder`."""
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = os.path.join(folder, "_bytecode" + suffix)
        if os.path.exists(path):
            spec = importlib.util.spec_from_file_location("_bytecode", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise SystemExit("no _bytecode for {} in {}".format(sys.version.split()[0], folder))


def sources():
    """Every .py file of the standard library, tests included."""
    for base, folders, files in os.walk(sysconfig.get_path("stdlib")):
        folders[:] = sorted(name for name in folders if name not in ("site-packages", "dist-packages"))
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.join(base, name)


def code_objects(code):
    """`code` and all code objects among its constants, to any depth."""
    pending = [code]
    while pending:
        code = pending.pop()
        yield code
        pending.extend(const for const in code.co_consts if isinstance(const, types.CodeType))


def main():
    """Compares everything; prints counts, and the first of each kind of difference."""
    module = load(sys.argv[1])
    result = {"version": sys.version.split()[0], "files": 0, "codes": 0, "instructions": 0, "unequal": {}, "invalid": [],
              "shallow": [], "first": {}}  # fmt: skip
    warnings.simplefilter("ignore")
    for path in sources():
        with open(path, "rb") as file:
            source = file.read()
        try:
            top = compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):  # test data that is wrong on purpose
            continue
        result["files"] += 1
        for code in code_objects(top):
            where = "{}:{} {}".format(path, code.co_firstlineno, code.co_name)
            result["codes"] += 1
            made = module.roundtrip(code)
            for name in EQUAL:
                if getattr(made, name) != getattr(code, name):
                    result["unequal"][name] = result["unequal"].get(name, 0) + 1
                    result["first"].setdefault(name, where)
            decoded = module.decode(code)
            problem = module.validate(decoded)
            if problem:
                result["invalid"].append([where, problem])
                continue
            depths = module.stack_depths(decoded)
            result["instructions"] += len(depths)
            if max(depth or 0 for depth in depths) > code.co_stacksize:
                result["shallow"].append(where)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
