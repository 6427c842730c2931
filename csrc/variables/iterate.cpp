// Iteration: iter(), next() and list() of everything iterable. Iterators are live as CPython's are: a list may grow while it is
// iterated over, a dict may not. What an iterator has advanced before a step that breaks is taken back.
#include "base/check.h"
#include "variables/values.h"

namespace pellucid::variables {

using Form = IteratorVariable::Form;

void IteratorPositions::save(Variable* v) {
  auto* iterator = as_iterator(v);
  if (iterator == nullptr) return;
  saved_.push_back({iterator, iterator->index, iterator->exhausted, iterator->version, iterator->over, iterator->inner});
  for (Variable* inner : iterator->inner) save(inner);
  save(iterator->over);
}

void IteratorPositions::restore() {
  for (auto& state : saved_) {
    state.iterator->index = state.index;
    state.iterator->exhausted = state.exhausted;
    state.iterator->version = state.version;
    state.iterator->over = state.over;
    state.iterator->inner = state.inner;
  }
}

namespace {

IteratorVariable* over_sequence(Tracer& t, Variable* sequence) {
  auto* iterator = t.make<IteratorVariable>();
  iterator->form = Form::kSequence;
  iterator->over = sequence;
  return iterator;
}

IteratorVariable* over_dict(Tracer& t, DictVariable* dict, uint8_t which) {
  auto* iterator = t.make<IteratorVariable>();
  iterator->form = Form::kDict;
  iterator->over = dict;
  iterator->which = which;
  iterator->version = dict->version;
  iterator->stop = static_cast<Py_ssize_t>(dict->live);
  return iterator;
}

Result<std::vector<Variable*>> set_items(Tracer& t, Variable* set) {
  py::Ref keys = py::Ref::steal(PySequence_Tuple(real_keys(set)));
  if (!keys) return t.raise_python_error();
  std::vector<Variable*> items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); i++) items.push_back(key_variable(t, t.keep(PyTuple_GET_ITEM(keys.get(), i))));
  return items;
}

Answer unbound(Tracer& t, TensorVariable* tensor) {
  TRY(length(t, tensor));  // a 0-d tensor: decided below, with iteration's own message
  Arguments arguments;
  arguments.positional = {t.integer(0)};
  return call_tensor_method(t, tensor, t.intern("unbind"), arguments);
}

Answer object_iterator(Tracer& t, Variable* object) {
  Special method = TRY(find_special(t, object, "__iter__"));
  if (method.method && !method.builtin && method.method->kind == Kind::kConstant && method.method->real == Py_None) {
    return t.raise_new(PyExc_TypeError, "'%.200s' object is not iterable", type_name(object));
  }
  if (method.method && !method.builtin) {
    Variable* iterator = t.force(TRY(call_special_now(t, object, "__iter__", {})));
    if (iterator->kind == Kind::kIterator || iterator->kind == Kind::kGenerator) return iterator;
    if (iterator->kind == Kind::kObject && TRY(find_special(t, iterator, "__next__")).method) return iterator;
    if (iterator->kind == Kind::kObject && static_cast<ObjectVariable*>(iterator)->existed) {
      return t.fail(Reason::unsupported_iteration, "__iter__ gave " + describe(iterator));
    }
    return t.raise_new(PyExc_TypeError, "iter() returned non-iterator of type '%.100s'", type_name(iterator));
  }
  if (Variable* inner = inner_of(object, method)) return get_iterator(t, inner);
  if (method.method) return t.fail(Reason::unsupported_iteration, "iteration over " + describe(object));
  Special item = TRY(find_special(t, object, "__getitem__"));
  if (!item.method) return t.raise_new(PyExc_TypeError, "'%.200s' object is not iterable", type_name(object));
  if (item.builtin) return t.fail(Reason::unsupported_iteration, "iteration over " + describe(object));
  return over_sequence(t, object);  // the old protocol: 0, 1, 2 ... until IndexError
}

}  // namespace

