// A value that is made when it is first needed, by code that may run Python and so let other threads in. C++'s own initialisation of
// static variables makes these wait with the GIL held, for a thread that waits for the GIL: it must not be used for such values.
#pragma once
#include <utility>

#include "py/python.h"

namespace pellucid::py {

// To be a static variable. Where two threads make the value at once, the first one's is kept. Lives as long as the process.
template <class T>
class Once {
 public:
  template <class Make>
  const T& get(Make&& make) {
    if (value_ == nullptr) {
      auto* made = new T(std::forward<Make>(make)());
      if (value_ == nullptr) {
        value_ = made;
      } else {
        delete made;
      }
    }
    return *value_;
  }

 private:
  const T* value_ = nullptr;
};

}  // namespace pellucid::py
