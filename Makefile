# `make demo` runs the main job, `make test` the tests; each sets up what it needs.
# PYTHON=python3.12 chooses the interpreter (3.10 or later).
.DEFAULT_GOAL := help
.PHONY: help demo test test-fast lint format bench clean env-test env-peer
SHELL := /bin/bash

PY := .envs/test/bin/python

help: ## show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: env-test ## a small real RL loop on Ray, on CPU: captured, listed, laid on one timeline
	@bash examples/ray_rl/demo.sh $(CURDIR)/$(PY)

test: env-test ## every suite, each in the environment it needs
	$(PY) -m pytest

test-fast: env-test ## what needs no real torch, no processes and no Perfetto: seconds
	$(PY) -m pytest -m "not slow"

lint: env-test ## ruff and mypy --strict
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: env-test ## let ruff rewrite what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: env-test env-peer env-vllm ## the figures in docs/benchmarks.md, beside verl 0.9.1 and bare torch.profiler
	@bash bench/run.sh

env-test:
	@PYTHON=$(PYTHON) envs/make_env.sh test

env-peer:
	@PYTHON=$(PYTHON) envs/make_env.sh peer

clean: ## remove this checkout's environments (the cache of third-party packages stays)
	rm -rf .envs outputs .mypy_cache .pytest_cache .ruff_cache
