# Task runner: `make help` lists the targets. PYTHON=/path/to/python3.12 picks the Python of .venv.
BIN := .venv/bin
EXAMPLE := examples/squares.py

# Ray outside pods: no usage reports, no token between its processes.
export RAY_USAGE_STATS_ENABLED := 0
export RAY_AUTH_MODE := disabled
export PYTHON MAKECMDGOALS

.DEFAULT_GOAL := help
.PHONY: help set-up demo test test-e2e e2e-full test-faults test-packaging test-lowest coverage golden-report lint types contracts format golden docs bench bench-cluster lock clean

help: ## List the targets
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed -E 's/^([a-z0-9-]+):.*## (.*)/\1|\2/' | awk -F'|' '{printf "  %-16s%s\n", $$1, $$2}'

set-up: ## Make .venv, or bring it up to date
	@tools/set-up

demo: set-up ## Run the example on Ray in process, then print the RayJob that its task becomes
	@echo "demo 1/2: pyflyte run $(EXAMPLE) (Ray in this process, no cluster needed)"
	@$(BIN)/pyflyte run $(EXAMPLE) sum_of_squares --n 10
	@echo
	@echo "demo 2/2: flyte-kuberay render $(EXAMPLE) (the RayJob that the task becomes on a cluster)"
	@$(BIN)/flyte-kuberay render $(EXAMPLE)

test: set-up ## Run the tests
	$(BIN)/pytest $(ARGS)

test-e2e: set-up ## Run the tests with real Ray and a real Kubernetes node (minutes; half an hour the first time)
	$(BIN)/pytest -m e2e -rs

test-faults: set-up ## Break the way to the cluster, the cluster and the connector, and print what came of it (minutes)
	KUBECONFIG= $(BIN)/pytest -m faults

e2e-full: set-up ## Run those of test-e2e and all other ends of tasks on the node, in each submission mode (three quarters of an hour)
	$(BIN)/pytest -m "e2e or e2e_full" -rs

test-packaging: set-up ## Build wheel, sdist and the image's steps, and install them beside other plugins (minutes)
	$(BIN)/pytest -m packaging tests/test_packaging.py

test-lowest: set-up ## Run the user side's tests with the lowest versions that setup.py allows
	@tools/test-lowest

coverage: set-up ## Run the tests and list the lines and branches they miss
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report

lint: set-up ## Check style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: set-up ## Check the types
	$(BIN)/mypy

contracts: set-up ## Check that imports point one way
	$(BIN)/lint-imports

format: set-up ## Format the code, and fix what ruff can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

golden: set-up ## Write the YAML beside each example anew
	$(BIN)/pytest -q tests/test_examples.py --golden

docs: set-up ## Write the tables of docs/settings.md anew
	$(BIN)/python tools/docs.py

bench: set-up ## Print what this package costs, as ratios measured in one run
	$(BIN)/python -m bench.run
	$(BIN)/python -m bench.build
	$(BIN)/python -m bench.connector

bench-cluster: set-up ## Time a task on a real node, and write docs/start-up.* anew (a quarter of an hour); ARGS="--rounds 1"
	$(BIN)/python -m bench.cluster $(ARGS)
	$(BIN)/python -m tools.start_up

golden-report: set-up ## Print how our RayJobs differ from those of Flyte's Go code, case by case
	$(BIN)/python -m tools.golden_report

lock: set-up ## Write requirements.lock anew: the newest versions that setup.py and dev-requirements.txt allow
	tools/uv pip compile --quiet --universal --python-version 3.10 --upgrade --extra connector --extra ray \
		--custom-compile-command "make lock" setup.py dev-requirements.txt --output-file requirements.lock

clean: ## Remove .venv and what the tools left
	rm -rf .venv .venv-lowest .venv-bench build dist .coverage *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