Answer get_iterator(Tracer& t, Variable* v) {
  v = t.force(v);
  switch (v->kind) {
    case Kind::kTuple: {
      if (static_cast<TupleVariable*>(v)->type->tp_iter != PyTuple_Type.tp_iter) break;
      return over_sequence(t, v);
    }
    case Kind::kList:
      return over_sequence(t, v);
    case Kind::kDict:
      return over_dict(t, static_cast<DictVariable*>(v), 0);
    case Kind::kDictView: {
      auto* view = static_cast<DictViewVariable*>(v);
      return over_dict(t, view->dict, view->which);
    }
    case Kind::kSet: {
      // Items as they are now, and the set beside them to notice that it changed.
      IteratorVariable* iterator = over_sequence(t, t.tuple(TRY(set_items(t, v))));
      iterator->inner.push_back(v);
      return iterator;
    }
    case Kind::kConstant:
      if (!is_data(v->real)) break;
      if (PyUnicode_Check(v->real) || PyRange_Check(v->real) || PyBytes_Check(v->real)) return over_sequence(t, v);
      return t.raise_new(PyExc_TypeError, "'%.200s' object is not iterable", type_name(v));
    case Kind::kIterator:
    case Kind::kGenerator:
      return v;
    case Kind::kTensor: {
      Answer items = unbound(t, static_cast<TensorVariable*>(v));
      if (!items.ok() && raised(items.failure(), PyExc_TypeError)) return t.raise_new(PyExc_TypeError, "iteration over a 0-d tensor");
      Variable* tuple = TRY(std::move(items));
      return get_iterator(t, tuple);
    }
    case Kind::kObject:
      return object_iterator(t, v);
    case Kind::kFunction:
    case Kind::kBoundMethod:
    case Kind::kBuiltinMethod:
    case Kind::kSlice:
      return t.raise_new(PyExc_TypeError, "'%.200s' object is not iterable", type_name(v));
    default:
      break;
  }
  return t.fail(Reason::unsupported_iteration, "iteration over " + describe(v));
}

