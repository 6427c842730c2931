// Codegen of side effects: what the traced program changed in objects that exist outside is written back, in the order of first
// change, after every value has been read.
#include "base/check.h"
#include "translate/codegen.h"

namespace pellucid::translate {

using namespace variables;

namespace {

bool exists_outside(Variable* variable) {
  if (auto* object = as_object(variable)) return object->existed;
  if (variable->kind == variables::Kind::kTensor) return true;
  return variable->source != nullptr || (variable->kind == variables::Kind::kCell && variable->real) ||
         (variable->kind == variables::Kind::kFunction && variable->real);
}

template <class F>
Status each_value(Variable* variable, F&& f) {
  if (auto* list = as_list(variable)) {
    for (Variable* item : list->items) TRY(f(item));
  } else if (auto* dict = as_dict(variable)) {
    for (auto& [key, item] : dict->entries)
      if (item) TRY(f(item));
  } else if (auto* cell = as<CellVariable>(variable, variables::Kind::kCell)) {
    if (cell->contents) TRY(f(cell->contents));
  } else if (auto* object = as_object(variable)) {
    for (auto& attribute : object->attributes)
      if (attribute.written && attribute.value) TRY(f(attribute.value));
  } else if (auto* function = as_function(variable)) {
    for (auto& [name, item] : function->attributes)
      if (item) TRY(f(item));
  } else if (auto* tensor = as_tensor(variable)) {
    for (auto& [name, item] : tensor->attributes)
      if (item) TRY(f(item));
  }
  return Unit{};
}

}  // namespace

void Codegen::collect_effects() {
  effects_.clear();
  for (Variable* variable : t_.changed())
    if (exists_outside(variable)) effects_.push_back(variable);
}

Status Codegen::evaluate_effects() {
  for (Variable* variable : effects_) {
    TRY(evaluate(variable));
    TRY(each_value(variable, [&](Variable* item) { return evaluate(item); }));
  }
  for (auto& write : t_.global_writes())
    if (write.value) TRY(evaluate(write.value));
  return fill_created();
}

Status Codegen::write_container(Variable* variable) {
  auto load_self = [&]() -> Status { return value(variable); };
  auto method = [&](const char* name, Variable* argument) -> Status {
    TRY(load_self());
    load_name(Op::LOAD_METHOD, t_.intern(name));
    if (argument) TRY(value(argument));
    load_call(argument ? 1 : 0);
    emit(Op::POP_TOP);
    return Unit{};
  };
  if (auto* list = as_list(variable)) {
    for (Variable* item : list->items) TRY(value(item));
    emit(Op::BUILD_LIST, static_cast<uint32_t>(list->items.size()));
    TRY(load_self());
    load_constant(t_.keep_new(PySlice_New(nullptr, nullptr, nullptr)));
    emit(Op::STORE_SUBSCR);
    return Unit{};
  }
  if (auto* dict = as_dict(variable)) {
    TRY(method("clear", nullptr));
    for (auto& [key, item] : dict->entries) {
      if (!item) continue;
      TRY(value(item));
      TRY(load_self());
      TRY(value(dict_key_variable(t_, dict, key)));
      emit(Op::STORE_SUBSCR);
    }
    return Unit{};
  }
  if (auto* set = as_set(variable)) {
    TRY(method("clear", nullptr));
    py::Ref items = py::Ref::steal(PySequence_Tuple(set->keys.get()));
    CHECK(items) << "keys of a set";
    return method("update", t_.constant(items.get()));
  }
  return Unit{};
}

Status Codegen::write_effects() {
  for (Variable* variable : effects_) {
    auto load_self = [&]() -> Status { return value(variable); };
    auto store = [&](PyObject* name, Variable* item) -> Status {
      if (item) TRY(value(item));
      TRY(load_self());
      load_name(item ? Op::STORE_ATTR : Op::DELETE_ATTR, name);
      return Unit{};
    };
    if (auto* cell = as<CellVariable>(variable, variables::Kind::kCell)) {
      TRY(store(t_.intern("cell_contents"), cell->contents));
    } else if (auto* function = as_function(variable)) {
      for (auto& [name, item] : function->attributes) TRY(store(name, item));
    } else if (auto* tensor = as_tensor(variable)) {
      for (auto& [name, item] : tensor->attributes) TRY(store(name, item));
    } else if (auto* object = as_object(variable)) {
      const bool plain = object->type->tp_setattro == PyObject_GenericSetAttr ||
                         (object->real && (PyType_Check(object->real) || PyModule_Check(object->real)));
      auto write = [&](PyObject* name, Variable* item) -> Status {
        if (plain) return store(name, item);
        emit(Op::PUSH_NULL);  // the class has a __setattr__ of its own, which was traced
        load_constant(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
        load_name(Op::LOAD_ATTR, t_.intern(item ? "__setattr__" : "__delattr__"));
        TRY(load_self());
        load_constant(name);
        if (item) TRY(value(item));
        load_call(item ? 3 : 2);
        emit(Op::POP_TOP);
        return Unit{};
      };
      for (auto& attribute : object->attributes) {
        if (!attribute.written) continue;
        if (attribute.removed) {  // there may be none to delete: the program may have stored it first
          TRY(write(attribute.name, t_.constant(Py_None)));
          TRY(write(attribute.name, nullptr));
        }
        if (attribute.value) TRY(write(attribute.name, attribute.value));
      }
      if (object->inner && object->inner->changed) TRY(write_container(object->inner));
    } else {
      TRY(write_container(variable));
    }
  }
  PyObject* root_globals = t_.frames().empty() ? t_.root_globals() : t_.frames().front()->globals;
  for (auto& write : t_.global_writes()) {
    auto finish = [&](bool store) {
      if (write.globals == root_globals) {
        load_name(store ? Op::STORE_GLOBAL : Op::DELETE_GLOBAL, write.name);
      } else {
        load_constant(write.globals);
        load_constant(write.name);
        emit(store ? Op::STORE_SUBSCR : Op::DELETE_SUBSCR);
      }
    };
    if (write.value) {
      TRY(value(write.value));
      finish(true);
      continue;
    }
    if (write.stored) {  // there may be none to delete
      load_constant(Py_None);
      finish(true);
    }
    finish(false);
  }
  return Unit{};
}

}  // namespace pellucid::translate
