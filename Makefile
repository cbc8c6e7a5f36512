# Every target works from a clean clone: the first one that needs it makes .venv. No network but pip's.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
ENGINE ?= both
EXAMPLES ?= 10000
KILLS ?= 200
MINUTES ?= 30
BIN := .venv/bin
INSTALLED := .venv/installed
# Laws are the long tests: the workers share them out. More than four gain nothing.
WORKERS := -n auto --maxprocesses 4 --dist worksteal

# Tests that start a JVM, a server or a browser: two at a time, a file to a worker, so that few are started. Those that
# kill are few and long: they begin, so that neither worker is left alone with them in the end.
ON_SPARK := tests/faults tests/integration tests/docs tests/browser tests/golden

.PHONY: help install java browser demo demo-kafka test lint format types contracts conformance laws faults faults-nexmark soak bench bench-quick bench-engine bench-kafka bench-nexmark bench-observing bench-state docs figures playground clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make .venv with everything in it, in the versions of constraints.txt

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Penstock needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo not there)." >&2; \
	  echo "Name another one, such as: make install PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@echo "installing into .venv"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt setuptools
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

java: ## see that Java 17 or newer is there, or install it where this user may
	@scripts/java.sh

browser: ## see that Chromium is there for the tests of pages, or install it where this user may
	@scripts/browser.sh

demo: $(INSTALLED) java ## a minute of game scores: early, on-time and late answers in SQLite, and a dashboard to open
	@$(BIN)/penstock demo

demo-kafka: $(INSTALLED) java ## the same from Kafka to PostgreSQL, both real and started here: lag, panes, the table
	@$(BIN)/python -m examples.demo_kafka

test: lint java browser ## lint, types, contracts, then every test, those on Spark last
	@$(BIN)/python -m pytest $(WORKERS) $(addprefix --ignore=,$(ON_SPARK))
	@$(BIN)/python -m penstock.spark.startup
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(wildcard $(ON_SPARK))

lint: $(INSTALLED) ## ruff, then types and contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(MAKE) types contracts

format: $(INSTALLED) ## put the code in ruff's form
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

types: $(INSTALLED) ## mypy, strict, on the package
	@$(BIN)/mypy

contracts: $(INSTALLED) ## who may import whom
	@said=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$said"; exit 1; }; tail -1 <<< "$$said"

conformance: $(INSTALLED) ## play Beam's transcripts, the book and the worked examples (ENGINE=reference|columnar|both)
	@$(BIN)/python -m penstock.testing play tests/conformance/transcripts tests/conformance/book tests/conformance/examples --engine $(ENGINE)
	@[ "$(ENGINE)" != spark ] || PENSTOCK_ENGINES=spark $(BIN)/python -m pytest tests/conformance/examples -k "not test_case"

laws: $(INSTALLED) ## nightly: the laws, each on EXAMPLES=10000 random pipelines
	@PENSTOCK_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest $(WORKERS) tests/properties

faults: $(INSTALLED) java ## KILLS=200 kills each of pipelines with every sink, stage and server; goes on where it stopped
	@$(BIN)/python -m tests.faults.campaign --kills $(KILLS) --seed 7 --resume build/faults.json
	@$(BIN)/python -m tests.faults.campaign --kills $(KILLS) --seed 7 --resume build/faults-servers.json --servers
	@$(BIN)/python -m tests.faults.campaign --kills $(KILLS) --seed 7 --resume build/faults-stages.json --stages

faults-nexmark: $(INSTALLED) java ## each of Nexmark's queries killed in the middle; goes on where it stopped
	@$(BIN)/python -m tests.conformance.nexmark.killing --resume build/faults-nexmark

soak: $(INSTALLED) java ## MINUTES=30 at a steady rate: memory, state, open files and batch time must not grow
	@$(BIN)/python -m bench.soak --minutes $(MINUTES) --json bench/results/soak.json

bench: $(INSTALLED) java ## beside Spark's own aggregate: throughput, open windows, latency; figures also in bench/results/
	@$(BIN)/python -m bench.spark --json bench/results/spark.json
	@$(BIN)/python -m bench.open_windows --json bench/results/open_windows.json
	@$(BIN)/python -m bench.latency --json bench/results/latency.json

bench-quick: $(INSTALLED) java ## one job of each bench in ten minutes, beside Spark, or beside a commit (AGAINST=HEAD~5)
	@$(BIN)/python -m bench.quick $(if $(AGAINST),--against $(AGAINST)) --json bench/results/quick.json

bench-kafka: $(INSTALLED) java ## beside Spark's Kafka connector, from a broker that is started here
	@$(BIN)/python -m bench.kafka --json bench/results/kafka.json
	@$(BIN)/python -m bench.kafka_reading --json bench/results/kafka_reading.json
	@$(BIN)/python -m bench.kafka_to_postgres --json bench/results/kafka_to_postgres.json

bench-state: $(INSTALLED) java ## keyed functions, joins, patterns and dedup beside what a PySpark user would write instead
	@$(BIN)/python -m bench.state --json bench/results/state.json

bench-nexmark: $(INSTALLED) java ## Nexmark's queries beside Spark's own operators, where they can express one
	@$(BIN)/python -m bench.nexmark --json bench/results/nexmark.json

bench-observing: $(INSTALLED) java ## what it costs to be observed: ten pairs of runs, with and without
	@$(BIN)/python -m bench.observing --json bench/results/observing.json

bench-engine: $(INSTALLED) ## how fast the columnar engine is alone; figures also in bench/results/engine.json
	@$(BIN)/python bench/engine.py --json bench/results/engine.json
	@$(BIN)/python -m bench.alone --json bench/results/alone.json

docs: $(INSTALLED) ## make the pages that are generated
	@$(BIN)/python -m penstock.cli.docs > docs/cli.md

figures: $(INSTALLED) ## draw the figures of docs/ again, each from a run of its case
	@$(BIN)/python -m penstock.picture.figures docs/figures/figures.toml

playground: $(INSTALLED) ## the playground as files that need no server of ours, in build/playground (needs npm)
	@$(BIN)/python -m penstock.playground.static_site build/playground

clean: ## remove .venv and everything that was made
	@rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench/results
	@find penstock tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
