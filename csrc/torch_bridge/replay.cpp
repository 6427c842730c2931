// A record is compiled once into a flat list of steps over numbered slots; a call runs the steps with vectorcalls, without an interpreter
// frame, and frees each value after its last use.
#include "torch_bridge/replay.h"

#include <structmember.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "torch_bridge/interned.h"
#include "torch_bridge/traceback.h"

namespace pellucid::bridge {
namespace {

using py::Ref;
using translate::Arg;
using translate::GraphNode;
using translate::GraphRecord;
using translate::NodeOp;

struct Operand {
  enum class Kind : uint8_t { kSlot, kConst, kTuple, kList, kDict, kSlice };
  Kind kind = Kind::kConst;
  uint32_t slot = 0;
  Ref constant;
  std::vector<Operand> items;
  std::vector<Ref> keys;
};

struct Step {
  bool is_method = false;
  Ref target;                 // the callable, or the method's name
  Ref kwnames;                // or null
  std::vector<Operand> args;  // positional, then keyword values
  uint32_t out = 0;
  std::vector<uint32_t> last_uses;  // slots that are freed after the step
  int32_t stack = -1;
};

struct Program {
  uint32_t inputs = 0;  // slots [0, inputs) are the caller's arguments, borrowed
  uint32_t slots = 0;
  size_t widest = 1;  // most arguments of a step
  std::vector<Step> steps;
  std::vector<Operand> outputs;
  std::vector<translate::StackEntry> stacks;
};

// --- running

// The values of one call. The first `borrowed` belong to the caller.
class Slots {
 public:
  Slots(uint32_t size, uint32_t borrowed, PyObject* const* arguments) : size_(size), borrowed_(borrowed) {
    if (size > inline_.size()) heap_ = std::make_unique<PyObject*[]>(size);
    values_ = heap_ ? heap_.get() : inline_.data();
    std::copy(arguments, arguments + borrowed, values_);
    std::fill(values_ + borrowed, values_ + size, nullptr);
  }
  ~Slots() {
    for (uint32_t i = borrowed_; i < size_; i++) Py_XDECREF(values_[i]);
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  PyObject* operator[](uint32_t slot) const { return values_[slot]; }
  void set(uint32_t slot, PyObject* owned) { values_[slot] = owned; }
  void drop(uint32_t slot) { Py_CLEAR(values_[slot]); }

 private:
  uint32_t size_, borrowed_;
  PyObject** values_;
  std::array<PyObject*, 64> inline_;
  std::unique_ptr<PyObject*[]> heap_;
};

Ref evaluate(const Operand& operand, const Slots& slots);

bool evaluate_all(const std::vector<Operand>& items, const Slots& slots, PyObject* container,
                  void (*set)(PyObject*, Py_ssize_t, PyObject*)) {
  for (size_t i = 0; i < items.size(); i++) {
    Ref item = evaluate(items[i], slots);
    if (!item) return false;
    set(container, static_cast<Py_ssize_t>(i), item.release());
  }
  return true;
}

Ref evaluate_tuple(const std::vector<Operand>& items, const Slots& slots) {
  Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  auto set = [](PyObject* container, Py_ssize_t i, PyObject* item) { PyTuple_SET_ITEM(container, i, item); };
  if (!tuple || !evaluate_all(items, slots, tuple.get(), set)) return Ref();
  return tuple;
}

Ref evaluate(const Operand& operand, const Slots& slots) {
  switch (operand.kind) {
    case Operand::Kind::kSlot:
      return Ref::share(slots[operand.slot]);
    case Operand::Kind::kConst:
      return operand.constant;
    case Operand::Kind::kTuple:
      return evaluate_tuple(operand.items, slots);
    case Operand::Kind::kList: {
      Ref list = Ref::steal(PyList_New(static_cast<Py_ssize_t>(operand.items.size())));
      auto set = [](PyObject* container, Py_ssize_t i, PyObject* item) { PyList_SET_ITEM(container, i, item); };
      if (!list || !evaluate_all(operand.items, slots, list.get(), set)) return Ref();
      return list;
    }
    case Operand::Kind::kDict: {
      Ref dict = Ref::steal(PyDict_New());
      for (size_t i = 0; dict && i < operand.items.size(); i++) {
        Ref item = evaluate(operand.items[i], slots);
        if (!item || PyDict_SetItem(dict.get(), operand.keys[i].get(), item.get()) < 0) return Ref();
      }
      return dict;
    }
    case Operand::Kind::kSlice: {
      Ref start = evaluate(operand.items[0], slots), stop = evaluate(operand.items[1], slots), step = evaluate(operand.items[2], slots);
      if (!start || !stop || !step) return Ref();
      return Ref::steal(PySlice_New(start.get(), stop.get(), step.get()));
    }
  }
  Py_UNREACHABLE();
}

class Arguments {  // of one step: values from slots are borrowed, containers are made and owned
 public:
  explicit Arguments(size_t widest) {
    if (widest + 1 > inline_.size()) heap_ = std::make_unique<PyObject*[]>(widest + 1);
    values_ = (heap_ ? heap_.get() : inline_.data()) + 1;  // room in front for vectorcall
  }

