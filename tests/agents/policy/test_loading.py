"""Loading and saving models, and what is refused with a clear message."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, BertConfig, BertModel

from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.policy import Policy, save_policy
from hacrl.agents.policy.tokenizer import load_tokenizer
from hacrl.config import AgentSpec
from hacrl.errors import UserError


def spec(folder: Path, **changes: object) -> AgentSpec:
    return AgentSpec.model_validate({"model": str(folder), "device": "cpu", **changes})


@pytest.fixture
def folder(lee: Policy, tmp_path: Path) -> Path:
    save_policy(lee, tmp_path / "lee")
    return tmp_path / "lee"


def test_a_saved_agent_is_an_ordinary_hugging_face_model(lee: Policy, folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for name, value in lee.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    assert tokenizer("12+1")["input_ids"] == lee.tokenizer("12+1")["input_ids"]
    assert model.generation_config.eos_token_id == lee.stop_ids[0]


def test_stop_ids_are_the_tokenizers_the_models_and_the_recipes(lee: Policy, folder: Path) -> None:
    content = json.loads((folder / "generation_config.json").read_text())
    content["eos_token_id"] = [4, lee.stop_ids[0]]
    (folder / "generation_config.json").write_text(json.dumps(content))
    policy = load_policy("lee", spec(folder, stop=["abc"]))
    assert policy.stop_ids == (lee.stop_ids[0], 4, lee.tokenizer.get_vocab()["abc"])


def test_dropout_is_off_whatever_the_model_says(folder: Path) -> None:
    content = json.loads((folder / "config.json").read_text())
    content["attention_dropout"] = 0.5
    (folder / "config.json").write_text(json.dumps(content))
    policy = load_policy("lee", spec(folder))
    assert policy.model.config.attention_dropout == 0.0
    assert not policy.model.training


def test_a_model_that_is_no_causal_language_model(tmp_path: Path) -> None:
    config = BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    config.architectures = ["BertModel"]
    BertModel(config).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(
        (tmp_path / "config.json").read_text().replace('"bert"', '"vit"')
    )
    with pytest.raises(UserError, match=r"agent eve.*not a causal language model"):
        load_policy("eve", spec(tmp_path))


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"agent eve.*nowhere does not exist"):
        load_policy("eve", spec(tmp_path / "nowhere"))


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"agent eve.*cannot be loaded.*config\.json"):
        load_policy("eve", spec(tmp_path))


def test_truncated_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"agent eve: weights of .* cannot be loaded"):
        load_policy("eve", spec(folder))


def test_weights_that_lack_a_tensor(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"agent eve: .*incomplete.*model\.norm\.weight"):
        load_policy("eve", spec(folder))


def test_a_stop_token_that_the_tokenizer_lacks(folder: Path) -> None:
    with pytest.raises(UserError, match=r"agent lee: stop token '<halt>' is not"):
        load_policy("lee", spec(folder, stop=["<halt>"]))


def test_a_missing_chat_template(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"agent lee: chat_template .*none\.jinja is not a file"):
        load_policy("lee", spec(folder, chat_template=str(tmp_path / "none.jinja")))


def test_template_arguments_are_checked_against_the_template(folder: Path, tmp_path: Path) -> None:
    template = tmp_path / "template.jinja"
    template.write_text("{% if thinking %}T{% endif %}{{ messages[0].content }}")
    known = spec(folder, chat_template=str(template), template_args={"thinking": True})
    assert load_policy("lee", known).template_args == {"thinking": True}
    unknown = spec(folder, chat_template=str(template), template_args={"thinkin": True})
    with pytest.raises(UserError, match=r"agent lee.*no argument thinkin.*thinking"):
        load_policy("lee", unknown)
    without = spec(folder, template_args={"thinking": True})
    with pytest.raises(UserError, match=r"agent lee.*no chat template"):
        load_policy("lee", without)


def test_a_device_that_is_not_there(folder: Path) -> None:
    with pytest.raises(UserError, match=r"agent lee: device .* is not available"):
        load_policy("lee", spec(folder, device="cuda:63"))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\xff{{ messages }}", "byte 0 is not UTF-8"),
        (rb"{{ '\ud83d' }}", r"\ud83d is half of a character"),
    ],
)
def test_a_template_that_is_no_text_is_named(
    qwen_folder: Path, tmp_path: Path, content: bytes, part: str
) -> None:
    template = tmp_path / "odd.jinja"
    template.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_tokenizer("kim", AgentSpec(model=str(qwen_folder), chat_template=str(template)))
    assert str(caught.value).startswith("agent kim: chat_template")
    assert str(template) in str(caught.value)
    assert part in str(caught.value)


def test_a_vocabulary_that_is_no_text_is_named(qwen_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(qwen_folder, tmp_path / "model")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["\ud83d"] = len(tokenizer["model"]["vocab"])
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(UserError, match=r"agent kim: tokenizer of .* cannot be loaded"):
        load_tokenizer("kim", AgentSpec(model=str(folder)))
