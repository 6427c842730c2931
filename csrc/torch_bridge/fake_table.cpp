// The table of entries: one for the process under a mutex, in front of it a table per thread without one.
#include "torch_bridge/fake_table.h"

#include <c10/util/flat_hash_map.h>

#include <memory>
#include <mutex>

#include "torch_bridge/hidden_kernel.h"
#include "torch_bridge/rules/rules.h"

namespace pellucid::bridge {

namespace {

constexpr size_t kMaxArguments = 64;  // written_mask has a bit for each

struct GlobalTable {
  std::mutex mutex;
  ska::flat_hash_map<c10::OperatorHandle, std::unique_ptr<Entry>> entries;
};

GlobalTable& global_table() {
  static auto* table = new GlobalTable;  // never destroyed: threads may outlive static destruction
  return *table;
}

bool is_view(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  return !returns.empty() && returns[0].alias_info() && !returns[0].alias_info()->isWrite();
}

// Which setting of float32's precision an operator of PyTorch's looks at, by what its name says it computes.
uint8_t precision_class(const c10::OperatorName& name) {
  if (name.getNamespace() != "aten") return 0;
  const std::string_view base = std::string_view(name.name).substr(6);
  const auto contains = [&](const char* part) { return base.find(part) != std::string_view::npos; };
  if (contains("conv")) return 2;
  if (contains("lstm") || contains("gru") || contains("rnn")) return 4;
  for (const char* part : {"mm", "matmul", "linear", "attention", "linalg", "transformer", "cdist", "cholesky", "lu_", "svd", "eig"})
    if (contains(part)) return 1;
  return base == "mv" || base == "addmv" || base == "dot" || base == "vdot" ? 1 : 0;
}

// The rule of the operator that makes the results that `op` writes to its out= arguments, or null.
const c10::KernelFunction* rule_of_functional(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  const auto& returns = op.schema().returns();
  if (returns.empty()) return nullptr;
  for (const auto& result : returns) {
    if (result.alias_info() == nullptr || !result.alias_info()->isWrite()) return nullptr;
  }
  constexpr std::string_view kSuffix = "_out";
  std::string overload = name.overload_name;
  if (overload.size() > kSuffix.size() && overload.ends_with(kSuffix)) {
    overload.resize(overload.size() - kSuffix.size());
  } else {
    overload.clear();  // "out", or the name of the result
  }
  if (overload == name.overload_name) return nullptr;
  const auto functional = c10::Dispatcher::singleton().findSchema({name.name, overload});
  if (!functional || functional->schema().arguments().size() + returns.size() != op.schema().arguments().size()) return nullptr;
  return rules::find(functional->operator_name());
}

// One that Python registered, the C++ ones having been looked for.
bool has_python_kernel(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  for (const DispatchKey key : {DispatchKey::Meta, DispatchKey::CompositeExplicitAutograd,
                                DispatchKey::CompositeExplicitAutogradNonFunctional, DispatchKey::CompositeImplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) return true;
  }
  return false;
}

void resolve(const c10::OperatorHandle& op, Entry& entry) {
  using c10::DispatchKey;
  const auto& schema = op.schema();
  const auto& arguments = schema.arguments();
  entry.argument_count = static_cast<uint16_t>(arguments.size());
  entry.return_count = static_cast<uint16_t>(schema.returns().size());
  if (arguments.size() > kMaxArguments) return;  // none of PyTorch's: stays kNone
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == "device") entry.device_argument = static_cast<int16_t>(i);
    if (arguments[i].name() == "pin_memory") entry.pin_argument = static_cast<int16_t>(i);
    if (arguments[i].alias_info() && arguments[i].alias_info()->isWrite()) entry.written_mask |= uint64_t{1} << i;
  }
  entry.precision = precision_class(op.operator_name());
  entry.shares_storage = is_view(schema);
  entry.lifts_constants = op.operator_name() == c10::OperatorName("aten::lift_fresh", "");

