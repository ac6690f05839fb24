# Two commands on a fresh machine: `make demo` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint docs bench-setup bench-publish bench-choices bench-release bench-sparse bench-front bench-preferences bench-private bench-methods bench-loss bench-mondrian bench-guard bench-tpch bench-hidden bench-scale bench-server bench-satisfaction bench-verification clean test-lowest test-dbt lock generate test-usual test-fast test-long test-explore coverage bench-trees bench-anchors bench-over-time bench-spark

help:  ## show what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: .venv/.ready  ## make .venv with kgather and what its tests need

.venv/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kgather needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev --editable .
	touch $@

demo: setup  ## publish the made-up sample at k = 5 into demo-release/
	$(BIN)/kgather publish examples/ratings.csv --k 5 --out demo-release --force

# Which test is of which level: tests/levels.py. Workers take tests from each other in the end, so that none is left alone.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

test: setup  ## run the linters and all tests but the long ones: some minutes
	@$(MAKE) --no-print-directory -j 2 lint test-usual

test-usual: setup
	$(PYTEST) -m "not long"

test-fast: setup  ## run the tests that neither publish nor start a process
	$(PYTEST) -m "not slow and not long"

test-long: setup  ## run the long tests: clients of others, real ratings, many ledgers, load
	$(BIN)/python -m pytest -n 2 --dist loadfile -m long  # their modules build what their tests share

test-explore: setup  ## look for examples that break a property, other ones each time; those found are kept
	HYPOTHESIS_PROFILE=explore $(PYTEST) -m hypothesis

coverage: setup  ## measure which lines and branches of each package the tests reach, and hold them to a floor
	$(BIN)/python tests/measure_coverage.py

# The lowest allowed version of each dependency, and the newest of what those depend on: uv can resolve that, pip cannot.
# pyspark is the one that comes without a wheel.
LOWEST := .venv-lowest/bin

test-lowest: export NUMBA_CACHE_DIR := $(CURDIR)/.venv-lowest/numba
test-lowest: .venv-lowest/.ready  ## publish, verify and run the fast tests with the lowest versions of all dependencies
	$(LOWEST)/kgather publish examples/ratings.csv --k 5 --out .venv-lowest/release --force
	$(LOWEST)/kgather verify .venv-lowest/release --k 5
	$(LOWEST)/python -m pytest -n 2 --dist worksteal -m "not slow and not long"

# Each version of dbt-core that is allowed, in an environment of its own; 1.12 downloads a binary while it installs.
DBT_VERSIONS := 1.10.23 1.11.6 newest
DBT_TESTS := tests/packaging/test_projects.py tests/packaging/test_several_releases.py tests/packaging/test_neighbours.py

test-dbt: $(DBT_VERSIONS:%=test-dbt-%)  ## build consumers' projects with each version of dbt-core that is allowed

test-dbt-%: .venv-dbt-%/.ready
	$(<D)/bin/python -m pytest $(DBT_TESTS)

.venv-dbt-%/.ready: pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(@D)/bin/python -m pip install --quiet --group dev --editable . $(if $(filter newest,$*),dbt-core,"dbt-core==$*")
	touch $@

.PRECIOUS: .venv-dbt-%/.ready

.venv-lowest/.ready: pyproject.toml
	$(PYTHON) -m venv --clear .venv-lowest
	$(LOWEST)/python -m pip install --quiet uv
	$(LOWEST)/uv pip compile --quiet --resolution lowest-direct --only-binary :all: --no-binary pyspark \
		--all-extras --python $(LOWEST)/python --output-file .venv-lowest/lowest.txt pyproject.toml
	$(LOWEST)/uv pip install --quiet --python $(LOWEST)/python --constraint .venv-lowest/lowest.txt --group dev --editable '.[paper,server]'
	touch $@

lock: .venv-lowest/.ready  ## renew uv.lock: the newest allowed version of every dependency
	$(LOWEST)/uv lock --upgrade

