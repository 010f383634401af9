"""The recipe schema. Every key of a recipe, its default and its bounds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from hacrl.algorithm.methods import method_names
from hacrl.config.bounds import (
    Count,
    Gibibytes,
    Processes,
    Rows,
    Seconds,
    Seed,
    Temperature,
    Tokens,
)
from hacrl.config.checkpoints import REWARD, Checkpoints
from hacrl.config.evaluation import Evaluation
from hacrl.config.fleet import FleetSpec, Resources
from hacrl.config.loggers import LoggerSpec
from hacrl.config.lora import Lora
from hacrl.config.recording import RecordingSpec
from hacrl.config.sampler import HuggingFaceSampling, SamplerSpec
from hacrl.config.strict import Free, FunctionName, KeyValueError, Name, Strict
from hacrl.config.tasks import Task
from hacrl.config.verifiers import SumVerifier, VerifierSpec

__all__ = [
    "Advantage",
    "AgentSpec",
    "Capability",
    "Clip",
    "NamedTemplate",
    "Optimizer",
    "ParticipantSpec",
    "Prompts",
    "Ratio",
    "Recipe",
    "RecordingSpec",
    "Sampling",
    "Update",
    "Verification",
]

LearningRate = Annotated[float, Field(ge=1e-15, le=1e3)]
Decay = Annotated[float, Field(ge=0.0, lt=1.0)]
"""Of a moving average."""
_MOST_RESPONSES = 10**7
"""Of all agents in one step; each takes at least a kilobyte."""


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


class Prompts(Strict):
    """Which prompts are used."""

    max_tokens: Tokens = 1024
    """Longest prompt, under each agent's own template."""
    too_long: Literal["drop", "refuse"] = "drop"
    """What to do with a prompt that is too long for any agent."""


class Verification(Strict):
    """How responses are judged. Changes nothing learned unless a limit is met."""

    workers: Processes = 1
    """Processes: at most 32, or four for every processor of the machine where that is more."""
    seconds: Seconds = 10.0
    """Limit of the processor time for judging one response; docs/rewards.md says what counts."""
    memory: Gibibytes = 2.0
    """Limit of each process's address space, in GiB."""
    max_chars: Rows = 1_000_000
    """A longer response is not read at all and counts as one without an answer."""
    max_errors: float = Field(default=0.5, ge=0.0, le=1.0)
    """The run stops when the verifier of a task fails on more than this share of its responses in
    one step."""


class Sampling(Strict):
    """How responses are drawn."""

    group_size: Count = 8
    """G, responses per agent and prompt."""
    multiplier: Count = 1
    """Multiplies both G and the mini-batches (GSPO×2 is 2), so an update keeps its size."""
    temperature: Temperature = 1.0
    max_new_tokens: Tokens = 512
    batch_size: Count = 256
    """Sequences that are generated together. Rounding apart, changes nothing learned."""


class Capability(Strict):
    """Capability P̂ and its ratio ω (Eq. 5-7)."""

    metric: Literal["mean_reward", "positive_rate"] = "mean_reward"
    window: Count = 5
    """K, the steps over which the capability is averaged."""
    max_ratio: float = Field(default=10.0, ge=1.0, le=1e6)
    """ω is kept within [1/max_ratio, max_ratio]."""


class Advantage(Strict):
    """The capability-aware advantage and the discrepancy coefficient (Eq. 8-10)."""

    capability_aware: bool = True
    """Scale the peers' rewards by ω in the baseline; off: the plain mean."""
    discrepancy: bool = True
    """Multiply the advantage of a peer's response by ω(source, learner)."""
    cross_baseline: Literal["source", "learner"] = "source"
    guard: bool = True
    """Use the own mean where ω lifts the baseline out of the range of rewards."""
    epsilon: float = Field(default=1e-6, ge=0.0, le=1e6)
    """Added to the standard deviation σ of the rewards, in units of reward. Rewards that differ by
    no more than rounding count as equal, and no advantage is beyond ±1,000, whatever this is."""


class Ratio(Strict):
    """Importance ratio and exponential reweighting (Eq. 11-12)."""

    level: Literal["sequence", "token"] = "sequence"
    length: Literal["source", "own"] = "source"
    alpha: float = Field(default=1.0, ge=0.0, le=7.0)
    """α. The upper bound keeps exp((1+α)·10) finite in single precision."""


