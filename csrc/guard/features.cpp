// The rows of a program that look at arguments alone, as numbers to find it by among many. Lookup only: every hit runs the whole program.
#include "guard/program.h"

namespace pellucid::guard {

std::vector<Feature> Program::features() const {
  std::vector<Feature> found;
  for (const Row& row : rows_) {
    if ((row.local & 1) == 0) continue;
    switch (row.op) {
      case Op::kInt:
        found.push_back({row.source, Feature::kInt, row.value});
        break;
      case Op::kType:
        found.push_back({row.source, Feature::kType, row.value});
        break;
      case Op::kIs:
        found.push_back({row.source, Feature::kIdentity, row.value});
        break;
      case Op::kTensors:
        for (uint32_t i = 0; i < row.count; i++)
          found.push_back({row.source + i, Feature::kTensor, bridge::tensor_key(*row_specs_[row.argument + i])});
        break;
      default:
        break;
    }
  }
  return found;
}

uint64_t Program::feature_of(const FrameView& frame, uint32_t local, Feature::Kind kind) const noexcept {
  PyObject* object = frame.locals[local];
  if (object == nullptr) return 0;
  switch (kind) {
    case Feature::kInt:
      return static_cast<uint64_t>(cpython::int_value(object));
    case Feature::kType:
      return reinterpret_cast<uint64_t>(Py_TYPE(object));
    case Feature::kIdentity:
      return reinterpret_cast<uint64_t>(object);
    case Feature::kTensor:
      return bridge::tensor_key(object);
  }
  return 0;
}

}  // namespace pellucid::guard
