// What reading and writing attributes share. Knows nothing of other rules.
#pragma once
#include <string>

#include "variables/tracer.h"

namespace pellucid::variables {

inline bool name_is(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

inline std::string text_of(PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  return text ? text : "?";
}

// What the traced program wrote to an object under a name; null if nothing.
inline ObjectVariable::Attribute* overlay(ObjectVariable* object, PyObject* name) {
  for (auto& attribute : object->attributes)
    if (attribute.name == name || PyUnicode_Compare(attribute.name, name) == 0) return &attribute;
  return nullptr;
}

PyObject* instance_dict(PyObject* object);  // borrowed; null if there is none
Failed no_attribute(Tracer& t, Variable* object, PyObject* name);
// Where what the class of an object holds is read: through the object, or of a known class.
const source::Source* class_source(Tracer& t, const source::Source* object, PyTypeObject* type, PyObject* name);

}  // namespace pellucid::variables
