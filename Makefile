# abstract-qa: set up and run. `make chat` is all that is needed for a first look.
#
#   make chat [PORT=7860]   the chat window over data/, the local LLM prepared behind it
#   make ask Q="…"          one answer in the terminal
#   make ingest             bring the index into step with data/
#   make local              install the local LLM now, in the foreground
#   make test, make lint    what .ci/run runs
#   make clean              remove .venv and caches; the index and the model stay
#
# Every target may be interrupted and run again; what is done is not done twice.

PYTHON ?= python3
PORT ?= 7860
Q ?=
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.installed-base
DEV := $(VENV)/.installed-dev

# pip reads it too when the window installs the local LLM.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Passed through the environment, so that no character of a question reaches the shell.
export Q

.DELETE_ON_ERROR:
.PHONY: chat ask ingest local test lint clean

chat: $(BASE)
	@$(BIN)/rag ingest data
	@exec $(BIN)/rag chat --port $(PORT) --prepare-local

ask: $(BASE)
	@$(BIN)/rag ingest data
	@$(BIN)/rag ask -- "$$Q"
	@$(BIN)/python -c 'import sys; from rag.llms import local_available; sys.exit(not local_available())' \
		|| echo 'The local LLM is not installed: `make local` installs it (10 minutes, 3 GB).' >&2

ingest: $(BASE)
	@$(BIN)/rag ingest data

local: $(BASE)
	@$(BIN)/rag install-local

test: $(DEV)
	@$(BIN)/rag install-local || echo 'The tests of the local LLM will skip.' >&2
	@$(BIN)/python -m pytest

lint: $(DEV)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy rag ui

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis test-artifacts
	find rag ui tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A .venv whose creation was interrupted has no working pip and is made anew.
$(BASE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Python 3.11 or newer is needed: name one with PYTHON=…' >&2; exit 1; }
	@echo 'Setting up .venv: about 3 minutes, 2 GB of disk.'
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --editable .
	@touch $@

$(DEV): $(BASE)
	@$(BIN)/python -m pip install --editable '.[dev]'
	@touch $@