class Clip(Strict):
    """Clipping of own and cross ratios (Eq. 13-14)."""

    own_low: float = Field(default=3e-4, ge=0.0, le=1e6)
    own_high: float = Field(default=4e-4, ge=0.0, le=1e6)
    cross: Literal["stepwise", "own", "none"] = "stepwise"
    delta: float = Field(default=0.2, ge=0.0, le=1.0)
    """δ. The lower bound of cross ratios starts at 1 − δ."""
    delta_step: float = Field(default=0.025, ge=0.0, le=1.0)
    """δ_step, by which the lower bound rises with every optimizer update of a step."""


class Update(Strict):
    """How the pool of a step becomes optimizer updates."""

    mini_batches: Count = 1
    """M, own mini-batches a step; a learner with s sources makes (1+s)·M updates."""
    order: Literal["own_first", "mixed"] = "own_first"
    micro_batch_tokens: Rows | None = None
    """Padded tokens that are computed at once; rounding apart, changes nothing learned. None is
    2,048 on a CPU and 16,384 elsewhere."""
    kl: float = Field(default=0.0, ge=0.0, le=1e6)
    """Weight of the KL to the frozen start on own responses; 0 keeps no reference."""
    old_logprobs: Literal["auto", "sampler", "recompute"] = "auto"
    """Where log π_old of own responses comes from: the sampler, or one more forward pass of the
    learner before its first update. `auto` recomputes unless the sampler's are exact, which they
    are in float32 without autocast or quantization; of an engine, its probe has to say so."""
    max_skipped: Rows = 10
    """The run stops when an agent has skipped more updates in a row than this, because their loss
    or gradient was not finite. Changes nothing learned before."""
    alignment_every: Rows | None = None
    """Steps between two measurements of the gradients' alignment (Theorem 4.3); None: never. One
    costs about as much as the updates on 1/M of the rows. Changes nothing learned."""
    gradient_checkpointing: bool = False
    """Compute activations twice to save memory. Rounding apart, changes nothing learned."""
    autocast: Literal["off", "bfloat16"] = "off"


class PythonRule(Strict):
    """A rule of the user's, of which responses a learner uses and with what advantage."""

    type: Literal["python"] = "python"
    function: FunctionName
    """`module:function`, importable from the folder in which the run is started."""


class Optimizer(Strict):
    """AdamW and its schedule."""

    learning_rate: LearningRate = 1e-6
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    epsilon: float = Field(default=1e-8, ge=1e-20, le=1e6)
    weight_decay: float = Field(default=0.0, ge=0.0, le=1e3)
    max_grad_norm: float = Field(default=1.0, ge=1e-12, le=1e12)
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """After the warm-up. `linear` and `cosine` fall to 0 at the end of the run."""
    warmup_updates: int = Field(default=0, ge=0, le=10**9)
    """W, with any schedule: update u of a run, counted from 0, has u/W of the learning rate while
    u < W. Skipped updates do not count."""