generate: setup  ## write what follows from the settings, methods and forms: tools/generate.py
	$(BIN)/python tools/generate.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv-docs/.ready  ## build the docs site into site/, with its links checked
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

# An environment of its own: the site is made from the sources' text, so none of kgather's dependencies is needed.
.venv-docs/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-docs/bin/python -m pip install --quiet --group docs
	touch $@

bench-publish: bench-setup  ## speed and memory: benchmarks/publish.py
	$(BIN)/python benchmarks/publish.py

bench-choices: bench-setup  ## what each choice costs and gives away: benchmarks/choices.py
	$(BIN)/python benchmarks/choices.py

bench-hidden: bench-setup  ## what the default release hides of the rare, and at what price: benchmarks/hidden.py
	$(BIN)/python benchmarks/hidden.py

bench-release: bench-setup  ## what the default release costs and gives away, beside the papers': benchmarks/release.py
	$(BIN)/python benchmarks/release.py

bench-sparse: bench-setup  ## who is found by the items that a release shows: benchmarks/sparse.py
	$(BIN)/python benchmarks/sparse.py

bench-front: bench-setup  ## which model to release, loss against attackers: benchmarks/front.py
	$(BIN)/python benchmarks/front.py

bench-preferences: bench-setup  ## how preferences are learned: benchmarks/preferences.py
	$(BIN)/python benchmarks/preferences.py

bench-private: bench-setup  ## what a differentially private item side costs: benchmarks/private.py
	$(BIN)/python benchmarks/private.py

bench-methods: bench-setup  ## what each method of gathering costs and gives away: benchmarks/methods.py
	$(BIN)/python benchmarks/methods.py

bench-loss: bench-setup  ## the loss of groups against the rivals': benchmarks/loss.py
	$(BIN)/python benchmarks/loss.py

bench-mondrian: bench-setup  ## Mondrian against anonypy: benchmarks/mondrian.py
	$(BIN)/python benchmarks/mondrian.py

bench-satisfaction: bench-setup  ## who is near whom, against the paper's ways: benchmarks/satisfaction.py
	$(BIN)/python benchmarks/satisfaction.py

bench-anchors: bench-setup  ## the default release beside newer ways to anonymize ratings: benchmarks/anchors.py
	$(BIN)/python benchmarks/anchors.py

bench-trees: bench-setup  ## searches for near users against scipy's trees: benchmarks/trees.py
	$(BIN)/python benchmarks/trees.py

bench-verification: bench-setup  ## checking models against pycanon: benchmarks/verification.py
	$(BIN)/python -m pip install --quiet --no-deps pycanon
	$(BIN)/python benchmarks/verification.py

bench-guard: bench-setup  ## errors and cost of guarded queries: benchmarks/guard.py
	$(BIN)/python benchmarks/guard.py

bench-tpch: bench-setup  ## TPC-H as written, asked of the guard: benchmarks/tpch.py
	$(BIN)/python benchmarks/tpch.py

bench-scale: bench-setup  ## publishing 1, 10 and 100 million ratings: benchmarks/scale.py
	$(BIN)/python benchmarks/scale.py

bench-over-time: bench-setup  ## releases that follow each other: benchmarks/over_time.py
	$(BIN)/python benchmarks/over_time.py

bench-server: bench-setup  ## the server's start, under load, and killed: benchmarks/server.py
	PYTHONPATH=tests:tests/server:tests/guard $(BIN)/python benchmarks/server.py $(PARTS)

bench-spark: bench-setup  ## publishing by Spark against the engine duckdb: benchmarks/spark.py
	$(BIN)/python benchmarks/spark.py $(PARTS)

bench-setup: setup
	$(BIN)/python -m pip install --quiet --group bench

clean:  ## remove what make made
	rm -rf .venv .venv-docs .venv-lowest .venv-dbt-* site demo-release target logs
	find . -name '__pycache__' -type d -prune -exec rm -rf {} +
