"""Reading .pyc files of any version: everything a live code object shows, and a clear error for damaged files."""

import importlib.util
import marshal
import os
import random
import struct
import sys
import types

import find_pythons
import pytest

from pellucid import _bytecode as bytecode

FOUND, SKIPPED = find_pythons.find()
processes = pytest.mark.skipif("PELLUCID_SANITIZED" in os.environ, reason="other processes are not what sanitizers look at here")
OWN = sys.version_info[0] * 100 + sys.version_info[1]
SOURCE = '''
"""Text with é."""
CONSTANTS = (1, -1, 2147483648, -12345678901234567890123, 0.5, -0.0, 1e308, 2j, b"\\x00", "", "éé", "\\ud800", None, ..., True)
def f(a, /, b, *c, d=1, **e):
    x = a
    def g():
        nonlocal x
        x = [a for a in {1, 2, 3} if a in {4, "5"}]
        return x, b
    try:
        with a as b:
            yield g
    except (KeyError, ValueError) as error:
        raise error from None
    finally:
        print(e)
class C:
    y: int = 1
    def m(self):
        return super().m
'''
ATTRIBUTES = (
    "co_argcount co_posonlyargcount co_kwonlyargcount co_nlocals co_stacksize co_flags co_firstlineno co_code co_names co_varnames "
    "co_cellvars co_freevars co_filename co_name"
).split()


def own_pyc(source=SOURCE):
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(compile(source, "<test>", "exec"))


def check_against_live(neutral, live):
    extra = ["co_qualname", "co_linetable", "co_exceptiontable"] if OWN >= 311 else []
    for name in ATTRIBUTES + extra:
        assert getattr(neutral, name) == getattr(live, name), name
    assert neutral.version == OWN
    assert len(neutral.co_consts) == len(live.co_consts)
    for ours, theirs in zip(neutral.co_consts, live.co_consts):
        if isinstance(theirs, types.CodeType):
            check_against_live(ours, theirs)
        elif isinstance(theirs, frozenset):  # the order of its items is nobody's
            assert sorted(map(repr, ours)) == sorted(map(repr, theirs))
        else:
            assert repr(ours) == repr(theirs)
            assert type(ours) is type(theirs)


def test_own_files_show_what_live_code_shows():
    check_against_live(bytecode.load_pyc(own_pyc()), compile(SOURCE, "<test>", "exec"))


def test_live_code_as_neutral():
    live = compile(SOURCE, "<test>", "exec")
    neutral = bytecode.neutral(live)
    check_against_live(neutral, live)
    assert bytecode.neutral(neutral) is neutral


@processes
@pytest.mark.parametrize("tag", [308, 309, 310, 311, 312, 313])
def test_files_of_every_version(tag, tmp_path):
    python = next((each for each in FOUND if each.tag == tag), None)
    if python is None:
        pytest.skip(f"no CPython 3.{tag % 100} found")
    import subprocess

    (tmp_path / "program.py").write_text(SOURCE)
    subprocess.run([python.path, "-c", "import py_compile; py_compile.compile('program.py', 'program.pyc')"], cwd=tmp_path, check=True)
    module = bytecode.load_pyc((tmp_path / "program.pyc").read_bytes())
    assert module.version == tag
    codes = {each.co_name: each for each in all_codes(module)}
    assert {"<module>", "f", "g", "C", "m"} <= codes.keys()
    f = codes["f"]
    assert f.co_varnames[:5] == ("a", "b", "d", "c", "e")
    assert (f.co_argcount, f.co_posonlyargcount, f.co_kwonlyargcount) == (2, 1, 1)
    assert set(f.co_cellvars) == {"b", "x"}
    assert codes["m"].co_freevars == ("__class__",)
    constants = next(const for const in module.co_consts if isinstance(const, tuple) and len(const) > 10 and const[0] == 1)
    assert repr(constants) == repr(eval(SOURCE.split("CONSTANTS = ")[1].splitlines()[0]))
    for code in codes.values():
        decoded = bytecode.decode(code)
        assert bytecode.validate(decoded) == ""
        assert bytecode.compare(code, code) == (2, "")
    rows = bytecode.decode(f).rows
    assert len(rows) >= 3
    assert max(row.depth for row in rows) >= 1
    names = bytecode.decode(f).localsplus_names
    assert len(set(names)) == len(names)


