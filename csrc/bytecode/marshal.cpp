// The marshal format, versions 0 to 4, read item by item. Nothing is allocated for a size before the bytes that fill it have been seen,
// nesting is limited, and a value that holds itself is refused. Knows nothing of instructions.
#include "bytecode/marshal.h"

#include <cstdarg>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bytecode/neutral_code.h"

namespace pellucid::bytecode {
namespace {

constexpr int kMaxDepth = 1000;
// How many values a constant may have when what it shares is counted each time: a few bytes can describe a tuple that takes forever to
// hash or to print.
constexpr uint64_t kMaxWeight = 20'000'000;
constexpr uint8_t kFlagRef = 0x80;

struct Value {
  py::Ref object;
  uint64_t weight = 1;
};

class Reader {
 public:
  Reader(const uint8_t* bytes, size_t size, size_t at, int version) : bytes_(bytes), size_(size), at_(at), version_(version) {}

  PyObject* read_whole() {
    Value value;
    return read(0, &value) ? value.object.release() : nullptr;
  }

  size_t at() const { return at_; }

 private:
  bool fail(const char* format, ...) {
    if (PyErr_Occurred()) return false;
    std::va_list arguments;
    va_start(arguments, format);
    const py::Ref text = py::Ref::steal(PyUnicode_FromFormatV(format, arguments));
    va_end(arguments);
    if (text) PyErr_Format(PyExc_ValueError, "damaged marshal data at byte %zu: %U", at_, text.get());
    return false;
  }

  bool byte(uint8_t* value) {
    if (at_ >= size_) return fail("it ends too early");
    *value = bytes_[at_++];
    return true;
  }

  bool take(size_t count, const char** start) {
    if (count > size_ - at_) return fail("%zu bytes are announced, %zu are left", count, size_ - at_);
    *start = reinterpret_cast<const char*>(bytes_ + at_);
    at_ += count;
    return true;
  }

  bool int32(int32_t* value) {
    const char* start = nullptr;
    if (!take(4, &start)) return false;
    const auto* four = reinterpret_cast<const uint8_t*>(start);
    *value = static_cast<int32_t>(uint32_t{four[0]} | uint32_t{four[1]} << 8 | uint32_t{four[2]} << 16 | uint32_t{four[3]} << 24);
    return true;
  }

  // A number of items, each of which takes at least one byte.
  bool count(size_t* value) {
    int32_t number = 0;
    if (!int32(&number)) return false;
    if (number < 0 || static_cast<size_t>(number) > size_ - at_)
      return fail("%d items are announced, %zu bytes are left", number, size_ - at_);
    *value = static_cast<size_t>(number);
    return true;
  }

  bool short_count(size_t* value) {
    uint8_t number = 0;
    if (!byte(&number)) return false;
    *value = number;
    return true;
  }

  bool done(PyObject* made, Value* out) {
    out->object = py::Ref::steal(made);
    return made != nullptr || fail("it cannot be read");
  }

  bool share(PyObject* object, Value* out) {
    out->object = py::Ref::share(object);
    return true;
  }

  bool number_of_digits(Value* out) {
    int32_t signed_count = 0;
    if (!int32(&signed_count)) return false;
    const bool negative = signed_count < 0;
    const uint64_t digits = negative ? static_cast<uint64_t>(-static_cast<int64_t>(signed_count)) : static_cast<uint64_t>(signed_count);
    const char* start = nullptr;
    if (digits > (size_ - at_) / 2)
      return fail("a number of %llu digits, %zu bytes are left", static_cast<unsigned long long>(digits), size_ - at_);
    if (!take(2 * static_cast<size_t>(digits), &start)) return false;
    // As hexadecimal text: digits of 15 bits, the least first. Reading a power of two as base is linear in the length.
    std::string bits;
    bits.reserve(static_cast<size_t>(digits) * 15);
    for (size_t d = static_cast<size_t>(digits); d-- > 0;) {
      const unsigned digit = static_cast<uint8_t>(start[2 * d]) | static_cast<unsigned>(static_cast<uint8_t>(start[2 * d + 1])) << 8;
      if (digit > 0x7fff) return fail("a digit above 15 bits");
      for (int bit = 14; bit >= 0; --bit) bits.push_back((digit >> bit & 1) != 0 ? '1' : '0');
    }
    std::string text = negative ? "-" : "";
    const size_t first = bits.find('1');
    text += first == std::string::npos ? "0" : bits.substr(first);
    return done(PyLong_FromString(text.c_str(), nullptr, 2), out);
  }

  bool binary_double(double* value) {
    const char* start = nullptr;
    if (!take(8, &start)) return false;
    uint64_t bits = 0;
    for (int i = 7; i >= 0; --i) bits = bits << 8 | static_cast<uint8_t>(start[i]);
    std::memcpy(value, &bits, sizeof bits);
    return true;
  }

