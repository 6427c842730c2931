"""Compiles decompiled source again and grades what comes out against the original code object.

The compiling is done by an interpreter of the original's version: this one, or a process of another. Knows `_bytecode.compare` and the
requests of `_recompile`, not how source is made.
"""

import marshal
import struct
import subprocess
import sys
import types
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import pellucid._bytecode as _bytecode
from pellucid import _recompile

IDENTICAL, EQUAL_FLOW, DIFFERS = 2, 1, 0
OWN_VERSION = sys.version_info[0] * 100 + sys.version_info[1]
_NESTED = 0x10  # CO_NESTED
_OPTIMIZED = 0x01  # CO_OPTIMIZED: set for functions, not for class bodies and modules

Compiled = Any  # a text says what went wrong


def version_of(code: Any) -> int:
    """308 to 313: the version a code object was compiled for."""
    version: int = getattr(code, "version", OWN_VERSION)
    return version


def is_module(code: Any) -> bool:
    """Whether a code object is the body of a module."""
    return not code.co_flags & _OPTIMIZED and code.co_name == "<module>"


def is_class_body(code: Any) -> bool:
    """Whether a code object is the body of a class."""
    return not code.co_flags & _OPTIMIZED and not is_module(code)


def request_for(code: Any, source: str, imports: Sequence[str] = (), renamed: Optional[Dict[str, str]] = None) -> _recompile.Request:
    """The request that compiles `source` to what should be `code`. `renamed`: names in the source, with those that they stand for."""
    printed = {original: name for name, original in reversed(list((renamed or {}).items()))}
    name = "" if is_module(code) else printed.get(code.co_name, code.co_name)
    freevars = tuple(printed.get(each, each) for each in code.co_freevars)
    return _recompile.Request(source, name, code.co_flags, freevars, tuple(imports), nested=_is_nested(code))


def _is_nested(code: Any) -> bool:
    """Whether a function stands around a code object. A class body does not say it of itself."""
    if code.co_flags & _OPTIMIZED:
        return bool(code.co_flags & _NESTED)
    return not is_module(code) and any(_is_nested(const) for const in code.co_consts if _is_code(const))


def _is_code(const: Any) -> bool:
    return isinstance(const, (types.CodeType, _bytecode.NeutralCode))


def imported_names(code: Any) -> List[str]:
    """Names that the original's module seems to import at its top: from 3.11 on calls of their functions compile to a form of its own."""
    if version_of(code) < 311:
        return []
    plain: Set[str] = set()
    as_methods: Set[str] = set()
    for each in code_objects(code):
        _find_attribute_calls(each, plain, as_methods)
    # Calls with unpacked arguments look like those of an imported module's functions; any other call of a method tells.
    return sorted(name for name in plain - as_methods if name.isidentifier())


def code_objects(code: Any) -> Iterator[Any]:
    """A code object and those among its constants, to any depth."""
    yield code
    for const in code.co_consts:
        if _is_code(const):
            yield from code_objects(const)


def _find_attribute_calls(code: Any, plain: Set[str], as_methods: Set[str]) -> None:
    """Names whose attributes are called: as plain values, and as methods."""
    version = version_of(code)
    decoded = _bytecode.decode(code)
    instructions, slots = decoded.instructions, decoded.localsplus_names
    for index in range(1, len(instructions)):
        attribute, name = instructions[index], instructions[index - 1]
        is_method = attribute.op == "LOAD_METHOD" or version >= 312 and attribute.arg & 1
        if attribute.op not in ("LOAD_ATTR", "LOAD_METHOD"):
            continue
        before = instructions[index - 2] if index > 1 else name
        if version >= 312 and name.op == "CALL" and name.arg == 0 and before.op == "LOAD_GLOBAL":
            # Where a module uses the name itself, `super().attribute` is no instruction of its own.
            plain.update([text for text in [code.co_names[before.arg >> 1]] if text == "super"])
        if name.op == "LOAD_GLOBAL":
            text = code.co_names[name.arg >> 1]
        elif name.op == "LOAD_NAME":
            text = code.co_names[name.arg]
        elif name.op in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF"):
            text = slots[name.arg]
        elif name.op in ("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST"):
            text = slots[name.arg & 15]
        else:
            continue
        if is_method:
            as_methods.add(text)
        elif version >= 313:
            called = index + 1 < len(instructions) and instructions[index + 1].op == "PUSH_NULL"
            plain.update([text] if called else [])
        elif name.op == "LOAD_GLOBAL" and name.arg & 1 or index > 1 and instructions[index - 2].op == "PUSH_NULL":
            plain.add(text)


