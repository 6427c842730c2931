# FindTorchWheel: where the interpreter's own torch keeps its headers and libraries, as imported targets.
# It asks Python_EXECUTABLE without importing torch (seconds) and without TorchConfig.cmake, which probes CUDA, MKL and protobuf
# and sets flags for the whole build.
#
#   TorchWheel_FOUND, TorchWheel_VERSION, TorchWheel_LIBRARY_DIR
#   TorchWheel::headers   include directories only
#   TorchWheel::torch     headers, libtorch, libtorch_cpu, libc10, libtorch_python

if(NOT Python_EXECUTABLE)
  message(FATAL_ERROR "FindTorchWheel needs find_package(Python) first")
endif()

execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/torch_wheel.py"
  OUTPUT_VARIABLE _torch_wheel_out
  ERROR_VARIABLE _torch_wheel_err
  RESULT_VARIABLE _torch_wheel_rc
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(_torch_wheel_rc EQUAL 0)
  list(GET _torch_wheel_out 0 TorchWheel_VERSION)
  list(GET _torch_wheel_out 1 TorchWheel_ROOT)
  set(TorchWheel_LIBRARY_DIR "${TorchWheel_ROOT}/lib")
else()
  set(TorchWheel_NOT_FOUND_REASON "${_torch_wheel_err}")
  unset(TorchWheel_VERSION)
  unset(TorchWheel_LIBRARY_DIR)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  TorchWheel
  REQUIRED_VARS TorchWheel_LIBRARY_DIR
  VERSION_VAR TorchWheel_VERSION)

if(TorchWheel_FOUND AND NOT TARGET TorchWheel::torch)
  add_library(TorchWheel::headers INTERFACE IMPORTED)
  # SYSTEM: warnings in torch's headers are not ours to mend. pybind11 is the one torch bundles, never another: the internals differ.
  target_include_directories(TorchWheel::headers SYSTEM INTERFACE "${TorchWheel_ROOT}/include"
                                                                  "${TorchWheel_ROOT}/include/torch/csrc/api/include")
  target_compile_definitions(TorchWheel::headers INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  add_library(TorchWheel::torch INTERFACE IMPORTED)
  target_link_libraries(
    TorchWheel::torch
    INTERFACE TorchWheel::headers "${TorchWheel_LIBRARY_DIR}/libtorch_python.so" "${TorchWheel_LIBRARY_DIR}/libtorch.so"
              "${TorchWheel_LIBRARY_DIR}/libtorch_cpu.so" "${TorchWheel_LIBRARY_DIR}/libc10.so")
endif()
