# The project's commands; all of them work in a fresh clone.  `make` alone lists them.
SHELL := bash
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Tests start yolofs thousands of times: as an installed program does, it finds its bytecode.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
# What waits leaves the CPUs to others; each process collects all tests, though.
WORKERS ?= $(shell expr $$(nproc) \* 3)
SPREAD = --numprocesses $(WORKERS) --dist worksteal
# What a run draws, another draws again that has the seed which the first one printed.
ifdef SEED
export YOLOFS_TEST_SEED := $(SEED)
endif

.DEFAULT_GOAL := help
.PHONY: help setup ready demo test test-install test-elsewhere picture test-compiled wheels bench-compiled nightly check format lint types layers docs shell bench bench-quick bench-core coverage clean

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

setup: ready ## install what is missing (Debian packages as root, Python packages into .venv), compile the core
	@scripts/compile-core.sh

# What the rest needs.  What runs here then are the sources as they are, as long as nobody has compiled them.
ready:
	@scripts/setup.sh

demo: ready ## work through a view of the Python standard library, then commit
	@scripts/demo.sh

test: ready ## run all tests; those that mount are skipped without /dev/fuse; SEED=... draws what another run drew
	$(BIN)/python -m pytest $(SPREAD)

test-install: ready ## build wheels and install them, as users do: needs a package index
	$(BIN)/python -m pytest -m "install and not nightly" tests/cli

test-elsewhere: ready ## some of them again, if root runs it: as an ordinary user, and as root in a container
	$(BIN)/python tests/support/elsewhere.py $(SPREAD)

test-compiled: ready build/compiled ## run all tests on the compiled core (docs/design/compiled.md); TESTS=... chooses
	PATH="$(CURDIR)/build/compiled/bin:$${PATH#$(CURDIR)/$(BIN):}" \
	    build/compiled/bin/python -P -m pytest $(SPREAD) $(TESTS)

wheels: ready ## build into dist/ a wheel that runs anywhere, and one with the core compiled for this Python and machine
	scripts/build-wheels.sh dist 0 1

.PHONY: build/compiled
build/compiled: ready
	scripts/install-compiled.sh $@

# One seed for both parts: of what is drawn the first leaves to the second.
nightly: export YOLOFS_TEST_SEED := $(or $(SEED),$(YOLOFS_TEST_SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
nightly: ## run the tests that take long or need the network, and the model test at length
	@scripts/setup.sh --nightly
	YOLOFS_REQUIRE_MOUNT=1 $(BIN)/python -m pytest -m "nightly or install" --timeout 3600
	HYPOTHESIS_PROFILE=nightly YOLOFS_REQUIRE_MOUNT=1 $(BIN)/python -m pytest \
	    tests/cli tests/crash tests/mount tests/property tests/sandbox tests/security \
	    tests/unit/commit tests/unit/rules tests/unit/system/test_busy_trees.py \
	    tests/unit/text/test_line_diff.py
	YOLOFS_TRANSPORT=pyfuse3 YOLOFS_REQUIRE_MOUNT=1 $(BIN)/python -m pytest $(SPREAD) tests/mount tests/crash
	YOLOFS_REQUIRE_MOUNT=1 $(MAKE) test-compiled TESTS="tests/unit tests/mount"

check: format lint types layers docs shell ## everything that is checked without running the program

format: ready
	$(BIN)/ruff format --check .

lint: ready
	$(BIN)/ruff check .

types: ready
	$(BIN)/mypy
	$(BIN)/pyright

layers: ready
	$(BIN)/lint-imports --no-cache --no-logo

docs: ready
	$(BIN)/python scripts/check_docs.py

shell: ready
	$(BIN)/shellcheck scripts/*.sh .ci/run

picture: ready ## draw docs/session.svg, the session in README.md, from a real run
	$(BIN)/python scripts/make_picture.py docs/session.svg

bench: setup bench-core ## all benchmarks, at full size: hours, on a machine that does nothing else
	@scripts/setup-bench.sh
	$(BIN)/python -m benchmarks --size full --rounds 5 --json benchmarks.json --svg benchmarks.svg

bench-quick: setup ## yolofs beside the plain directory, OverlayFS and fuse-overlayfs, small: half an hour
	@scripts/setup-bench.sh
	$(BIN)/python -m benchmarks --size quick --rounds 5 --json benchmarks.json --svg benchmarks.svg

bench-core: ready ## our own code without a mount: tree, rules, journal, changes, plan, requests; how a session grows
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.answering
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.rules
	$(BIN)/python -m benchmarks.startup

bench-compiled: ready build/compiled ## what the compiled core saves of each kind of request
	$(BIN)/python -m benchmarks.compiled build/compiled/bin/python

coverage: ready ## run all tests and show which lines and branches none of them ran
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report

clean: ## remove .venv and everything that tools have left behind
	rm -rf .venv build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -xdev -name __pycache__ -type d -prune -exec rm -rf {} +
