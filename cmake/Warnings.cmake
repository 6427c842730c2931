# pellucid_warnings(target): what our own code must compile cleanly with. PELLUCID_WERROR turns warnings into errors (CI).
option(PELLUCID_WERROR "Warnings are errors" OFF)

function(pellucid_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers)
  # CPython's method tables cast function pointers by design.
  target_compile_options(${target} PRIVATE -Wno-cast-function-type)
  if(PELLUCID_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
