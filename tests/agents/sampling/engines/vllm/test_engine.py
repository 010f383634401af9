"""What a recipe's settings become for vLLM. None of it needs vLLM itself."""

from __future__ import annotations

import pytest

from hacrl.agents.sampling.engines.hosted import HostedEngine
from hacrl.agents.sampling.engines.vllm import engine as module
from hacrl.config.sampler import VllmSampling
from hacrl.errors import UserError


def make(settings: VllmSampling, threads: int | None = None) -> HostedEngine:
    return module.vllm_engine(
        settings,
        agent="kim",
        dtype="bfloat16",
        batch_size=48,
        threads=threads,
        trust_remote_code=False,
    )


def test_without_vllm_the_run_ends_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r'agent kim: .* pip install "hacrl\[vllm\]"'):
        make(VllmSampling())


@pytest.mark.parametrize("sleep", [True, False])
def test_every_setting_reaches_vllm(monkeypatch: pytest.MonkeyPatch, sleep: bool) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: object())
    settings = VllmSampling(
        tensor_parallel_size=2,
        gpu_memory_utilization=0.3,
        cpu_cache=0.5,
        max_model_len=96,
        enforce_eager=True,
        sleep=sleep,
        seconds=7.0,
    )
    engine = make(settings, threads=3)
    assert engine._options == {
        "options": {
            "dtype": "bfloat16",
            "tensor_parallel_size": 2,
            "max_model_len": 96,
            "max_num_seqs": 48,
            "enforce_eager": True,
            "trust_remote_code": False,
            "seed": 0,
        },
        "cpu": {"kv_cache_memory_bytes": 2**29, "enable_chunked_prefill": False},
        "gpu": {"gpu_memory_utilization": 0.3, "enable_sleep_mode": sleep},
        "sleeps": sleep,
    }
    assert engine._environment["OMP_NUM_THREADS"] == "3"
    assert "OMP_NUM_THREADS" not in make(settings)._environment
    assert engine._seconds == 7.0
