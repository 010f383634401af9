"""The begin token of models without a chat template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.models.auto.tokenization_auto import get_tokenizer_config

__all__ = ["keep_begin_setting", "prepend_begin"]

_SETTING = "add_bos_token"
"""Of a tokenizer's configuration. The library drops it where there is a tokenizer.json."""
_FILE = "tokenizer_config.json"


def prepend_begin(tokenizer: PreTrainedTokenizerBase, location: str, **options: Any) -> None:
    """Let a tokenizer put the begin token before a text where its model was trained with one.

    That is so if its configuration says so, or says nothing and the tokenizer has a begin token
    that does nothing else. A token that also ends texts is how other models separate documents.

    Args:
        location: folder or Hub id that the tokenizer comes from.
        options: of the loading, such as `revision`.
    """
    begin = tokenizer.bos_token_id
    if begin is None or not isinstance(tokenizer, PreTrainedTokenizerFast):
        return
    wanted = get_tokenizer_config(location, **options).get(_SETTING)
    if wanted is not None:
        tokenizer.init_kwargs[_SETTING] = wanted
    dedicated = begin not in (tokenizer.eos_token_id, tokenizer.pad_token_id)
    if not (dedicated if wanted is None else wanted) or begin in tokenizer.encode("a")[:1]:
        return
    tokenizer.add_bos_token = True  # type: ignore[misc]  # its setter is another function
    tokenizer.update_post_processor()


def keep_begin_setting(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write the setting into a saved tokenizer, so that it reads prompts as it did in training."""
    setting = tokenizer.init_kwargs.get(_SETTING)
    if setting is None:
        return
    path = folder / _FILE
    content = json.loads(path.read_text("utf-8")) | {_SETTING: setting}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
