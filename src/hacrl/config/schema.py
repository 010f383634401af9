"""The recipe schema. Every key of a recipe, its default and its bounds."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from hacrl.algorithm.methods import method_names
from hacrl.config.agents import AgentSpec, ParticipantSpec
from hacrl.config.algorithm import Advantage, Capability, Clip, PythonRule, Ratio
from hacrl.config.bounds import Count, Processes, Rows, Seed
from hacrl.config.checkpoints import REWARD, Checkpoints
from hacrl.config.devices import check_devices
from hacrl.config.evaluation import Evaluation
from hacrl.config.fleet import FleetSpec
from hacrl.config.learning import Optimizer, Update
from hacrl.config.loggers import LoggerSpec
from hacrl.config.recording import RecordingSpec
from hacrl.config.rollouts import Prompts, Sampling, Verification
from hacrl.config.strict import Name, Strict
from hacrl.config.tasks import Task
from hacrl.config.verifiers import SumVerifier, VerifierSpec

_MOST_RESPONSES = 10**7
"""Of all agents in one step; each takes at least a kilobyte."""


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
    """Where the agents run."""

    @property
    def models(self) -> dict[str, AgentSpec]:
        """The agents that are models, whether they learn or not."""
        return {name: agent for name, agent in self.agents.items() if isinstance(agent, AgentSpec)}

    @property
    def learners(self) -> dict[str, AgentSpec]:
        """The agents that learn."""
        return {name: agent for name, agent in self.models.items() if agent.learns}

    @property
    def recordings(self) -> dict[str, RecordingSpec]:
        """The agents whose responses an earlier run has recorded."""
        return {
            name: agent for name, agent in self.agents.items() if isinstance(agent, RecordingSpec)
        }

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
            check_devices(name, agent, self.fleet)
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
                raise ValueError(f"sharing.{learner}: is an agent that does not learn; drop it")
            if learner in sources:
                raise ValueError(f"sharing.{learner}: an agent always learns from itself; drop it")
