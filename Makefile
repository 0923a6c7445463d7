# make demo   the environment, the package, a tour            make lint   style, types, layers
# make test   everything the project promises                 make bench  figures, each beside its peer
# make coverage  the same tests, lines counted: at least 90 %
# make warm   compile for this machine now, on all cores
# make docs   the reference pages, and the site in site/       make kafka  a real local broker to play with
# make fuzz   new random cases for every family, SECONDS=3600 (of CPU time) SEED=5 JOBS=2
# make chaos  a million records, 50 kills, three brokers; about twenty minutes
# make soak   an hour of blows of every kind, MINUTES=60 SEED=5
.PHONY: demo warm test coverage lint bench docs kafka chaos soak fuzz env system lock clean
.DEFAULT_GOAL := demo

PYTHON ?= python3
BIN := .venv/bin
BASE := .venv/.base
STAMP := .venv/.installed
# one worker for what computes and three for what waits, until less is left of it; one room alone starts faster without any
WORKERS ?= $(if $(TESTS),0,4)
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder --max-worker-restart 0 --durations=10
# where this is set, each start would compile all sources and each test file anew
unexport PYTHONDONTWRITEBYTECODE

env: $(STAMP)

# The locks name every package: nothing is left to resolve, or a version published today could stop an install.
# What the package itself needs is a sixth of what its tests need, so a first look does not wait for the rest.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
# where Python may not write it later, each start costs seconds
COMPILED = $(BIN)/python -m compileall -q -j 0 .venv/lib > /dev/null

$(BASE): requirements.base.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(INSTALL) --require-hashes -r requirements.base.lock
	$(INSTALL) --no-build-isolation --editable .
# beside it, what a first release needs is compiled
	-$(BIN)/shoal demo --rows 1000 --out .cache/demo > /dev/null & $(COMPILED); wait
	touch $(BASE)

# uv takes a third of the time of pip; where it cannot, pip does it
$(STAMP): $(BASE) requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements.lock || \
	  $(INSTALL) --require-hashes -r requirements.lock
	-$(COMPILED)
	touch $(STAMP)

demo: $(BASE)
	$(BIN)/shoal demo --rows 1000

warm: env
	$(BIN)/shoal warm $(METHODS)

# system parts (a browser, Kafka, PostgreSQL): installed where we may, skipped with the reason where not,
# required with SHOAL_REQUIRE_SYSTEM=1
system: env
	sh scripts/system.sh

# compiled before the workers start, or each of them would compile the same: kernels, and, if one of them has changed, the
# test files as pytest writes them
COLLECTED := .cache/.collected
test: env system
	$(if $(TESTS),,-{ [ -z "$$(find tests -name '*.py' -newer $(COLLECTED) 2>&1)" ] || \
	  { $(BIN)/python -m pytest --collect-only -qq > /dev/null; mkdir -p .cache; touch $(COLLECTED); }; } & $(BIN)/shoal warm; wait)
	$(PYTEST) $(TESTS)

# apart from `test`, because counting lines makes the tests take 1.7 times the CPU
coverage: env system
	$(PYTEST) --cov --cov-report=term:skip-covered --cov-fail-under=90 $(TESTS)

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: env
	sh scripts/bench.sh $(BENCH)

docs: env
	$(BIN)/python scripts/reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

kafka: env
	sh scripts/system.sh
	$(BIN)/python -m scripts.kafka.broker

chaos: env
	sh scripts/system.sh
	PYTHONPATH=. $(BIN)/python tests/kafka/chaos.py --records 1000000 --kills 50 --seed $(or $(SEED),21)

# the disk that is full and the apply that is killed have tests of their own
soak: env
	sh scripts/system.sh
	PYTHONPATH=. $(BIN)/python tests/kafka/soak.py --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED))
	SHOAL_LONG=1 $(BIN)/python -m pytest -n 0 -q tests/kafka/test_full_disk.py

fuzz: env
	$(BIN)/python scripts/fuzz.py --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED)) $(if $(JOBS),--jobs $(JOBS))

# after changing dependencies: versions and hashes, no addresses
LOCK := $(BIN)/uv pip compile pyproject.toml --group build --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-index-url --no-annotate
lock: env
	$(LOCK) --group test --group lint --group docs $(addprefix --extra ,excel kafka learn registry spark sql web) --upgrade -o requirements.lock
	$(LOCK) --constraint requirements.lock -o requirements.base.lock

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis dist out
