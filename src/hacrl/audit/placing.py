r"""Where in a response an answer may stand, as models place it, and where it may not count."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["in_a_box", "not_answers", "places"]


def in_a_box(answer: str) -> str:
    """A response with the answer where every verifier that extracts answers looks first."""
    return rf"So the answer is \boxed{{{answer}}}."


def places(answer: str, marker: str | None, *, boxed: bool = True) -> Iterator[tuple[str, str]]:
    """Kind and text of responses that say the answer, each in another place.

    Args:
        marker: text after which an answer stands; None for no marker.
        boxed: whether boxes are read; without box and marker the whole response is the answer.
    """
    if not boxed and marker is None:
        yield "the whole response", answer
        yield "white space around it", f"\n  {answer} \n"
        yield "after reasoning", f"<think>\nIs it this? Or that?\n</think>\n\n{answer}"
        return
    if _balanced(answer):
        yield "in a box", in_a_box(answer)
        yield "in a box in a formula", rf"Therefore $$\boxed{{{answer}}}$$"
        yield "in a framed box", rf"\[ \fbox{{ {answer} }} \]"
        yield "in a box, then a farewell", rf"\boxed{{{answer}}}" + "\n\nI hope this helps!"
        yield "in a box after reasoning", rf"<think>\boxed{{0}}? No.</think> \boxed{{{answer}}}"
        yield (
            "in a box under a heading",
            r"### Final Answer" + "\n\n" + rf"The answer is: **\boxed{{{answer}}}**",
        )
        if answer.isdecimal():
            yield "in a box without braces", rf"so it is $\boxed {answer}$."
    if marker is None or "\n" in answer:
        return
    yield "behind the marker", f"Step by step.\n{marker} {answer}"
    yield "behind the marker, with line ends of Windows", f"So:\r\n{marker} {answer}\r\n"
    yield "below the marker", f"So:\n{marker}\n{answer}"
    yield "behind the marker, bold", f"So:\n**{marker} {answer}**"
    yield "behind the marker, in bold", f"So:\n{marker} **{answer}**"
    yield "behind the marker, then a farewell", f"So:\n{marker} {answer} I hope this helps."
    if "$" not in answer:
        yield "behind the marker, in a formula", f"So:\n{marker} ${answer}$"
    if marker.strip("#") == "":
        yield "between markers", f"So:\n{marker} {answer} {marker}"
        yield "under a heading", f"So:\n\n{marker} Final Answer\n\n{answer}\n"
        yield "behind the marker, with a label", f"So:\n{marker} The final answer is: {answer}"


def not_answers(
    answer: str, marker: str | None, *, boxed: bool = True
) -> Iterator[tuple[str, str]]:
    """Kind and text of responses that contain the right answer or none, and give no answer."""
    said = in_a_box(answer) if boxed and _balanced(answer) else f"{marker or ''} {answer}".strip()
    yield "nothing", ""
    yield "no answer", "I do not know."
    yield "reasoning that was cut", f"<think>\nI try {said} but let me check"
    yield "reasoning that was cut, [THINK]", f"[THINK]I try {said} but let me check"
    yield "taken back in the reasoning", f"<think>{said}</think>\nI cannot tell after all."


def _balanced(text: str) -> bool:
    depth = 0
    for i, character in enumerate(text):
        if character in "{}" and (i == 0 or text[i - 1] != "\\"):
            depth += 1 if character == "{" else -1
            if depth < 0:
                return False
    return depth == 0
