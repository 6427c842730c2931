"""Compiles decompiled source back, in this interpreter or, run as a script, in one of another version.

The source of a code object stands alone, so what compiling it needs from around it is put there: a function whose variables are its
free ones, imports that decide how calls compile. Runs on Python 3.8 to 3.13 and imports nothing of Pellucid.
"""

import __future__

import ast
import marshal
import struct
import sys
import types
import warnings
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

# The flags that `from __future__ import` leaves in code objects; nested_scopes' own is CO_NESTED, which is no choice any more.
FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag & ~0xFFF

_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_ASYNCHRONOUS = 0x80 | 0x200  # CO_COROUTINE, CO_ASYNC_GENERATOR


class Request(NamedTuple):
    """A source to compile, and which of the code objects that come out is wanted."""

    source: str
    name: str  # co_name of the wanted code object; empty: the module's
    flags: int  # co_flags of the original
    freevars: Tuple[str, ...] = ()
    imports: Tuple[str, ...] = ()  # modules that the original's module imports at its top
    filename: str = "<decompiled>"

    nested: bool = False  # a function stands around it

    @property
    def stands_in_function(self) -> bool:
        """Whether a function is put around it: to give it variables, or to make functions nested."""
        return self.nested or bool(self.freevars) or self.waits

    @property
    def waits(self) -> bool:
        """Whether it is an asynchronous comprehension, which stands in asynchronous functions only."""
        return self.name in _COMPREHENSIONS and bool(self.flags & _ASYNCHRONOUS)


def compile_request(request: Request) -> types.CodeType:
    """The wanted code object. Raises what compiling raises, and LookupError where none of that name comes out."""
    flags = request.flags & FUTURE_FLAGS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not request.name:
            return compile(request.source, request.filename, "exec", flags, True)
        tree: Any = request.source
        if request.stands_in_function or request.imports:
            tree = _with_context(ast.parse(request.source, request.filename), request)
        module = compile(tree, request.filename, "exec", flags, True)
    if request.stands_in_function:
        module = next(const for const in module.co_consts if isinstance(const, types.CodeType))
    found = _find(module, request.name)
    if found is None:
        raise LookupError("compiling gives no code object {!r}".format(request.name))
    return found


def _with_context(tree: ast.Module, request: Request) -> ast.Module:
    body: List[ast.stmt] = tree.body
    if request.stands_in_function:
        around: Any = ast.parse(("async " if request.waits else "") + "def around():\n    pass").body[0]
        names: List[ast.expr] = [ast.Name(name, ast.Store()) for name in request.freevars if name.isidentifier()]
        around.body = [ast.Assign(names, ast.Constant(None)), *body] if names else body
        if request.name.isidentifier() and request.name not in request.freevars:
            # What it reads under its own name, if anything, is a global.
            around.body = [ast.Global([request.name]), *around.body]
        body = [around]
    if request.imports:
        body = [ast.Import([ast.alias(name, None) for name in request.imports]), *body]
    tree.body = body
    return ast.fix_missing_locations(tree)


def _find(module: types.CodeType, name: str) -> Optional[types.CodeType]:
    """The nearest code object of a name, level by level."""
    level = [module]
    while level:
        level = [const for code in level for const in code.co_consts if isinstance(const, types.CodeType)]
        for code in level:
            if code.co_name == name:
                return code
    return None


def answer(requests: Sequence[Sequence[Any]]) -> List[Tuple[bool, Any]]:
    """For each request marshal data of its code object, or the text of what went wrong."""
    answers: List[Tuple[bool, Any]] = []
    for fields in requests:
        try:
            answers.append((True, marshal.dumps(compile_request(Request(*fields)))))
        except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError, OverflowError) as error:
            answers.append((False, "{}: {}".format(type(error).__name__, error)))
    return answers


def serve() -> None:
    """Answers lists of requests from standard input until it ends: four bytes of length, then marshal data, both ways."""
    stream, out = sys.stdin.buffer, sys.stdout.buffer
    while True:
        head = stream.read(4)
        if len(head) < 4:
            return
        data = marshal.dumps(answer(marshal.loads(stream.read(struct.unpack("<I", head)[0]))), 2)
        out.write(struct.pack("<I", len(data)) + data)
        out.flush()


if __name__ == "__main__":
    serve()