namespace {

Result<bool> next_in_sequence(Tracer& t, IteratorVariable* it, Variable** value) {
  Variable* over = t.force(it->over);
  const bool forward = it->form == Form::kSequence;
  if (auto* set = it->inner.empty() ? nullptr : as_set(it->inner[0])) {
    if (static_cast<Py_ssize_t>(static_cast<TupleVariable*>(over)->items.size()) != PySet_GET_SIZE(real_keys(set))) {
      return t.raise_new(PyExc_RuntimeError, "Set changed size during iteration");
    }
  }
  if (over->kind == Kind::kObject) {
    if (!forward && it->index < 0) return false;
    Answer item = t.wait(get_item(t, over, t.integer(it->index)));
    if (!item.ok()) {
      if (!raised(item.failure(), PyExc_IndexError) && !raised(item.failure(), PyExc_StopIteration)) return Failed{item.failure()};
      return false;
    }
    *value = item.value();
    it->index += forward ? 1 : -1;
    return true;
  }
  Py_ssize_t size = 0;
  if (auto* list = as_list(over))
    size = static_cast<Py_ssize_t>(list->items.size());
  else if (auto* tuple = as_tuple(over))
    size = static_cast<Py_ssize_t>(tuple->items.size());
  else
    size = TRY(length(t, over));
  if (it->index < 0 || it->index >= size) return false;
  if (auto* list = as_list(over))
    *value = list->items[static_cast<size_t>(it->index)];
  else if (auto* tuple = as_tuple(over))
    *value = tuple->items[static_cast<size_t>(it->index)];
  else
    *value = TRY(from_result(t, PySequence_GetItem(over->real, it->index)));
  it->index += forward ? 1 : -1;
  return true;
}

Result<bool> next_in_dict(Tracer& t, IteratorVariable* it, Variable** value) {
  auto* dict = as_dict(it->over);
  CHECK(dict) << "an iterator over a dict without one";
  if (!has_dict_version(dict, it->version, it->stop)) {
    if (static_cast<Py_ssize_t>(dict->live) == it->stop)
      return t.fail(Reason::unsupported_iteration, "keys of a dict changed during iteration");
    return t.raise_new(PyExc_RuntimeError,
                       dict->type == &PyDict_Type ? "dictionary changed size during iteration" : "%s mutated during iteration",
                       "OrderedDict");
  }
  auto at = static_cast<size_t>(it->index);
  while (at < dict->entries.size() && dict->entries[at].second == nullptr) at++;
  if (at >= dict->entries.size()) return false;
  auto& [key, item] = dict->entries[at];
  if (it->which == 1) {
    *value = item;
  } else {
    Variable* name = dict_key_variable(t, dict, key);
    *value = it->which == 0 ? name : t.tuple({name, item});
  }
  it->index = static_cast<Py_ssize_t>(at) + 1;
  return true;
}

// zip's own complaint when it is strict and argument `which` ended first or goes on.
Failed uneven_zip(Tracer& t, size_t which, bool longer) {
  const char* plural = which == 1 ? " " : "s 1-";
  return t.raise_new(PyExc_ValueError, "zip() argument %zd is %s than argument%s%zd", static_cast<Py_ssize_t>(which + 1),
                     longer ? "longer" : "shorter", plural, static_cast<Py_ssize_t>(which));
}

Result<bool> next_in_zip(Tracer& t, IteratorVariable* it, Variable** value) {
  std::vector<Variable*> items;
  for (size_t i = 0; i < it->inner.size(); i++) {
    Variable* item = nullptr;
    if (TRY(next(t, it->inner[i], &item))) {
      items.push_back(item);
      continue;
    }
    if (it->strict && i > 0) return uneven_zip(t, i, false);
    for (size_t j = 1; it->strict && j < it->inner.size(); j++) {
      if (TRY(next(t, it->inner[j], &item))) return uneven_zip(t, j, true);
    }
    return false;
  }
  if (items.empty()) return false;
  *value = t.tuple(std::move(items));
  return true;
}

Result<bool> next_in_map(Tracer& t, IteratorVariable* it, Variable** value) {
  Arguments arguments;
  for (Variable* inner : it->inner) {
    Variable* item = nullptr;
    if (!TRY(next(t, inner, &item))) return false;
    arguments.positional.push_back(item);
  }
  *value = TRY(t.wait(call(t, it->function, std::move(arguments))));
  return true;
}

Result<bool> next_in_filter(Tracer& t, IteratorVariable* it, Variable** value) {
  Variable* function = it->function ? t.force(it->function) : nullptr;
  const bool own_truth = function == nullptr || (function->kind == Kind::kConstant && function->real == Py_None);
  for (Variable* item = nullptr; TRY(next(t, it->inner[0], &item));) {
    Variable* verdict = item;
    if (!own_truth) {
      Arguments arguments;
      arguments.positional = {item};
      verdict = TRY(t.wait(call(t, function, std::move(arguments))));
    }
    if (TRY(truth(t, verdict))) {
      *value = item;
      return true;
    }
  }
  return false;
}

// chain(a, b): `inner` holds the iterables, `index` the current one. chain.from_iterable(x): `over` gives further ones.
Result<bool> next_in_chain(Tracer& t, IteratorVariable* it, Variable** value) {
  for (;;) {
    while (static_cast<size_t>(it->index) < it->inner.size()) {
      Variable*& current = it->inner[static_cast<size_t>(it->index)];
      current = TRY(get_iterator(t, current));
      if (TRY(next(t, current, value))) return true;
      it->index++;
    }
    if (it->over == nullptr) return false;
    it->over = TRY(get_iterator(t, it->over));
    Variable* more = nullptr;
    if (!TRY(next(t, it->over, &more))) return false;
    it->inner.push_back(more);
  }
}

// islice: `index` is the position of the next item to give, `version` how many were drawn.
Result<bool> next_in_islice(Tracer& t, IteratorVariable* it, Variable** value) {
  const Py_ssize_t wanted = it->index, stop = it->stop;
  for (;;) {
    const auto drawn = static_cast<Py_ssize_t>(it->version);
    const bool skip = drawn < wanted;
    if (stop >= 0 && drawn >= stop) return false;
    Variable* item = nullptr;
    if (!TRY(next(t, it->inner[0], &item))) return false;
    it->version++;
    if (skip) continue;
    it->index += it->step;
    if (stop >= 0 && it->index > stop) it->index = stop;
    *value = item;
    return true;
  }
}

Result<bool> next_of_form(Tracer& t, IteratorVariable* it, Variable** value) {
  switch (it->form) {
    case Form::kSequence:
    case Form::kReversed:
      return next_in_sequence(t, it, value);
    case Form::kDict:
      return next_in_dict(t, it, value);
    case Form::kEnumerate: {
      Variable* item = nullptr;
      if (!TRY(next(t, it->inner[0], &item))) return false;
      *value = t.tuple({t.integer(it->index), item});
      it->index++;
      return true;
    }
    case Form::kZip:
      return next_in_zip(t, it, value);
    case Form::kMap:
      return next_in_map(t, it, value);
    case Form::kFilter:
      return next_in_filter(t, it, value);
    case Form::kChain:
      return next_in_chain(t, it, value);
    case Form::kRepeat:
      if (it->stop >= 0 && it->index >= it->stop) return false;
      *value = it->over ? it->over : it->inner[0];
      it->index++;
      return true;
    case Form::kCount:
      *value = t.integer(it->index);
      it->index += it->step;
      return true;
    case Form::kIslice:
      return next_in_islice(t, it, value);
    case Form::kCallable: {
      // iter(callable, sentinel): the sentinel is inner[0]
      Answer result = t.wait(call(t, it->function, {}));
      if (!result.ok()) {
        if (!raised(result.failure(), PyExc_StopIteration)) return Failed{result.failure()};
        return false;
      }
      *value = result.value();
      return it->inner.empty() || !TRY(same_or_equal(t, it->inner[0], *value));
    }
  }
  return false;
}

// Whether a step may fail after it has drawn an item that it then would not give.
bool may_lose_items(IteratorVariable* it) {
  return it->form == Form::kZip || it->form == Form::kMap || it->form == Form::kFilter || it->form == Form::kIslice;
}

}  // namespace

