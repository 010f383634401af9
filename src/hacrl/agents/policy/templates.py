"""Chat templates: which one an agent has, and what it makes of a prompt.

A template is a program that comes with a model or from a user. It may raise anything, run for
ever, or leave out what it was given.
"""

from __future__ import annotations

import html
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from types import FrameType
from typing import Any, Protocol

import jinja2.meta
from jinja2 import TemplateError, TemplateSyntaxError, nodes
from transformers import PreTrainedTokenizerBase

from hacrl.errors import UserError, first_line
from hacrl.records import Prompt

__all__ = ["TemplateReader", "chat_template", "parse_template", "prints_the_clock", "render"]

_SECONDS = 5.0
"""Processor time that a template may take for one prompt. Usual ones take a millisecond."""
_LONGEST = 10_000_000
"""Characters that it may make of one prompt, besides what the prompt has itself."""
_LARGEST_FACTOR = 1_000_000
"""Texts are multiplied to indent them; a constant like this one fills the memory."""
_SHORT = 16
"""Characters below which a problem may stand in a template by chance."""
_MARK = "7919 quokkas"
"""What no template says of itself."""
_TRAINING_TAGS = ("generation", "endgeneration")
"""Tags of Hugging Face's own that plain Jinja does not know."""

_CALLED = {"user": "problem", "system": "task's system message"}

_Render = Callable[[Prompt], str]


class TemplateReader(Protocol):
    """What it takes to render prompts."""

    @property
    def name(self) -> str: ...

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase: ...

    @property
    def template_args(self) -> Mapping[str, Any]: ...

    @property
    def clock(self) -> datetime:
        """What the template takes for now."""


class _Endless(Exception):  # noqa: N818 - says what the template is
    """The template has used up its time."""


class _Unknown(jinja2.ext.Extension):
    """Lets the parser read Hugging Face's own tags."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's interface

    def parse(self, parser: jinja2.parser.Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def chat_template(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The template that prompts go through, None if there is none: they are plain text then."""
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    return template or None


def parse_template(agent: str, template: str) -> set[str]:
    """Names of the variables that a template asks for.

    Raises:
        UserError: it is not in Jinja's syntax, or multiplies by what fills the memory.
    """
    syntax = jinja2.Environment(extensions=[_Unknown, "jinja2.ext.loopcontrols", "jinja2.ext.do"])
    try:
        tree = syntax.parse(template)
        for node in tree.find_all((nodes.Mul, nodes.Pow)):
            if _factor(node) > _LARGEST_FACTOR:
                raise UserError(
                    f"agent {agent}: its chat template multiplies by more than "
                    f"{_LARGEST_FACTOR:,} in line {node.lineno}; give another with "
                    f"agents.{agent}.chat_template"
                )
        return jinja2.meta.find_undeclared_variables(tree)
    except (TemplateSyntaxError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, TemplateSyntaxError) else ""
        raise UserError(
            f"agent {agent}: its chat template is broken ({line}{first_line(error)}); correct "
            f"it, or give another with agents.{agent}.chat_template"
        ) from error


def render(reader: TemplateReader, prompt: Prompt) -> str:
    """The prompt as the agent's template puts it, with the opening of a response behind it.

    A template may want a message's text as such, or as a list of parts as models that see images
    do; whichever keeps the text is used.

    Raises:
        UserError: the template fails, does not end, or leaves out part of the prompt.
    """
    troubles: list[UserError] = []
    for content in (str, _parts):

        def put(prompt: Prompt, content: Callable[[str], object] = content) -> str:
            return _apply(reader, prompt, content)

        try:
            return _complete(reader, prompt, put)
        except UserError as error:
            troubles.append(error)
    raise troubles[0]


def prints_the_clock(reader: TemplateReader) -> bool:
    """Whether what the agent reads depends on the time."""
    template = chat_template(reader.tokenizer)
    if template is None or "strftime_now" not in template:
        return False
    prompt = Prompt(id="", task="", text=_MARK, gold="")
    first, second = (
        _quietly(_At(reader, clock), prompt)
        for clock in (datetime(2001, 2, 3, 4, 5, 6), datetime(2022, 11, 10, 19, 18, 17))
    )
    return first != second


def _complete(reader: TemplateReader, prompt: Prompt, put: _Render) -> str:
    """What `put` makes of a prompt, if all of the prompt is in it, and not as Python holds it."""
    rendered = put(prompt)
    if _holds(rendered, str(_parts(prompt.text))):
        raise _left_out(reader.name, "problem", prompt)
    for role, text in reversed(prompt.turns):
        if text and not _holds(rendered, text):
            raise _left_out(reader.name, _CALLED.get(role, f"{role}'s turn"), prompt)
    if 0 < len(prompt.text) < _SHORT:  # it may stand in the template itself
        marked = replace(prompt, text=f"{prompt.text} {_MARK}")
        if not _holds(put(marked), _MARK):
            raise _left_out(reader.name, "problem", prompt)
    return rendered


