# The entry points of the repository. Everything is put into .venv, pyshim/_lib and .tests; nothing outside the tree is
# touched, but for `make test-all SYSTEM=1`, which installs packages of the system.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-cache-dir
# Where the compiler from the package index keeps what it makes of the C library; the home folder may be read-only.
export ZIG_GLOBAL_CACHE_DIR ?= $(CURDIR)/$(VENV)/zig
# Files, no folders: Python adds its cache to a folder, which would then be newer than what is built.
BUILT_FROM := $(sort $(wildcard shim/*.h shim/*.map $(addsuffix /*.*,shim/core shim/preload shim/sys shim/gpu shim/cuda shim/hip tools/demo tools/simgpu tools/simgpu/runtime) tools/release/launcher.c $(addprefix tools/simgpu/hip/,*.c *.h *.def names.py) policies/*.yaml pyshim/policy/*.py pyshim/start/chosen.py))

# Asked where something is built, and nowhere else: anyone may use what the owner of the clone has built.
MAY_BUILD := $(PYTHON) tools/tree.py may-build $(VENV)
# Root in a clone of another user, as by sudo: what is built is built as the owner, and stays the owner's.
ifeq ($(shell [ "$$(id -u)" = 0 ] && [ "$$(stat -c %u .)" != 0 ] && echo foreign),foreign)
AS_OWNER := PYTHON='$(PYTHON)' $(PYTHON) tools/tree.py as-owner $(MAKE) --silent
export PYTHONDONTWRITEBYTECODE := 1
endif

# A virtual environment holds the path that it was made for, and the path of its Python.
ifneq ($(shell test -x $(BIN)/python && cat $(VENV)/.made 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/.made
endif

.PHONY: help setup demo test test-all lint fuzz sanitize coverage bench wheels docs site clean loadable
.DELETE_ON_ERROR:

# The first target, so that a bare `make` installs nothing.
help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## /  make \1\t/p' Makefile | expand -t 18

# With what tests need, too; the demo needs none of that.
setup: $(BIN)/overlap-run $(VENV)/.group-test ## build all, and install what tests need into .venv (200 MB)

ifdef AS_OWNER
.PHONY: pyshim/_lib/.built $(BIN)/overlap-run
pyshim/_lib/.built $(BIN)/overlap-run:
	@$(AS_OWNER) $@

$(VENV)/.group-%: $(BIN)/overlap-run
	@$(AS_OWNER) $@
else

# .making: what an interrupted run leaves is make's, too, and the next run may remove it.
$(VENV)/.made:
	@$(MAY_BUILD)
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo 'make: $(PYTHON) has no module ensurepip or venv; on Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@echo 'make: making the virtual environment $(VENV)' >&2
	@rm -rf $(VENV) && mkdir $(VENV) && touch $(VENV)/.making
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	    echo 'make: there is no virtual environment: the lines above say why' >&2; exit 1; }
	@echo '$(CURDIR)' >$@

# Groups of dependencies need pip 25.1. The build is the next rule's, and where there is
# no compiler, that rule finds one here.
$(VENV)/.installed: pyproject.toml tools/release/hatch_build.py tools/release/overlap-run.py pyshim/__init__.py $(VENV)/.made
	@$(MAY_BUILD)
	@echo 'make: installing the package and what it needs into $(VENV): pip may take a minute, and says nothing' >&2
	@$(PIP) 'pip>=25.1'
	@OVERLAP_BUILD=off $(PIP) --editable . $$($(BIN)/python shim/build.py --requires)
	@touch $@

# A source that was renamed or removed also counts: the build removes what was made of it.
ifneq ($(shell cat pyshim/_lib/.built 2>/dev/null),$(BUILT_FROM))
.PHONY: pyshim/_lib/.built
endif

pyshim/_lib/.built: shim/build.py $(BUILT_FROM) | $(VENV)/.installed
	@$(MAY_BUILD)
	@$(BIN)/python shim/build.py
	@echo '$(BUILT_FROM)' >$@

# An installed wheel has these two from tools/release/hatch_build.py.
$(BIN)/overlap-run: pyshim/_lib/.built $(VENV)/.installed
	@$(MAY_BUILD)
	@cp -f pyshim/_lib/launcher $(BIN)/overlap
	@cp -f pyshim/_lib/launcher $@

# The package is there: this adds a group of pyproject.toml. Of its modules few are imported, and compiled then.
$(VENV)/.group-%: $(VENV)/.installed
	@$(MAY_BUILD)
	@echo 'make: installing the group $* into $(VENV): pip may take some minutes, and says nothing' >&2
	@$(PIP) --no-compile --group '$*'
	@touch $@
endif

loadable:
	@case '$(CURDIR)' in *[:\ ]*) echo 'make: LD_PRELOAD cannot hold a path with a space or a colon: move this folder' >&2; \
	    exit 1; esac

demo: loadable $(BIN)/overlap-run ## see what it does: a program without and with overlap-run
	$(BIN)/overlap demo

# On every core, each of which takes a file at a time; with -s or a debugger in ARGS in one process (tests/conftest.py).
# Needs no root and no network. What it leaves to test-all: tests/needs.py.
PYTEST := $(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
# ARGS may choose tests of one part only.
NONE := $(if $(filter test-all,$(MAKECMDGOALS)),|| [ $$? = 5 ])
test: loadable setup ## the tests, on every core; ARGS: for pytest
	$(PYTEST) -m 'not slow' $(ARGS) $(NONE)

# Then all others: with other C libraries, processors, launchers, containers and clients. Says first what it downloads, how
# much, and where. SYSTEM=1, as root: installs packages of the system, without which tests are skipped.
test-all: test ## these, and those with other C libraries and containers
	@$(BIN)/python tests/needs.py
	@$(MAKE) --no-print-directory $(addprefix $(VENV)/.group-,clients lint release docs)
	$(PYTEST) -m slow $(ARGS) $(NONE)

lint: setup $(VENV)/.group-lint $(VENV)/.group-release ## formatters, type checkers, checks of the structure
	$(BIN)/python -m tools.checks.lint

SANITIZER := $(BIN)/python -m pytest -p tools.checks.sanitizer --sanitizer
STRESS := tests/fuzz/test_stress.py tests/interpose/hip/test_hip_stress.py \
    tests/interpose/test_bad_input.py::test_sixty_four_threads_while_everything_comes_and_goes

# Races of many threads under sanitizers, the analyzer, valgrind, the tests with AddressSanitizer: long.
sanitize: loadable setup ## races under sanitizers, the analyzer, valgrind: long
	$(SANITIZER) address tests/fuzz/test_stress.py tests/interpose tests/launch
	$(SANITIZER) thread $(STRESS)
	OVERLAP_TEST_MEMCHECK=all $(PYTEST) tests/interpose/test_memcheck.py tests/structure/test_analyzer.py

# Which lines of shim/ the tests run through; less than 90 % is a failure.
coverage: loadable setup ## which lines of shim/ the tests run through
	$(SANITIZER) coverage

# Every reader of files that somebody else may have made, READERS seconds each, and a million calls of a driver with and
# without the library. ARGS: names, --seconds N, --calls N, --seed N, --repeat FILE.
READERS := 60
fuzz: setup ## every reader of foreign files, and random driver calls; ARGS
	$(BIN)/python -m tools.checks.fuzz --readers $(READERS) $(ARGS)

# What the library costs: tools/bench/README.md.
bench: loadable setup ## what the library costs a launch and a start; ARGS
	$(BIN)/python -m tools.bench.run $(ARGS)

# What is released, into dist: tools/release/README.md. ARGS: --check, --test.
wheels: setup $(VENV)/.group-release ## what is released, into dist; ARGS: --check, --test
	$(BIN)/python -m tools.release.wheels $(ARGS)

# The site of docs/, in build/docs. Needs Python 3.11 or newer.
docs: setup $(VENV)/.group-docs ## the site of docs/, in build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The folder of a cluster: docs/how-to/deploy.md. ARGS: --default NAME, policies of the site.
site: pyshim/_lib/.built ## the folder of a cluster: PREFIX=/opt/overlap; ARGS
	@[ '$(PREFIX)' ] || { echo 'make: name the folder: make site PREFIX=/opt/overlap' >&2; exit 2; }
	$(BIN)/python tools/deploy/install '$(PREFIX)' $(ARGS)

clean: ## remove what was built
	@$(PYTHON) tools/tree.py clean $(VENV) build .tests .fuzz dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
