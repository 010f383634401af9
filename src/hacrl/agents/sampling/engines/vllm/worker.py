"""vLLM itself, in the process of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hacrl.agents.sampling.engines.base import Drawn, Request

__all__ = ["VllmWorker"]


class VllmWorker:
    """One `vllm.LLM`. See `Worker`."""

    def __init__(self, folder: Path, busy: Callable[[], None]) -> None:
        self._folder = folder
        self._busy = busy
        self._llm: Any = None
        self._sleeps = False
        self._asleep = False
        self._requests = 0

    def start(
        self,
        options: Mapping[str, Any],
        cpu: Mapping[str, Any],
        gpu: Mapping[str, Any],
        sleeps: bool,
    ) -> None:
        """Make the engine.

        Args:
            options: of `vllm.LLM`.
            cpu: further ones, for an engine on a CPU.
            gpu: likewise elsewhere.
            sleeps: whether it is to sleep, where vLLM can: on a CPU it cannot.
        """
        from vllm import LLM
        from vllm.platforms import current_platform

        on_cpu = bool(current_platform.is_cpu())
        self._sleeps = sleeps and not on_cpu
        self._llm = LLM(
            model=str(self._folder),
            skip_tokenizer_init=True,  # ids go in and come out
            generation_config="vllm",  # nothing that the model's authors like to sample with
            logprobs_mode="processed_logprobs",  # at the temperature
            enable_prefix_caching=True,
            disable_log_stats=True,
            **options,
            **(cpu if on_cpu else gpu),
        )
        # Some kernels refuse a model only when they are first used.
        self.draw([Request([0], max_new_tokens=1, temperature=1.0, seed=0, stop_ids=())])

    def load(self) -> None:
        """Take the weights that lie in the folder; wake up before."""
        if self._asleep:
            self._llm.wake_up(tags=["weights"])
        self._llm.collective_rpc(_reload, args=(str(self._folder),))
        if self._asleep:
            self._llm.wake_up(tags=["kv_cache"])
            self._asleep = False

    def sleep(self) -> bool:
        """Free weights and cache until the next `load`, where vLLM can."""
        if self._sleeps:
            self._llm.sleep(level=2)
            self._asleep = True
        return self._sleeps

    def draw(self, requests: Sequence[Request]) -> list[Drawn]:
        """Responses to requests, in their order. All blocks of the prefix cache are new."""
        from vllm.inputs import tokens_input

        if not self._llm.reset_prefix_cache():
            raise RuntimeError("its prefix cache could not be cleared")
        engine = self._llm.llm_engine
        first = self._requests
        for request in requests:
            prompt = tokens_input(request.prompt_ids)
            engine.add_request(str(self._requests), prompt, _parameters(request))
            self._requests += 1
        drawn: dict[str, Drawn] = {}
        while engine.has_unfinished_requests():
            for output in engine.step():
                if output.finished:
                    drawn[output.request_id] = _drawn(output)
            self._busy()
        return [drawn[str(number)] for number in range(first, self._requests)]


def _reload(worker: Any, folder: str) -> None:
    """Let one worker of the engine take its part of the weights in a folder."""
    worker.reload_weights(weights_path=folder)
    for module in worker.model_runner.get_model().modules():
        # On a CPU an output layer multiplies with a copy of its own in another layout. One that is
        # tied to the embedding is not loaded itself, and would keep the copy of the old weights.
        if hasattr(module, "cpu_linear") and module.weight.numel():
            module.quant_method.process_weights_after_loading(module)


def _parameters(request: Request) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        max_tokens=request.max_new_tokens,
        temperature=request.temperature,
        seed=request.seed,
        stop_token_ids=list(request.stop_ids),
        ignore_eos=True,  # the stop ids are all there are
        logprobs=0,  # of the drawn token alone
        prompt_logprobs=0 if request.score_prompt else None,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _drawn(output: Any) -> Drawn:
    (completion,) = output.outputs
    ids = list(completion.token_ids)
    prompt = zip(output.prompt_token_ids[1:], (output.prompt_logprobs or [])[1:], strict=False)
    return Drawn(
        token_ids=ids,
        logprobs=[row[i].logprob for i, row in zip(ids, completion.logprobs, strict=True)],
        finished=completion.finish_reason == "stop",
        prompt_logprobs=[row[i].logprob for i, row in prompt],
    )
