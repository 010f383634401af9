"""Devices that no machine could give an agent are refused before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hacrl.config import Recipe, recipe_from_dict
from hacrl.errors import UserError

Make = Callable[..., dict[str, Any]]

TWO = "agents.kim.sampler={type: vllm, tensor_parallel_size: 2}"


def recipe(make: Make, *overrides: str) -> Recipe:
    return recipe_from_dict(make(), overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["fleet=ray", "agents.kim.ranks=2", "agents.kim.resources.gpus=0.5"],
            "agents.kim.resources.gpus: 0.5 for each of 2 ranks, but ranks cannot share a GPU; "
            "set 1, or drop ranks",
        ),
        (
            ["agents.kim.sampler=vllm", "agents.kim.device='cuda:1'"],
            "agents.kim.device: an engine takes the first GPU that its process sees, not cuda:1; "
            "set cuda, and choose the GPU with CUDA_VISIBLE_DEVICES or fleet: ray",
        ),
        (
            ["fleet=ray", "agents.kim.sampler=vllm", "agents.kim.device='cuda:1'"],
            "agents.kim.device: an engine takes the first GPU that its process sees, not cuda:1",
        ),
        (
            ["fleet=ray", "agents.kim.device='cuda:1'"],
            "agents.kim.device: on Ray a process sees its own GPUs alone, of which cuda:1 is none; "
            "set cuda",
        ),
        (
            [
                "fleet=ray",
                "agents.kim.ranks=2",
                "agents.kim.device='cuda:1'",
                "agents.kim.resources.gpus=2",
            ],
            "agents.kim.device: on Ray a process sees its own GPUs alone",
        ),
        (
            ["fleet=ray", "agents.kim.device=cuda", "agents.kim.resources.gpus=0"],
            "agents.kim.device: cuda, but agents.kim.resources.gpus is 0; set 1, or device: cpu",
        ),
        (
            ["fleet=ray", TWO, "agents.kim.resources.gpus=1"],
            "agents.kim.sampler.tensor_parallel_size: 2 devices, but agents.kim.resources.gpus "
            "is 1; set it to 2",
        ),
        (
            ["fleet=ray", TWO, "agents.kim.resources.gpus=0.5"],
            "agents.kim.sampler.tensor_parallel_size: 2 devices, but agents.kim.resources.gpus "
            "is 0.5; set it to 2",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_by_name(
    tiny_recipe: Make, overrides: list[str], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        recipe(tiny_recipe, *overrides)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        ["agents.kim.device='cuda:1'"],  # a local learner that draws by itself
        ["agents.kim.device='cuda:0'", "agents.kim.sampler=vllm"],
        ["fleet=ray", "agents.kim.resources.gpus=0.5", "agents.kim.sampler=vllm"],
        ["fleet=ray", "agents.kim.resources.gpus=2", "agents.kim.device='cuda:1'"],
        ["fleet=ray", "agents.kim.ranks=2", "agents.kim.resources.gpus=1"],
        ["fleet=ray", "agents.kim.ranks=2", "agents.kim.resources.gpus=0"],
        ["fleet=ray", TWO, "agents.kim.resources.gpus=2"],
        ["fleet=ray", TWO, "agents.kim.resources.gpus=0"],  # an engine on the CPU
        ["agents.kim.resources.gpus=0.5", "agents.kim.device=cuda"],  # nobody reads resources
    ],
)
def test_what_some_machine_can_give_is_accepted(tiny_recipe: Make, overrides: list[str]) -> None:
    assert recipe(tiny_recipe, *overrides).agents["kim"]


@pytest.mark.parametrize(("cluster", "refused"), [({"CPU": 4.0}, False), ({"GPU": 8.0}, True)])
def test_a_cluster_gives_an_engine_one_gpu_unless_told(
    tiny_recipe: Make,
    monkeypatch: pytest.MonkeyPatch,
    cluster: dict[str, float],
    refused: bool,
) -> None:
    ray = pytest.importorskip("ray")
    from hacrl.fleet.placing import options

    monkeypatch.setattr(ray, "cluster_resources", lambda: cluster)
    wanted = recipe(tiny_recipe, "fleet=ray", "agents.kim.device=auto", TWO)
    if not refused:
        assert options(wanted, "kim")["num_gpus"] == 0.0
        return
    message = "but its process gets one GPU; set agents.kim.resources.gpus: 2"
    with pytest.raises(UserError, match=message):
        options(wanted, "kim")


@pytest.mark.parametrize(
    ("kind", "there", "refused"),
    [("cuda", 1, True), ("cuda", 2, False), ("cpu", 0, False)],
)
def test_this_machine_must_have_as_many_devices_as_a_local_engine_is_spread_over(
    tiny_recipe: Make, monkeypatch: pytest.MonkeyPatch, kind: str, there: int, refused: bool
) -> None:
    torch = pytest.importorskip("torch")
    from hacrl.agents.sampling import making

    monkeypatch.setattr(making, "find_device", lambda *_: torch.device(kind))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: there)
    spec = recipe(tiny_recipe, TWO).models["kim"]
    if not refused:
        making.check_engine_devices("kim", spec)
        return
    with pytest.raises(UserError, match="2 devices, but this process sees 1; lower it"):
        making.check_engine_devices("kim", spec)
