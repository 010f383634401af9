"""Two tiny random models of different families, problems, and a recipe that puts them together."""

from __future__ import annotations

import os

# Read when the libraries are imported: no test needs the network, or progress bars, and models so
# small gain nothing from threads, of which every worker of the suite would start as many as there
# are cores.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")

import copy
import itertools
import json
import multiprocessing
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

# Nothing here imports torch before a test asks for a model: a part of the suite does without it.

# Tests assert behaviour, never seconds.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

SYMBOLS = "01+="
"""Few, so that a random model now and then answers right."""


def _tokenizer(end: str, merges: list[tuple[str, str]]) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    tokens = ["<pad>", end, *SYMBOLS, *(left + right for left, right in merges)]
    model = models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges)
    tokenizer = Tokenizer(model)
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=end,
        pad_token="<pad>",
        clean_up_tokenization_spaces=False,
    )


def _save(folder: Path, family: tuple[Any, Any], tokenizer: PreTrainedTokenizerFast) -> Path:
    import torch

    config_class, model_class = family
    config = config_class(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        model = model_class(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _formulas_loaded_once() -> None:
    """One server forks all verifier workers of a process, with what the first pool needed.

    Here pools of all kinds follow each other, so it has everything from the start.
    """
    multiprocessing.set_forkserver_preload(["hacrl.verify.formulas_loaded"])
    forkserver.ensure_running()


@pytest.fixture(scope="session")
def data() -> Path:
    """The public data sets, which lie beside the project."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the public data sets in {folder}")
    return folder


@pytest.fixture(scope="session")
def qwen_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Qwen3 architecture, a token per character."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    folder = tmp_path_factory.mktemp("models") / "qwen"
    return _save(folder, (Qwen3Config, Qwen3ForCausalLM), _tokenizer("</q>", []))


@pytest.fixture(scope="session")
def llama_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Llama architecture, BPE with merges."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("models") / "llama"
    tokenizer = _tokenizer("</l>", [("0", "+"), ("1", "+")])
    return _save(folder, (LlamaConfig, LlamaForCausalLM), tokenizer)


@pytest.fixture(scope="session")
def problems_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chains of bits joined by +, whose answer is 1 if any is 1: `question`, `answer`."""
    path = tmp_path_factory.mktemp("problems") / "problems.jsonl"
    chains = [bits for n in (2, 3, 4) for bits in itertools.product("01", repeat=n)]
    path.write_text(
        "".join(
            json.dumps({"question": "+".join(bits) + "=", "answer": max(bits)}) + "\n"
            for bits in chains
        )
    )
    return path


@pytest.fixture
def sketches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are made but not drawn, which takes most of the time of a report.

    For tests that a report belongs to but that say nothing of how it looks.
    """

    def touch(chart: object, *files: Path) -> None:
        for file in files:
            file.touch()

    monkeypatch.setattr("hacrl.report.drawing._svg", lambda figure, name: f'<svg id="{name}"/>')
    monkeypatch.setattr("hacrl.report.drawing.Chart.save", touch)


@pytest.fixture(scope="session")
def tiny_recipe(
    qwen_folder: Path, llama_folder: Path, problems_file: Path
) -> Callable[..., dict[str, Any]]:
    """Makes the nested mapping of a recipe that runs in seconds; arguments replace top keys."""

    base: dict[str, Any] = {
        "name": "tiny",
        "steps": 3,
        "prompts_per_step": 8,
        "threads": 1,
        "agents": {"kim": {"model": str(qwen_folder)}, "lee": {"model": str(llama_folder)}},
        "tasks": {
            "bits": {
                "source": {"type": "jsonl", "path": str(problems_file)},
                "verifier": {"type": "exact", "marker": None},
            }
        },
        "sampling": {"group_size": 8, "max_new_tokens": 4},
        "optimizer": {"learning_rate": 1e-3},
    }

    def make(**changes: Any) -> dict[str, Any]:
        return copy.deepcopy(base | changes)

    return make


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Ray share one cluster, so one worker has them all, and begins with them."""
    on_ray = {item for item in items if "started_ray" in getattr(item, "fixturenames", ())}
    for item in on_ray:
        item.add_marker(pytest.mark.xdist_group("ray"))
    items.sort(key=lambda item: item not in on_ray)
