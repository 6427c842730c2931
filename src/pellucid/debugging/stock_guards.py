"""The guards of torch._dynamo as a Python function: what it prints of them is made for people and is no Python in part.

A guard that can't be said in the words of runtime.py is called as the object it is. Knows torch._dynamo's texts, and no files.
"""

import ast
import builtins
import copy
import re
import textwrap
from types import CodeType
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from pellucid.debugging.references import References

_STATE = re.compile(r"___check_global_state\(\) against (\{.*\})")
_HOOKS = re.compile(r"torch\._functorch\.aot_autograd\.utils\.top_saved_tensors_hooks ids == (.*)")
_TYPE_SUFFIX = re.compile(r", type=<.*>$", re.DOTALL)
_COMMENT = re.compile(r"\s+#\s")
_MODES = "___check_torch_function_mode_stack()"
_DEVICE = re.compile(r"utils_device\.CURRENT_DEVICE == (.*)")


class _Leaf(NamedTuple):
    """A guard that checks one value."""

    guard: Any
    source: str  # of the value; empty: the frame's locals


class _CannotSay(Exception):
    """The guard has no text that Python could run."""


class GuardWriter:
    """Writes the guards of one entry. Made while the frame that they were made for is alive."""

    def __init__(self, manager: Any, frame_locals: Dict[str, Any], module_globals: Dict[str, Any], modes: Tuple[type, ...]) -> None:
        self._values: Dict[str, Any] = {"L": dict(frame_locals), "G": module_globals}
        self._words: Dict[str, Any] = dict(manager.closure_vars or {})
        self._modes = modes
        self._leaves = list(_leaves_of_root(manager.root))
        # Looked up now: objects may be gone or others later.
        self._objects: Dict[str, Any] = {}
        for leaf in self._leaves:
            for part in leaf.guard.verbose_code_parts():
                for node in ast.walk(_parsed(_split(part)[0]) or ast.Constant(None)):
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OBJECT_WORDS and node.args:
                        self._look_up(node.args[0])
        self._installed = {name: value for name, value in module_globals.items() if name.startswith(_INSTALLED)}
        self._values = {}

    def _look_up(self, source: ast.expr) -> None:
        text = ast.unparse(source)
        try:
            self._objects[text] = eval(text, {**self._words, **self._values})  # what torch._dynamo itself would run
        except (LookupError, AttributeError, NameError, TypeError, ValueError):
            pass  # no such text of Python's: the guard is kept as an object

    def __call__(self, name: str, references: References) -> str:
        """The source of the function."""
        lines: List[str] = []
        seen: Set[str] = set()
        for leaf in self._leaves:
            for expression, comment in self._expressions(leaf, references):
                if expression not in seen:
                    seen.add(expression)
                    lines.append("    if not ({}):{}".format(expression, "  # " + comment if comment else ""))
                    lines.append("        return False")
        body = "\n".join([*lines, "    return True"]) + "\n"
        # Their words by argument: a variable of the program's may have the same name.
        used = {node.id for node in ast.walk(ast.parse(textwrap.dedent(body).replace("return", "pass;"))) if isinstance(node, ast.Name)}
        words = "".join(", {0}=_rt.dynamo_word({0!r})".format(word) for word in sorted(used & set(self._words) - set(vars(builtins))))
        return "def {}(L, G, F{}):\n".format(name, words) + body

    def _expressions(self, leaf: _Leaf, references: References) -> Iterator[Tuple[str, str]]:
        parts = [_split(part) for part in leaf.guard.verbose_code_parts()]
        try:
            said = [(self._said(text, references), comment) for text, comment in parts]
        except _CannotSay:
            text, comment = parts[0] if parts else ("", "")
            said = [
                ("{}({})".format(references.keep(leaf.guard), leaf.source or "L"), " | ".join(filter(None, (_one_line(text), comment))))
            ]
        yield from said

    def _said(self, text: str, references: References) -> str:
        for pattern, word in ((_STATE, "torch_state_is"), (_HOOKS, "saved_tensors_hooks_are"), (_DEVICE, "default_device_is")):
            match = pattern.fullmatch(text)
            if match:
                return "_rt.{}({})".format(word, _python_of(match.group(1)))
        if text == _MODES:
            return "_rt.function_modes_are({})".format(", ".join(references.expression(kind) for kind in self._modes))
        tree = _parsed(text)
        if tree is None:
            raise _CannotSay
        said = ast.unparse(_Words(self._objects, self._installed, references).visit(copy.deepcopy(tree)))
        known = {*vars(builtins), *self._words, "L", "G", "F", "_kept", "_rt"}
        for node in ast.walk(ast.parse(said, mode="eval")):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in known and not _bound_in(node.id, said):
                raise _CannotSay
        return said


