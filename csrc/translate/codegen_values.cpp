// Codegen of values: reading sources again, and making what the traced program made.
#include <algorithm>

#include "base/check.h"
#include "translate/codegen.h"
#include "variables/torch_types.h"

namespace pellucid::translate {

using namespace variables;
using SourceKind = source::Kind;

Failed Codegen::cannot_build(Variable* variable) {
  // Whatever made it must stay outside of the graph: another run breaks there.
  Failed failed = t_.fail(Reason::not_reconstructible, describe(variable));
  if (variable->kind == variables::Kind::kGenerator) failed = t_.fail(Reason::generator_boundary, describe(variable));
  t_.restart = {t_.outermost(variable->born), *failed.failure};
  return failed;
}

Status Codegen::load_source(const source::Source* source) {
  auto attribute_of_base = [&](PyObject* name) -> Status {
    TRY(load_source(source->base));
    load_name(Op::LOAD_ATTR, name);
    return Unit{};
  };
  auto item_of_attribute = [&](const char* name, PyObject* key) -> Status {
    TRY(load_source(source->base));
    load_name(Op::LOAD_ATTR, t_.intern(name));
    load_constant(key);
    emit(Op::BINARY_SUBSCR);
    return Unit{};
  };
  switch (source->kind) {
    case SourceKind::kLocal:
      emit(Op::LOAD_FAST, static_cast<uint32_t>(source->index));
      return Unit{};
    case SourceKind::kFreeCell:
      emit(Op::LOAD_CLOSURE, static_cast<uint32_t>(source->index));
      return Unit{};
    case SourceKind::kGlobal:
      emit(Op::LOAD_GLOBAL, name_index(source->key) << 1);
      return Unit{};
    case SourceKind::kConst:
      load_constant(source->key);
      return Unit{};
    case SourceKind::kInstanceItem:
    case SourceKind::kAttr:
      return attribute_of_base(source->key);
    case SourceKind::kClassAttr:
      emit(Op::PUSH_NULL);
      load_constant(helper("pellucid._core", "class_attribute"));
      TRY(load_source(source->base));
      load_constant(source->key);
      load_call(2);
      return Unit{};
    case SourceKind::kItem:
      TRY(load_source(source->base));
      load_constant(t_.keep_new(PyLong_FromSsize_t(source->index)));
      emit(Op::BINARY_SUBSCR);
      return Unit{};
    case SourceKind::kDictItem:
      TRY(load_source(source->base));
      load_constant(source->key);
      emit(Op::BINARY_SUBSCR);
      return Unit{};
    case SourceKind::kCellContents:
      if (source->base->kind == SourceKind::kFreeCell) {
        emit(Op::LOAD_DEREF, static_cast<uint32_t>(source->base->index));
        return Unit{};
      }
      return attribute_of_base(t_.intern("cell_contents"));
    case SourceKind::kTypeOf:
      emit(Op::PUSH_NULL);
      load_constant(reinterpret_cast<PyObject*>(&PyType_Type));
      TRY(load_source(source->base));
      load_call(1);
      return Unit{};
    case SourceKind::kDictOf:
      return attribute_of_base(t_.intern("__dict__"));
    case SourceKind::kDefault:
      return item_of_attribute("__defaults__", t_.keep_new(PyLong_FromSsize_t(source->index)));
    case SourceKind::kKwDefault:
      return item_of_attribute("__kwdefaults__", source->key);
    case SourceKind::kClosureCell:
      return item_of_attribute("__closure__", t_.keep_new(PyLong_FromSsize_t(source->index)));
    case SourceKind::kBoundSelf:
      return attribute_of_base(t_.intern("__self__"));
    case SourceKind::kBoundFunc:
      return attribute_of_base(t_.intern("__func__"));
    case SourceKind::kReferent:
      emit(Op::PUSH_NULL);
      TRY(load_source(source->base));
      load_call(0);
      return Unit{};
  }
  return t_.fail(Reason::not_reconstructible, source->name);
}

Status Codegen::value(Variable* variable) {
  if (auto* lazy = as<LazyVariable>(variable, variables::Kind::kLazy)) {
    if (!lazy->resolved) {
      if (auto found = temporaries_.find(lazy); found != temporaries_.end()) {
        emit(Op::LOAD_FAST, found->second);
        return Unit{};
      }
      return load_source(lazy->source);
    }
    variable = lazy->resolved;
  }
  if (auto found = temporaries_.find(variable); found != temporaries_.end()) {
    emit(Op::LOAD_FAST, found->second);
    return Unit{};
  }
  if (variable->kind == variables::Kind::kNull) {
    emit(Op::PUSH_NULL);
    return Unit{};
  }
  if (variable->kind == variables::Kind::kConstant) {
    load_constant(variable->real);
    return Unit{};
  }
  if (variable->source) return load_source(variable->source);
  if (std::find(building_.begin(), building_.end(), variable) != building_.end()) return cannot_build(variable);  // contains itself
  building_.push_back(variable);
  TRY(build(variable));
  building_.pop_back();
  // What has an identity or costs something is made once.
  if (temporaries_.count(variable) == 0 && variable->kind != variables::Kind::kTensor) {
    const uint32_t slot = new_temporary();
    emit(Op::COPY, 1);
    store_temporary(slot);
    temporaries_[variable] = slot;
  }
  return Unit{};
}

namespace {

// The builtin container that an instance of a subclass extends: its methods keep what belongs to it.
PyTypeObject* container_base(Variable* inner) {
  if (auto* dict = as_dict(inner)) return dict->type;
  return &PyList_Type;
}

bool allocates_like_object(PyTypeObject* type) { return type->tp_new == PyBaseObject_Type.tp_new; }

}  // namespace

Status Codegen::build(Variable* variable) {
  // Objects that may take part in cycles are allocated first and filled when everything they refer to is there.
  auto allocated = [&]() {
    const uint32_t slot = new_temporary();
    emit(Op::COPY, 1);
    store_temporary(slot);
    temporaries_[variable] = slot;
    to_fill_.push_back(variable);
  };
  auto call_constant = [&](PyObject* callable) {
    emit(Op::PUSH_NULL);
    load_constant(callable);
  };
  auto type_object = [](PyTypeObject* type) { return reinterpret_cast<PyObject*>(type); };
  switch (variable->kind) {
    case variables::Kind::kTensor: {
      auto* tensor = static_cast<TensorVariable*>(variable);
      auto [found, inserted] = output_index_.try_emplace(tensor, outputs_.size());
      if (inserted) outputs_.push_back(tensor);
      emit(Op::LOAD_FAST, graph_result_);
      load_constant(t_.keep_new(PyLong_FromSize_t(found->second)));
      emit(Op::BINARY_SUBSCR);
      return Unit{};
    }
    case variables::Kind::kTuple: {
      auto* tuple = static_cast<TupleVariable*>(variable);
      if (tuple->real) {
        load_constant(tuple->real);
        return Unit{};
      }
      const bool plain = tuple->type == &PyTuple_Type;
      const bool named = !plain && _PyType_Lookup(tuple->type, t_.intern("_fields"));
      if (!plain) {
        call_constant(named ? helper("builtins", "tuple") : type_object(tuple->type));
        if (named) {
          load_name(Op::LOAD_ATTR, t_.intern("__new__"));
          load_constant(type_object(tuple->type));
        }
      }
      for (Variable* item : tuple->items) TRY(value(item));
      emit(Op::BUILD_TUPLE, static_cast<uint32_t>(tuple->items.size()));
      if (!plain) load_call(named ? 2 : 1);
      return Unit{};
    }
    case variables::Kind::kList: {
      auto* list = static_cast<ListVariable*>(variable);
      for (Variable* item : list->items) TRY(value(item));
      emit(Op::BUILD_LIST, static_cast<uint32_t>(list->items.size()));
      return Unit{};
    }
    case variables::Kind::kDict: {
      auto* dict = static_cast<DictVariable*>(variable);
      const bool plain = dict->type == &PyDict_Type;
      if (!plain) {
        call_constant(type_object(dict->type));
        if (dict->default_factory) TRY(value(dict->default_factory));
      }
      uint32_t count = 0;
      for (auto& [key, item] : dict->entries) {
        if (!item) continue;
        TRY(value(dict_key_variable(t_, dict, key)));
        TRY(value(item));
        count++;
      }
      emit(Op::BUILD_MAP, count);
      if (!plain) load_call(dict->default_factory ? 2 : 1);
      return Unit{};
    }
    case variables::Kind::kSet: {
      auto* set = static_cast<SetVariable*>(variable);
      py::Ref items = py::Ref::steal(PySequence_Tuple(set->keys.get()));
      CHECK(items) << "keys of a set";
      call_constant(type_object(set->frozen ? &PyFrozenSet_Type : &PySet_Type));
      load_constant(items.get());
      load_call(1);
      return Unit{};
    }
    case variables::Kind::kSlice:
      for (Variable* part : static_cast<SliceVariable*>(variable)->parts) TRY(value(part));
      emit(Op::BUILD_SLICE, 3);
      return Unit{};
    case variables::Kind::kCell:
      call_constant(type_object(&PyCell_Type));
      load_call(0);
      allocated();
      return Unit{};
    case variables::Kind::kFunction: {
      auto* function = static_cast<FunctionVariable*>(variable);
      call_constant(type_object(&PyFunction_Type));
      load_constant(function->code);
      load_constant(function->globals);
      load_constant(function->name);
      if (function->defaults)
        TRY(value(function->defaults));
      else
        load_constant(Py_None);
      if (function->closure.empty()) {
        load_constant(Py_None);
      } else {
        for (CellVariable* cell : function->closure) TRY(value(cell));
        emit(Op::BUILD_TUPLE, static_cast<uint32_t>(function->closure.size()));
      }
      load_call(5);
      allocated();
      return Unit{};
    }
    case variables::Kind::kBoundMethod: {
      auto* method = static_cast<BoundMethodVariable*>(variable);
      call_constant(type_object(&PyMethod_Type));
      TRY(value(method->function));
      TRY(value(method->self));
      load_call(2);
      return Unit{};
    }
    case variables::Kind::kBuiltinMethod: {
      auto* method = static_cast<BuiltinMethodVariable*>(variable);
      TRY(value(method->self));
      load_name(Op::LOAD_ATTR, method->name);
      return Unit{};
    }
    case variables::Kind::kObject: {
      auto* object = static_cast<ObjectVariable*>(variable);
      if (object->existed) {
        if (!object->real || !object->by_identity) return cannot_build(variable);
        load_constant(object->real);
        return Unit{};
      }
      if (PyType_IsSubtype(object->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
        emit(Op::PUSH_NULL);
        load_constant(type_object(object->type));
        load_name(Op::LOAD_ATTR, t_.intern("__new__"));
        load_constant(type_object(object->type));
        for (Variable* argument : object->arguments) TRY(value(argument));
        load_call(object->arguments.size() + 1);
      } else if (object->inner) {
        PyTypeObject* base = container_base(object->inner);
        emit(Op::PUSH_NULL);
        load_constant(type_object(base));
        load_name(Op::LOAD_ATTR, t_.intern("__new__"));
        load_constant(type_object(object->type));
        load_call(1);
      } else if (allocates_like_object(object->type)) {
        emit(Op::PUSH_NULL);
        load_constant(type_object(&PyBaseObject_Type));
        load_name(Op::LOAD_ATTR, t_.intern("__new__"));
        load_constant(type_object(object->type));
        load_call(1);
      } else {
        return cannot_build(variable);
      }
      allocated();
      return Unit{};
    }
    case variables::Kind::kIterator: {
      auto* iterator = static_cast<IteratorVariable*>(variable);
      using Form = IteratorVariable::Form;
      switch (iterator->form) {
        case Form::kSequence:
          TRY(value(iterator->over));
          emit(Op::GET_ITER);
          if (iterator->exhausted) return cannot_build(variable);
          if (iterator->index) {
            emit(Op::COPY, 1);
            load_name(Op::LOAD_METHOD, t_.intern("__setstate__"));
            load_constant(t_.keep_new(PyLong_FromSsize_t(iterator->index)));
            load_call(1);
            emit(Op::POP_TOP);
          }
          return Unit{};
        case Form::kEnumerate:
          call_constant(helper("builtins", "enumerate"));
          TRY(value(iterator->inner.at(0)));
          load_constant(t_.keep_new(PyLong_FromSsize_t(iterator->index)));
          load_call(2);
          return Unit{};
        case Form::kZip:
          if (iterator->strict) return cannot_build(variable);
          call_constant(helper("builtins", "zip"));
          for (Variable* inner : iterator->inner) TRY(value(inner));
          load_call(iterator->inner.size());
          return Unit{};
        case Form::kMap:
        case Form::kFilter:
          call_constant(helper("builtins", iterator->form == Form::kMap ? "map" : "filter"));
          TRY(value(iterator->function));
          for (Variable* inner : iterator->inner) TRY(value(inner));
          load_call(iterator->inner.size() + 1);
          return Unit{};
        case Form::kDict: {
          static const char* const kViews[] = {"keys", "values", "items"};
          emit(Op::PUSH_NULL);
          load_constant(helper("pellucid._core", "advanced_iterator"));
          TRY(value(iterator->over));
          load_name(Op::LOAD_METHOD, t_.intern(kViews[iterator->which]));
          load_call(0);
          emit(Op::GET_ITER);
          load_constant(t_.keep_new(PyLong_FromSsize_t(iterator->index)));
          load_call(2);
          return Unit{};
        }
        default:
          return cannot_build(variable);
      }
    }
    case variables::Kind::kDictView: {
      static const char* const kViews[] = {"keys", "values", "items"};
      auto* view = static_cast<DictViewVariable*>(variable);
      TRY(value(view->dict));
      load_name(Op::LOAD_METHOD, t_.intern(kViews[view->which]));
      load_call(0);
      return Unit{};
    }
    case variables::Kind::kSuper: {
      auto* super = static_cast<SuperVariable*>(variable);
      call_constant(type_object(&PySuper_Type));
      TRY(value(super->start));
      TRY(value(super->self));
      load_call(2);
      return Unit{};
    }
    case variables::Kind::kPartial: {
      auto* partial = static_cast<PartialVariable*>(variable);
      call_constant(type_object(torch_types()->partial));
      TRY(value(partial->function));
      for (Variable* argument : partial->args) TRY(value(argument));
      py::Ref names = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(partial->kwargs.size())));
      for (size_t i = 0; i < partial->kwargs.size(); i++) {
        TRY(value(partial->kwargs[i].second));
        Py_INCREF(partial->kwargs[i].first);
        PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), partial->kwargs[i].first);
      }
      if (!partial->kwargs.empty()) emit(Op::KW_NAMES, constant_index(names.get()));
      load_call(1 + partial->args.size() + partial->kwargs.size());
      return Unit{};
    }
    default:
      return cannot_build(variable);
  }
}

