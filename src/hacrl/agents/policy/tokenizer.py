"""Loading one agent's tokenizer, with the chat template that the recipe chooses."""

from __future__ import annotations

import os
import re

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from hacrl.agents.policy.begin import prepend_begin
from hacrl.agents.policy.source import cannot_load, location
from hacrl.agents.policy.templates import chat_template, parse_template
from hacrl.config.agents import AgentSpec, NamedTemplate
from hacrl.errors import UserError
from hacrl.paths import resolve
from hacrl.tasks.rows import read_text

__all__ = ["load_tokenizer"]

_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Jinja does not join two of them."""


def load_tokenizer(name: str, spec: AgentSpec) -> PreTrainedTokenizerBase:
    """The agent's tokenizer, with the recipe's chat template if there is one.

    Raises:
        ModelUnavailable: a hub id that cannot be fetched.
        UserError: not found, an unknown stop token, a missing or broken template, several of them
            and no choice, or a template argument that the template does not know.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            location(name, spec),
            revision=spec.revision,
            trust_remote_code=spec.trust_remote_code,
            **({"gguf_file": spec.gguf} if spec.gguf else {}),
        )
    # The library in Rust raises a bare Exception, for example for a vocabulary that is no text.
    except Exception as error:
        raise cannot_load(name, spec, "tokenizer of", error) from error
    _choose_template(name, spec, tokenizer)
    _check_template(name, spec, chat_template(tokenizer))
    if chat_template(tokenizer) is None:
        options = {"revision": spec.revision, "trust_remote_code": spec.trust_remote_code}
        prepend_begin(tokenizer, location(name, spec), **options)
    known = tokenizer.get_vocab()
    for token in spec.stop:
        if token not in known:
            raise UserError(f"agent {name}: stop token {token!r} is not in its vocabulary")
    return tokenizer


def _choose_template(name: str, spec: AgentSpec, tokenizer: PreTrainedTokenizerBase) -> None:
    """Make the recipe's chat template the tokenizer's, which is saved with it."""
    wanted, named = spec.chat_template, tokenizer.chat_template
    key = f"agents.{name}.chat_template"
    if isinstance(wanted, str):
        tokenizer.chat_template = _read_template(name, wanted)
    elif isinstance(wanted, NamedTemplate):
        known = named if isinstance(named, dict) else {"default": named} if named else {}
        if wanted.name not in known:
            raise UserError(
                f"{key}.name: {spec.model} has no chat template called {wanted.name}; it has "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        tokenizer.chat_template = {**known, "default": known[wanted.name]}
    elif isinstance(named, dict) and named and "default" not in named:
        raise UserError(
            f"agent {name}: {spec.model} has the chat templates {', '.join(sorted(named))} and no "
            f"default; choose with {key}={{name: {min(named)}}}"
        )


def _read_template(name: str, place: str) -> str:
    path = resolve(place)
    if not os.path.isfile(path):  # no error for a name that no file can have
        raise UserError(f"agent {name}: chat_template {place} is not a file")
    try:
        text = read_text(path)
    except UserError as error:
        raise UserError(f"agent {name}: chat_template {error}") from error
    if half := _HALF_CHARACTER.search(text):
        raise UserError(
            f"agent {name}: chat_template {place}: {half[0]} is half of a character, which no "
            "tokenizer takes; write the character itself, as UTF-8"
        )
    return text


def _check_template(name: str, spec: AgentSpec, template: str | None) -> None:
    if template is None:
        if spec.template_args:
            raise UserError(f"agent {name}: template_args given, but it has no chat template")
        return
    known = parse_template(name, template)
    for key in spec.template_args:
        if key not in known:
            raise UserError(
                f"agent {name}: its chat template has no argument {key}; it knows "
                f"{', '.join(sorted(known)) or 'none'}"
            )
