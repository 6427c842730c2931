# PELLUCID_SANITIZE: a comma-separated list for -fsanitize (address, undefined, thread), applied to everything built here.
# An extension built so needs the sanitizer's runtime preloaded into the interpreter; the C++ test programs link it themselves.
set(PELLUCID_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")

if(PELLUCID_SANITIZE)
  # -g1: line numbers are all that a report needs, and instrumented code with all of -g is slow to compile.
  add_compile_options(-fsanitize=${PELLUCID_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${PELLUCID_SANITIZE})
  if(PELLUCID_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
    # CPython calls slots through function pointers of other types; vptr needs RTTI of torch's hidden classes.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()
