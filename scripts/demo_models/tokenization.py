"""The two tokenizers, as different as those of real model families."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from scripts.demo_models.models import MAX_POSITIONS

__all__ = [
    "DIGITS_ALONE",
    "NUMBERS_WHOLE",
    "build_bpe_tokenizer",
    "build_char_tokenizer",
    "check_lossless",
]

ALPHABET = "0123456789+-=;# \n"
"""Every character that both tokenizers can represent."""


NUMBERS_WHOLE = r"\d{1,2}|#+|[^\d#]"
"""Numbers are cut into groups of at most two digits (Llama 3: three), so that a number of the task
is one token; the marker becomes one token as well."""

DIGITS_ALONE = r"\d|[^\d]+"
"""Every digit is a token (as in Llama 2); what stands between numbers is merged."""


def build_char_tokenizer() -> PreTrainedTokenizerFast:
    """A token per character and no begin token, as in the Qwen family."""
    pad, eos = "<|endoftext|>", "<|im_end|>"
    vocab = {token: index for index, token in enumerate([*ALPHABET, pad, eos])}
    # BPE without merges splits a text into its characters. As in the Qwen family the padding token
    # stands in for what is unknown.
    core = Tokenizer(BPE(vocab=vocab, merges=[], unk_token=pad))
    core.decoder = Fuse()
    core.add_special_tokens(_special(pad, eos))
    return _wrap(core, eos_token=eos, pad_token=pad, unk_token=pad)


def build_bpe_tokenizer(
    corpus: Sequence[str], pieces: str = NUMBERS_WHOLE
) -> PreTrainedTokenizerFast:
    """A BPE learned from the corpus, with the special tokens of the Llama family.

    Args:
        pieces: regular expression of what is merged into tokens at most.
    """
    unk, bos, eos = "<unk>", "<s>", "</s>"
    core = Tokenizer(BPE(unk_token=unk))
    core.pre_tokenizer = Split(Regex(pieces), behavior="isolated")
    core.decoder = Fuse()
    trainer = BpeTrainer(
        vocab_size=128,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=list(ALPHABET),
        special_tokens=_special(unk, bos, eos),
    )
    core.train_from_iterator(corpus, trainer)
    core.post_processor = TemplateProcessing(
        single=f"{bos} $A",
        pair=f"{bos} $A {bos} $B",
        special_tokens=[(bos, core.token_to_id(bos))],
    )
    return _wrap(core, bos_token=bos, eos_token=eos, pad_token=eos, unk_token=unk)


def check_lossless(tokenizer: PreTrainedTokenizerFast, rng: random.Random) -> None:
    """Raise unless random texts over the alphabet survive encoding and decoding."""
    for _ in range(1000):
        text = "".join(rng.choices(ALPHABET, k=rng.randint(0, 40)))
        decoded = tokenizer.decode(tokenizer.encode(text, add_special_tokens=False))
        if decoded != text:
            raise RuntimeError(f"the tokenizer turned {text!r} into {decoded!r}")


def _special(*tokens: str) -> list[AddedToken]:
    return [AddedToken(token, special=True, normalized=False) for token in tokens]


def _wrap(core: Tokenizer, **special_tokens: str) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=MAX_POSITIONS,
        clean_up_tokenization_spaces=False,
        padding_side="left",
        **special_tokens,
    )