  bool load(const Step& step, const Slots& slots) {
    for (size_t i = 0; i < step.args.size(); i++) {
      const Operand& operand = step.args[i];
      if (operand.kind == Operand::Kind::kSlot) {
        values_[i] = slots[operand.slot];
      } else if (operand.kind == Operand::Kind::kConst) {
        values_[i] = operand.constant.get();
      } else {
        Ref made = evaluate(operand, slots);
        if (!made) return false;
        values_[i] = made.get();
        made_.push_back(std::move(made));
      }
    }
    return true;
  }
  PyObject* const* values() const { return values_; }
  void clear() { made_.clear(); }

 private:
  PyObject** values_;
  std::array<PyObject*, 16> inline_;
  std::unique_ptr<PyObject*[]> heap_;
  std::vector<Ref> made_;
};

Ref run_step(const Step& step, const Arguments& arguments) {
  const size_t named = step.kwnames ? static_cast<size_t>(PyTuple_GET_SIZE(step.kwnames.get())) : 0;
  const size_t nargsf = (step.args.size() - named) | PY_VECTORCALL_ARGUMENTS_OFFSET;
  PyObject* result = step.is_method ? PyObject_VectorcallMethod(step.target.get(), arguments.values(), nargsf, step.kwnames.get())
                                    : PyObject_Vectorcall(step.target.get(), arguments.values(), nargsf, step.kwnames.get());
  return Ref::steal(result);
}

Ref run(const Program& program, PyObject* const* inputs) {
  Slots slots(program.slots, program.inputs, inputs);
  Arguments arguments(program.widest);
  for (const Step& step : program.steps) {
    if (PyErr_CheckSignals() < 0) return Ref();  // no bytecode runs here that would look
    Ref result = arguments.load(step, slots) ? run_step(step, arguments) : Ref();
    arguments.clear();
    if (!result) {
      add_user_stack(program.stacks, step.stack);
      return Ref();
    }
    slots.set(step.out, result.release());
    for (uint32_t slot : step.last_uses) slots.drop(slot);
  }
  return evaluate_tuple(program.outputs, slots);
}

// --- the Python object

struct ReplayObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Program* program;
};

PyObject* replay_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Program* program = reinterpret_cast<ReplayObject*>(self)->program;
  if (program == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "the graph was cleared by the garbage collector");
    return nullptr;
  }
  const Py_ssize_t given = PyVectorcall_NARGS(nargsf);
  if ((kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0) || given != static_cast<Py_ssize_t>(program->inputs)) {
    PyErr_Format(PyExc_TypeError, "the graph takes %u positional arguments, %zd given", program->inputs, given);
    return nullptr;
  }
  try {
    return run(*program, args).release();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

int visit_operand(const Operand& operand, visitproc visit, void* arg) {
  Py_VISIT(operand.constant.get());
  for (const Operand& item : operand.items) {
    if (int stop = visit_operand(item, visit, arg)) return stop;
  }
  for (const Ref& key : operand.keys) Py_VISIT(key.get());
  return 0;
}

int replay_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Program* program = reinterpret_cast<ReplayObject*>(self)->program;
  if (program == nullptr) return 0;
  for (const Step& step : program->steps) {
    Py_VISIT(step.target.get());
    for (const Operand& operand : step.args) {
      if (int stop = visit_operand(operand, visit, arg)) return stop;
    }
  }
  for (const Operand& operand : program->outputs) {
    if (int stop = visit_operand(operand, visit, arg)) return stop;
  }
  return 0;
}

int replay_clear(PyObject* self) {
  delete std::exchange(reinterpret_cast<ReplayObject*>(self)->program, nullptr);
  return 0;
}

void replay_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  replay_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* replay_type() {
  static PyTypeObject* type = nullptr;
  if (type != nullptr) return type;
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(ReplayObject, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A captured graph that runs its operators one after another.")},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_dealloc, reinterpret_cast<void*>(replay_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(replay_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(replay_clear)},
      {Py_tp_members, members},
      {0, nullptr},
  };
  static PyType_Spec spec = {"pellucid._core.Replay", sizeof(ReplayObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

// --- compiling

class Compiler {
 public:
  explicit Compiler(const GraphRecord& record) : record_(record), values_(record.nodes.size()) {}

  // Null with a Python exception set.
  std::unique_ptr<Program> compile();

 private:
  Operand operand(const Arg& arg);
  void use(const Operand& operand, size_t step);
  bool add_step(const GraphNode& node, Operand* value);

  const GraphRecord& record_;
  std::vector<Operand> values_;   // by node: a slot, or the constant of a get_attr
  std::vector<size_t> last_use_;  // by slot: the step after which it is free
  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  bool failed_ = false;
};

Operand::Kind container_kind(Arg::Kind kind) {
  switch (kind) {
    case Arg::Kind::kTuple:
      return Operand::Kind::kTuple;
    case Arg::Kind::kList:
      return Operand::Kind::kList;
    case Arg::Kind::kDict:
      return Operand::Kind::kDict;
    case Arg::Kind::kSlice:
      return Operand::Kind::kSlice;
    default:
      CHECK(false) << "not a container";
  }
}

Operand Compiler::operand(const Arg& arg) {
  if (arg.kind == Arg::Kind::kNode) {
    CHECK(arg.node < values_.size()) << "node " << arg.node;
    const Operand& value = values_[arg.node];
    CHECK(value.kind == Operand::Kind::kSlot || value.constant) << "node " << arg.node << " is used before it is made, or is dead";
    return value;
  }
  Operand out;
  if (arg.kind == Arg::Kind::kConst) {
    CHECK(arg.constant) << "a constant without a value";
    out.constant = arg.constant;
    return out;
  }
  out.kind = container_kind(arg.kind);
  out.keys = arg.keys;
  for (const Arg& item : arg.items) out.items.push_back(operand(item));
  CHECK(out.kind != Operand::Kind::kSlice || out.items.size() == 3);
  CHECK(out.kind != Operand::Kind::kDict || out.items.size() == out.keys.size());
  // Lists and dicts are made anew for each call: an operator may keep or change them. Tuples and slices of constants are made once.
  const bool immutable = out.kind == Operand::Kind::kTuple || out.kind == Operand::Kind::kSlice;
  const auto is_constant = [](const Operand& item) { return item.kind == Operand::Kind::kConst; };
  if (!immutable || !std::all_of(out.items.begin(), out.items.end(), is_constant)) return out;
  Operand folded;
  folded.constant = evaluate(out, Slots(0, 0, nullptr));
  if (!folded.constant) failed_ = true;
  return folded;
}

void Compiler::use(const Operand& operand, size_t step) {
  if (operand.kind == Operand::Kind::kSlot) last_use_[operand.slot] = step;
  for (const Operand& item : operand.items) use(item, step);
}

bool Compiler::add_step(const GraphNode& node, Operand* value) {
  Step step;
  step.is_method = node.op == NodeOp::kCallMethod;
  step.stack = node.stack;
  step.target = node.target;
  if (step.is_method) {
    CHECK(node.target && PyUnicode_Check(node.target.get()) && !node.args.empty()) << "a method call without a name or an object";
    PyObject* name = node.target.new_ref();
    PyUnicode_InternInPlace(&name);
    step.target = Ref::steal(name);
  }
  for (const Arg& arg : node.args) step.args.push_back(operand(arg));
  if (!node.kwargs.empty()) {
    step.kwnames = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(node.kwargs.size())));
    if (!step.kwnames) return false;
    for (size_t i = 0; i < node.kwargs.size(); i++) {
      PyObject* key = node.kwargs[i].first.new_ref();
      PyUnicode_InternInPlace(&key);
      PyTuple_SET_ITEM(step.kwnames.get(), static_cast<Py_ssize_t>(i), key);
      step.args.push_back(operand(node.kwargs[i].second));
    }
  }
  if (failed_) return false;
  for (const Operand& arg : step.args) use(arg, program_->steps.size());
  step.out = program_->slots++;
  last_use_.push_back(program_->steps.size());  // a result nobody reads is freed at once
  program_->widest = std::max(program_->widest, step.args.size());
  value->kind = Operand::Kind::kSlot;
  value->slot = step.out;
  program_->steps.push_back(std::move(step));
  return true;
}

std::unique_ptr<Program> Compiler::compile() {
  for (size_t i = 0; i < record_.nodes.size(); i++) {
    const GraphNode& node = record_.nodes[i];
    if (node.dead) continue;
    switch (node.op) {
      case NodeOp::kPlaceholder:
        CHECK(program_->steps.empty()) << "a placeholder after an operator";
        values_[i].kind = Operand::Kind::kSlot;
        values_[i].slot = program_->slots++;
        last_use_.push_back(0);
        program_->inputs = program_->slots;
        break;
      case NodeOp::kGetAttr:
        CHECK(node.real_input) << "a get_attr node without a value";
        values_[i].constant = node.real_input;
        break;
      case NodeOp::kCallFunction:
      case NodeOp::kCallMethod:
        if (!add_step(node, &values_[i])) return nullptr;
        break;
    }
  }
  for (const Arg& output : record_.outputs) program_->outputs.push_back(operand(output));
  if (failed_) return nullptr;
  const size_t end = program_->steps.size();
  for (const Operand& output : program_->outputs) use(output, end);
  for (uint32_t slot = program_->inputs; slot < program_->slots; slot++) {
    if (last_use_[slot] < end) program_->steps[last_use_[slot]].last_uses.push_back(slot);
  }
  program_->stacks = record_.stacks;
  return std::move(program_);
}

}  // namespace

Ref make_replay(const GraphRecord& record) {
  PyTypeObject* type = replay_type();
  if (type == nullptr) return Ref();
  std::unique_ptr<Program> program = Compiler(record).compile();
  if (!program) return Ref();
  auto* object = reinterpret_cast<ReplayObject*>(type->tp_alloc(type, 0));
  if (object == nullptr) return Ref();
  object->vectorcall = replay_call;
  object->program = program.release();
  return Ref::steal(reinterpret_cast<PyObject*>(object));
}

}  // namespace pellucid::bridge
