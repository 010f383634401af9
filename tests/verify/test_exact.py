import pytest

from hacrl.records import Outcome, Prompt, Verdict
from hacrl.verify import Exact


@pytest.mark.parametrize(
    ("response", "verdict"),
    [
        ("#### yes", Verdict(1.0, Outcome.RIGHT, "yes")),
        (r"\boxed{ yes }", Verdict(1.0, Outcome.RIGHT, "yes")),
        ("#### Yes", Verdict(-0.5, Outcome.WRONG, "Yes")),
        ("#### yes it is", Verdict(-0.5, Outcome.WRONG, "yes it is")),
        ("yes", Verdict(-0.5, Outcome.NO_ANSWER)),
        (r"#### \text{yes}", Verdict(1.0, Outcome.RIGHT, r"\text{yes}")),
        (r"so \boxed{\textbf{yes}}", Verdict(1.0, Outcome.RIGHT, r"\textbf{yes}")),
        ("#### **yes**", Verdict(1.0, Outcome.RIGHT, "**yes**")),
        ("**#### yes**", Verdict(1.0, Outcome.RIGHT, "yes")),
        ("#### yes.", Verdict(1.0, Outcome.RIGHT, "yes.")),
        (r"#### $\text{yes}$.", Verdict(1.0, Outcome.RIGHT, r"$\text{yes}$.")),
        ("#### yes ####", Verdict(1.0, Outcome.RIGHT, "yes")),
        ("#### Final Answer\n\nyes", Verdict(1.0, Outcome.RIGHT, "yes")),
        ("#### yes. I hope this helps!", Verdict(1.0, Outcome.RIGHT, "yes")),
        (r"#### \text{yes} \text{or no}", Verdict(-0.5, Outcome.WRONG, r"\text{yes} \text{or no}")),
        ("#### **yes** or **no**", Verdict(-0.5, Outcome.WRONG, "**yes** or **no**")),
        ("#### ye s", Verdict(-0.5, Outcome.WRONG, "ye s")),
    ],
)
def test_verdicts(response: str, verdict: Verdict) -> None:
    verifier = Exact(wrong=-0.5)
    assert verifier(Prompt("t/0", "t", "?", "yes"), response) == verdict


@pytest.mark.parametrize("gold", [r"\text{yes}", "**yes**", "yes.", "Answer: yes", "#### yes"])
@pytest.mark.parametrize("response", ["#### yes", r"\boxed{\text{yes}}", "#### The answer is yes."])
def test_markup_is_no_part_of_a_gold_either(gold: str, response: str) -> None:
    assert Exact()(Prompt("t/0", "t", "?", gold), response).outcome is Outcome.RIGHT


def test_empty_gold_is_not_verifiable() -> None:
    assert Exact()(Prompt("t/0", "t", "?", " "), "#### a") == Verdict(None, Outcome.NOT_VERIFIABLE)


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (" 14\n", Outcome.RIGHT),
        ("**14**", Outcome.RIGHT),
        ("[THINK]9[/THINK]14", Outcome.RIGHT),
        ("#### 14", Outcome.WRONG),
        ("<think>9</think>14", Outcome.RIGHT),
        ("<think>14", Outcome.NO_ANSWER),
        ("", Outcome.NO_ANSWER),
    ],
)
def test_without_a_marker_the_whole_response_is_the_answer(response: str, outcome: Outcome) -> None:
    prompt = Prompt(id="t/0", task="t", text="", gold="14")
    assert Exact(marker=None).screen(prompt, response).outcome is outcome
