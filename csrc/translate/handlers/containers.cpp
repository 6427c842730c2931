// Building, growing and unpacking containers.
#include "translate/handlers/handlers.h"

namespace pellucid::translate {

using namespace variables;

namespace {

// A container that came through a resume function exists outside: what grows it must be written back.
template <class T>
T* grown(InstructionTranslator& t, Variable* variable) {
  auto* container = static_cast<T*>(t.force(variable));
  if (container->source) t.mark_changed(container);
  return container;
}

std::vector<Variable*> take(Frame& frame, size_t count) {
  std::vector<Variable*> items(frame.stack.end() - static_cast<std::ptrdiff_t>(count), frame.stack.end());
  frame.drop(count);
  return items;
}

Status merge(InstructionTranslator& t, DictVariable* into, Variable* from, bool unique) {
  from = t.force(from);
  auto* source = as_dict(from);
  if (!source && from->kind == Kind::kObject && TRY(has_attribute(t, from, t.intern("keys")))) {  // a mapping of the program
    source = t.dict();
    TRY(dict_update(t, source, from));
  }
  if (!source) return t.fail(Reason::unsupported_value, "** of " + describe(from));
  if (unique)
    for (auto& [key, value] : source->entries)
      if (value && dict_find(into, key)) return t.fail(Reason::uncaught_exception, "multiple values for one keyword argument");
  for (auto& [key, value] : source->entries)
    if (value) dict_store(t, into, key, value);
  return Unit{};
}

}  // namespace

OPCODE(BUILD_TUPLE) {
  frame.push(t.tuple(take(frame, instruction.arg)));
  return Unit{};
}

OPCODE(BUILD_LIST) {
  frame.push(t.list(take(frame, instruction.arg)));
  return Unit{};
}

OPCODE(BUILD_SET) {
  auto* set = t.make<SetVariable>();
  set->keys = py::Ref::steal(PySet_New(nullptr));
  for (uint32_t i = 0; i < instruction.arg; i++) {
    PyObject* key = TRY(dict_key(t, frame.peek(instruction.arg - 1 - i)));
    if (PySet_Add(set->keys.get(), key) < 0) return t.raise_python_error();
  }
  frame.drop(instruction.arg);
  frame.push(set);
  return Unit{};
}

OPCODE(BUILD_MAP) {
  DictVariable* dict = t.dict();
  for (uint32_t i = 0; i < instruction.arg; i++) {
    PyObject* key = TRY(dict_key(t, frame.peek(2 * (instruction.arg - i) - 1)));
    dict_store(t, dict, key, frame.peek(2 * (instruction.arg - i) - 2));
  }
  frame.drop(2 * instruction.arg);
  frame.push(dict);
  return Unit{};
}

OPCODE(BUILD_CONST_KEY_MAP) {
  PyObject* keys = known(t, frame.peek());
  DictVariable* dict = t.dict();
  for (uint32_t i = 0; i < instruction.arg; i++)
    dict_store(t, dict, PyTuple_GET_ITEM(keys, static_cast<Py_ssize_t>(i)), frame.peek(instruction.arg - i));
  frame.drop(instruction.arg + 1);
  frame.push(dict);
  return Unit{};
}

OPCODE(BUILD_SLICE) {
  auto* slice = t.make<SliceVariable>();
  slice->parts[2] = instruction.arg == 3 ? frame.pop() : t.none();
  slice->parts[1] = frame.pop();
  slice->parts[0] = frame.pop();
  for (auto& part : slice->parts) part = t.force(part);
  frame.push(slice);
  return Unit{};
}

OPCODE(LIST_TO_TUPLE) {
  auto* list = as_list(t.force(frame.pop()));
  if (!list) return t.fail(Reason::unsupported_value, "LIST_TO_TUPLE of no list");
  frame.push(t.tuple(list->items));
  return Unit{};
}

OPCODE(LIST_APPEND) {
  Variable* value = frame.pop();
  grown<ListVariable>(t, frame.peek(instruction.arg - 1))->items.push_back(value);
  return Unit{};
}

OPCODE(SET_ADD) {
  auto* set = grown<SetVariable>(t, frame.peek(instruction.arg));
  PyObject* key = TRY(dict_key(t, frame.peek()));
  if (PySet_Add(set->keys.get(), key) < 0) return t.raise_python_error();
  frame.pop();
  return Unit{};
}

OPCODE(MAP_ADD) {
  auto* dict = grown<DictVariable>(t, frame.peek(instruction.arg + 1));
  PyObject* key = TRY(dict_key(t, frame.peek(1)));
  dict_store(t, dict, key, frame.peek());
  frame.drop(2);
  return Unit{};
}

OPCODE(LIST_EXTEND) {
  Variable* iterable = t.force(frame.peek());
  PyTypeObject* type = type_of(iterable);
  if (type && !type->tp_iter && !(type->tp_as_sequence && type->tp_as_sequence->sq_item)) {
    return t.raise_new(PyExc_TypeError, "Value after * must be an iterable, not %.200s", type->tp_name);
  }
  std::vector<Variable*> items = TRY(unpack(t, iterable));
  frame.pop();
  auto* list = grown<ListVariable>(t, frame.peek(instruction.arg - 1));
  list->items.insert(list->items.end(), items.begin(), items.end());
  return Unit{};
}

OPCODE(SET_UPDATE) {
  std::vector<Variable*> items = TRY(unpack(t, frame.peek()));
  std::vector<PyObject*> keys;
  for (Variable* item : items) keys.push_back(TRY(dict_key(t, item)));
  frame.pop();
  auto* set = grown<SetVariable>(t, frame.peek(instruction.arg - 1));
  for (PyObject* key : keys)
    if (PySet_Add(set->keys.get(), key) < 0) return t.raise_python_error();
  return Unit{};
}

OPCODE(DICT_UPDATE) {
  auto* dict = grown<DictVariable>(t, frame.peek(instruction.arg));
  TRY(merge(t, dict, frame.peek(), false));
  frame.pop();
  return Unit{};
}

OPCODE(DICT_MERGE) {
  auto* dict = grown<DictVariable>(t, frame.peek(instruction.arg));
  TRY(merge(t, dict, frame.peek(), true));
  frame.pop();
  return Unit{};
}

OPCODE(UNPACK_SEQUENCE) {
  std::vector<Variable*> items = TRY(unpack(t, frame.peek()));
  if (items.size() < instruction.arg)
    return t.raise_new(PyExc_ValueError, "not enough values to unpack (expected %d, got %zd)", static_cast<int>(instruction.arg),
                       items.size());
  if (items.size() > instruction.arg)
    return t.raise_new(PyExc_ValueError, "too many values to unpack (expected %d)", static_cast<int>(instruction.arg));
  frame.pop();
  for (size_t i = items.size(); i-- > 0;) frame.push(items[i]);
  return Unit{};
}

OPCODE(UNPACK_EX) {
  const size_t before = instruction.arg & 0xFF, after = instruction.arg >> 8;
  std::vector<Variable*> items = TRY(unpack(t, frame.peek()));
  if (items.size() < before + after)
    return t.raise_new(PyExc_ValueError, "not enough values to unpack (expected at least %zd, got %zd)", before + after, items.size());
  frame.pop();
  const size_t end = items.size() - after;
  for (size_t i = items.size(); i-- > end;) frame.push(items[i]);
  frame.push(t.list({items.begin() + static_cast<std::ptrdiff_t>(before), items.begin() + static_cast<std::ptrdiff_t>(end)}));
  for (size_t i = before; i-- > 0;) frame.push(items[i]);
  return Unit{};
}

OPCODE(GET_LEN) {
  frame.push(t.integer(TRY(length(t, frame.peek()))));
  return Unit{};
}

}  // namespace pellucid::translate
