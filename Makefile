# Every target sets up what it needs; only Python 3.11+, pip and make must be there.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-slow crash-test real bench-verify bench-ray gpu-check lm-eval-check check format clean

demo: $(READY)
	$(BIN)/hacrl demo

test: check
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

crash-test: $(READY)
	$(BIN)/python -m scripts.crash_test --kills 50

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

real: $(READY)
	$(BIN)/python -m scripts.real_models --out models
	$(BIN)/hacrl train real --overwrite

bench-verify: $(READY)
	$(BIN)/python benchmarks/verifier_throughput.py

bench-ray: $(READY)
	$(BIN)/python benchmarks/ray_overhead.py

gpu-check: $(READY)
	$(BIN)/python -m scripts.gpu_check

lm-eval-crash-test: $(READY)
	$(BIN)/python -m scripts.crash_test --kills 50

check: $(READY)
	$(BIN)/python -m scripts.lm_eval_check.environment .venv-lm-eval
	.venv-lm-eval/bin/python -m scripts.lm_eval_check

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .venv-lm-eval build dist src/*.egg-info

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@
