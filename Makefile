# Everything from a fresh checkout; assumes python3 (3.11 or newer), make and pip.
#   make demo      run the GEMM bench, data verified, with kernbench installed as Python: nothing waits for a compiler
#   make compiled  install kernbench with its core compiled, as what follows does first
#   make quick     the tests of what changed: use it while you work
#   make test      the test suite: of each test three cases, of the heavy tests a twelfth, which change with the commit
#   make test-all  every test
#   make times     every test, and the recorded CPU seconds of each (tests/times.csv) written anew; PATHS="…" of some
#   make golden    times and op logs of small runs, against tests/golden
#   make docs      the site of docs/, in build/site
#   make lint      ruff, mypy --strict on the three packages, import rules, plain wording of pages

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PINS := $(CURDIR)/constraints.txt
# What is kept between checkouts: compiled modules, what mypy knows, which tests ran when. Removing it costs time only.
CACHES ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kernbench-make
# The sources of what is compiled, which is compiled again where one is newer: tests would run as Python else.
TYPED := $(subst .,/,$(shell cat kernbench_core/compiled/built.*.txt 2>/dev/null | cut -d' ' -f1))
SOURCES := $(wildcard $(foreach suffix,py pxd pyx,$(addsuffix .$(suffix),$(TYPED))) kernbench_builtin/native/engine/*)
# Of what is installed little is imported: Python compiles that when it is.
INSTALL := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --no-compile --constraint $(PINS)

# The suite starts hundreds of processes: each reads what the first has compiled, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=
export KERNBENCH_BUILD_CACHE ?= $(CACHES)/compiled
export MYPY_CACHE_DIR ?= $(CACHES)/mypy
export KB_LEDGER ?= $(CACHES)/ledger.tsv
export KB_LANDED ?= $(shell cat $(CACHES)/landed 2>/dev/null)

.PHONY: demo compiled quick test test-all times golden docs lint where-compiled landed clean

demo: $(or $(wildcard $(VENV)/.installed),$(VENV)/.installed-python)
	$(BIN)/kernbench run gemm --verify-data

compiled: $(VENV)/.installed
	$(BIN)/kernbench --version

quick: $(VENV)/.installed-test
	$(BIN)/python tools/quick.py

test: $(VENV)/.installed-test
	$(BIN)/python tools/suite.py -j $(JOBS) $(if $(ALSO),--also $(ALSO))

test-all: $(VENV)/.installed-test
	$(BIN)/python tools/suite.py -j $(JOBS) --all

times: $(VENV)/.installed-test
	$(BIN)/python tools/suite.py -j $(JOBS) --times $(PATHS)

golden: $(VENV)/.installed-test
	$(BIN)/python tools/golden.py --check -j $(JOBS)

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/plain.py

# For .ci/run: where compiled modules are kept, and which commit was the last that passed.
where-compiled:
	@echo $(KERNBENCH_BUILD_CACHE)

landed:
	mkdir -p $(CACHES)
	git rev-parse HEAD > $(CACHES)/landed

clean:
	rm -rf $(VENV) build *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "kernbench needs Python 3.11 or newer, not " + sys.version.split()[0] + "; run make PYTHON=/path/to/python3.11.")'
	$(PYTHON) -m venv $(VENV)

# A stamp is newer than what it was made from: an unchanged checkout installs nothing twice. What tests, checks and docs
# need is asked of the kernbench that is installed, so that it is compiled once.
$(VENV)/.installed-python: pyproject.toml constraints.txt | $(VENV)/bin/python
	KERNBENCH_PURE=1 $(INSTALL) --editable .
	touch $@

# What builds is in the environment, as tests need it too: pip would install it anew for each build.
$(VENV)/.builds: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) setuptools cython
	touch $@

$(VENV)/.installed: pyproject.toml constraints.txt setup.py $(SOURCES) | $(VENV)/.builds
	$(INSTALL) --no-build-isolation --editable .
	@cat build/built.txt 2>/dev/null || true
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(INSTALL) "kernbench[test]"
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(INSTALL) "kernbench[dev]"
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(INSTALL) "kernbench[docs]"
	touch $@
