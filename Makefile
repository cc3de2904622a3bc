# `make demo` and `make test` work on a machine that has only Python 3.11+, git and make.
PYTHON ?= python3
VENV ?= .venv
TRUERANK_DATA ?= ../shared/data
JOBS ?= 2
BIN := $(VENV)/bin
# numba does not notice an edit in a kernel that another file's kernel calls, so the cache goes by the state of src/.
SOURCE_HASH := $(shell find src -name '*.py' | LC_ALL=C sort | xargs cat | cksum | cut -d' ' -f1)
# An edit outside of files with kernels keeps the cache of `make quick`.
KERNEL_HASH := $(shell grep -rl '^@kernel' src --include='*.py' | LC_ALL=C sort | xargs cat | cksum | cut -d' ' -f1)
export NUMBA_CACHE_DIR ?= $(CURDIR)/.numba-cache/$(SOURCE_HASH)
WINDOWS := $(addprefix tests/, core/test_windows_rules.py core/test_locks.py core/test_json_lines.py \
	faults/test_outputs.py faults/test_command_line.py models/test_model_file.py text/test_index_and_retrieval.py \
	significance/test_history.py attacks/test_files.py attacks/test_two_writers.py attacks/test_resumption.py \
	cli/test_checkpoint.py cli/test_convert_describe.py io/test_documents.py io/test_encodings.py io/test_streams.py \
	judging/test_plan_files.py reproductions/test_protocol.py)
export TRUERANK_DATA := $(abspath $(TRUERANK_DATA))
# Tests run in as many processes as there are cores: threads of libraries would wait for each other.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test windows quick lint peers bench lines clean docs

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[train]'
	touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

$(VENV)/.peers: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[peers,docs]'
	touch $@

demo: $(VENV)/.demo
	$(BIN)/truerank sample --demo demo-output

lint: $(VENV)/.test
	$(BIN)/ruff format --check src tests benchmarks scripts examples validation reproductions
	$(BIN)/ruff check src tests benchmarks scripts examples validation reproductions
	$(BIN)/mypy

# Lint, types and the fast tests of the rooms that differ from main, within 90 seconds.
quick: export NUMBA_CACHE_DIR := $(CURDIR)/.numba-cache/$(KERNEL_HASH)
quick: $(VENV)/.test
	@$(BIN)/python scripts/quick.py

# The type check runs in one process, beside the shorter tests.
test: $(VENV)/.test
	$(MAKE) -j 2 lint windows
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/kernels_as_python
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

# Files, locks and commands by the rules of Windows, on a double of it.
windows: $(VENV)/.test
	$(BIN)/python -m pytest -q -n $(JOBS) --platform windows -m "not slow" $(WINDOWS)

peers: $(VENV)/.peers

bench: peers
	$(BIN)/python -m benchmarks $(BENCH)

lines:
	@for room in src/truerank/*/; do printf '%6d %s\n' $$(find $$room -name '*.py' | xargs cat | wc -l) $$room; done | sort -rn
	@find src -name '*.py' | xargs cat | wc -l

$(VENV)/.docs: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

docs: $(VENV)/.docs
	$(BIN)/python scripts/make_command_pages.py docs/api/commands
	$(BIN)/mkdocs build --strict --quiet --site-dir build/site

clean:
	rm -rf .numba-cache .mypy_cache .pytest_cache .ruff_cache demo-output build
