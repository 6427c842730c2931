// The capture boundary.
#include "translate/translate.h"

namespace pellucid::translate {

Result translate(const guard::FrameView&, PyObject*, cache::Region&) { return {Outcome::kRunAsIs, nullptr, "capture is not built yet"}; }

}  // namespace pellucid::translate
