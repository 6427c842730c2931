// OutputGraph: tensor work as it is recorded. An operator is called once on fakes, its result wrapped, its node appended; a call
// whose result is a plain Python value (size, dim, is_contiguous) leaves no node.
#include "base/check.h"
#include "py/once.h"
#include "torch_bridge/fake_tensor.h"
#include "translate/instruction_translator.h"
#include "variables/torch_types.h"

namespace pellucid::translate {

using namespace variables;

namespace {

bool is_tensor(PyObject* object) { return PyObject_TypeCheck(object, torch_types()->tensor_base); }

bool has_tensor(PyObject* value) {
  if (is_tensor(value)) return true;
  if (PyTuple_Check(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
      if (has_tensor(PyTuple_GET_ITEM(value, i))) return true;
  } else if (PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++)
      if (has_tensor(PyList_GET_ITEM(value, i))) return true;
  }
  return false;
}

std::string placeholder_name(const std::string& source) {  // L['x'].layers[0] -> l_x_layers_0_
  std::string result;
  for (char c : source) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += lower;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  }
  return result;
}

std::string python_error_text() {  // takes the error that is set
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  py::Ref text = py::Ref::steal(value ? PyObject_Str(value) : nullptr);
  std::string result = type ? reinterpret_cast<PyTypeObject*>(type)->tp_name : "?";
  if (text) {
    const char* utf8 = PyUnicode_AsUTF8(text.get());
    if (utf8) result += std::string(": ") + utf8;
  }
  PyErr_Clear();
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  const size_t line = result.find('\n');
  return line == std::string::npos ? result : result.substr(0, line);
}

}  // namespace

int32_t InstructionTranslator::stack_entry() {
  const Frame& top = *frames_.back();
  if (&top == last_stack_frame_ && top.pc == last_stack_pc_) return last_stack_;
  const bytecode::Position& at = top.instruction().position;
  StackEntry entry{top.stack_parent, py::Ref::share(top.code_object), at.line, at.end_line, at.column, at.end_column};
  graph_.stacks.push_back(std::move(entry));
  last_stack_frame_ = &top;
  last_stack_pc_ = top.pc;
  last_stack_ = static_cast<int32_t>(graph_.stacks.size()) - 1;
  return last_stack_;
}

Answer InstructionTranslator::tensor_input(PyObject* tensor, const source::Source* source) {
  const TorchTypes& torch = *torch_types();
  PyTypeObject* type = Py_TYPE(tensor);
  if (type != torch.tensor && type != torch.parameter && type != torch.buffer)
    return fail(Reason::unsupported_tensor, std::string("tensor of class ") + type->tp_name);
  if (!source) return fail(Reason::unsupported_tensor, "tensor without a source");
  py::Ref fake;
  {
    Profile::Scope faking(profile, Phase::kFake);
    fake = bridge::fake_from_real(tensor);
  }
  if (!fake) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return fatal();
    return fail(Reason::unsupported_tensor, python_error_text());
  }
  guard(guard::Kind::kTensor, source, tensor);
  auto* variable = make<TensorVariable>();
  variable->source = source;
  variable->real = keep(tensor);
  variable->type = type;
  variable->fake = keep(fake.get());
  variable->node = static_cast<uint32_t>(input_nodes_.size()) | kInputBit;
  GraphNode node;
  node.op = NodeOp::kPlaceholder;
  node.name = placeholder_name(source->name);
  node.target = py::Ref::steal(PyUnicode_FromStringAndSize(node.name.data(), static_cast<Py_ssize_t>(node.name.size())));
  node.example_value = fake;
  node.source_name = source->name;
  node.real_input = py::Ref::share(tensor);
  node.parameter = type == torch.parameter || type == torch.buffer || source->kind == source::Kind::kDictItem;
  input_nodes_.push_back(std::move(node));
  inputs_.push_back(variable);
  by_fake_[fake.get()] = variable;
  return variable;
}

