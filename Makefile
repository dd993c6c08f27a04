# Needs Python 3.11 or newer, make and the network; everything else goes into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Installed, and the relay's speedups compiled where there is a compiler.
STAMP  := $(VENV)/.ready
# Tests run file by file, those of the simulation one by one, in twice as many processes as there are processors, with
# servers in common. How late records are cannot be measured beside other tests: what has the mark `alone` runs
# afterwards, one by one.
TOGETHER  := --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder
# They are all in these folders; elsewhere thousands of tests would be collected for nothing.
ALONE     := $(addprefix tests/integration/,gateway operator/whole promises)
EVERY_DAY := not backlog and not nightly and not e2e
# Which backend `make demo` shows, and whose histories `make simulate` runs: RedisZset or KafkaBuckets; for histories
# also Scheduler, a dialect that writes tombstones and a history topic, Redelivery and RedeliveryBuckets, one that puts
# off, Recurrence and RecurrenceBuckets, records that recur, Members and MembersBuckets, relays with names in their
# group, and Edits and EditsBuckets, rules that are edited.
# Empty: the demo's own choice, and RedisZset.
BACKEND ?=
# Where `make e2e` runs: kind makes a cluster, existing takes the one of KUBECONFIG.
CLUSTER ?= kind
# How many histories `make simulate` runs, from which seed on.
RUNS ?= 10000
SEED ?= 0

# Tests and benchmarks start programs again and again: what Python compiles is kept, whatever the environment asks for.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install demo speedups test pytest prepare test-unit test-nightly backlog simulate mutants bench bench-quick bench-audit report e2e e2e-smoke cluster cluster-down up down tour images package release generate docs docs-serve lint format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Make .venv with everything in it (the other targets do it by themselves)

demo: $(STAMP) ## Deliver records at their own time through a real Kafka and a real Redis, on this machine
	@$(BIN)/python -m delaytopic_local.demo $(if $(BACKEND),--backend $(BACKEND))

speedups: $(STAMP) ## Compile the relay's speedups, as `install` does, and say why if that fails; DELAYTOPIC_SPEEDUPS=0 switches them off
	@$(BIN)/python relay/speedups/build.py

prepare: $(STAMP) ## Build and fetch what the tests need, once a machine (Kubernetes with Go: some minutes)
	@$(BIN)/python -m tests.harness.prepare

test: lint pytest ## Lint, types, import rules, all tests but `test-nightly`, `backlog` and `e2e` (starts a real Kafka, Redis and API server)

pytest: prepare ## All tests of `test`, without lint
	@$(BIN)/python -m pytest -m "$(EVERY_DAY) and not alone" $(TOGETHER); together=$$?; \
		$(BIN)/python -m pytest -m "$(EVERY_DAY) and alone" $(ALONE) && exit $$together

test-unit: $(STAMP) ## The tests that need no server, in some minutes
	@$(BIN)/python -m pytest -m "not integration and not long and not nightly and not e2e" $(TOGETHER)

test-nightly: $(STAMP) ## What is long and rare: more faults, crash points, brokers of three, thousands of objects, many seeds
	@$(BIN)/python -m tests.harness.prepare --nightly
	@$(BIN)/python -m pytest -m "nightly and not alone" $(TOGETHER); together=$$?; \
		$(BIN)/python -m pytest -m "nightly and alone" $(ALONE) && exit $$together

backlog: $(STAMP) ## A million records that wait for up to a month, with each backend: restart, size, memory; jobs among them
	@$(BIN)/python -m pytest -s -m backlog

simulate: $(STAMP) ## Histories full of crashes against the production relay: RUNS=10000 SEED=0 BACKEND=RedisZset
	@$(BIN)/python -m tests.simulation --runs $(RUNS) --seed $(SEED) $(if $(BACKEND),--backend $(BACKEND))

mutants: $(STAMP) ## Whether the simulation notices a relay that is broken on purpose; writes the table of them
	@$(BIN)/python -m tests.simulation --mutants

