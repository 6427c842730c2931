// pellucid._core.SymNode: what PyTorch's Python code reads and calls on the `.node` of a SymInt, SymFloat or SymBool (the list comes
// from torch/__init__.py, torch/fx/experimental/sym_node.py and symbolic_shapes.py). sympy is asked only for `expr`.
#include <pybind11/stl.h>

#include "symbolic/print.h"
#include "torch_bridge/fake_symbolic.h"
#include "torch_bridge/sym_binding.h"
#include "torch_bridge/sym_errors.h"
#include "torch_bridge/sym_node_impl.h"
#include "torch_bridge/sym_tensor.h"

namespace pellucid::bridge {
namespace {

namespace py11 = pybind11;
using symbolic::Builder;
using symbolic::Expr;
using symbolic::Kind;
using symbolic::ShapeEnv;
using symbolic::Type;
using Node = PlainNode;
using NodePtr = PlainNodePtr;

NodePtr plain(Expr expr) { return c10::make_intrusive<Node>(expr); }

// The other operand of an operator called from Python.
Expr operand(const Node& self, py11::handle other) {
  ShapeEnv& env = self.env();
  if (py11::isinstance<Node>(other)) {
    const Node* node = other.cast<Node*>();
    if (&node->env() != &env) {
      raise_in_python({symbolic::ErrorKind::kForeign, symbolic::to_text(node->expr()) + " is of another ShapeEnv"});
    }
    return node->expr();
  }
  if (PyBool_Check(other.ptr())) return env.build().truth(other.ptr() == Py_True);
  if (PyFloat_Check(other.ptr())) return env.build().real(PyFloat_AS_DOUBLE(other.ptr()));
  if (PyLong_Check(other.ptr())) return env.build().constant(other.cast<int64_t>());
  if (py11::isinstance<c10::SymNodeImpl>(other)) {  // a constant's node
    const auto node = other.cast<c10::SymNode>();
    if (const Expr expr = expr_of(node)) return expr;
    if (const auto number = node->maybe_as_int()) return env.build().constant(*number);
  }
  throw py11::type_error(std::string(py11::str(other)) + " (" + Py_TYPE(other.ptr())->tp_name +
                         ") is a node of PyTorch's own ShapeEnv or no node: it can't be mixed with " + symbolic::to_text(self.expr()));
}

py11::object number_of(Expr expr) {
  if (expr->is_truth()) return py11::bool_(expr->value != 0);
  if (expr->is(Kind::kReal)) return py11::float_(expr->real());
  if (expr->is_const()) return py11::int_(static_cast<int64_t>(expr->value));
  return py11::none();
}

py11::object hint_of(const Node& self) {
  return raising([&]() -> py11::object {
    switch (self.expr()->type) {
      case Type::kInt:
        if (const auto hint = ShapeEnv::hint_int(self.expr())) return py11::int_(*hint);
        break;
      case Type::kFloat:
        if (const auto hint = ShapeEnv::hint_float(self.expr())) return py11::float_(*hint);
        break;
      case Type::kBool:
        if (const auto hint = ShapeEnv::hint_bool(self.expr())) return py11::bool_(*hint);
        break;
    }
    return py11::none();
  });
}

py11::object python_type(const Node& self) {
  PyTypeObject* types[] = {&PyLong_Type, &PyFloat_Type, &PyBool_Type};
  return py11::reinterpret_borrow<py11::object>(reinterpret_cast<PyObject*>(types[static_cast<int>(self.expr()->type)]));
}

// (kind, arguments, coefficients or None, constant, symbol's name or None): what the way to sympy and pickling read.
py11::tuple parts_of(const Node& self) {
  const Expr expr = self.expr();
  py11::list arguments;
  for (uint32_t i = 0; i < expr->count; ++i) arguments.append(plain(expr->arg(i)));
  py11::object coefficients = py11::none();
  if (expr->is_sum()) {
    py11::list list;
    for (uint32_t i = 0; i < expr->count; ++i) list.append(py11::int_(static_cast<int64_t>(expr->coefficients()[i])));
    coefficients = std::move(list);
  }
  py11::object constant = expr->is_sum() ? py11::int_(static_cast<int64_t>(expr->value)) : number_of(expr);
  if (expr->is(Kind::kRoundDigits)) constant = py11::int_(static_cast<int>(expr->digits) - 128);
  py11::object name = py11::none();
  if (expr->is(Kind::kSymbol)) name = py11::str(expr->arena->symbol_name(expr));
  return py11::make_tuple(symbolic::kind_name(expr->kind), arguments, coefficients, constant, name);
}

py11::object shapes_helper(const char* name) { return py11::module_::import("pellucid.torch_shapes.env").attr(name); }

template <operators::Unary operation>
NodePtr unary_method(const Node& self) {
  return raising([&] { return plain(operation(self.env().build(), self.expr())); });
}

template <operators::Binary operation>
NodePtr binary_method(const Node& self, py11::handle other) {
  return raising([&] { return plain(operation(self.env().build(), self.expr(), operand(self, other))); });
}

template <Kind kind>
NodePtr float_method(const Node& self) {
  return raising([&] {
    Builder& build = self.env().build();
    return plain(build.float_unary(kind, build.to_float(self.expr())));
  });
}

NodePtr round_method(const Node& self, const std::optional<int>& digits) {
  return raising([&] { return plain(operators::round_to(self.env().build(), self.expr(), digits ? &*digits : nullptr)); });
}

NodePtr choose_method(const Node& self, py11::handle then_value, py11::handle else_value) {
  return raising([&] { return plain(self.env().build().where(self.expr(), operand(self, then_value), operand(self, else_value))); });
}

NodePtr sum_method(const Node& self, const py11::sequence& terms) {
  return raising([&] {
    std::vector<Expr> exprs;
    exprs.reserve(terms.size());
    for (const py11::handle term : terms) {
      // SymInts and numbers, or nodes.
      exprs.push_back(
          operand(self, py11::hasattr(term, "node") ? py11::object(term.attr("node")) : py11::reinterpret_borrow<py11::object>(term)));
    }
    return plain(self.env().build().sum(exprs));
  });
}

template <operators::Layout question>
NodePtr layout_method(const Node& self, const std::vector<py11::object>& sizes, const std::vector<py11::object>& strides) {
  return raising([&] {
    std::vector<Expr> size_exprs;
    std::vector<Expr> stride_exprs;
    for (const auto& size : sizes) size_exprs.push_back(operand(self, size));
    for (const auto& stride : strides) stride_exprs.push_back(operand(self, stride));
    return plain(question(self.env(), size_exprs, stride_exprs));
  });
}

// Expressions travel between the two extension modules in capsules of this name; the one that made it keeps the environment alive while
// the other takes a reference of its own.
constexpr const char* kCapsule = "pellucid.symbolic.Expr";

py11::object torch_number(const py11::capsule& capsule) {
  const auto expr = static_cast<Expr>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  if (expr == nullptr) throw py11::error_already_set();
  if (expr->is_literal()) return number_of(expr);
  const py11::handle classes[] = {torch::get_symint_class(), torch::get_symfloat_class(), torch::get_symbool_class()};
  return classes[static_cast<int>(expr->type)](plain(expr));
}

// Sizes and strides of Python as PyTorch's.
std::vector<c10::SymInt> sym_ints(const py11::sequence& numbers) {
  std::vector<c10::SymInt> result;
  for (const py11::handle number : numbers) result.push_back(number.cast<c10::SymInt>());
  return result;
}

at::Tensor fake_with_sizes(const at::Tensor& real, const py11::sequence& sizes, const py11::sequence& strides) {
  return symbolic_fake(real, sym_ints(sizes), sym_ints(strides));
}

py11::capsule engine_number(const NodePtr& node) { return py11::capsule(node->expr(), kCapsule); }

void bind_class(py11::module_& module) {
  py11::class_<Node, c10::SymNodeImpl, NodePtr> cls(module, "SymNode",
                                                    "An expression of a pellucid.ShapeEnv behind a torch.SymInt, SymFloat or SymBool.");
  cls.def_property_readonly("expr", [](const NodePtr& self) { return shapes_helper("expr_of")(self); })
      .def_property_readonly("_expr", [](const NodePtr& self) { return shapes_helper("raw_expr_of")(self); })
      .def_property_readonly("shape_env", [](const NodePtr& self) { return shapes_helper("env_of")(self); })
      .def_property_readonly("hint", hint_of)
      .def_property_readonly("_hint", hint_of)
      .def_property_readonly("pytype", python_type)
      .def_property_readonly("constant", [](const Node& self) { return number_of(self.expr()); })
      .def_property_readonly("fx_node", [](const Node&) { return py11::none(); })
      .def_property_readonly("id", [](const Node& self) { return self.expr()->id; })
      .def_property_readonly("env_key", [](const Node& self) { return reinterpret_cast<uintptr_t>(&self.env()); })
      .def("parts", parts_of)
      .def("simplified", [](const Node& self) { return raising([&] { return plain(self.env().simplify(self.expr())); }); })
      .def("bounds",
           [](const Node& self) {
             const symbolic::Range range = raising([&] { return self.env().range(self.expr()); });
             const auto bound = [](symbolic::Int value) {
               return symbolic::fits_int64(value) ? py11::object(py11::int_(static_cast<int64_t>(value))) : py11::object(py11::none());
             };
             return py11::make_tuple(bound(range.lo), bound(range.hi));
           })
      .def("is_unbacked", [](const Node& self) { return self.expr()->unbacked; })
      .def("require_hint", [](const Node& self) {
        py11::object hint = hint_of(self);
        if (hint.is_none()) throw py11::value_error(symbolic::to_text(self.expr()) + " has no hint");
        return hint;
      });

  cls.def("maybe_as_int", [](Node& self) { return self.maybe_as_int(); })
      .def("maybe_as_float", [](const Node& self) { return self.expr()->is(Kind::kReal) ? number_of(self.expr()) : py11::none(); })
      .def("maybe_as_bool", [](Node& self) { return self.constant_bool(); })
      .def("is_nested_int", [](const Node&) { return false; })
      .def("nested_int", [](const Node&) { return py11::none(); })
      .def("nested_int_coeff", [](const Node&) { return py11::none(); })
      .def("str", [](const Node& self) { return text_of(self); })
      .def("__str__", [](const Node& self) { return text_of(self); })
      .def("__repr__", [](const Node& self) { return text_of(self); })
      .def("_graph_repr", [](const Node& self) { return text_of(self); })
      .def("_value_eq", [](const Node& self, const Node& other) { return self.expr() == other.expr(); })
      .def("_value_hash", [](const Node& self) { return self.expr()->hash >> 2; })
      .def("with_shape_env", [](const NodePtr& self, py11::handle env) { return shapes_helper("moved_to")(self, env); })
      .def("__deepcopy__", [](const NodePtr& self, py11::handle memo) { return shapes_helper("deepcopy_node")(self, memo); })
      .def("__copy__", [](const NodePtr& self) { return self; })
      .def("__reduce__", [](const NodePtr& self) { return shapes_helper("reduce_node")(self); });

  // Questions; PyTorch passes a file and a line of its own, the log wants the user's.
  cls.def("statically_known_true", [](const Node& self, py11::handle, py11::handle) { return known_true(self); })
      .def("guard_or", [](const Node& self, bool fallback) { return ask_or(self, fallback); })
      .def("expect_true",
           [](const Node& self, py11::handle file, py11::handle line) {
             return state_true(self, "checked at " + std::string(py11::str(file)) + ":" + std::string(py11::str(line)));
           })
      .def("state", [](const Node& self, const std::string& message) { return state_true(self, message); });

#define PELLUCID_UNARY(name) cls.def(#name, unary_method<operators::name>);
#define PELLUCID_BINARY(name) cls.def(#name, binary_method<operators::name>);
#define PELLUCID_LAYOUT(name) cls.def(#name, layout_method<operators::name>);
#include "torch_bridge/sym_node_methods.def"
#include "torch_bridge/sym_node_virtuals.def"
#undef PELLUCID_UNARY
#undef PELLUCID_BINARY
#undef PELLUCID_LAYOUT
  cls.def("and_", binary_method<operators::sym_and>)
      .def("or_", binary_method<operators::sym_or>)
      .def("sym_int", unary_method<operators::trunc>)
      .def("round", round_method, py11::arg("ndigits") = py11::none())
      .def("sym_ite", choose_method)
      .def("sym_sum", sum_method)
      .def("clone", [](const NodePtr& self) { return self; })
      .def("wrap_int", [](const Node& self, int64_t value) { return plain(self.env().build().constant(value)); })
      .def("wrap_float", [](const Node& self, double value) { return plain(self.env().build().real(value)); })
      .def("wrap_bool", [](const Node& self, bool value) { return plain(self.env().build().truth(value)); })
      .def("sym_sqrt", float_method<Kind::kSqrt>)
      .def("sym_cos", float_method<Kind::kCos>)
      .def("sym_cosh", float_method<Kind::kCosh>)
      .def("sym_sin", float_method<Kind::kSin>)
      .def("sym_sinh", float_method<Kind::kSinh>)
      .def("sym_tan", float_method<Kind::kTan>)
      .def("sym_tanh", float_method<Kind::kTanh>)
      .def("sym_asin", float_method<Kind::kAsin>)
      .def("sym_acos", float_method<Kind::kAcos>)
      .def("sym_atan", float_method<Kind::kAtan>)
      .def("sym_log2", float_method<Kind::kLog2>);
}

}  // namespace

bool bind_sym_nodes(PyObject* module) {
  try {
    auto wrapped = py11::reinterpret_borrow<py11::module_>(module);
    bind_class(wrapped);
    wrapped.def("torch_number", torch_number,
                "torch_number(capsule): the torch.SymInt, SymFloat or SymBool of an expression, or a number.");
    wrapped.def("engine_number", engine_number, "engine_number(node): the expression of a SymNode as a capsule.");
    wrapped.def("symbolic_fake", fake_with_sizes,
                "symbolic_fake(tensor, sizes, strides): a fake of the tensor's dtype and device with symbolic sizes and strides.");
    wrapped.def(
        "specialize_sizes", set_specializing,
        "specialize_sizes(on): whether sizes become ints where PyTorch's C++ asks for them so, on this thread; what it was before.");
    return true;
  } catch (py11::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return false;
}

}  // namespace pellucid::bridge