void InstructionTranslator::guard_distinct_inputs() {
  if (inputs_.size() < 2) return;
  guard::Guard guard{guard::Kind::kDistinct, nullptr, nullptr, {}, {}, -1, {}, {}};
  for (TensorVariable* input : inputs_) guard.group.push_back(input->source);
  guards_.add(std::move(guard));
}

// The argument as the graph records it, and as it is passed to the operator on fakes.
base::Result<Arg> InstructionTranslator::argument(Variable* variable, py::Ref& fake) {
  variable = force(variable);
  Arg result;
  auto sequence = [&](const std::vector<Variable*>& items, Arg::Kind kind, PyObject* made) -> base::Result<Arg> {
    py::Ref container = py::Ref::steal(made);
    CHECK(container) << "a container of arguments";
    result.kind = kind;
    for (size_t i = 0; i < items.size(); i++) {
      py::Ref item;
      result.items.push_back(TRY(argument(items[i], item)));
      if (kind == Arg::Kind::kTuple)
        PyTuple_SET_ITEM(container.get(), static_cast<Py_ssize_t>(i), item.release());
      else
        PyList_SET_ITEM(container.get(), static_cast<Py_ssize_t>(i), item.release());
    }
    fake = container;
    return std::move(result);
  };
  switch (variable->kind) {
    case variables::Kind::kTensor: {
      auto* tensor = static_cast<TensorVariable*>(variable);
      result.kind = Arg::Kind::kNode;
      result.node = tensor->node;
      fake = py::Ref::share(tensor->fake);
      return result;
    }
    case variables::Kind::kConstant:
      result.constant = py::Ref::share(variable->real);
      fake = result.constant;
      return result;
    case variables::Kind::kTuple: {
      auto* tuple = static_cast<TupleVariable*>(variable);
      if (PyObject* value = known(*this, variable)) {
        result.constant = py::Ref::share(value);
        fake = result.constant;
        return result;
      }
      return sequence(tuple->items, Arg::Kind::kTuple, PyTuple_New(static_cast<Py_ssize_t>(tuple->items.size())));
    }
    case variables::Kind::kList: {
      auto* list = static_cast<ListVariable*>(variable);
      return sequence(list->items, Arg::Kind::kList, PyList_New(static_cast<Py_ssize_t>(list->items.size())));
    }
    case variables::Kind::kDict: {
      auto* dict = static_cast<DictVariable*>(variable);
      py::Ref made = py::Ref::steal(PyDict_New());
      result.kind = Arg::Kind::kDict;
      for (auto& [key, value] : dict->entries) {
        if (!value) continue;
        py::Ref item;
        result.items.push_back(TRY(argument(value, item)));
        result.keys.push_back(py::Ref::share(key));
        CHECK(PyDict_SetItem(made.get(), key, item.get()) == 0) << "a dict of arguments";
      }
      fake = made;
      return result;
    }
    case variables::Kind::kSlice: {
      auto* slice = static_cast<SliceVariable*>(variable);
      if (PyObject* value = known(*this, variable)) {
        result.constant = py::Ref::share(value);
        fake = result.constant;
        return result;
      }
      result.kind = Arg::Kind::kSlice;
      py::Ref parts[3];
      for (int i = 0; i < 3; i++) result.items.push_back(TRY(argument(slice->parts[i], parts[i])));
      fake = py::Ref::steal(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get()));
      return result;
    }
    default:
      if (PyObject* value = known(*this, variable)) {  // functions, classes, dtypes: what is identified
        // A class has no text that torch.fx could print, but for those that PyTorch takes for the dtype of their name.
        const char* dtype = value == reinterpret_cast<PyObject*>(&PyFloat_Type)     ? "float64"
                            : value == reinterpret_cast<PyObject*>(&PyLong_Type)    ? "int64"
                            : value == reinterpret_cast<PyObject*>(&PyBool_Type)    ? "bool"
                            : value == reinterpret_cast<PyObject*>(&PyComplex_Type) ? "complex128"
                                                                                    : nullptr;
        if (PyType_Check(value) && dtype == nullptr)
          return fail(Reason::unsupported_value, describe(variable) + " as an operator's argument");
        if (dtype != nullptr) {
          py::Ref torch = py::Ref::steal(PyImport_ImportModule("torch"));
          result.constant = torch ? py::Ref::steal(PyObject_GetAttrString(torch.get(), dtype)) : py::Ref();
          if (!result.constant) return raise_python_error();
        } else {
          result.constant = py::Ref::share(value);
        }
        fake = result.constant;
        return result;
      }
      if (variable->kind == variables::Kind::kFunction && variable->real) {
        result.constant = py::Ref::share(variable->real);
        fake = result.constant;
        if (variable->source) guard(guard::Kind::kId, variable->source, variable->real);
        return result;
      }
      return fail(Reason::unsupported_value, describe(variable) + " as an operator's argument");
  }
}

