# The project's commands; all of them work in a fresh clone.  `make` alone lists them.
SHELL := bash
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format lint types layers docs shell bench coverage clean

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

setup: ## install what is missing (Debian packages as root, Python packages into .venv)
	@scripts/setup.sh

demo: setup ## work through a view of the Python standard library, then commit
	@scripts/demo.sh

test: setup ## run all tests; those that mount are skipped without /dev/fuse
	$(BIN)/python -m pytest

check: format lint types layers docs shell ## everything that is checked without running the program

format: setup
	$(BIN)/ruff format --check .

lint: setup
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy
	$(BIN)/pyright

layers: setup
	$(BIN)/lint-imports --no-cache --no-logo

docs: setup
	$(BIN)/python scripts/check_docs.py

shell: setup
	$(BIN)/shellcheck scripts/*.sh .ci/run

bench: setup ## how a session grows: long journals, snapshots, large directories
	$(BIN)/python benchmarks/scale.py

coverage: setup ## run all tests and show which lines and branches none of them ran
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report

clean: ## remove .venv and everything that tools have left behind
	rm -rf .venv build dist *.egg-info .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -xdev -name __pycache__ -type d -prune -exec rm -rf {} +
