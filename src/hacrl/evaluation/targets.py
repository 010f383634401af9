"""What is evaluated: agents of runs, checkpoints, model folders, models of the Hugging Face Hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from hacrl.config import AgentSpec, Recipe, load_recipe
from hacrl.config.agents import NamedTemplate
from hacrl.config.bundled import bundled_recipes
from hacrl.config.lora import Lora
from hacrl.errors import UserError
from hacrl.paths import BUNDLED, resolve
from hacrl.runs.clock import recorded_clock

__all__ = ["Target", "find_targets", "target_fingerprint", "without_thinking"]

_PARTS = {".json", ".safetensors", ".bin", ".model", ".txt", ".jinja", ".gguf", ".py"}
"""Suffixes of files that make up a model."""
_ADAPTER = "adapter_config.json"
_SWITCH = "enable_thinking"
"""The variable by which chat templates of reasoning models turn thinking on and off."""


@dataclass(frozen=True, slots=True)
class Target:
    """One agent to evaluate.

    Args:
        label: its name in tables; unique.
        agent: its name in its run; agents of two runs are compared by it.
        origin: what the user wrote.
        spec: how it is loaded.
        clock: the time that its chat template sees; that of its run, or None for the present.
    """

    label: str
    agent: str
    origin: str
    spec: AgentSpec
    clock: datetime | None = None


def find_targets(
    texts: Sequence[str], *, dtype: str | None = None, device: str | None = None
) -> list[Target]:
    """The agents that a user names.

    A run folder stands for all agents that it has trained, a recipe for its models before training,
    those that do not learn included. An agent that
    comes from a run keeps what the run's recipe says about it (stop tokens, arguments of its
    template).

    Args:
        dtype: of the weights, other than the recipe's or float32.
        device: other than the recipe's.

    Raises:
        UserError: there is nothing of that name, or it contains no model.
    """
    changes = {key: value for key, value in (("dtype", dtype), ("device", device)) if value}
    targets = [target for text in dict.fromkeys(texts) for target in _find(text)]
    labels = [target.label for target in targets]
    return [
        replace(
            target,
            spec=AgentSpec.model_validate({**target.spec.model_dump(), **changes}),
            # Two runs of the same name in different places are distinguished by their paths.
            label=target.label if labels.count(target.label) == 1 else _place(target),
        )
        for target in targets
    ]


def without_thinking(target: Target) -> Target:
    """The target with thinking off, if its chat template has the switch and it is not set.

    Raises:
        UserError: its tokenizer cannot be loaded.
    """
    from hacrl.agents.policy.templates import chat_template
    from hacrl.agents.policy.tokenizer import load_tokenizer

    args = target.spec.template_args
    template = chat_template(load_tokenizer(target.label, target.spec))
    if _SWITCH in args or template is None or _SWITCH not in template:
        return target
    spec = target.spec.model_copy(update={"template_args": {**args, _SWITCH: False}})
    return replace(target, spec=spec)


def target_fingerprint(target: Target) -> str:
    """Equal for targets with equal answers: SHA-256 over everything that the answers depend on.

    It covers the contents of a local folder, so the folder may be moved, or the commit of a Hub
    model.

    Raises:
        UserError: the model cannot be found.
    """
    spec = target.spec
    folder = resolve(spec.model)
    digest = hashlib.sha256()
    adapter = spec.lora.adapter if spec.lora else None
    for place in (folder, *([resolve(adapter)] if adapter else [])):
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            if path.suffix in _PARTS and path.is_file():
                with path.open("rb") as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest()
                digest.update(f"{path.name}\0{content}\n".encode())
    if not folder.is_dir():
        from hacrl.agents.policy.source import load_config

        commit = getattr(load_config(target.label, spec), "_commit_hash", None)
        digest.update(f"{spec.model}@{commit}\n".encode())
    chosen = spec.chat_template
    template = resolve(chosen) if isinstance(chosen, str) else None
    rest = {
        "gguf": spec.gguf,
        "dtype": spec.dtype,
        "template_args": spec.template_args,
        "stop": spec.stop,
        **({"lora": spec.lora.quantization} if spec.lora else {}),
        "template": template.read_text("utf-8") if template and template.is_file() else None,
        **({"named": chosen.name} if isinstance(chosen, NamedTemplate) else {}),
        **({"split": True} if spec.split_special_tokens else {}),
    }
    if target.clock is not None and "strftime_now" in _own_template(target):
        rest["clock"] = target.clock.isoformat()
    digest.update(json.dumps(rest, sort_keys=True).encode())
    return digest.hexdigest()


def _own_template(target: Target) -> str:
    from hacrl.agents.policy.templates import chat_template
    from hacrl.agents.policy.tokenizer import load_tokenizer

    return chat_template(load_tokenizer(target.label, target.spec)) or ""


def _place(target: Target) -> str:
    origin = target.origin.rstrip("/")
    return origin if origin.endswith(f"/{target.agent}") else f"{origin}/{target.agent}"


def _find(text: str) -> list[Target]:
    path = resolve(text)
    if path.is_dir():
        return _in_folder(text, path)
    if path.is_file() and path.suffix in {".yaml", ".yml"}:
        return _of_recipe(text, load_recipe(path))
    if text in (known := bundled_recipes()):
        return _of_recipe(text, load_recipe(known[text]))
    if path.is_file():
        raise UserError(f"target {text}: is a file; name the folder of a run or a model")
    if text.startswith((".", "/", "~", BUNDLED)) or text.count("/") > 1:
        raise UserError(f"target {text}: there is no such folder (looked in {Path.cwd()})")
    return [Target(text, text, text, AgentSpec(model=text))]


def _in_folder(text: str, path: Path) -> list[Target]:
    path = path.absolute()
    run = _run_above(path)
    recipe = load_recipe(run / "recipe.yaml") if run is not None else None
    clock = recorded_clock(run) if run is not None else None
    if _is_model(path):
        return [replace(_saved(text, path, recipe), clock=clock)]
    for folder in (path / "agents", path):
        agents = [agent for agent in sorted(_folders(folder)) if _is_model(agent)]
        if recipe is not None:  # in the recipe's order
            order = {name: i for i, name in enumerate(recipe.agents)}
            agents.sort(key=lambda agent: order.get(agent.name, len(order)))
        if agents:
            return [replace(_saved(text, agent, recipe), clock=clock) for agent in agents]
    if recipe is not None:
        raise UserError(
            f"target {text}: the run has saved no agents yet; they appear in {path / 'agents'} "
            "when it ends"
        )
    raise UserError(
        f"target {text}: has neither a model (config.json) nor a run (recipe.yaml); name the "
        "folder of a run, a checkpoint or a model"
    )


def _is_model(path: Path) -> bool:
    return any((path / name).is_file() for name in ("config.json", _ADAPTER))


def _folders(path: Path) -> Iterable[Path]:
    return (folder for folder in path.iterdir() if folder.is_dir()) if path.is_dir() else ()


def _run_above(path: Path) -> Path | None:
    """The run that a folder is or belongs to: RUN/agents/NAME, a checkpoint's agent."""
    for folder in (path, *path.parents[:4]):
        if (folder / "recipe.yaml").is_file() and (folder / "state.json").is_file():
            return folder
    return None