  const bool pytorch_own = op.operator_name().getNamespace() == "aten";
  const auto use = [&](Origin origin, const c10::KernelFunction* kernel) {
    if (kernel == nullptr) return false;
    entry.origin = origin;
    entry.kernel = *kernel;  // a copy shares the functor, so a library that unloads its kernel can't pull it from under us
    entry.on_twins = origin == Origin::kRule || origin == Origin::kMeta;
    return true;
  };
  if (rules::is_data_dependent(op.operator_name())) {
    entry.origin = Origin::kDataDependent;
    return;
  }
  if (use(Origin::kRule, rules::find(op.operator_name()))) {
    entry.shares_storage |= rules::needs_storage(op.operator_name());
    entry.mixes_devices = rules::mixes_devices(op.operator_name());
    return;
  }
  // Somebody else's operator: what is registered at Meta is meant to be used, also where C++ composite kernels exist beside it.
  if (!pytorch_own && op.hasKernelForDispatchKey(DispatchKey::Meta)) {
    entry.origin = Origin::kPython;
    return;
  }
  if (use(Origin::kMeta, cpp_kernel(op, DispatchKey::Meta))) return;
  if (use(Origin::kExplicit, cpp_kernel(op, DispatchKey::CompositeExplicitAutograd))) return;
  if (use(Origin::kExplicit, cpp_kernel(op, DispatchKey::CompositeExplicitAutogradNonFunctional))) return;
  if (use(Origin::kImplicit, cpp_kernel(op, DispatchKey::CompositeImplicitAutograd))) return;
  if (const c10::KernelFunction* functional = rule_of_functional(op)) {
    const c10::KernelFunction adapted = rules::writing_to_out(*functional, op.schema().returns().size());
    use(Origin::kRule, &adapted);
    return;
  }
  // Others may register a shape function later; PyTorch's own are all there.
  entry.origin = !pytorch_own || has_python_kernel(op) ? Origin::kPython : Origin::kNone;
}

Entry& global_entry_of(const c10::OperatorHandle& op) {
  auto& table = global_table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  auto& slot = table.entries[op];
  if (slot == nullptr) {
    auto entry = std::make_unique<Entry>();
    resolve(op, *entry);
    slot = std::move(entry);
  }
  return *slot;
}

}  // namespace

const char* origin_name(Origin origin) {
  switch (origin) {
    case Origin::kRule:
      return "rule";
    case Origin::kMeta:
      return "meta";
    case Origin::kExplicit:
      return "composite";
    case Origin::kImplicit:
      return "implicit";
    case Origin::kPython:
      return "python";
    case Origin::kDataDependent:
      return "data_dependent";
    case Origin::kNone:
      return "none";
  }
  return "none";
}

Entry& entry_of(const c10::OperatorHandle& op) {
  thread_local ska::flat_hash_map<c10::OperatorHandle, Entry*> cache;
  const auto found = cache.find(op);
  if (found != cache.end()) return *found->second;
  Entry& entry = global_entry_of(op);
  cache.emplace(op, &entry);
  return entry;
}

std::vector<EntryReport> entry_reports() {
  auto& table = global_table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  std::vector<EntryReport> reports;
  reports.reserve(table.entries.size());
  for (const auto& [op, entry] : table.entries) {
    const auto& name = op.operator_name();
    std::string text = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    reports.push_back({std::move(text), entry->origin, entry->calls.load(std::memory_order_relaxed),
                       entry->symbolic_calls.load(std::memory_order_relaxed), entry->symbolic_python.load(std::memory_order_relaxed)});
  }
  return reports;
}

void reset_entry_counts() {
  auto& table = global_table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  for (const auto& [op, entry] : table.entries) {
    for (auto* counter : {&entry->calls, &entry->symbolic_calls, &entry->symbolic_python}) counter->store(0, std::memory_order_relaxed);
  }
}

}  // namespace pellucid::bridge