  bool text_double(double* value) {
    size_t size = 0;
    const char* start = nullptr;
    if (!short_count(&size) || !take(size, &start)) return false;
    const std::string text(start, size);
    *value = PyOS_string_to_double(text.c_str(), nullptr, nullptr);
    return !(*value == -1.0 && PyErr_Occurred()) || fail("a number");
  }

  bool ascii(size_t size, bool intern, Value* out) {
    const char* start = nullptr;
    if (!take(size, &start)) return false;
    PyObject* made = PyUnicode_DecodeLatin1(start, static_cast<Py_ssize_t>(size), nullptr);
    if (made != nullptr && intern) PyUnicode_InternInPlace(&made);
    return done(made, out);
  }

  bool utf8(bool intern, Value* out) {
    size_t size = 0;
    const char* start = nullptr;
    if (!count(&size) || !take(size, &start)) return false;
    PyObject* made = PyUnicode_DecodeUTF8(start, static_cast<Py_ssize_t>(size), "surrogatepass");
    if (made == nullptr && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
      PyErr_Clear();
      return fail("text that is no UTF-8");
    }
    if (made != nullptr && intern) PyUnicode_InternInPlace(&made);
    return done(made, out);
  }

  bool bytes_object(Value* out) {
    size_t size = 0;
    const char* start = nullptr;
    if (!count(&size) || !take(size, &start)) return false;
    return done(PyBytes_FromStringAndSize(start, static_cast<Py_ssize_t>(size)), out);
  }

  bool items(size_t size, int depth, std::vector<py::Ref>* out, uint64_t* weight) {
    for (size_t i = 0; i < size; ++i) {
      Value item;
      if (!read(depth, &item)) return false;
      out->push_back(std::move(item.object));
      *weight += item.weight;
      if (*weight > kMaxWeight) return fail("a value with too many parts");
    }
    return true;
  }

  static PyObject* tuple_of(const std::vector<py::Ref>& parts) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(parts.size()));
    for (size_t i = 0; tuple != nullptr && i < parts.size(); ++i) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), parts[i].new_ref());
    return tuple;
  }

  bool tuple(size_t size, int depth, Value* out) {
    std::vector<py::Ref> parts;
    return items(size, depth, &parts, &out->weight) && done(tuple_of(parts), out);
  }

  // Lists, sets and dictionaries do not stand in code objects, but for frozensets; whoever reads other marshal data gets them too.
  bool other_collection(char kind, int depth, Value* out) {
    size_t size = 0;
    std::vector<py::Ref> parts;
    if (!count(&size) || !items(size, depth, &parts, &out->weight)) return false;
    const py::Ref all = py::Ref::steal(tuple_of(parts));
    if (!all) return false;
    PyObject* made = kind == '[' ? PySequence_List(all.get()) : kind == '<' ? PySet_New(all.get()) : PyFrozenSet_New(all.get());
    if (made == nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      return fail("a set of something that has no hash");
    }
    return done(made, out);
  }

  bool dict(int depth, Value* out) {
    const py::Ref made = py::Ref::steal(PyDict_New());
    if (!made) return false;
    for (;;) {
      if (at_ < size_ && bytes_[at_] == '0') {
        ++at_;
        return share(made.get(), out);
      }
      Value key, value;
      if (!read(depth, &key) || !read(depth, &value)) return false;
      out->weight += key.weight + value.weight;
      if (out->weight > kMaxWeight) return fail("a value with too many parts");
      if (PyDict_SetItem(made.get(), key.object.get(), value.object.get()) == 0) continue;
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
      PyErr_Clear();
      return fail("a key that has no hash");
    }
  }

  bool field(int depth, py::Ref* out) {
    Value value;
    if (!read(depth, &value)) return false;
    *out = std::move(value.object);
    return true;
  }

  bool code(int depth, Value* out) {
    CodeFields fields;
    fields.version = version_;
    int32_t nlocals = 0;
    if (!int32(&fields.argcount) || !int32(&fields.posonly) || !int32(&fields.kwonly)) return false;
    if (version_ < 311 && !int32(&nlocals)) return false;
    if (!int32(&fields.stacksize) || !int32(&fields.flags)) return false;
    if (!field(depth, &fields.code) || !field(depth, &fields.consts) || !field(depth, &fields.names)) return false;
    if (version_ >= 311) {
      if (!field(depth, &fields.localsplus_names) || !field(depth, &fields.localsplus_kinds)) return false;
    } else {
      if (!field(depth, &fields.varnames) || !field(depth, &fields.freevars) || !field(depth, &fields.cellvars)) return false;
    }
    if (!field(depth, &fields.filename) || !field(depth, &fields.name)) return false;
    if (version_ >= 311 && !field(depth, &fields.qualname)) return false;
    if (!int32(&fields.firstlineno) || !field(depth, &fields.linetable)) return false;
    if (version_ >= 311 && !field(depth, &fields.exceptiontable)) return false;
    PyObject* made = new_neutral(std::move(fields));
    if (made == nullptr && PyErr_ExceptionMatches(PyExc_ValueError)) return false;  // new_neutral said what is wrong
    return done(made, out);
  }

  bool read(int depth, Value* out) {
    uint8_t first = 0;
    if (!byte(&first)) return false;
    if (depth >= kMaxDepth) return fail("more than %d values in each other", kMaxDepth);
    const size_t slot = references_.size();
    const bool keep = (first & kFlagRef) != 0;
    if (keep) references_.emplace_back();
    if (!read_kind(static_cast<char>(first & ~kFlagRef), depth + 1, out)) return false;
    if (keep) references_[slot] = *out;
    return true;
  }

  bool reference(Value* out) {
    int32_t index = 0;
    if (!int32(&index)) return false;
    if (index < 0 || static_cast<size_t>(index) >= references_.size()) return fail("a reference to nothing");
    *out = references_[static_cast<size_t>(index)];
    return out->object ? true : fail("a value that holds itself");
  }

  bool read_kind(char kind, int depth, Value* out) {
    size_t size = 0;
    double real = 0, imaginary = 0;
    switch (kind) {
      case 'N':
        return share(Py_None, out);
      case 'F':
        return share(Py_False, out);
      case 'T':
        return share(Py_True, out);
      case '.':
        return share(Py_Ellipsis, out);
      case 'S':
        return share(PyExc_StopIteration, out);
      case 'i': {
        int32_t number = 0;
        return int32(&number) && done(PyLong_FromLong(number), out);
      }
      case 'l':
        return number_of_digits(out);
      case 'g':
        return binary_double(&real) && done(PyFloat_FromDouble(real), out);
      case 'f':
        return text_double(&real) && done(PyFloat_FromDouble(real), out);
      case 'y':
        return binary_double(&real) && binary_double(&imaginary) && done(PyComplex_FromDoubles(real, imaginary), out);
      case 'x':
        return text_double(&real) && text_double(&imaginary) && done(PyComplex_FromDoubles(real, imaginary), out);
      case 's':
        return bytes_object(out);
      case 'u':
        return utf8(false, out);
      case 't':
        return utf8(true, out);
      case 'a':
      case 'A':
        return count(&size) && ascii(size, kind == 'A', out);
      case 'z':
      case 'Z':
        return short_count(&size) && ascii(size, kind == 'Z', out);
      case ')':
        return short_count(&size) && tuple(size, depth, out);
      case '(':
        return count(&size) && tuple(size, depth, out);
      case '[':
      case '<':
      case '>':
        return other_collection(kind, depth, out);
      case '{':
        return dict(depth, out);
      case 'c':
        return code(depth, out);
      case 'r':
        return reference(out);
      default:
        return fail("no value begins with %d", static_cast<int>(static_cast<unsigned char>(kind)));
    }
  }

  const uint8_t* bytes_;
  size_t size_, at_;
  int version_;
  std::vector<Value> references_;  // without an object while the value is being read
};

