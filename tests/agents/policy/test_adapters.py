"""Adapters: where they act, where not, and that they come back as they were."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from hacrl.agents.learning.learner import Learner
from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.policy.adapters import tied_layer, try_adapter
from hacrl.agents.policy.loading import SharedModels, load_policy
from hacrl.agents.policy.policy import Policy, restore_policy, save_policy
from hacrl.config import AgentSpec
from hacrl.config.algorithm import Clip
from hacrl.config.learning import Optimizer, Update
from hacrl.config.lora import Lora
from hacrl.errors import UserError
from hacrl.records import Rollout
from tests.algorithms import algorithm
from tests.tolerances import assert_close, terms

pytestmark = pytest.mark.numerics

IDS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1]])


def spec(folder: Path, **lora: object) -> AgentSpec:
    return AgentSpec(
        model=str(folder), device="cpu", lora=Lora.model_validate({"rank": 2, "alpha": 4} | lora)
    )


@torch.no_grad()
def hidden(policy: Policy) -> Tensor:
    policy.activate()
    return policy.hidden_states(IDS, torch.ones_like(IDS))


@torch.no_grad()
def disturb(policy: Policy, amount: float = 0.1) -> None:
    for key, parameter in policy.model.named_parameters():
        if f".{policy.adapter}." in key:
            parameter.add_(amount)


def test_agents_of_one_model_hold_it_once_and_do_not_notice_each_other(qwen_folder: Path) -> None:
    shared = SharedModels()
    kim = load_policy("kim", spec(qwen_folder), shared=shared)
    may = load_policy("may", spec(qwen_folder, rank=3), shared=shared)
    assert kim.model is may.model
    plain = load_policy("eve", AgentSpec(model=str(qwen_folder), device="cpu"))
    start = hidden(plain)
    assert torch.equal(hidden(kim), start), "a new adapter changes nothing"
    disturb(kim)
    assert not torch.equal(hidden(kim), start)
    assert torch.equal(hidden(may), start)
    changed = hidden(kim)
    disturb(may)
    assert torch.equal(hidden(kim), changed)
    base = Policy("ref", kim.model, kim.tokenizer, kim.stop_ids, {}, kim.generation_config)
    assert torch.equal(hidden(base), start), "the reference is the model without adapter"
    kim.activate()
    trained = {key for key, p in kim.model.named_parameters() if p.requires_grad}
    assert trained
    assert all(".kim." in key for key in trained)


def test_models_are_shared_only_where_they_are_the_same(qwen_folder: Path) -> None:
    shared = SharedModels()
    kim = load_policy("kim", spec(qwen_folder), shared=shared)
    half = spec(qwen_folder).model_copy(update={"dtype": "bfloat16"})
    may = load_policy("may", half, shared=shared)
    assert kim.model is not may.model
    assert {p.dtype for k, p in may.model.named_parameters() if ".may." in k} == {torch.float32}
    assert may.model.get_input_embeddings().weight.dtype == torch.bfloat16


def test_the_start_of_an_adapter_depends_on_seed_and_name_alone(qwen_folder: Path) -> None:
    def start(name: str, seed: int) -> list[Tensor]:
        state = torch.random.get_rng_state()
        policy = load_policy(name, spec(qwen_folder), seed=seed)
        assert torch.equal(state, torch.random.get_rng_state())
        return [p for k, p in policy.model.named_parameters() if "lora_A" in k]

    first = start("kim", 0)
    assert all(torch.equal(a, b) for a, b in zip(first, start("kim", 0), strict=True))
    assert not torch.equal(first[0], start("kim", 1)[0])
    assert not torch.equal(first[0], start("may", 0)[0])


def test_a_saved_adapter_is_peft_s_and_comes_back(qwen_folder: Path, tmp_path: Path) -> None:
    shared = SharedModels()
    kim = load_policy("kim", spec(qwen_folder), shared=shared)
    may = load_policy("may", spec(qwen_folder), shared=shared)
    disturb(kim)
    may.activate()  # saving must not depend on whose adapter acts
    save_policy(kim, tmp_path / "kim")
    wanted = hidden(kim)
    peft = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(qwen_folder), str(tmp_path / "kim")
    )
    with torch.no_grad():
        theirs = peft.get_base_model().base_model(input_ids=IDS).last_hidden_state
    assert_close(theirs, wanted, terms(kim.model, 4))
    fresh = load_policy("kim", spec(qwen_folder))
    restore_policy(fresh, tmp_path / "kim")
    assert torch.equal(hidden(fresh), wanted)
    started = AgentSpec(
        model=str(qwen_folder), device="cpu", lora=Lora(adapter=str(tmp_path / "kim"))
    )
    assert torch.equal(hidden(load_policy("eve", started)), wanted)


@pytest.mark.parametrize(
    "changes",
    [
        {"target_modules": r".*\.(q|v)_proj"},
        {"target_modules": r"model\.layers\.1\.mlp\..*_proj"},
        {"target_modules": "all-linear"},
        {"target_modules": ["q_proj", "up_proj"], "exclude_modules": ["lm_head", "k_proj"]},
        {"target_modules": ["q_proj"], "layers_to_transform": [1], "layers_pattern": "layers"},
        {"target_modules": ["q_proj", "v_proj"], "rank_pattern": {"v_proj": 1}},
        {"target_modules": ["q_proj"], "use_rslora": True},
        {"target_modules": ["q_proj"], "use_dora": True},
    ],
)
def test_an_adapter_keeps_the_settings_that_it_came_with(
    llama_folder: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    config = LoraConfig(r=2, lora_alpha=4, task_type="CAUSAL_LM", **changes)
    base = AutoModelForCausalLM.from_pretrained(llama_folder)
    get_peft_model(base, config).save_pretrained(tmp_path / "theirs")
    started = AgentSpec(
        model=str(llama_folder), device="cpu", lora=Lora(adapter=str(tmp_path / "theirs"))
    )
    policy = load_policy("lee", started)
    disturb(policy)
    save_policy(policy, tmp_path / "ours")
    try_adapter("lee", policy.model, tmp_path / "ours")
    theirs, ours = (
        json.loads((tmp_path / name / "adapter_config.json").read_text())
        for name in ("theirs", "ours")
    )
    for key in changes:
        wanted, found = theirs[key], ours[key]
        as_set = isinstance(wanted, list)
        assert (sorted(found) == sorted(wanted)) if as_set else (found == wanted), key
    again = AgentSpec(
        model=str(llama_folder), device="cpu", lora=Lora(adapter=str(tmp_path / "ours"))
    )
    assert torch.equal(hidden(load_policy("lee", again)), hidden(policy))


def test_an_adapter_that_cannot_be_loaded_again_is_no_success(
    llama_folder: Path, tmp_path: Path
) -> None:
    policy = load_policy("lee", spec(llama_folder))
    save_policy(policy, tmp_path)
    try_adapter("lee", policy.model, tmp_path)
    path = tmp_path / "adapter_config.json"
    whole = json.loads(path.read_text())
    for changes in (
        {"target_modules": sorted("all-linear")},
        {"r": 3},
        {"target_modules": ["q_proj"]},
        {"r": "two"},
    ):
        path.write_text(json.dumps(whole | changes))
        with pytest.raises(UserError, match=r"agent lee: the adapter in .* cannot be loaded again"):
            try_adapter("lee", policy.model, tmp_path)


@pytest.mark.parametrize(
    ("modules", "layer"),
    [
        (["lm_head"], "lm_head"),
        (["embed_tokens", "q_proj"], "model.embed_tokens"),
        (["q_proj"], None),
        ("all-linear", None),
    ],
)
def test_a_tied_layer_with_an_adapter_is_found(
    qwen_folder: Path, modules: list[str] | str, layer: str | None
) -> None:
    policy = load_policy("kim", spec(qwen_folder, target_modules=modules))
    assert tied_layer("kim", policy.model) == layer


def test_what_does_not_fit_is_refused_by_name(
    qwen_folder: Path, llama_folder: Path, tmp_path: Path
) -> None:
    def refused(wanted: AgentSpec) -> str:
        with pytest.raises(UserError) as caught:
            load_policy("kim", wanted)
        assert len(str(caught.value).splitlines()) <= 2
        return str(caught.value)

    assert "names q_prj" in refused(spec(qwen_folder, target_modules=["q_proj", "q_prj"]))
    nowhere = AgentSpec(model=str(qwen_folder), lora=Lora(adapter="./nowhere"))
    assert "lora.adapter ./nowhere does not exist" in refused(nowhere)
    empty = AgentSpec(model=str(qwen_folder), lora=Lora(adapter=str(tmp_path)))
    assert "cannot be read" in refused(empty)
    folder = tmp_path / "adapter"
    save_policy(load_policy("lee", spec(llama_folder)), folder)
    tensors = load_file(folder / "adapter_model.safetensors")
    tensors.pop(min(tensors))
    save_file(tensors, folder / "adapter_model.safetensors")
    incomplete = AgentSpec(model=str(llama_folder), lora=Lora(adapter=str(folder)))
    assert "does not fit its model at model.layers.0" in refused(incomplete)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LOHA", "r": 2}))
    assert "not LoRA" in refused(incomplete)


def test_restoring_a_whole_model_checks_it(kim: Policy, lee: Policy, tmp_path: Path) -> None:
    save_policy(kim, tmp_path / "kim")
    wanted = copy.deepcopy(kim.model.state_dict())
    with torch.no_grad():
        for parameter in kim.model.parameters():
            parameter.mul_(2)
    restore_policy(kim, tmp_path / "kim")
    assert all(torch.equal(wanted[k], v) for k, v in kim.model.state_dict().items())
    with pytest.raises(UserError, match="agent lee"):
        restore_policy(lee, tmp_path / "kim")
    with pytest.raises(UserError, match="agent kim"):
        restore_policy(kim, tmp_path / "nowhere")


def test_a_quantized_base_trains_its_adapter(llama_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(llama_folder, tmp_path, dirs_exist_ok=True)
    config = LlamaConfig.from_pretrained(llama_folder)
    for size in ("hidden_size", "intermediate_size", "head_dim"):
        setattr(config, size, 64)  # 4-bit blocks hold 64 weights
    LlamaForCausalLM(config).save_pretrained(tmp_path)

    def gradients(*, sampled: bool) -> list[Tensor]:
        policy = load_policy("kim", spec(tmp_path, quantization="nf4"))
        layer = policy.model.base_model.layers[1].self_attn.q_proj
        assert type(layer.base_layer).__name__ == "Linear4bit"
        disturb(policy, 0.05)
        if sampled:  # packs the weights for inference, which has no gradient
            hidden(policy)
        learner = Learner(
            policy,
            None,
            temperature=1.0,
            mini_batches=1,
            algorithm=algorithm(clip=Clip(own_low=0.5, own_high=0.5)),
            update=Update(),
            optimizer=Optimizer(learning_rate=1e-2),
            total_updates=1,
        )
        ids = (3, 4, 5)
        rollout = Rollout(0, "kim", 0, 0, "", -6.0, 3, finished=True)
        before = [p.detach().clone() for p in trained(policy)]
        _, (update,) = learner.learn([Lesson(rollout, True, 1.0, [1, 2], ids, None, (-2.0,) * 3)])
        assert not update.skipped
        assert update.gradient_norm > 0
        return [a - b for a, b in zip(trained(policy), before, strict=True)]

    fresh, packed = gradients(sampled=False), gradients(sampled=True)
    assert all(torch.equal(a, b) for a, b in zip(fresh, packed, strict=True))


def trained(policy: Policy) -> list[Tensor]:
    return [p for p in policy.model.parameters() if p.requires_grad]