def _saved(text: str, path: Path, recipe: Recipe | None) -> Target:
    name = path.name
    known = recipe.models.get(name) if recipe is not None else None
    label = f"{recipe.name}/{name}" if recipe is not None and known is not None else name
    if (path / _ADAPTER).is_file():
        return Target(label, name, text, _with_adapter(path, known))
    if known is None:
        return Target(label, name, text, AgentSpec(model=str(path)))
    # Its template has been saved with its tokenizer.
    changes = {"model": str(path), "gguf": None, "revision": None, "chat_template": None}
    return Target(label, name, text, known.model_copy(update={**changes, "lora": None}))


def _with_adapter(path: Path, known: AgentSpec | None) -> AgentSpec:
    """An adapter on its base model, which its run's recipe or its own configuration names."""
    if known is None:
        try:
            base = json.loads((path / _ADAPTER).read_text("utf-8"))["base_model_name_or_path"]
            return AgentSpec(model=base, lora=Lora(adapter=str(path)))
        except (ValueError, KeyError) as error:
            raise UserError(
                f"{path / _ADAPTER}: does not name the model that the adapter belongs to"
            ) from error
    quantization = known.lora.quantization if known.lora else "none"
    lora = Lora(adapter=str(path), quantization=quantization)
    return known.model_copy(update={"lora": lora})


def _of_recipe(text: str, recipe: Recipe) -> list[Target]:
    return [
        Target(f"{recipe.name}/{name} before", name, text, spec, recipe.clock)
        for name, spec in recipe.models.items()
    ]