class Compiler:
    """Compiles requests in an interpreter of one version; another's is started on first use and stays until `close`."""

    def __init__(self, version: int, python: Optional[str] = None) -> None:
        """`python`: the interpreter to start; None: this process, whose version it must be."""
        if python is None and version != OWN_VERSION:
            raise ValueError("this is Python {}, not {}".format(OWN_VERSION, version))
        self.version = version
        self._python = python
        self._process: Optional[subprocess.Popen[bytes]] = None

    def compile(self, requests: Sequence[_recompile.Request]) -> List[Compiled]:
        """A code object for each request, or the text of what went wrong."""
        if self._python is None:
            return [data if not good else _load(data, self.version) for good, data in _recompile.answer(requests)]
        data = marshal.dumps([tuple(request) for request in requests], 2)
        for attempt in (0, 1):
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(struct.pack("<I", len(data)) + data)
                process.stdin.flush()
                head = process.stdout.read(4)
            except BrokenPipeError:
                head = b""
            if len(head) == 4:
                body = process.stdout.read(struct.unpack("<I", head)[0])
                return [_load(value, self.version) if good else str(value) for good, value in marshal.loads(body)]
            self.close()
            if attempt and len(requests) == 1:
                return ["the interpreter crashed while compiling"]
        return [self.compile([request])[0] for request in requests]

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            assert self._python is not None
            command = [self._python, "-I", _recompile.__file__]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return self._process

    def close(self) -> None:
        """Ends the process, if one runs."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _load(data: bytes, version: int) -> Any:
    return _bytecode.load_marshal(data, version)


def grade(code: Any, compiled: Compiled, bindings: Optional[Dict[str, Any]] = None) -> Tuple[int, str]:
    """The grade of what compiling gave, and the first difference. `bindings`: what globals of the source stand for."""
    if isinstance(compiled, str):
        return DIFFERS, "it does not compile: " + compiled
    result: Tuple[int, str] = _bytecode.compare(code, compiled, standalone=not is_module(code), bindings=bindings or {})
    return result


def block_form_fault(code: Any, compiled: Compiled, bindings: Optional[Dict[str, Any]] = None) -> str:
    """What keeps a compiled block form from being proven to do what its original does; empty where it is proven."""
    if isinstance(compiled, str):
        return "block form does not compile: " + compiled
    why: str = _bytecode.check_blocks(code, compiled, bindings or {})
    return "block form not proven: " + why if why else ""


def check(compiler: Compiler, pairs: Sequence[Tuple[Any, str]], bindings: Optional[Dict[str, Any]] = None) -> List[Tuple[int, str]]:
    """Grades sources, each with the code object it was made from: (grade, first difference). `bindings`: what globals stand for."""
    compiled = compiler.compile([request_for(code, source) for code, source in pairs])
    results = [grade(code, made, bindings) for (code, _), made in zip(pairs, compiled)]
    again = []
    for index, ((code, _), (reached, _)) in enumerate(zip(pairs, results)):
        imports = imported_names(code) if reached != IDENTICAL and not is_module(code) else []
        if imports:
            again.append((index, imports))
    compiled = compiler.compile([request_for(*pairs[index], imports) for index, imports in again]) if again else []
    for (index, _), made in zip(again, compiled):
        better = grade(pairs[index][0], made, bindings)
        if better[0] >= results[index][0]:
            results[index] = better
    return results
