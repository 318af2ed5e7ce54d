# The entry points of the repository. Everything is put into .venv and pyshim/_lib; nothing outside the tree is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILT_FROM := $(wildcard shim/*.h shim/*.map shim/core/* shim/sys/* shim/vendor/*/* tools/simgpu/* tools/demo/* policies/*.yaml pyshim/policy/*.py)

.PHONY: setup demo test lint bench clean
.DELETE_ON_ERROR:

setup: pyshim/_lib/.built

$(VENV)/.made:
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); \
	    echo 'make: no virtual environment; on Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@touch $@

$(VENV)/.installed: pyproject.toml tools/hatch_build.py pyshim/__init__.py | $(VENV)/.made
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint]'
	@touch $@

pyshim/_lib/.built: shim/build.py $(BUILT_FROM) | $(VENV)/.installed
	@$(BIN)/python shim/build.py
	@touch $@

demo: setup
	$(BIN)/overlap demo

test: setup
	$(BIN)/pytest $(ARGS)

lint: setup
	$(BIN)/python tools/lint.py

bench: setup
	$(BIN)/python tools/bench/run.py $(ARGS)

clean:
	rm -rf $(VENV) pyshim/_lib build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
