"""The files that a recipe names, as far as a resumed run reads them again.

The problems of tasks are not among these: they are compared by what they say, wherever they lie
(`hacrl.tasks.fingerprint`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from hacrl.agents.recorded import rollout_files
from hacrl.config.agents import AgentSpec
from hacrl.config.schema import Recipe
from hacrl.config.verifiers import CommandVerifier, PythonVerifier, SumVerifier, VerifierSpec
from hacrl.paths import resolve

__all__ = ["file_marks"]

_WEIGHTS = {".safetensors", ".bin", ".gguf", ".pt", ".pth", ".h5", ".msgpack"}
_MODEL = {".json", ".model", ".txt", ".jinja", ".py", ".tiktoken"}
"""Suffixes of what else makes up a model."""


def file_marks(recipe: Recipe) -> dict[str, str]:
    """SHA-256 of every file that the recipe names and this machine has, by `key: file`.

    The weights of a model are left out where a checkpoint replaces them: of agents that are trained
    whole, without a reference that stays as it was. The rollouts of a recording are among them.
    """
    files = ((key, path) for key, path in _files(recipe) if os.path.isfile(path))
    return {f"{key}: {path.name}": _digest(path) for key, path in files}


def _files(recipe: Recipe) -> Iterator[tuple[str, Path]]:
    for name, spec in recipe.models.items():
        reads_weights = spec.lora is not None or recipe.update.kl > 0 or not spec.learns
        yield from _of_agent(f"agents.{name}", spec, weights=reads_weights)
    for name, recording in recipe.recordings.items():
        files = rollout_files(resolve(recording.path))
        yield from ((f"agents.{name}.path", path) for path in files)
    if not isinstance(recipe.method, str):
        yield from _of_function("method.function", recipe.method.function)
    for name, task in recipe.tasks.items():
        yield from _of_verifier(f"tasks.{name}.verifier", task.verifier)


def _of_agent(key: str, spec: AgentSpec, *, weights: bool) -> Iterator[tuple[str, Path]]:
    if isinstance(spec.chat_template, str):
        yield f"{key}.chat_template", resolve(spec.chat_template)
    folder = resolve(spec.model)
    if spec.gguf is not None:  # tokenizer and configuration are in it as well
        yield f"{key}.gguf", folder / spec.gguf
    wanted = _MODEL | _WEIGHTS if weights and spec.gguf is None else _MODEL
    yield from ((f"{key}.model", path) for path in _in_folder(folder, wanted))
    if spec.lora is not None and spec.lora.adapter is not None:
        files = _in_folder(resolve(spec.lora.adapter), _MODEL)
        yield from ((f"{key}.lora.adapter", path) for path in files)


def _of_verifier(key: str, spec: VerifierSpec) -> Iterator[tuple[str, Path]]:
    match spec:
        case PythonVerifier():
            yield from _of_function(f"{key}.function", spec.function)
        case CommandVerifier():
            # A program found on the path is the system's; its arguments may be the user's files.
            for word in spec.argv[:1] if "/" in spec.argv[0] else ():
                yield f"{key}.argv", Path(word)
            yield from ((f"{key}.argv", Path(word)) for word in spec.argv[1:])
        case SumVerifier():
            for number, part in enumerate(spec.parts):
                yield from _of_verifier(f"{key}.parts.{number}.verifier", part.verifier)
        case _:
            return


def _of_function(key: str, function: str) -> Iterator[tuple[str, Path]]:
    module = importlib.util.find_spec(function.partition(":")[0])
    if module is not None and module.origin is not None:
        yield key, Path(module.origin)


def _in_folder(folder: Path, suffixes: set[str]) -> list[Path]:
    if not os.path.isdir(folder):  # False, too, where a name is too long for any file
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in suffixes)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
