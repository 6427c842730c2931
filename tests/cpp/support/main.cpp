// Starts the interpreter that the build is for (its site-packages too), then runs the tests with the GIL held. Fails where no test
// ran, so that a wrong filter or an empty build is not taken for success.
#include <Python.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace {

bool start_python() {
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, PELLUCID_TEST_PYTHON);
  if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) {
    std::fprintf(stderr, "Python did not start: %s\n", status.err_msg);
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!start_python()) return 1;
  int status = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (!GTEST_FLAG_GET(list_tests) && tests.test_to_run_count() == 0) {
    std::fprintf(stderr, "no test ran\n");
    status = 1;
  }
  // Destructors of what the tests left alive run here, where a reference counted wrongly shows.
  if (Py_FinalizeEx() != 0) status = 1;
  return status;
}
