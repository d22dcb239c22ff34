# demo, test, test-all and lint make .venv first; only Python >= 3.10 and make are assumed.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.hexqdq-eval
TEST_STAMP := .venv/.hexqdq-test

.PHONY: demo test test-all lint clean

demo: $(STAMP)
	$(BIN)/hexqdq demo

test: lint
	$(BIN)/python -m pytest -n auto

test-all: lint
	$(BIN)/python -m pytest -n auto --all

lint: $(TEST_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "hexqdq needs Python 3.10 or newer: make PYTHON=python3.12 ..."; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[eval]'
	@touch $@

$(TEST_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

clean:
	rm -rf .venv build dist
