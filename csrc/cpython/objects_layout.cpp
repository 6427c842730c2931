// Compile-time proof that objects.h reads what this CPython lays out. Only 3.11 is read that way.
#include "py/python.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "cpython/objects.h"

#define Py_BUILD_CORE 1
#include <internal/pycore_dict.h>
#undef Py_BUILD_CORE

#include <cstddef>

namespace pellucid::cpython {

static_assert(offsetof(DictKeys, log2_size) == offsetof(_dictkeysobject, dk_log2_size));
static_assert(offsetof(DictKeys, log2_index_bytes) == offsetof(_dictkeysobject, dk_log2_index_bytes));
static_assert(offsetof(DictKeys, kind) == offsetof(_dictkeysobject, dk_kind));
static_assert(offsetof(DictKeys, usable) == offsetof(_dictkeysobject, dk_usable));
static_assert(offsetof(DictKeys, entry_count) == offsetof(_dictkeysobject, dk_nentries));
static_assert(offsetof(DictKeys, indices) == offsetof(_dictkeysobject, dk_indices));
static_assert(sizeof(GeneralEntry) == sizeof(PyDictKeyEntry) && offsetof(GeneralEntry, value) == offsetof(PyDictKeyEntry, me_value));
static_assert(sizeof(StrEntry) == sizeof(PyDictUnicodeEntry) && offsetof(StrEntry, value) == offsetof(PyDictUnicodeEntry, me_value));
static_assert(DICT_KEYS_GENERAL == 0);

}  // namespace pellucid::cpython
#endif