def _bound_in(name: str, text: str) -> bool:
    """Whether a comprehension or lambda in the text binds the name."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name) or (
            isinstance(node, ast.arg) and node.arg == name
        ):
            return True
    return False


_INSTALLED = ("__import_", "__builtins_dict__")
_OBJECT_WORDS = ("___check_obj_id", "___check_type_id", "check_tensor")


class _Words(ast.NodeTransformer):
    """Puts objects in the place of addresses, and words of ours in that of words which exist in C++ only."""

    def __init__(self, objects: Dict[str, Any], installed: Dict[str, Any], references: References) -> None:
        self._objects, self._globals, self._references = objects, installed, references

    def _object(self, source: ast.expr) -> Any:
        text = ast.unparse(source)
        if text not in self._objects:
            raise _CannotSay
        return self._objects[text]

    def _reference(self, value: Any) -> ast.expr:
        return ast.parse(self._references.expression(value), mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.AST:
        word = node.func.id if isinstance(node.func, ast.Name) else ""
        if word == "___check_obj_id":
            wanted = self._reference(self._object(node.args[0]))  # first: visiting changes the node
            return ast.Compare(self.visit(node.args[0]), [ast.Is()], [wanted])
        if word == "___check_type_id":
            wanted = self._reference(type(self._object(node.args[0])))
            kind = ast.Call(ast.Name("type", ast.Load()), [self.visit(node.args[0])], [])
            return ast.Compare(kind, [ast.Is()], [wanted])
        if word == "check_tensor":
            return self._tensor(node)
        if word == "check_no_aliasing":
            return ast.Call(_word("no_aliasing"), [self.visit(one) for one in node.args], [])
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        # Globals that torch._dynamo itself puts there, and takes away with the compiled code.
        if isinstance(node.value, ast.Name) and node.value.id == "G" and isinstance(node.slice, ast.Constant):
            name = node.slice.value
            if isinstance(name, str) and name.startswith(_INSTALLED) and name in self._globals:
                return self._reference(self._globals[name])
        return self.generic_visit(node)

    def _tensor(self, node: ast.Call) -> ast.AST:
        if len(node.args) != 4:
            raise _CannotSay
        value, _, keys, dtype = node.args
        given = {"keys": ast.Constant(ast.unparse(keys)), "dtype": self._reference(_dtype(ast.unparse(dtype)))}
        keywords = [ast.keyword(name, one) for name, one in given.items()] + node.keywords
        kind = self._reference(type(self._object(value)))
        return ast.Call(_word("tensor_like"), [self.visit(value), kind], keywords)


def _word(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("_rt", ast.Load()), name, ast.Load())


def _dtype(text: str) -> Any:
    import torch

    found = getattr(torch, text.rpartition(".")[2], None)
    if not isinstance(found, torch.dtype):
        raise _CannotSay
    return found


def _leaves_of_root(root: Any) -> Iterator[_Leaf]:
    yield from _leaves(root)
    for guard in root.get_epilogue_lambda_guards():
        yield _Leaf(guard, "")


def _leaves(manager: Any) -> Iterator[_Leaf]:
    source = manager.get_source() or ""
    for guard in manager.get_leaf_guards():
        yield _Leaf(guard, source)
    pairs = getattr(manager, "get_key_value_managers", None)
    children: List[Any] = manager.get_child_managers() if pairs is None else [one for _, pair in sorted(pairs().items()) for one in pair]
    for child in children:
        if child is not None:
            yield from _leaves(child)


def _parsed(text: str) -> Optional[ast.expr]:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _split(part: str) -> Tuple[str, str]:
    """A guard as torch._dynamo prints it: its text, and where it came from."""
    ends = [match.start() for match in _COMMENT.finditer(part)] + [len(part)]
    for end in ends:
        text = _TYPE_SUFFIX.sub("", part[:end].strip())
        if _parsed(text) is not None or _STATE.fullmatch(text) or _HOOKS.fullmatch(text):
            break
    else:
        end = ends[0]
        text = _TYPE_SUFFIX.sub("", part[:end].strip())
    return text, _one_line(_COMMENT.sub(" | ", part[end:]).strip(" |"))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _python_of(text: str) -> str:
    """JSON or Python, as Python."""
    import json

    try:
        return repr(json.loads(text))
    except ValueError:
        if _parsed(text) is None:
            raise _CannotSay from None
        return text


def names_in(code: CodeType) -> Set[str]:
    """The names that a code object and those in it use."""
    found = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            found |= names_in(const)
    return found