def all_codes(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, bytecode.NeutralCode):
            yield from all_codes(const)


def value(data, version=311):
    return bytecode.load_marshal(data, version)


def test_every_format_version():
    plain = (None, True, False, ..., 1, -(2**40), 1.5, 1e300, 2 + 3j, b"x", "y", "é\ud800", (1, (2,)), [1], {1: 2}, {3}, frozenset({4}))
    for version in range(5):
        data = marshal.dumps(plain, version)
        assert repr(value(data)) == repr(marshal.loads(data)) == repr(plain)


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "too early"),
        (b"i\x01\x02", "4 bytes are announced"),
        (b"s\xff\xff\xff\x7f", "announced"),
        (b"(\xff\xff\xff\x7f", "announced"),
        (b"(\xff\xff\xff\xff", "announced"),
        (b"l\x00\x00\x00\x80", "digits"),
        (b"l\x01\x00\x00\x00\xff\xff", "15 bits"),
        (b"r\x00\x00\x00\x00", "reference to nothing"),
        (b"\xa9\x01r\x00\x00\x00\x00", "holds itself"),
        (b"?", "no value begins with 63"),
        (b"0", "no value begins with 48"),
        (b")\x01" * 2000 + b"N", "in each other"),
        (b"<\x01\x00\x00\x00[\x00\x00\x00\x00", "no hash"),
        (b"u\x01\x00\x00\x00\xff", "no UTF-8"),
        (b"{[\x00\x00\x00\x00N0", "no hash"),
    ],
)
def test_damaged_data_is_named(data, message):
    with pytest.raises(ValueError, match="damaged marshal data at byte \\d+: .*" + message):
        value(data)


def test_few_bytes_that_describe_a_giant():
    data = b"\xa9\x00"
    for level in range(60):
        data = b"\xa9\x02" + data + b"r" + struct.pack("<i", 60 - level)
    with pytest.raises(ValueError, match="too many parts"):
        value(data)


def test_files_that_are_no_pyc():
    for data, message in [
        (b"", "no .pyc file"),
        (b"#!/usr/bin/python", "no .pyc file"),
        (struct.pack("<H", 3394) + b"\r\n" + bytes(12), "magic number 3394"),
        (own_pyc()[:10], "header"),
        (own_pyc()[:16] + b"N", "holds a NoneType"),
    ]:
        with pytest.raises(ValueError, match=message):
            bytecode.load_pyc(data)


def test_damaged_code_objects_are_refused():
    code = (lambda a: a).__code__
    good = marshal.dumps(code)
    version = OWN
    assert value(good, version).co_argcount == 1
    many = good[:1] + struct.pack("<i", 9) + good[5:]
    with pytest.raises(ValueError, match="fewer variables than arguments"):
        value(many, version)


def use(code):
    """Everything that is done with a code object that was read."""
    repr(code)
    for each in all_codes(code):
        for action in (lambda: bytecode.compare(each, each), lambda: bytecode.decompile_structured(each), lambda: read(each)):
            try:
                action()
            except ValueError:
                pass


def read(code):
    decoded = bytecode.decode(code)
    bytecode.to_text(decoded)
    bytecode.validate(decoded)


@pytest.mark.parametrize("seed", range(4))
def test_corrupted_files_never_crash(seed):
    """What comes out is a code object or ValueError, and what is then done with it ends likewise."""
    chooser = random.Random(seed)
    good = own_pyc()
    read = 0
    for _ in range(400):
        data = bytearray(good)
        for _ in range(chooser.choice((1, 1, 2, 5))):
            at = chooser.randrange(16, len(data))
            data[at] = chooser.choice((chooser.randrange(256), data[at] ^ 1 << chooser.randrange(8), 0, 255))
        if chooser.random() < 0.2:
            del data[chooser.randrange(len(data)) :]
        try:
            code = bytecode.load_pyc(bytes(data))
        except ValueError:
            continue
        read += 1
        use(code)
    assert read > 50