Result<bool> next(Tracer& t, Variable* iterator, Variable** value) {
  iterator = t.force(iterator);
  if (auto* it = as_iterator(iterator)) {
    if (it->exhausted) return false;
    if (!may_lose_items(it)) {
      const bool more = TRY(next_of_form(t, it, value));
      // These forget what they were over; enumerate, chain and the like ask again after the end.
      const bool remembers =
          it->form == Form::kSequence || it->form == Form::kReversed || it->form == Form::kDict || it->form == Form::kCallable;
      if (!more && remembers) it->exhausted = true;
      return more;
    }
    IteratorPositions before(it);
    Result<bool> more = next_of_form(t, it, value);
    if (!more.ok()) {
      if (broke(more)) before.restore();
      return more;
    }
    return more;
  }
  Answer result = nullptr;
  if (auto* generator = as<GeneratorVariable>(iterator, Kind::kGenerator)) {
    result = t.resume_generator(generator, t.none());
  } else if (iterator->kind == Kind::kObject) {
    Special method = TRY(find_special(t, iterator, "__next__"));
    if (!method.method) return t.raise_new(PyExc_TypeError, "'%.200s' object is not an iterator", type_name(iterator));
    if (method.builtin) return t.fail(Reason::unsupported_iteration, "next() of " + describe(iterator));
    result = call_special_now(t, iterator, "__next__", {});
  } else if (iterator->kind == Kind::kTensor) {
    return t.raise_new(PyExc_TypeError, "'Tensor' object is not an iterator");
  } else {
    return t.raise_new(PyExc_TypeError, "'%.200s' object is not an iterator", type_name(iterator));
  }
  if (result.ok()) {
    *value = result.value();
    return true;
  }
  if (raised(result.failure(), PyExc_StopIteration)) return false;
  return Failed{result.failure()};
}

Status unpack_into(Tracer& t, Variable* iterable, std::vector<Variable*>* items) {
  iterable = t.force(iterable);
  auto* tuple = as_tuple(iterable);
  if (auto* list = as_list(iterable)) {
    *items = list->items;
    return Unit{};
  }
  if (tuple && tuple->type->tp_iter == PyTuple_Type.tp_iter) {
    *items = tuple->items;
    return Unit{};
  }
  if (iterable->kind == Kind::kSet) {
    *items = TRY(set_items(t, iterable));
    return Unit{};
  }
  Variable* iterator = TRY(get_iterator(t, iterable));
  IteratorPositions before(iterator);
  for (;;) {
    Variable* value = nullptr;
    Result<bool> more = next(t, iterator, &value);
    if (!more.ok()) {
      if (broke(more)) before.restore();
      return Failed{more.failure()};
    }
    if (!more.value()) return Unit{};
    items->push_back(value);
    // An endless iterator: let the program itself find out.
    if (items->size() > size_t{1} << 20) {
      before.restore();
      return t.fail(Reason::too_many_instructions, "list of more than a million items");
    }
  }
}

Result<std::vector<Variable*>> unpack(Tracer& t, Variable* iterable) {
  std::vector<Variable*> items;
  TRY(unpack_into(t, iterable, &items));
  return items;
}

}  // namespace pellucid::variables
