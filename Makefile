# The commands of the project. `make demo` and `make test` set up what they need; the rest expects it.
PYTHON ?= python3.11
JOBS ?= 2
VENV := .venv
PY := $(VENV)/bin/python
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: build
build:  ## incremental developer build: extension modules go to src/pellucid
	@test -f build/dev/build.ninja || cmake --preset dev -DPython_EXECUTABLE=$(CURDIR)/$(PY) -DPELLUCID_CORE=ON
	cmake --build build/dev -j $(JOBS)