def _left_out(agent: str, what: str, prompt: Prompt) -> UserError:
    remedy = "" if what == "problem" else "drop tasks.*.system, or "
    return UserError(
        f"agent {agent}: its chat template leaves out the {what}, or part of it, in prompt "
        f"{prompt.id}; {remedy}give it another template with agents.{agent}.chat_template"
    )


def _holds(rendered: str, text: str) -> bool:
    """Whether a text is there, be it trimmed, indented or escaped."""
    if text.strip() in rendered:
        return True
    squashed = _squashed(rendered)
    forms = (
        text,
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
    )
    return any(_squashed(form) in squashed for form in forms) or (
        _squashed(text) in _squashed(html.unescape(rendered))
    )


def _squashed(text: str) -> str:
    return "".join(text.split()).casefold()


def _parts(text: str) -> object:
    return [{"type": "text", "text": text}]


def _apply(reader: TemplateReader, prompt: Prompt, content: Callable[[str], object]) -> str:
    messages = [{"role": role, "content": content(text)} for role, text in prompt.turns]
    try:
        with _limited(_SECONDS):
            rendered = reader.tokenizer.apply_chat_template(
                messages,  # type: ignore[arg-type]  # its types do not know of parts
                add_generation_prompt=True,
                tokenize=False,
                **{"strftime_now": reader.clock.strftime, **reader.template_args},
            )
    except Exception as error:  # a template is a program, and may raise anything
        raise _failure(reader, prompt, error) from error
    assert isinstance(rendered, str)
    if len(rendered) > _LONGEST + 2 * sum(len(text) for _, text in prompt.turns):
        raise UserError(
            f"agent {reader.name}: its chat template makes {len(rendered):,} characters of prompt "
            f"{prompt.id}; give it another with agents.{reader.name}.chat_template"
        )
    return rendered


def _failure(reader: TemplateReader, prompt: Prompt, error: Exception) -> UserError:
    """One line about a template that did not come to its end."""
    another = f"give it another with agents.{reader.name}.chat_template"
    head = f"agent {reader.name}: its chat template"
    if isinstance(error, _Endless):
        return UserError(f"{head} does not end within {_SECONDS:g} s of work; {another}")
    if isinstance(error, TemplateSyntaxError):
        return UserError(f"{head} is broken (line {error.lineno}: {first_line(error)}); {another}")
    reason = first_line(error)
    if not isinstance(error, TemplateError):  # Python's own say little without their names
        reason = f"{type(error).__name__}: {reason}"
    if isinstance(error, TypeError) and "no loader" in reason:
        reason = "it includes another file, which a chat template cannot"
    template = chat_template(reader.tokenizer)
    assert template is not None
    for key in ("tools", "documents"):
        if key in _asked_for(template) and not isinstance(error, ZeroDivisionError):
            return UserError(
                f"{head} fails on prompt {prompt.id} ({reason}); it asks for {key}, which prompts "
                f"here do not have: {another}"
            )
    if prompt.system is not None:
        another = f"drop the task's system, or {another}"
    return UserError(f"{head} refuses prompt {prompt.id} ({reason}); {another}")


def _asked_for(template: str) -> Sequence[str]:
    try:
        return sorted(parse_template("", template))
    except UserError:
        return ()


def _factor(node: nodes.Node) -> float:
    """By how much a product or a power of constants multiplies at least."""
    if isinstance(node, nodes.Const) and isinstance(node.value, int):
        return float(min(abs(node.value), 10**9))
    if isinstance(node, nodes.Mul):
        return max(_factor(node.left), 1.0) * max(_factor(node.right), 1.0)
    if isinstance(node, nodes.Pow):
        base, exponent = _factor(node.left), _factor(node.right)
        return float(base**exponent) if exponent < 20 else float("inf")
    return 1.0


class _At:
    """A reader at another time."""

    def __init__(self, reader: TemplateReader, clock: datetime) -> None:
        self.name = reader.name
        self.tokenizer = reader.tokenizer
        self.template_args = reader.template_args
        self.clock = clock


def _quietly(reader: TemplateReader, prompt: Prompt) -> str | None:
    try:
        return render(reader, prompt)
    except UserError:
        return None


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Let templates run for so much processor time.

    Nested loops can take years, and nothing else stops them in whatever thread they run: a
    template's lines are watched as a debugger does it.
    """
    end = time.thread_time() + seconds

    def watch(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != "<template>":
            return None
        if time.thread_time() > end:
            raise _Endless
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)
