# The commands of the project. Each sets up what it needs first: a virtual environment with the pinned packages, and Debian packages
# for what is missing (tools/setup_env.sh).
PYTHON ?= python3.11
JOBS ?= 2
PRESET ?= dev
VENV ?= .venv
PY := $(VENV)/bin/python
export PATH := $(abspath $(VENV))/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/src
CPP_FILES = $(shell git ls-files --cached --others --exclude-standard 'csrc/*.h' 'csrc/*.cpp' 'csrc/*.c' 'tests/cpp/*.h' 'tests/cpp/*.cpp' ':!csrc/*/generated/*')
EXAMPLES = examples/toy_example.py $(filter-out examples/toy_example.py,$(wildcard examples/*.py))
PRESET_FLAGS = -DPython_EXECUTABLE=$(abspath $(PY)) -DPELLUCID_CORE=ON

.PHONY: help setup build demo test wheel fuzz bench roundtrip sanitize bytecode-all lint format clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup:  ## the virtual environment and system packages
	@tools/setup_env.sh $(PYTHON) $(VENV)

# Both presets put their modules into src/pellucid; going from one to the other takes those of the last away, so that they are linked
# anew. _bytecode of other Python versions stays.
build: setup  ## incremental build into src/pellucid (PRESET=dev or release)
	@mkdir -p build
	@test "$$(cat build/last_preset 2>/dev/null)" = $(PRESET) || rm -f src/pellucid/*.cpython-311-*.so
	@echo $(PRESET) >build/last_preset
	@test -f build/$(PRESET)/build.ninja || cmake --preset $(PRESET) $(PRESET_FLAGS)
	cmake --build build/$(PRESET) -j $(JOBS)

demo:  ## build with optimisation and run the examples
	@$(MAKE) --no-print-directory build PRESET=release
	@set -e; for program in $(EXAMPLES); do echo "== $$program"; $(PY) $$program; done

test: build  ## lints, C++ and Python unit tests, goldens, sanitizers; prints the time of each
	$(PY) tools/run_suites.py --jobs $(JOBS)

bytecode-all: setup  ## _bytecode for every other CPython found, into src/pellucid
	$(PY) tools/build_bytecode.py --jobs $(JOBS)

sanitize: setup  ## everything under AddressSanitizer and UBSan, C++ tests and most Python tests (make test leaves out torch_bridge)
	$(PY) tools/run_suites.py --jobs $(JOBS) --only sanitizers-all

wheel: setup  ## dist/*.whl for this interpreter and torch
	$(PY) -m pip wheel --no-build-isolation --no-deps --wheel-dir dist .

fuzz: build  ## random code objects, guards and programs at length (FUZZ_SECONDS, from FUZZ_SEED on)
	FUZZ_SECONDS=$${FUZZ_SECONDS:-3600} FUZZ_SEED=$${FUZZ_SEED:-1000} $(PY) -m pytest -rP tests/fuzz

bench:  ## side by side with torch._dynamo: table, JSON and plot
	@$(MAKE) --no-print-directory build PRESET=release
	$(PY) -m bench

roundtrip: build  ## the standard libraries decompiled and compiled again (ROUNDTRIP="--sample 3000 --version 3.11")
	$(PY) tools/roundtrip.py -j $(JOBS) $(ROUNDTRIP)

lint: setup  ## layers, formatting, ruff, mypy
	$(PY) tools/lint_layers.py
	@echo clang-format of $(words $(CPP_FILES)) files; clang-format --dry-run -Werror $(CPP_FILES)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format:  ## clang-format and ruff over everything
	@clang-format -i $(CPP_FILES)
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix --select I .

clean:  ## all build products
	rm -rf build dist src/pellucid/*.so src/pellucid/_build_info.py
