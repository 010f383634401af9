"""From a GGUF file to a Hugging Face folder, putting right what transformers loses on the way."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, GgufConfig

from hacrl.errors import UserError
from scripts.real_models.sources import Source

__all__ = ["check_folder", "convert"]


def convert(source: Source, gguf: Path, folder: Path) -> None:
    """Write the folder.

    The weights become float32, in which the dequantised values are exact: training runs in it, and
    such a file is mapped into memory instead of converted at every start.
    """
    tokenizer = _load_tokenizer(source, gguf)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.float32,
    )
    if hasattr(model.config, "_model_name_or_path"):  # a title from the GGUF file, no path
        del model.config._model_name_or_path
    # The GGUF file names one end token only. Nothing is said about sampling, so that temperature 1
    # means the model's own distribution.
    model.generation_config = GenerationConfig.from_dict(
        {
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.convert_tokens_to_ids(list(source.stop_tokens)),
            "pad_token_id": tokenizer.pad_token_id,
        }
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for weights in folder.glob("*.safetensors"):  # come readable for their owner only
        shutil.copymode(folder / "config.json", weights)


def check_folder(source: Source, folder: Path) -> None:
    """Load the finished folder the way a user does.

    Raises:
        UserError: its texts are cut, begun or ended other than the model has learned.
    """
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    wrong = []
    text, tokens = source.cut
    if (found := tokenizer.tokenize(text)) != list(tokens):
        wrong.append(f"{text!r} is cut into {found}")
    ids = tokenizer.encode(text)
    begins = [place for place, token in enumerate(ids) if token == tokenizer.bos_token_id]
    if begins != ([0] if source.adds_bos else []):
        wrong.append(f"a text begins with {tokenizer.convert_ids_to_tokens(ids[:2])}")
    if tokenizer.eos_token != source.stop_tokens[0]:
        wrong.append(f"the end token is {tokenizer.eos_token}")
    known = tokenizer.get_vocab()
    stops = GenerationConfig.from_pretrained(folder).eos_token_id
    if stops != [known.get(token) for token in source.stop_tokens]:
        wrong.append(f"generation stops at {stops}")
    if wrong:
        raise UserError(
            f"the converted {source.folder} is not right: {'; '.join(wrong)}.\n"
            "The installed transformers may read GGUF files differently; nothing was kept."
        )


def _load_tokenizer(source: Source, gguf: Path) -> Any:
    tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    if source.splits_digits:
        # transformers does not know the pre-tokenizer "smollm" and takes GPT-2's, which cuts white
        # space before a digit otherwise.
        tokenizer.backend_tokenizer.pre_tokenizer = Sequence(
            [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
        )
    if source.adds_bos:
        # transformers drops the flag `add_bos_token`; without <bos> Gemma repeats itself from the
        # first word on.
        tokenizer.add_bos_token = True
    tokenizer.model_max_length = source.max_length
    for key in ("is_local", "local_files_only"):  # how it was loaded, of no use in the folder
        tokenizer.init_kwargs.pop(key, None)
    return tokenizer
