"""The process that owns one vLLM engine.

Started as `python -m hacrl.agents.sampling.vllm.engine SOCKET FOLDER`.

Calls come in, answers go out, and in between a word at least once a second that it is still at
work. It ends with the process that started it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hacrl.agents.sampling.vllm.messages import Drawn, Request
from hacrl.errors import first_line

__all__ = ["Engine", "main"]


class Engine:
    """One vLLM engine.

    Args:
        folder: holds the model's configuration and, when they are to be loaded, its weights.
        busy: to be called now and then during long work.
    """

    def __init__(self, folder: Path, busy: Callable[[], None]) -> None:
        self._folder = folder
        self._busy = busy
        self._llm: Any = None
        self._asleep = False
        self._requests = 0

    def start(self, options: dict[str, Any], cpu: dict[str, Any], gpu: dict[str, Any]) -> bool:
        """See `VllmClient.start`."""
        from vllm import LLM
        from vllm.platforms import current_platform

        on_cpu = bool(current_platform.is_cpu())
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
        self._remove_weights()
        # Some kernels refuse a model only when they are first used.
        self.draw([Request([0], max_new_tokens=1, temperature=1.0, seed=0, stop_ids=())])
        return on_cpu

    def load(self) -> None:
        """See `VllmClient.load`."""
        if self._asleep:
            self._llm.wake_up(tags=["weights"])
        self._llm.collective_rpc(_reload, args=(str(self._folder),))
        self._remove_weights()
        if self._asleep:
            self._llm.wake_up(tags=["kv_cache"])
            self._asleep = False

    def sleep(self) -> None:
        """See `VllmClient.sleep`."""
        self._llm.sleep(level=2)
        self._asleep = True

    def draw(self, requests: Sequence[Request]) -> list[Drawn]:
        """See `VllmClient.draw`."""
        from vllm.inputs import tokens_input

        if not self._llm.reset_prefix_cache():
            raise RuntimeError("its prefix cache could not be cleared")
        engine = self._llm.llm_engine
        first = self._requests
        for request in requests:
            prompt = tokens_input(request.prompt_ids)
            engine.add_request(str(self._requests), prompt, _parameters(request))
            self._requests += 1
        found: dict[str, Drawn] = {}
        while engine.has_unfinished_requests():
            for output in engine.step():
                if output.finished:
                    found[output.request_id] = _drawn(output)
            self._busy()
        return [found[str(number)] for number in range(first, self._requests)]

    def _remove_weights(self) -> None:
        for path in self._folder.glob("*.safetensors"):
            path.unlink()


def main(socket: int, folder: Path) -> None:
    """Answer calls until the connection is closed."""
    os.set_inheritable(socket, False)
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent, folder), daemon=True).start()
    connection = Connection(socket)
    engine = Engine(folder, _Busy(connection))
    while True:
        try:
            name, arguments = connection.recv()
        except EOFError:
            _end(folder)
        try:
            answer = "answer", getattr(engine, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run must hear of it
            traceback.print_exc()  # into the log
            answer = "failure", f"{type(error).__name__}: {first_line(error)}"
        connection.send(answer)


class _Busy:
    """Says that work goes on, at most once a second."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last = 0.0

    def __call__(self) -> None:
        if time.monotonic() - self._last >= 1.0:
            self._connection.send(("busy", None))
            self._last = time.monotonic()


def _end_with(parent: int, folder: Path) -> None:
    """However the parent ends: a killed one closes nothing as long as others hold its files."""
    while os.getppid() == parent:
        time.sleep(0.5)
    _end(folder)


def _end(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)  # with the engine's workers


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
    (one,) = output.outputs
    ids = list(one.token_ids)
    prompt = zip(output.prompt_token_ids[1:], (output.prompt_logprobs or [])[1:], strict=False)
    return Drawn(
        token_ids=ids,
        logprobs=[row[i].logprob for i, row in zip(ids, one.logprobs, strict=True)],
        finished=one.finish_reason == "stop",
        prompt_logprobs=[row[i].logprob for i, row in prompt],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
