# Needs Python 3.11 or newer, make and the network; everything else goes into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Which backend `make demo` shows: RedisZset or KafkaBuckets. Empty: the demo's own choice.
BACKEND ?=
# How many histories `make simulate` runs, from which seed on.
RUNS ?= 10000
SEED ?= 0

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install demo test test-unit simulate mutants bench-quick bench-slo report lint format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Make .venv with everything in it (the other targets do it by themselves)

demo: $(STAMP) ## Deliver records at their own time through a real Kafka and a real Redis, on this machine
	@$(BIN)/python -m delaytopic_cli.demo $(if $(BACKEND),--backend $(BACKEND))

test: lint ## Everything: lint, types, import rules, all tests (starts a real Kafka and a real Redis)
	@$(BIN)/python -m pytest

test-unit: $(STAMP) ## The tests that need no server, in under a minute
	@$(BIN)/python -m pytest -m "not integration and not long"

simulate: $(STAMP) ## Histories full of crashes against the production relay: RUNS=10000 SEED=0
	@$(BIN)/python -m tests.simulation --runs $(RUNS) --seed $(SEED)

mutants: $(STAMP) ## Whether the simulation notices a relay that is broken on purpose; writes the table of them
	@$(BIN)/python -m tests.simulation --mutants

bench-quick: $(STAMP) ## Measure delivery on this machine, in a few minutes
	@$(BIN)/python -m bench.quick

bench-slo: $(STAMP) ## Measure the SLO audit on this machine
	@$(BIN)/python -m bench.slo

report: $(STAMP) ## Run the demo, audit its topics with Spark, and show the report
	@$(BIN)/python -m delaytopic_cli.report_demo

lint: $(STAMP) ## Style, formatting, types and import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(STAMP) ## Format the code and apply the safe fixes
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean: ## Remove .venv and every cache
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("delaytopic needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ": name another with make PYTHON=python3.12")'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV) (a minute or two, only when pyproject.toml changed)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
