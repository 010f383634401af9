"""Chat templates that are wrong, odd or hostile."""

from __future__ import annotations

import dataclasses
import sys
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.agents.policy import templates
from hacrl.agents.policy.encoding import encode_prompt
from hacrl.agents.policy.policy import Policy
from hacrl.agents.policy.templates import parse_template, prints_the_clock, render
from hacrl.errors import UserError
from hacrl.records import Prompt
from tests.agents.conftest import byte_tokenizer, make_policy

LONG = 'If 12 apples cost 3 € and <b>7</b> pears cost "5", what do\n\n  both cost?\tSay it.  '


def each(content: str) -> str:
    """A template that puts every message so."""
    return f"{{% for m in messages %}}{{{{ m.role }}}}: {content}\n{{% endfor %}}assistant:"


def policy_with(template: str) -> Policy:
    policy = make_policy("kim", "qwen", byte_tokenizer(begin=True, merges=False))
    policy.tokenizer.chat_template = template
    return policy


def prompt_of(text: str = LONG, system: str | None = None) -> Prompt:
    return Prompt("sums/0", "sums", text, "", system)


def refused(template: str, prompt: Prompt | None = None) -> str:
    policy = policy_with(template)

    def use() -> None:
        parse_template("kim", template)
        encode_prompt(policy, prompt or prompt_of())

    with pytest.raises(UserError) as caught:
        use()
    text = str(caught.value)
    assert text.startswith("agent kim: its chat template")
    assert len(text.splitlines()) == 1
    return text


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ 1 / 0 }}{{ messages }}", "ZeroDivisionError"),
        ("{{ 1 % 0 }}{{ messages }}", "ZeroDivisionError"),
        ("{% include 'other.jinja' %}", "includes another file"),
        ("{% import 'm.jinja' as m %}{{ m.x() }}", "includes another file"),
        ("{% extends 'base.jinja' %}", "includes another file"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ nothing.at.all }}", "'nothing' is undefined"),
        ("{{ messages[7].content }}", "no element 7"),
        ("{{ messages[0].content + 1 }}", "TypeError"),
        ("{{ messages[0].content.index('kiwi') }}", "ValueError"),
        ("{{ messages | tojson | fromjson }}", "fromjson"),
        ("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "RecursionError"),
        ("{% for i in range(1000000000) %}{% endfor %}", "range"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{% for t in tools %}{{ t.name }}{% endfor %}", "asks for tools, which prompts here do"),
        ("{{ documents[0].text }}", "asks for documents"),
        ("{{ tools[0].name }}", "asks for tools"),
        ("{% for %}", "broken (line 1"),
        ("a\n{{ messages[0].content ", "broken (line 2"),
        ("{{ 'a' * 10000000000 }}", "multiplies by more than 1,000,000 in line 1"),
        ("{{ 'a' * 99999 * 99999 }}", "multiplies by more than"),
        ("\n{{ 10 ** 10 ** 10 }}", "multiplies by more than 1,000,000 in line 2"),
    ],
)
def test_whatever_a_template_does_is_one_line(template: str, reason: str) -> None:
    assert reason in refused(template)


def test_a_template_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_SECONDS", 0.2)
    inner = "{% for j in range(99999) %}{% set x = j %}{% endfor %}"
    tracer = sys.gettrace()
    for body in (inner, "{% macro f() %}" + inner + "{% endmacro %}{{ f() }}"):
        assert "does not end" in refused(f"{{% for i in range(99999) %}}{body}{{% endfor %}}")
    assert sys.gettrace() is tracer


def test_a_template_that_says_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_LONGEST", 1000)
    assert "makes 2," in refused("{% for i in range(2000) %}x{% endfor %}{{ messages[0].content }}")