struct Magic {
  int number, version;
};
// Of the final releases. What alphas and betas wrote has other opcodes.
constexpr Magic kMagics[] = {{3413, 308}, {3425, 309}, {3439, 310}, {3495, 311}, {3531, 312}, {3571, 313}};

constexpr size_t kHeader = 16;  // magic, flags, and time and size of the source or its hash

}  // namespace

PyObject* read_marshal(const uint8_t* bytes, size_t size, int version) {
  if (version < 308 || version > 313) {
    PyErr_Format(PyExc_ValueError, "no code objects of version %d: there are 308 to 313", version);
    return nullptr;
  }
  return Reader(bytes, size, 0, version).read_whole();
}

PyObject* read_pyc(const uint8_t* bytes, size_t size) {
  if (size < 4 || bytes[2] != '\r' || bytes[3] != '\n') {
    PyErr_SetString(PyExc_ValueError, "no .pyc file: it does not begin with a magic number");
    return nullptr;
  }
  const int number = bytes[0] | bytes[1] << 8;
  int version = 0;
  for (const Magic& magic : kMagics) {
    if (magic.number == number) version = magic.version;
  }
  if (version == 0) {
    PyErr_Format(PyExc_ValueError, "a .pyc file with the magic number %d: no release of Python 3.8 to 3.13 wrote it", number);
    return nullptr;
  }
  if (size < kHeader) {
    PyErr_SetString(PyExc_ValueError, "a .pyc file that is cut off in its header");
    return nullptr;
  }
  py::Ref value = py::Ref::steal(Reader(bytes, size, kHeader, version).read_whole());
  if (value && neutral_fields(value.get()) == nullptr) {
    PyErr_Format(PyExc_ValueError, "a .pyc file that holds a %.100s instead of code", Py_TYPE(value.get())->tp_name);
    return nullptr;
  }
  return value.release();
}

}  // namespace pellucid::bytecode
