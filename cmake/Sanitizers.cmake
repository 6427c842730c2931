# PELLUCID_SANITIZE: a comma-separated list for -fsanitize (address, undefined, thread).
# An extension built so needs the sanitizer's runtime preloaded into the interpreter; the C++ test programs link it themselves.
set(PELLUCID_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")
# Half the time of such a build goes into the files that see torch's headers. Left out, they compile as in the developer build.
option(PELLUCID_SANITIZE_BRIDGE "Instrument torch_bridge too" ON)

if(PELLUCID_SANITIZE)
  add_link_options(-fsanitize=${PELLUCID_SANITIZE})
endif()

# pellucid_sanitize(target): instruments what is compiled for it.
function(pellucid_sanitize target)
  if(NOT PELLUCID_SANITIZE OR (target STREQUAL layer_torch_bridge AND NOT PELLUCID_SANITIZE_BRIDGE))
    return()
  endif()
  # -g1: line numbers are all that a report needs, and instrumented code with all of -g is slow to compile.
  target_compile_options(${target} PRIVATE -fsanitize=${PELLUCID_SANITIZE} -fno-omit-frame-pointer -g1)
  if(PELLUCID_SANITIZE MATCHES "undefined")
    # CPython calls slots through function pointers of other types; vptr needs RTTI of torch's hidden classes.
    target_compile_options(${target} PRIVATE -fno-sanitize-recover=all -fno-sanitize=vptr)
  endif()
endfunction()
