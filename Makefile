# make setup | test | test-long | demo | bench | bench-planners | bench-training | lint | clean. Everything lands in .venv and build/.
#
#   PYTHON=python3.12    the interpreter that .venv is made of (3.10 or newer)
#   JOBS=2               compilers, and processes of tests, at once
#   TORCH=torch==2.13.0  which torch to install; PIP_ARGS goes to every pip install, e.g. to name another index
PYTHON ?= python3
JOBS ?= 2
TORCH ?= torch==2.13.0
PIP_ARGS ?=

BIN := .venv/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install $(PIP_ARGS)
BUILD := build/package
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

PACKAGE_SOURCES := $(shell find src bindings cli cmake python -type f ! -name '*.so' ! -name '*.pyc') CMakeLists.txt pyproject.toml

.PHONY: setup test test-long demo bench lint clean
.DELETE_ON_ERROR:

setup: .venv/.package

.venv/.tools: pyproject.toml scripts/requirements.py scripts/system_packages.sh
	bash scripts/system_packages.sh $(PYTHON)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "rockmate needs Python 3.10 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) "scikit-build-core>=0.11" "pybind11>=2.13" "cmake>=3.28" ninja
	$(PIP) "$(TORCH)"
	$(BIN)/python scripts/requirements.py test demo > .venv/requirements.txt
	$(PIP) -r .venv/requirements.txt
	touch $@

# Without build isolation, so that the package is built against the torch that it will run with; -v shows the compiler at work.
.venv/.package: .venv/.tools $(PACKAGE_SOURCES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) -v --no-deps --no-build-isolation .
	touch $@

# The C++ tests are built where the package was, on the same library. The tests of the report pages want a browser.
build-tests: setup
	bash scripts/system_packages.sh $(PYTHON) tests
	$(BIN)/cmake -S . -B $(BUILD) -DROCKMATE_TESTS=ON > /dev/null
	$(BIN)/cmake --build $(BUILD) --target rockmate_tests
.PHONY: build-tests

# One thread each: the processes share the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# Both runners run to their end, and either one's failure fails the whole.
test: build-tests
	@failed=0; \
	$(BUILD)/tests/rockmate_tests || failed=1; \
	$(PYTEST) || failed=1; \
	exit $$failed

test-long: build-tests
	$(PYTEST) -m long

demo: setup
	$(BIN)/python examples/demo.py

bench: .venv/.bench
	$(BIN)/python bench/run.py

# Every planner on every instance, stored in bench/results. With options nothing is stored: make bench-planners BENCH=--quick
bench-planners: .venv/.bench
	$(BIN)/python bench/planners.py $(if $(BENCH),$(BENCH),--write)
.PHONY: bench-planners

# Rockmate and its peers on six models, stored in bench/results/training_peers.{json,md,html}. Finished parts are kept: a run that
# was broken off goes on where it was; make clean forgets them. make bench-training BENCH="--only peers:vit" for one model
bench-training: .venv/.bench
	$(BIN)/python bench/peer_original.py
	$(BIN)/python bench/training.py $(if $(BENCH),$(BENCH),--only peers --name training_peers --resume build/training-peers --write)
.PHONY: bench-training

.venv/.bench: .venv/.package
	$(BIN)/python scripts/requirements.py bench > .venv/requirements.txt
	$(PIP) -r .venv/requirements.txt
	touch $@

.venv/.lint: .venv/.package
	$(BIN)/python scripts/requirements.py lint > .venv/requirements.txt
	$(PIP) -r .venv/requirements.txt
	touch $@

lint: .venv/.lint
	$(BIN)/clang-format --dry-run -Werror $$(git ls-files '*.cc' '*.h')
	$(BIN)/ruff check python tests examples bench
	$(BIN)/ruff format --check python tests examples bench
	$(BIN)/mypy

clean:
	rm -rf .venv build
