// The table of rules put together, and the operators whose result depends on values. Knows no single rule.
#include "torch_bridge/rules/rules.h"

#include <unordered_set>

#include "torch_bridge/fake_errors.h"

namespace pellucid::bridge::rules {

namespace {

thread_local c10::Device current_device = c10::kCPU;

std::unordered_set<c10::OperatorName> names(std::initializer_list<std::pair<const char*, const char*>> list) {
  std::unordered_set<c10::OperatorName> set;
  for (const auto& [name, overload] : list) set.insert(Table::key(name, overload));
  return set;
}

}  // namespace

c10::Device device() { return current_device; }
void set_device(c10::Device device) { current_device = device; }

const Table& table() {
  static const auto* table = [] {
    auto* made = new Table;
    add_attention(*made);
    add_backward(*made);
    add_convolution(*made);
    add_distances(*made);
    add_embedding(*made);
    add_factories(*made);
    add_folding(*made);
    add_fourier(*made);
    add_histograms(*made);
    add_indexing(*made);
    add_linear_algebra(*made);
    add_losses(*made);
    add_matrices(*made);
    add_normalization(*made);
    add_pointwise(*made);
    add_pooling(*made);
    add_quantization(*made);
    add_random(*made);
    add_recurrent(*made);
    add_reductions(*made);
    add_sampling(*made);
    add_storage(*made);
    return made;
  }();
  return *table;
}

const c10::KernelFunction* find(const c10::OperatorName& name) { return table().find(name); }

bool is_data_dependent(const c10::OperatorName& name) {
  static const auto* set = new std::unordered_set<c10::OperatorName>(names({
      {"_local_scalar_dense", ""},
      {"equal", ""},
      {"nonzero", ""},
      {"nonzero", "out"},
      {"masked_select", ""},
      {"masked_select", "out"},
      {"_unique", ""},
      {"_unique2", ""},
      {"unique_dim", ""},
      {"unique_consecutive", ""},
      {"unique_dim_consecutive", ""},
      {"bincount", ""},
      {"is_set_to", ""},  // two fakes of tensors that share storage don't
      {"_ctc_loss", "Tensor"},
      {"_nested_tensor_from_mask_left_aligned", ""},
      {"_nested_tensor_from_mask", ""},
  }));
  return set->count(name) != 0;
}

bool mixes_devices(const c10::OperatorName& name) {
  static const auto* set = new std::unordered_set<c10::OperatorName>(names({{"copy_", ""}, {"masked_fill_", "Tensor"}}));
  return set->count(name) != 0;
}

bool refuses_same_memory(const c10::OperatorName& name) {
  static const auto* set = new std::unordered_set<std::string_view>{
      "aten::cat",         "aten::gather",       "aten::index_add",        "aten::index_add_",     "aten::index_copy",
      "aten::index_copy_", "aten::index_put_",   "aten::index_select",     "aten::kthvalue",       "aten::scatter",
      "aten::scatter_",    "aten::scatter_add",  "aten::scatter_add_",     "aten::scatter_reduce", "aten::scatter_reduce_",
      "aten::take",        "aten::masked_fill_", "aten::_index_put_impl_",
  };
  return set->count(name.name) != 0;
}

void throw_data_dependent(const char* name) { bridge::throw_data_dependent(std::string("aten::") + name); }

bool needs_storage(const c10::OperatorName& name) {
  static const auto* set = new std::unordered_set<c10::OperatorName>(names({
      {"set_", "source_Storage"},
      {"set_", "source_Storage_storage_offset"},
      {"set_", "source_Tensor"},
      {"set_", ""},
      {"as_strided", ""},
      {"as_strided_", ""},
  }));
  return set->count(name) != 0;
}

}  // namespace pellucid::bridge::rules