Answer InstructionTranslator::torch_operator(PyObject* target, PyObject* method_name, const Arguments& arguments) {
  GraphNode node;
  node.op = method_name ? NodeOp::kCallMethod : NodeOp::kCallFunction;
  node.target = py::Ref::share(method_name ? method_name : target);
  std::vector<py::Ref> fakes;
  std::vector<PyObject*> raw;
  const size_t n = arguments.positional.size();
  node.args.reserve(n);
  fakes.reserve(n + arguments.keywords.size());
  for (Variable* positional : arguments.positional) {
    py::Ref fake;
    node.args.push_back(TRY(argument(positional, fake)));
    fakes.push_back(std::move(fake));
  }
  py::Ref names;
  if (!arguments.keywords.empty()) {
    names = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.keywords.size())));
    Py_ssize_t i = 0;
    for (auto& [name, value] : arguments.keywords) {
      py::Ref fake;
      node.kwargs.emplace_back(py::Ref::share(name), TRY(argument(value, fake)));
      fakes.push_back(std::move(fake));
      Py_INCREF(name);
      PyTuple_SET_ITEM(names.get(), i++, name);
    }
  }
  for (auto& fake : fakes) raw.push_back(fake.get());
  py::Ref result;
  {
    Profile::Scope faking(profile, Phase::kFake);
    bridge::FakeScope scope;
    result = py::Ref::steal(method_name ? PyObject_VectorcallMethod(method_name, raw.data(), n, names.get())
                                        : PyObject_Vectorcall(target, raw.data(), n, names.get()));
  }
  if (result && target == torch_types()->getattr && is_tensor(result.get()))
    bridge::mend_fake(result.get());  // x.data skips the dispatcher
  if (!result) {
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return fatal();
    const bool data_dependent = bridge::is_data_dependent_error();
    py::Ref what = py::Ref::steal(PyObject_Str(node.target.get()));
    std::string text = what ? PyUnicode_AsUTF8(what.get()) : "?";
    return fail(data_dependent ? Reason::data_dependent_operator : Reason::operator_raised, text + ": " + python_error_text());
  }
  if (result.get() != Py_None && !has_tensor(result.get())) {
    PyObject* value = result.get();
    if (PyTuple_Check(value) && Py_IS_TYPE(value, torch_types()->size)) {
      std::vector<Variable*> items;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) items.push_back(constant(PyTuple_GET_ITEM(value, i)));
      TupleVariable* shape = tuple(std::move(items), torch_types()->size);
      shape->real = keep(value);
      return shape;
    }
    if (PyBool_Check(value) || PyLong_Check(value) || PyFloat_Check(value) || PyUnicode_Check(value) || PyTuple_CheckExact(value) ||
        Py_IS_TYPE(value, torch_types()->dtype) || Py_IS_TYPE(value, torch_types()->device) || Py_IS_TYPE(value, torch_types()->layout) ||
        Py_IS_TYPE(value, torch_types()->memory_format))
      return constant(value);
    if (PyList_CheckExact(value) && PyList_GET_SIZE(value) == 0) return list({});
    return fail(Reason::data_dependent_operator, std::string("result of type ") + Py_TYPE(value)->tp_name);
  }
  node.example_value = result;
  node.stack = stack_entry();
  node.module = frames_.back()->module;
  const uint32_t id = static_cast<uint32_t>(graph_.nodes.size());
  graph_.nodes.push_back(std::move(node));
  operators_++;
  return wrap_result(result.get(), id);
}