def test_advice_about_the_system_message_only_where_there_is_one() -> None:
    template = "{{ raise_exception('no system role') }}"
    assert "system" not in refused(template).replace("no system role", "")
    assert "drop the task's system" in refused(template, prompt_of(system="Be brief."))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{{ m.contnet }}",
        "{{ m.content[:20] }}",
        "{{ m.content[-20:] }}",
        "{{ m.content | truncate(30) }}",
        "{{ m.content.split('apples')[0] }}",
        "{{ m.content | replace('pears', '') }}",
        "{{ m.content | length }}",
        "{% for p in m.content %}{% if p.type == 'image' %}{{ p.text }}{% endif %}{% endfor %}",
    ],
)
def test_a_template_that_leaves_out_the_problem_or_part_of_it(content: str) -> None:
    assert "leaves out the problem, or part of it, in prompt sums/0" in refused(each(content))


@pytest.mark.parametrize("text", ["1+1=", "2", "kim", "user"])
def test_a_short_problem_that_the_template_has_itself(text: str) -> None:
    constant = "user: kim, what is 1+1= or 2?"
    assert "leaves out the problem" in refused(constant, prompt_of(text))
    assert text in render(policy_with(each("{{ m.content }}")), prompt_of(text))


def test_a_system_message_that_is_left_out() -> None:
    template = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"
    text = refused(template, prompt_of(system="Answer in Latin."))
    assert "leaves out the task's system message" in text
    assert "drop tasks.*.system" in text
    assert LONG in render(policy_with(template), prompt_of())


@pytest.mark.parametrize(
    "content",
    [
        "{{ m.content }}",
        "{{ m['content'] | trim }}",
        "{{ m.content | tojson }}",
        "{{ m.content | tojson(ensure_ascii=True) }}",
        "{{ m.content | e }}",
        "{{ m.content | indent(4) }}",
        "{{ m.content.split() | join(' ') }}",
        "{{ messages }}",
        "{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}",
        "{% for p in m.content %}{{ p['text'] | trim }}{% endfor %}",
        "{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text }}{% endif %}",
        "{% generation %}{{ m.content }}{% endgeneration %}",
        "{% for l in m.content.splitlines() %}{% if not l %}{% continue %}{% endif %}{{ l }}\n"
        "{% endfor %}",
        "{{ ' ' * 4 }}{{ m.content }}",
    ],
)
def test_templates_that_keep_the_text_are_used(content: str) -> None:
    for template in (each(content), each(content) + "{{ tools }}"):
        parse_template("kim", template)
        policy = policy_with(template)
        ids = encode_prompt(policy, prompt_of(system="Be brief."))
        assert policy.tokenizer.decode(ids) == render(policy, prompt_of(system="Be brief."))


@given(text=st.text(min_size=1), other=st.text(min_size=1))
def test_different_problems_are_different_prompts(text: str, other: str) -> None:
    policy = policy_with(each("{{ m.content }}"))
    first, second = (render(policy, prompt_of(one)) for one in (text, other))
    assert (first == second) == (text == other)


DATED = "{{ strftime_now('%d %b %Y %H:%M') }} " + each("{{ m.content }}")
LLAMA = (
    "{% if not date_string is defined %}{% if strftime_now is defined %}"
    "{% set date_string = strftime_now('%d %b %Y') %}{% else %}"
    "{% set date_string = '26 Jul 2024' %}{% endif %}{% endif %}Today Date: {{ date_string }}\n"
    + each("{{ m.content }}")
)


def test_a_template_sees_the_clock_that_it_is_given() -> None:
    clock = datetime(2024, 2, 29, 23, 58)
    for template, date in ((DATED, "29 Feb 2024 23:58"), (LLAMA, "Today Date: 29 Feb 2024")):
        policy = dataclasses.replace(policy_with(template), clock=clock)
        assert prints_the_clock(policy)
        assert render(policy, prompt_of()).startswith(date)
        assert render(policy, prompt_of()) == render(policy, prompt_of())
    fixed = dataclasses.replace(policy_with(LLAMA), template_args={"date_string": "1 May 2020"})
    assert not prints_the_clock(fixed)
    assert render(fixed, prompt_of()).startswith("Today Date: 1 May 2020")
    assert not prints_the_clock(policy_with(each("{{ m.content }}")))
