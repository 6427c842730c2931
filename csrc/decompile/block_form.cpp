// The frame around the blocks: which blocks there are, their labels, one dispatch loop for each number of exceptions being handled, and
// what is declared. An exception that a block raises is caught by its loop, which knows from the label where it is handled; blocks that
// run while it is handled are a loop inside of that except clause, so that nested exceptions and `raise` see what they would see.
#include "decompile/block_form.h"

#include <algorithm>

#include "bytecode/effects.h"
#include "bytecode/neutral_code.h"
#include "decompile/block_parts.h"

namespace pellucid::decompile {
namespace block {

using bytecode::Code;
using bytecode::Instruction;
using bytecode::LocalKind;
using bytecode::Op;

namespace {

constexpr int kVarargs = 0x04, kVarkeywords = 0x08, kGenerator = 0x20, kCoroutine = 0x80, kAsyncGenerator = 0x200;
constexpr size_t kMaxInstances = 200'000;
// Loops, try blocks and except clauses in each other are limited to twenty by the compiler; a level takes three.
constexpr int kMaxLevels = 5;

std::string spaces(int count) { return std::string(static_cast<size_t>(count), ' '); }

std::string join(const std::set<std::string>& names, const char* between) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

}  // namespace

UnitPrinter::UnitPrinter(Shared& shared, const Scope* outer, PyObject* code, const std::vector<std::string>& free_names) : shared_(shared) {
  if (!bytecode::decode(code, code_)) throw PythonError();
  const std::string problem = bytecode::validate(code_);
  // A local that cannot be bound is an exception at run time, like any other.
  if (!problem.empty() && problem.find("cannot be bound there") == std::string::npos &&
      problem.find("may be unbound") == std::string::npos) {
    throw Unsupported(problem);
  }
  cfg_ = bytecode::build_cfg(code_);
  scope_.outer = outer;
  const bool optimized = (code_.flags & 1) != 0;
  scope_.type = optimized ? Scope::kFunction : outer == nullptr && utf8(code_.name.get()) == "<module>" ? Scope::kModule : Scope::kClass;
  scope_.in_class = scope_.type == Scope::kClass || (outer != nullptr && outer->in_class);
  unit_ = shared.next_number();
  name_variables(free_names);
}

bool UnitPrinter::starts_block(int32_t index) const {
  const auto block = static_cast<size_t>(cfg_.block_of[static_cast<size_t>(index)]);
  return cfg_.blocks[block].start == index;
}

void UnitPrinter::collect_globals(PyObject* object, int depth, std::set<std::string>* names) const {
  Code code;
  if (!bytecode::decode(object, code)) throw PythonError();
  for (const py::Ref& name : code.names) names->insert(utf8(name.get()));
  for (const py::Ref& value : code.consts) {
    if (bytecode::is_code(value.get()) && depth < 100) collect_globals(value.get(), depth + 1, names);
  }
}

void UnitPrinter::name_variables(const std::vector<std::string>& free_names) {
  // A variable must not hide a global that this code or code inside of it reads.
  std::set<std::string> taken(free_names.begin(), free_names.end());
  std::set<std::string> globals;
  for (const py::Ref& name : code_.names) globals.insert(utf8(name.get()));
  for (const py::Ref& value : code_.consts) {
    if (bytecode::is_code(value.get())) collect_globals(value.get(), 0, &globals);
  }
  size_t free = 0;
  const size_t n_arguments = static_cast<size_t>(code_.n_arguments());
  for (size_t slot = 0; slot < code_.localsplus_names.size(); ++slot) {
    std::string name = utf8(code_.localsplus_names[slot].get());
    if (code_.localsplus_kinds[slot] == LocalKind::kFree) {
      if (free < free_names.size()) name = free_names[free];
      ++free;
    } else {
      const bool mangled = scope_.in_class && name.rfind("__", 0) == 0 && (name.size() < 4 || name.compare(name.size() - 2, 2, "__") != 0);
      // The class statement makes this cell itself, under this name. No other variable of a class or module may become an attribute.
      const bool implicit = scope_.type == Scope::kClass && name == "__class__";
      const bool hidden = scope_.type != Scope::kFunction;
      // Callers know arguments by name: they keep it, and what reads a global of that name says so.
      const bool hides = slot >= n_arguments && globals.count(name) != 0;
      if (!implicit && (hidden || mangled || !is_plain_name(name) || taken.count(name) != 0 || hides)) {
        name = temporary("v" + std::to_string(slot));
      }
      taken.insert(name);
      scope_.own.insert(name);
    }
    scope_.slots.push_back(name);
  }
  constant_slots_.assign(code_.localsplus_names.size(), false);
  for (size_t slot = 0; slot < n_arguments && slot < constant_slots_.size(); ++slot) {
    constant_slots_[slot] = code_.localsplus_kinds[slot] == LocalKind::kLocal;
  }
  const auto not_constant = [&](uint32_t slot) {
    if (slot < constant_slots_.size()) constant_slots_[slot] = false;
  };
  for (const Instruction& in : code_.instructions) {
    switch (in.op) {
      case Op::STORE_FAST:
      case Op::DELETE_FAST:
      case Op::LOAD_FAST_AND_CLEAR:
        not_constant(in.arg);
        break;
      case Op::STORE_FAST_STORE_FAST:
        not_constant(in.arg & 15);
        not_constant(in.arg >> 4);
        break;
      case Op::STORE_FAST_LOAD_FAST:
        not_constant(in.arg >> 4);
        break;
      default:
        break;
    }
  }
  // Free variables that are assigned to.
  for (const Instruction& in : code_.instructions) {
    if (in.op != Op::STORE_DEREF && in.op != Op::DELETE_DEREF) continue;
    if (in.arg < scope_.slots.size() && code_.localsplus_kinds[in.arg] == LocalKind::kFree) scope_.nonlocals.insert(scope_.slots[in.arg]);
  }
}

bool UnitPrinter::keeps_cell(uint32_t slot) const {
  if (scope_.type == Scope::kFunction || slot >= code_.localsplus_kinds.size()) return false;
  if (code_.localsplus_kinds[slot] == LocalKind::kLocal || code_.localsplus_kinds[slot] == LocalKind::kFree) return false;
  const std::string name = utf8(code_.localsplus_names[slot].get());
  return scope_.type == Scope::kModule || name != "__class__";
}

std::string UnitPrinter::name_of_slot(uint32_t slot) const {
  if (slot >= scope_.slots.size()) throw Unsupported("a variable that does not exist");
  return scope_.slots[slot];
}

std::string UnitPrinter::temporary(const std::string& stem) {
  const std::string name = shared_.temporary(std::to_string(unit_) + "_" + stem);
  scope_.temporaries.insert(name);
  return name;
}

std::string UnitPrinter::home(size_t depth) { return temporary("s" + std::to_string(depth)); }

int UnitPrinter::instance(const Instance& wanted) {
  Instance key = wanted;
  key.level = std::min(key.level, kMaxLevels);
  const auto [place, made] = numbers_.emplace(key, static_cast<int>(instances_.size()));
  if (made) {
    if (instances_.size() >= kMaxInstances) throw Unsupported("more blocks than can be printed");
    instances_.push_back(key);
  }
  return place->second;
}

void UnitPrinter::borrow(const std::set<std::string>& names) {
  if (scope_.type == Scope::kFunction) {
    scope_.temporaries.insert(names.begin(), names.end());
  } else {
    lent_.insert(names.begin(), names.end());
  }
}

bool UnitPrinter::needs_global_form(const std::string& name) const {
  if (scope_.type != Scope::kFunction) return true;  // the body may have the name too
  return scope_.own.count(name) != 0 || std::find(scope_.slots.begin(), scope_.slots.end(), name) != scope_.slots.end();
}

void UnitPrinter::use_global(const std::string& name, bool stores) {
  bool hidden = false;
  for (const Scope* scope = scope_.outer; scope != nullptr; scope = scope->outer) {
    hidden |= scope->type == Scope::kFunction && scope->own.count(name) != 0;
  }
  if (stores || hidden) scope_.globals.insert(name);
}

std::string UnitPrinter::keyword() const { return (code_.flags & (kCoroutine | kAsyncGenerator)) != 0 ? "async def" : "def"; }

std::string UnitPrinter::parameters(PyObject* function) {
  const auto held = [&](const char* attribute) {
    py::Ref found = py::Ref::steal(function != nullptr ? PyObject_GetAttrString(function, attribute) : nullptr);
    if (function != nullptr && !found) throw PythonError();
    return found;
  };
  const py::Ref defaults = held("__defaults__"), by_name = held("__kwdefaults__");
  // The helpers are imported by the function itself, so its signature cannot use them.
  const auto literal = [&](PyObject* value) {
    const std::string text = shared_.literal(value);
    return text.find(shared_.helpers()) == std::string::npos ? text : shared_.bind("default", value, false);
  };
  const Py_ssize_t n_defaults = defaults && PyTuple_CheckExact(defaults.get()) ? PyTuple_GET_SIZE(defaults.get()) : 0;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  int slot = 0;
  for (int i = 0; i < code_.argcount; ++i) {
    const Py_ssize_t of = n_defaults - code_.argcount + i;
    const std::string value = of >= 0 ? "=" + literal(PyTuple_GET_ITEM(defaults.get(), of)) : "";
    add(scope_.slots[static_cast<size_t>(slot++)] + value);
    if (i + 1 == code_.posonly) add("/");
  }
  const int keywords = slot;
  slot += code_.kwonly;
  if ((code_.flags & kVarargs) != 0) {
    add("*" + scope_.slots[static_cast<size_t>(slot++)]);
  } else if (code_.kwonly > 0) {
    add("*");
  }
  for (int i = 0; i < code_.kwonly; ++i) {
    const auto at = static_cast<size_t>(keywords + i);
    PyObject* value = nullptr;
    if (by_name && PyDict_CheckExact(by_name.get())) value = PyDict_GetItemWithError(by_name.get(), code_.localsplus_names[at].get());
    if (value == nullptr && PyErr_Occurred() != nullptr) throw PythonError();
    add(scope_.slots[at] + (value != nullptr ? "=" + literal(value) : ""));
  }
  if ((code_.flags & kVarkeywords) != 0) add("**" + scope_.slots[static_cast<size_t>(slot++)]);
  return text;
}

std::string UnitPrinter::with_labels(const std::string& text) const {
  std::string out;
  size_t at = 0;
  for (;;) {
    const size_t begin = text.find('\x01', at);
    if (begin == std::string::npos) return out + text.substr(at);
    const size_t end = text.find('\x01', begin + 1);
    out += text.substr(at, begin - at) + std::to_string(labels_[static_cast<size_t>(std::stoi(text.substr(begin + 1, end - begin - 1)))]);
    at = end + 1;
  }
}

void UnitPrinter::print_instances() {
  instance({});
  for (size_t i = 0; i < instances_.size(); ++i) {
    const Instance wanted = instances_[i];  // a copy: printing may add more
    blocks_.push_back(print_block(*this, wanted));
  }
  int levels = 0;
  for (const Instance& each : instances_) levels = std::max(levels, each.level + 1);
  by_level_.assign(static_cast<size_t>(levels), {});
  for (size_t i = 0; i < instances_.size(); ++i) by_level_[static_cast<size_t>(instances_[i].level)].push_back(static_cast<int>(i));
  labels_.assign(instances_.size(), 0);
  int next = 0;
  for (std::vector<int>& level : by_level_) {
    // Blocks with one handler stand together, so that ranges of labels tell it.
    std::stable_sort(level.begin(), level.end(), [&](int a, int b) {
      const BlockText &x = blocks_[static_cast<size_t>(a)], &y = blocks_[static_cast<size_t>(b)];
      return std::tie(x.handler, x.handler_slot) < std::tie(y.handler, y.handler_slot);
    });
    first_label_.push_back(next);
    for (const int each : level) labels_[static_cast<size_t>(each)] = next++;
  }
  first_label_.push_back(next);
}

// A tree of comparisons: quick to run, and flat enough for the compiler.
void UnitPrinter::dispatch(const std::vector<int>& order, size_t begin, size_t end, int indent, std::vector<Line>* out) const {
  const std::string at = shared_.temporary(std::to_string(unit_) + "_at");
  if (end - begin == 1) {
    const BlockText& block = blocks_[static_cast<size_t>(order[begin])];
    for (const Line& line : block.lines) out->push_back({indent + line.indent, with_labels(line.text)});
    if (block.lines.empty()) out->push_back({indent, "pass"});
    return;
  }
  const size_t middle = begin + (end - begin) / 2;
  out->push_back({indent, "if " + at + " < " + std::to_string(labels_[static_cast<size_t>(order[middle])]) + ":"});
  dispatch(order, begin, middle, indent + 1, out);
  out->push_back({indent, "else:"});
  dispatch(order, middle, end, indent + 1, out);
}

void UnitPrinter::print_level(int level, int indent, std::vector<Line>* out) {
  const auto index = static_cast<size_t>(level);
  const std::vector<int>& order = by_level_[index];
  const std::string at = temporary("at"), error = temporary("e");
  const bool first = level == 0;
  const bool function = scope_.type == Scope::kFunction;
  out->push_back({indent, first && function ? "while True:" : "while " + at + " >= " + std::to_string(first_label_[index]) + ":"});
  bool handles = false;
  for (const int each : order) handles |= blocks_[static_cast<size_t>(each)].handler >= 0;
  if (order.empty()) throw Unsupported("exceptions being handled that nothing handles");
  if (!handles) {
    dispatch(order, 0, order.size(), indent + 1, out);
    return;
  }
  out->push_back({indent + 1, "try:"});
  dispatch(order, 0, order.size(), indent + 2, out);
  out->push_back({indent + 1, "except " + shared_.helper("BaseException") + " as " + error + ":"});
  const char* word = "if ";
  for (size_t i = 0; i < order.size();) {
    const BlockText& block = blocks_[static_cast<size_t>(order[i])];
    size_t end = i;
    while (end < order.size() && blocks_[static_cast<size_t>(order[end])].handler == block.handler &&
           blocks_[static_cast<size_t>(order[end])].handler_slot == block.handler_slot) {
      ++end;
    }
    const bool last = end == order.size();
    if (last && i == 0) {
      out->push_back({indent + 2, "if True:"});
    } else if (last) {
      out->push_back({indent + 2, "else:"});
    } else {
      out->push_back({indent + 2, word + at + " < " + std::to_string(labels_[static_cast<size_t>(order[end])]) + ":"});
    }
    word = "elif ";
    if (block.handler < 0) {
      out->push_back({indent + 3, "raise"});
    } else {
      const std::string twice = block.handler_twice ? " = " + home(static_cast<size_t>(block.handler_slot) + 1) : "";
      out->push_back({indent + 3, home(static_cast<size_t>(block.handler_slot)) + twice + " = " + error});
      // The interpreter lets go of what lay above, before the handler begins: what ends with its last reference ends there.
      const std::vector<Slot>& kept = instances_[static_cast<size_t>(block.handler)].stack;
      std::set<size_t> dropped;
      for (size_t k = i; k < end; ++k) {
        const std::vector<Slot>& stack = instances_[static_cast<size_t>(order[k])].stack;
        for (size_t depth = 0; depth < stack.size(); ++depth) {
          const bool stays = depth < kept.size() && at_run_time(kept[depth].kind);
          if (at_run_time(stack[depth].kind) && !stays) dropped.insert(depth);
        }
      }
      std::string drop;
      for (const size_t depth : dropped) drop += home(depth) + " = ";
      if (!drop.empty()) out->push_back({indent + 3, drop + "None"});
      out->push_back({indent + 3, at + " = " + std::to_string(labels_[static_cast<size_t>(block.handler)])});
    }
    i = end;
  }
  if (index + 1 < by_level_.size()) print_level(level + 1, indent + 2, out);
}

bool UnitPrinter::inside_function() const {
  for (const Scope* scope = scope_.outer; scope != nullptr; scope = scope->outer) {
    if (scope->type == Scope::kFunction) return true;
  }
  return false;
}

std::vector<Line> UnitPrinter::declarations() const {
  std::vector<Line> lines;
  std::set<std::string> globals = scope_.globals, nonlocals = scope_.nonlocals;
  if (scope_.type == Scope::kClass) {
    // Temporaries must not become attributes: they belong to the function around, or to the module.
    std::set<std::string>& where = inside_function() ? nonlocals : globals;
    where.insert(scope_.temporaries.begin(), scope_.temporaries.end());
  }
  if (!globals.empty()) lines.push_back({0, "global " + join(globals, ", ")});
  if (!nonlocals.empty()) lines.push_back({0, "nonlocal " + join(nonlocals, ", ")});
  return lines;
}

std::vector<Line> UnitPrinter::body() {
  print_instances();
  std::vector<Line> blocks;
  const bool straight = instances_.size() == 1 && blocks_[0].handler < 0 && (blocks_[0].ends || scope_.type != Scope::kFunction);
  const std::string at = temporary("at");
  if (straight) {
    for (const Line& line : blocks_[0].lines) blocks.push_back({line.indent, with_labels(line.text)});
  } else {
    blocks.push_back({0, at + " = " + std::to_string(labels_[0])});
    print_level(0, 0, &blocks);
  }
  std::vector<Line> lines;
  const bool function = scope_.type == Scope::kFunction;
  if (function && !code_.consts.empty() && PyUnicode_CheckExact(code_.consts[0].get()) && utf8(code_.name.get()).rfind('<', 0) != 0 &&
      has_docstring()) {
    lines.push_back({0, quoted(code_.consts[0].get())});
  }
  bool helped = std::any_of(blocks.begin(), blocks.end(),
                            [&](const Line& line) { return line.text.find(shared_.helpers() + ".") != std::string::npos; });
  for (uint32_t slot = 0; code_.version < 311 && slot < scope_.slots.size(); ++slot) helped |= keeps_cell(slot);
  // A class body takes the name from the function around; imported there it would become an attribute.
  const bool imports = helped && (function || !inside_function());
  if (imports && scope_.type == Scope::kClass) scope_.globals.insert(shared_.helpers());
  for (const Line& line : declarations()) lines.push_back(line);
  if (imports) lines.push_back({0, "from pellucid import block_support as " + shared_.helpers()});
  if (function) {
    // Every variable of ours is one of the compiler's too, whether it is assigned to or not.
    std::set<std::string> variables;
    std::set<std::string> arguments;
    for (int i = 0; i < code_.n_arguments(); ++i) arguments.insert(scope_.slots[static_cast<size_t>(i)]);
    for (const std::string& name : scope_.own) {
      if (arguments.count(name) == 0) variables.insert(name);
    }
    variables.insert(scope_.temporaries.begin(), scope_.temporaries.end());
    if (!variables.empty()) lines.push_back({0, "if 0: " + join(variables, " = ") + " = None"});
    // And every cell is one, whether anything in here shares it or not.
    std::set<std::string> cells;
    for (size_t slot = 0; slot < scope_.slots.size(); ++slot) {
      if (code_.localsplus_kinds[slot] != LocalKind::kLocal && is_plain_name(scope_.slots[slot])) cells.insert(scope_.slots[slot]);
    }
    if (!cells.empty()) lines.push_back({0, "if 0: lambda: (" + join(cells, ", ") + ",)"});
    if ((code_.flags & (kGenerator | kAsyncGenerator)) != 0) lines.push_back({0, "if 0: yield"});
  }
  for (uint32_t slot = 0; code_.version < 311 && slot < scope_.slots.size(); ++slot) {
    if (keeps_cell(slot)) lines.push_back({0, scope_.slots[slot] + " = " + shared_.helper("CellType") + "()"});
  }
  lines.insert(lines.end(), blocks.begin(), blocks.end());
  if (!function) {
    lent_.insert(scope_.temporaries.begin(), scope_.temporaries.end());
    if (lines.empty()) lines.push_back({0, "pass"});
  }
  return lines;
}

// The first constant is the docstring, or None. Code that compilers of others make need not keep to that: then it is in use.
bool UnitPrinter::has_docstring() const {
  return std::none_of(code_.instructions.begin(), code_.instructions.end(),
                      [](const Instruction& in) { return (in.op == Op::LOAD_CONST || in.op == Op::RETURN_CONST) && in.arg == 0; });
}

}  // namespace block

namespace {

std::string render(const std::vector<block::Line>& lines, int indent) {
  std::string text;
  for (const block::Line& line : lines) text += block::spaces(line.indent + indent) + line.text + "\n";
  return text;
}

}  // namespace

bool block_form(PyObject* code, const Options& options, Decompiled* out) {
  out->structured = false;
  try {
    block::Shared shared(code);
    bytecode::Code decoded;
    if (!bytecode::decode(code, decoded)) return false;
    std::vector<std::string> free_names;
    for (size_t i = 0; i < decoded.localsplus_names.size(); ++i) {
      if (decoded.localsplus_kinds[i] != bytecode::LocalKind::kFree) continue;
      const std::string name = block::utf8(decoded.localsplus_names[i].get());
      free_names.push_back(block::is_plain_name(name) ? name : shared.temporary("free" + std::to_string(i)));
    }
    block::UnitPrinter unit(shared, nullptr, code, free_names);
    const std::vector<block::Line> body = unit.body();
    const std::string original = block::utf8(decoded.name.get());
    std::string name = original;
    if (unit.scope().type != block::Scope::kModule && !block::is_plain_name(name)) {
      name = shared.temporary("unit");
      shared.bind(name, decoded.name.get(), true);
    }
    size_t free = 0;
    for (size_t i = 0; i < decoded.localsplus_names.size(); ++i) {
      if (decoded.localsplus_kinds[i] != bytecode::LocalKind::kFree) continue;
      PyObject* own = decoded.localsplus_names[i].get();
      if (free_names[free] != block::utf8(own)) shared.bind(free_names[free], own, true);
      ++free;
    }
    std::string& text = out->source;
    switch (unit.scope().type) {
      case block::Scope::kFunction:
        text = unit.keyword() + " " + name + "(" + unit.parameters(options.function) + "):\n" + render(body, 1);
        break;
      case block::Scope::kClass:
        text = "class " + name + ":\n" + render(body, 1);
        break;
      case block::Scope::kModule: {
        text = render(body, 0);
        std::string names;
        for (const std::string& lent : unit.lent()) names += "'" + lent + "', ";
        names += "'" + shared.helpers() + "', ";
        if (text.find(shared.helpers() + ".") == std::string::npos) {
          if (!names.empty()) text += "from pellucid import block_support as " + shared.helpers() + "\n";
        }
        if (!names.empty()) text += shared.helper("forget") + "(" + shared.helper("globals") + "(), (" + names + "))\n";
        break;
      }
    }
    out->bindings = shared.bindings;
    out->reason.clear();
    return true;
  } catch (const block::Unsupported& problem) {
    out->reason = problem.what();
    return true;
  } catch (const block::PythonError&) {
    return false;
  }
}

}  // namespace pellucid::decompile