class Recipe(Strict):
    """Everything that determines a run."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)
    """Of the run and its folder. Changes nothing learned."""
    seed: Seed = 0
    clock: datetime | None = None
    """Date and time that chat templates see, such as `2026-11-30T12:00:00`, all through the run;
    None is its start."""
    steps: Rows
    prompts_per_step: Count
    """P."""
    method: str | PythonRule = "hacpo"
    """Named settings of the sections below, such as `hacpo`, `naive`, `gspo`, `gspo_x2` or `grpo`;
    what a recipe says itself takes precedence. Or `{type: python, function: my_rules:rule}`, a
    sharing rule of the user's: see docs/own.md."""
    sharing: Literal["everyone", "nobody"] | dict[str, list[str]] = "everyone"
    """Who learns from whom: a mapping lists the sources of each learner."""
    threads: Processes | None = None
    """CPU threads of each process with a model, at most 32, or four for every processor of the
    machine where that is more; None leaves the choice to torch, and on a cluster to
    `agents.*.resources.cpus`. Rounding apart, changes nothing learned."""
    agents: dict[Name, ParticipantSpec] = Field(min_length=1)
    """Who answers, by name: models, most of which learn, and recordings of earlier runs."""
    tasks: dict[Name, Task] = Field(min_length=1)
    """What is learned, by name."""
    prompts: Prompts = Prompts()
    verification: Verification = Verification()
    sampling: Sampling = Sampling()
    capability: Capability = Capability()
    advantage: Advantage = Advantage()
    ratio: Ratio = Ratio()
    clip: Clip = Clip()
    update: Update = Update()
    optimizer: Optimizer = Optimizer()
    evaluation: Evaluation | None = None
    """On held-out problems, in the course of training; None does without."""
    checkpoints: Checkpoints = Checkpoints()
    loggers: list[LoggerSpec] = Field(default_factory=list)
    """Where metrics go besides the run folder: `tensorboard`, `wandb`, `trackio`. Changes nothing
    learned."""
    fleet: FleetSpec = FleetSpec()
    """Where the agents live."""

    @property
    def models(self) -> dict[str, AgentSpec]:
        """The agents that are models, whether they learn or not."""
        return {name: one for name, one in self.agents.items() if isinstance(one, AgentSpec)}

    @property
    def learners(self) -> dict[str, AgentSpec]:
        """The agents that learn."""
        return {name: one for name, one in self.models.items() if one.learns}

    @property
    def recordings(self) -> dict[str, RecordingSpec]:
        """The agents whose responses an earlier run has recorded."""
        return {name: one for name, one in self.agents.items() if isinstance(one, RecordingSpec)}

    @property
    def group_size(self) -> int:
        """G, the multiplier included."""
        return self.sampling.group_size * self.sampling.multiplier

    @property
    def mini_batches(self) -> int:
        """M, the multiplier included."""
        return self.update.mini_batches * self.sampling.multiplier

    @property
    def method_name(self) -> str:
        """The method, or the user's function."""
        return self.method if isinstance(self.method, str) else self.method.function

    @field_validator("method")
    @classmethod
    def _known(cls, method: str | PythonRule) -> str | PythonRule:
        if isinstance(method, str) and method not in method_names():
            raise ValueError(
                f"there is no {method!r}; there are {', '.join(method_names())}, or "
                "{type: python, function: my_rules:rule}"
            )
        return method

    def sources(self, learner: str) -> tuple[str, ...]:
        """The peers that a learner learns from, in the order of the recipe; none for an agent
        that does not learn."""
        if self.sharing == "nobody" or learner not in self.learners:
            return ()
        if self.sharing == "everyone":
            return tuple(name for name in self.agents if name != learner)
        chosen = self.sharing.get(learner, [])
        return tuple(name for name in self.agents if name in chosen)

    def recomputes(self, learner: str) -> bool | None:
        """Whether a learner recomputes the log-probabilities of its own responses.

        None where the probe of its sampler decides, step by step.
        """
        spec = self.models[learner]
        whole = spec.lora is None or spec.lora.quantization == "none"
        exact = whole and spec.dtype == "float32" and self.update.autocast == "off"
        auto = None if exact and spec.sampler.type != "hf" else not exact
        return {"auto": auto, "sampler": False, "recompute": True}[self.update.old_logprobs]

    def updates_per_step(self, learner: str) -> int:
        """Optimizer updates that a learner makes in one step: n·M with everyone sharing. Fewer
        where a recording has too few responses for all of them."""
        return self.mini_batches * (1 + len(self.sources(learner)))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.learners:
            raise ValueError("agents: none of them learns; at least one must")
        if isinstance(self.sharing, dict):
            self._check_graph(self.sharing)
        if (step := self.prompts_per_step * self.group_size * len(self.agents)) > _MOST_RESPONSES:
            raise ValueError(
                f"prompts_per_step: a step has {step:,} responses of all agents, and can have "
                f"{_MOST_RESPONSES:,}; lower it, or sampling.group_size"
            )
        if self.mini_batches > self.prompts_per_step * self.group_size:
            raise ValueError(
                f"update.mini_batches: {self.mini_batches} mini-batches need at least as many "
                f"responses, a step has {self.prompts_per_step * self.group_size}"
            )
        shared = any(self.sources(name) for name in self.learners)
        if self.ratio.level == "token" and shared:
            raise ValueError(
                "ratio.level: token-level ratios need sharing: nobody, since tokens of different "
                "tokenizers cannot be compared one by one"
            )
        for name in self.learners:
            if self.group_size * (1 + len(self.sources(name))) < 2:
                raise ValueError(
                    f"sampling.group_size: agent {name} would compare a single response with "
                    "itself; use at least 2, or let it learn from others"
                )
        for name, task in self.tasks.items():
            self._check_verifier(name, task.verifier)
        self._check_best()
        self._check_ranks()
        self._check_half_precision()
        for name, agent in self.models.items():
            if self.fleet.in_turns and agent.lora and agent.lora.quantization != "none":
                raise ValueError(
                    f"fleet.in_turns: the quantized weights of agent {name} cannot leave their "
                    f"device; set agents.{name}.lora.quantization: none"
                )
        return self

    def _check_half_precision(self) -> None:
        for name, agent in self.learners.items():
            if agent.dtype == "float16" and agent.lora is None:
                raise ValueError(
                    f"agents.{name}.dtype: float16 cannot hold what AdamW keeps (its epsilon "
                    f"{self.optimizer.epsilon:g} is 0 there), which would destroy the model; use "
                    "float32 with update.autocast: bfloat16, or train an adapter with "
                    f"agents.{name}.lora"
                )

    def _check_ranks(self) -> None:
        for name, agent in self.models.items():
            if agent.ranks == 1:
                continue
            key = f"agents.{name}.ranks: an agent of several ranks"
            if self.fleet.type == "local":
                raise ValueError(f"{key} needs fleet: ray")
            if self.fleet.in_turns:
                raise ValueError(f"{key} keeps its devices to itself; drop fleet.in_turns")
            if agent.lora is not None:
                raise ValueError(f"{key} trains all weights; drop agents.{name}.lora")
            if agent.sampler.type != "hf":
                raise ValueError(f"{key} samples by itself; set agents.{name}.sampler: hf")
            if self.update.alignment_every is not None:
                raise ValueError(f"{key} does not measure alignment; drop update.alignment_every")

    def _check_best(self) -> None:
        best, every = self.checkpoints.best, self.checkpoints.every
        if best is None or best == REWARD:
            return
        rule = self.evaluation
        if rule is None or best not in rule.tasks:
            known = ", ".join((REWARD, *(rule.tasks if rule else ())))
            raise ValueError(f"checkpoints.best: {best} is no held-out task; known are {known}")
        if every and (rule.every is None or every % rule.every):
            raise ValueError(
                f"checkpoints.best: evaluation.every is {rule.every}, so checkpoints of every "
                f"{every} steps would not all be evaluated; let checkpoints.every be a multiple"
            )

    def _check_verifier(self, name: str, verifier: VerifierSpec) -> None:
        lowest = verifier.lowest_reward
        if lowest < 0 and self.capability.metric == "mean_reward":
            key = "wrong" if lowest == getattr(verifier, "wrong", None) else "lowest"
            where = "" if isinstance(verifier, SumVerifier) else f".{key}"
            raise ValueError(
                f"tasks.{name}.verifier{where}: capability.metric mean_reward needs rewards ≥ 0, "
                f"this one can be {lowest:g}; or use capability.metric: positive_rate"
            )
        parts = verifier.parts if isinstance(verifier, SumVerifier) else ()
        for part in (verifier, *(part.verifier for part in parts)):
            if getattr(part, "seconds", 0) >= self.verification.seconds:
                raise ValueError(
                    f"tasks.{name}.verifier: seconds of type {part.type} must be less than "
                    f"verification.seconds, which is {self.verification.seconds:g}"
                )

    def _check_graph(self, graph: dict[str, list[str]]) -> None:
        for learner, sources in graph.items():
            for name in (learner, *sources):
                if name not in self.agents:
                    raise ValueError(
                        f"sharing: {name} is not an agent; the agents are {', '.join(self.agents)}"
                    )
            if learner not in self.learners:
                raise ValueError(f"sharing.{learner}: does not learn from anybody; drop it")
            if learner in sources:
                raise ValueError(f"sharing.{learner}: an agent always learns from itself; drop it")