Status Codegen::fill_created() {
  while (!to_fill_.empty()) {
    Variable* variable = to_fill_.back();
    to_fill_.pop_back();
    const uint32_t slot = temporaries_.at(variable);
    auto store_attribute = [&](PyObject* name, Variable* item) -> Status {
      TRY(value(item));
      emit(Op::LOAD_FAST, slot);
      load_name(Op::STORE_ATTR, name);
      return Unit{};
    };
    if (auto* cell = as<CellVariable>(variable, variables::Kind::kCell)) {
      if (cell->contents) TRY(store_attribute(t_.intern("cell_contents"), cell->contents));
    } else if (auto* function = as_function(variable)) {
      if (function->kwdefaults) TRY(store_attribute(t_.intern("__kwdefaults__"), function->kwdefaults));
      py::Ref qualname = py::Ref::steal(PyObject_GetAttrString(function->code, "co_qualname"));
      if (PyUnicode_Compare(qualname.get(), function->qualname) != 0)
        TRY(store_attribute(t_.intern("__qualname__"), t_.constant(function->qualname)));
      if (function->annotations) {
        if (auto* pairs = as_tuple(t_.force(function->annotations))) {  // name, value, name, value ...
          for (Variable* item : pairs->items) TRY(value(item));
          for (size_t i = 1; i < pairs->items.size(); i += 2)
            if (!as_constant(t_.force(pairs->items[i - 1]))) return cannot_build(function);
          emit(Op::BUILD_MAP, static_cast<uint32_t>(pairs->items.size() / 2));
        } else {
          TRY(value(function->annotations));
        }
        emit(Op::LOAD_FAST, slot);
        load_name(Op::STORE_ATTR, t_.intern("__annotations__"));
      }
      for (auto& [name, item] : function->attributes)
        if (item) TRY(store_attribute(name, item));
    } else if (auto* object = as_object(variable)) {
      if (object->inner) {
        auto call_base = [&](const char* method) {
          emit(Op::PUSH_NULL);
          load_constant(reinterpret_cast<PyObject*>(container_base(object->inner)));
          load_name(Op::LOAD_ATTR, t_.intern(method));
          emit(Op::LOAD_FAST, slot);
        };
        if (auto* dict = as_dict(object->inner)) {
          for (auto& [key, item] : dict->entries) {
            if (!item) continue;
            call_base("__setitem__");
            TRY(value(dict_key_variable(t_, dict, key)));
            TRY(value(item));
            load_call(3);
            emit(Op::POP_TOP);
          }
        } else {
          call_base("extend");
          TRY(value(object->inner));
          load_call(2);
          emit(Op::POP_TOP);
        }
      }
      for (auto& attribute : object->attributes) {
        if (!attribute.value) continue;
        emit(Op::PUSH_NULL);
        load_constant(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
        load_name(Op::LOAD_ATTR, t_.intern("__setattr__"));
        emit(Op::LOAD_FAST, slot);
        load_constant(attribute.name);
        TRY(value(attribute.value));
        load_call(3);
        emit(Op::POP_TOP);
      }
    }
  }
  return Unit{};
}

}  // namespace pellucid::translate