bench: $(STAMP) ## Measure all of delivery on this machine, in half an hour; writes docs/performance.md
	@$(BIN)/python -m bench

bench-quick: $(STAMP) ## Of `bench` what takes a few minutes; writes no page
	@$(BIN)/python -m bench.quick

bench-audit: $(STAMP) ## Measure the SLO audit on this machine
	@$(BIN)/python -m bench.audit

report: $(STAMP) ## Run the demo, audit its topics with Spark, and show the report
	@$(BIN)/python -m delaytopic_cli.audited_demo

e2e: $(STAMP) ## The whole system on a real cluster, under load and faults: CLUSTER=kind or existing (see tests/e2e/README.md)
	@E2E_CLUSTER=$(CLUSTER) $(BIN)/python -m pytest -m e2e tests/e2e

e2e-smoke: $(STAMP) ## Of `e2e`, the first day of a cluster and one storm
	@E2E_CLUSTER=$(CLUSTER) $(BIN)/python -m pytest -m "e2e and smoke" tests/e2e

cluster: $(STAMP) ## A real Kubernetes cluster (kind) on this machine; prints its kubeconfig
	@$(BIN)/python -m playground.cluster up

cluster-down: $(STAMP) ## Take it away, with the Docker engine that was started for it
	@$(BIN)/python -m playground.cluster down

up: $(STAMP) ## A cluster to play with: Kafka, Redis, the chart, a team that sends; ends with what to do next
	@$(BIN)/python -m playground

down: cluster-down ## Take it away

tour: $(STAMP) ## Run docs/tutorial/kubernetes.md on the cluster of `make up`, and write what it prints into it
	@$(BIN)/python -m playground.tour

images: $(STAMP) ## Build the container images of relay, operator and audit (needs Docker)
	@$(BIN)/python -m images.build

package: $(STAMP) ## Make sdist and wheel in dist/, and try the wheel in clean environments
	@$(BIN)/python -m release.package

release: $(STAMP) ## Make all that a release publishes, in build/release/VERSION: VERSION=0.2.0 [WRITE=1] [PUSH=REGISTRY]; publishes nothing else
	@$(BIN)/python -m release $(VERSION) $(if $(WRITE),--write) $(if $(PUSH),--push $(PUSH))

generate: $(STAMP) ## Write what follows from the models: CRDs, tables of the docs, and parts of chart, Kustomize base and OLM bundle
	@$(BIN)/python -m delaytopic_api.crd
	@$(BIN)/python -m delaytopic_api.crd.fields docs/reference/delaytopic-fields.md docs/reference/delayclass.md docs/reference/recurringrecord.md
	@$(BIN)/python -m delaytopic_api.crd.explain docs/reference/explain-delaytopic.md docs/reference/explain-delayclass.md docs/reference/explain-recurringrecord.md
	@$(BIN)/python -m charts.tools

docs: $(STAMP) ## The documentation as a site, in build/site; a link that leads nowhere fails it
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(STAMP) ## Show it at http://127.0.0.1:8000 while you write
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

lint: $(STAMP) ## Style, formatting, types and import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports & imports=$$!; \
		MYPY_CACHE_DIR="$${XDG_CACHE_HOME:-$$HOME/.cache}/delaytopic/mypy" $(BIN)/mypy; types=$$?; \
		wait $$imports && exit $$types

format: $(STAMP) ## Format the code and apply the safe fixes
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean: ## Remove .venv, every cache, and what `install` compiled
	rm -f relay/delaytopic_relay/_speedups*.so
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("delaytopic needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ": name another with make PYTHON=python3.12")'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(STAMP): $(VENV)/.installed $(wildcard relay/speedups/*.[ch]) relay/speedups/build.py
	@$(BIN)/python relay/speedups/build.py > /dev/null || echo "Relays run in Python alone, without their speedups" >&2
	@touch $@

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV) (a minute or two, only when pyproject.toml changed)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
