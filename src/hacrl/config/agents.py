"""The settings of agents: what each model is, how it is loaded and what it runs on."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from hacrl.config.bounds import LearningRate, Processes
from hacrl.config.fleet import Resources
from hacrl.config.lora import Lora
from hacrl.config.recording import RecordingSpec
from hacrl.config.sampler import HuggingFaceSampling, SamplerSpec
from hacrl.config.strict import Free, KeyValueError, Strict


class NamedTemplate(Strict):
    """One of several chat templates that a tokenizer brings along."""

    name: str


class AgentSpec(Strict):
    """One participant: an ordinary Hugging Face causal language model."""

    model: str
    """Hub id, local folder, or `bundled:` followed by a folder inside the package."""
    learns: bool = True
    """Off: the model stays as it is, and others learn from it. It has no optimizer, and is in no
    checkpoint; a run that is resumed loads it again from `model`."""
    gguf: str | None = None
    """Name of a GGUF file inside `model`; its weights are dequantized."""
    revision: str | None = None
    """Branch, tag or commit of a Hub model. Changes nothing learned where `model` is a folder."""
    trust_remote_code: bool = False
    """Run code that the model brings along. Changes nothing learned where it brings none."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of the model's weights. Half precision rounds small learning steps away; to compute faster,
    keep float32 and set `update.autocast: bfloat16`. float16 is for models with an adapter, which
    is kept in single precision, and for evaluation."""
    device: str = "auto"
    """A torch device, or `auto`: a GPU if there is one, else the CPU. Rounding apart, changes
    nothing learned."""
    chat_template: str | NamedTemplate | None = None
    """Path of a Jinja file that replaces the tokenizer's own template; or `{name: rag}`, one of
    several that the tokenizer has."""
    template_args: dict[str, Free] = Field(default_factory=dict)
    """Arguments of this agent's template, for example `enable_thinking: false`."""
    split_special_tokens: bool = False
    """Encode control tokens that a prompt spells, such as `<|im_end|>` in a problem, as the text
    that they are. Those of the chat template stay control tokens."""
    stop: list[str] = Field(default_factory=list)
    """Further end tokens of this agent, besides those that the model declares."""
    learning_rate: LearningRate | None = None
    """This agent's own learning rate; None takes `optimizer.learning_rate`."""
    lora: Lora | None = None
    """Train a low-rank adapter; None trains all weights."""
    sampler: SamplerSpec = HuggingFaceSampling()
    """What draws its responses in training: `hf`, or `vllm` with its settings."""
    ranks: Processes = 1
    """Processes over which model, gradients and optimizer are spread, with `fleet: ray` alone.
    Rounding apart, changes nothing learned."""
    resources: Resources = Resources()
    """What each of its ranks takes of a cluster."""

    @model_validator(mode="after")
    def _learns_what_it_is_told(self) -> Self:
        if self.learns:
            return self
        if self.learning_rate is not None:
            raise KeyValueError(
                "learning_rate", "is of no use where learns is false; drop one of the two"
            )
        if self.lora is not None and self.lora.adapter is None:
            raise KeyValueError(
                "lora",
                "would train an adapter, but learns is false; drop it, or name an adapter that "
                "there is with lora.adapter",
            )
        return self


def _kind(value: Any) -> str:
    recorded = isinstance(value, RecordingSpec) or (isinstance(value, dict) and "from" in value)
    return "recording" if recorded else "model"


ParticipantSpec = Annotated[
    Annotated[AgentSpec, Tag("model")] | Annotated[RecordingSpec, Tag("recording")],
    Discriminator(_kind),
]
"""Whatever answers prompts: a model, or the rollouts of an earlier run."""