Answer InstructionTranslator::state_operator(PyObject* target, const Arguments& arguments) {
  GraphNode node;
  node.target = py::Ref::share(target);
  std::vector<PyObject*> raw;
  for (Variable* positional : arguments.positional) {
    PyObject* value = known(*this, positional);
    if (!value) return fail(Reason::unsupported_builtin, "changing torch's state by " + describe(positional));
    raw.push_back(value);
    Arg argument;
    if (auto made = state_results_.find(value); made != state_results_.end()) {
      argument.kind = Arg::Kind::kNode;
      argument.node = made->second;
    } else {
      argument.constant = py::Ref::share(value);
    }
    node.args.push_back(std::move(argument));
  }
  py::Ref result = py::Ref::steal(PyObject_Vectorcall(target, raw.data(), raw.size(), nullptr));
  if (!result) return raise_python_error();
  if (target == torch_types()->enter_inference_mode) {
    state_results_[keep(result.get())] = static_cast<uint32_t>(graph_.nodes.size());
    entered_.push_back(result);
  } else if (target == torch_types()->exit_inference_mode) {
    std::erase_if(entered_, [&](const py::Ref& context) { return context.get() == raw[0]; });
  }
  node.example_value = result;
  node.stack = stack_entry();
  node.module = frames_.back()->module;
  graph_.nodes.push_back(std::move(node));
  operators_++;
  changes_state = true;
  return constant(result.get());
}

Answer InstructionTranslator::wrap_result(PyObject* value, uint32_t id) {
  if (is_tensor(value)) {
    if (auto found = by_fake_.find(value); found != by_fake_.end()) return found->second;  // an in-place operator returned its operand
    auto* variable = make<TensorVariable>();
    variable->node = id;
    variable->fake = keep(value);
    variable->type = Py_TYPE(value);
    by_fake_[value] = variable;
    return variable;
  }
  const bool is_tuple = PyTuple_Check(value);
  if (is_tuple || PyList_Check(value)) {
    static py::Once<PyObject*> kept_getitem;
    PyObject* const getitem = kept_getitem.get([] { return PyObject_GetAttrString(PyImport_ImportModule("operator"), "getitem"); });
    std::vector<Variable*> items;
    const Py_ssize_t size = is_tuple ? PyTuple_GET_SIZE(value) : PyList_GET_SIZE(value);
    for (Py_ssize_t i = 0; i < size; i++) {
      PyObject* item = is_tuple ? PyTuple_GET_ITEM(value, i) : PyList_GET_ITEM(value, i);
      if (!has_tensor(item)) {
        items.push_back(constant(item));
        continue;
      }
      GraphNode node;
      node.op = NodeOp::kCallFunction;
      node.target = py::Ref::share(getitem);
      Arg of, index;
      of.kind = Arg::Kind::kNode;
      of.node = id;
      index.constant = py::Ref::steal(PyLong_FromSsize_t(i));
      node.args.push_back(std::move(of));
      node.args.push_back(std::move(index));
      node.example_value = py::Ref::share(item);
      node.stack = graph_.nodes[id].stack;
      node.module = graph_.nodes[id].module;
      const uint32_t item_id = static_cast<uint32_t>(graph_.nodes.size());
      graph_.nodes.push_back(std::move(node));
      items.push_back(TRY(wrap_result(item, item_id)));
    }
    if (!is_tuple) return list(std::move(items));
    return tuple(std::move(items), Py_TYPE(value));
  }
  return constant(value);
}

}  // namespace pellucid::translate
