// The naming rules of torch.fx (torch/fx/graph.py: _snake_case, _Namespace.create_name), on ASCII text only.
#include "torch_bridge/fx_names.h"

#include <algorithm>

namespace pellucid::bridge {
namespace {

constexpr size_t kMaxSuffixDigits = 18;  // more would not fit into int64_t

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; }

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Each run of characters that can't be in an identifier becomes one underscore.
std::string to_identifier(std::string_view candidate) {
  std::string out;
  out.reserve(candidate.size() + 1);
  bool in_run = false;
  for (char c : candidate) {
    if (is_word(c)) {
      out.push_back(c);
      in_run = false;
    } else if (!in_run) {
      out.push_back('_');
      in_run = true;
    }
  }
  if (out.empty()) out = "_unnamed";
  if (is_digit(out[0])) out.insert(out.begin(), '_');
  return out;
}

// Where the numeric suffix "_<digits>" starts (at its underscore), or npos. The base before it is never empty.
size_t suffix_start(const std::string& name) {
  size_t digits = name.size();
  while (digits > 0 && is_digit(name[digits - 1])) digits--;
  if (digits == name.size() || digits < 2 || name[digits - 1] != '_') return std::string::npos;
  return digits - 1;
}

}  // namespace

std::string candidate_from_name(std::string_view name, bool is_method) {
  if (is_method && name.starts_with("__") && name.ends_with("__")) name = name.size() < 4 ? "" : name.substr(2, name.size() - 4);
  std::string out;
  out.reserve(name.size() + 4);
  for (size_t i = 0; i < name.size(); i++) {
    if (is_upper(name[i])) {
      if (i > 0 && is_lower(name[i - 1])) out.push_back('_');
      out.push_back(static_cast<char>(name[i] - 'A' + 'a'));
    } else {
      out.push_back(name[i]);
    }
  }
  return out;
}

int FxNames::is_illegal(const std::string& name) const {
  py::Ref key = py::Ref::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
  if (!key) return -1;
  PyObject* holder = PyDict_GetItemWithError(illegal_names_, key.get());
  if (holder == nullptr && PyErr_Occurred()) return -1;
  // fx asks `_illegal_names.get(name, None) is not None`: the entry of "None" is None itself, and so that name passes.
  return holder != nullptr && holder != Py_None;
}

std::optional<std::string> FxNames::create(std::string_view candidate) {
  if (!is_ascii(candidate)) return std::nullopt;
  std::string name = to_identifier(candidate);
  const size_t suffix = suffix_start(name);
  const bool has_suffix = suffix != std::string::npos;
  if (has_suffix && name.size() - suffix - 1 > kMaxSuffixDigits) return std::nullopt;
  const std::string base_name = has_suffix ? name.substr(0, suffix) : name;

  Base& base = bases_[base_name];
  int64_t number = base.count;
  if (!has_suffix || used_.contains(name)) {
    int illegal = has_suffix ? is_illegal(name) : base.is_illegal;
    if (illegal < 0 && !has_suffix) illegal = base.is_illegal = is_illegal(name);
    if (illegal < 0) return std::nullopt;
    if (illegal) name = base_name + "_" + std::to_string(++number);
  } else {
    number = std::stoll(name.substr(suffix + 1));
  }
  while (used_.contains(name)) name = base_name + "_" + std::to_string(++number);
  used_.insert(name);
  base.count = number;
  return name;
}

bool FxNames::export_counts(PyObject* base_count) const {
  for (const auto& [name, base] : bases_) {
    py::Ref key = py::Ref::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    py::Ref value = py::Ref::steal(PyLong_FromLongLong(base.count));
    if (!key || !value || PyDict_SetItem(base_count, key.get(), value.get()) < 0) return false;
  }
  return true;
}

}  // namespace pellucid::bridge
