"""One agent's language model with what is needed to talk to it."""

from __future__ import annotations

import functools
import inspect
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import Cache, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from hacrl.agents.policy.begin import keep_begin_setting
from hacrl.agents.policy.sharding import (
    ALONE,
    Share,
    placed_like,
    plain_class,
    through_root,
    whole_state,
)
from hacrl.agents.policy.vocabulary import control_tokens
from hacrl.errors import UserError, first_line

__all__ = ["Policy", "restore_policy", "save_policy"]


@dataclass(frozen=True)
class Policy:
    """A loaded model with what is needed to talk to it.

    Args:
        name: the agent's name, for messages.
        model: in evaluation mode, so that no dropout disturbs a log-probability.
        tokenizer: with the recipe's chat template, if it names one.
        stop_ids: every id that ends a response; the first is appended to finished foreign ones.
        template_args: arguments of the chat template.
        generation_config: as the model came, to be saved with it. The model itself carries a plain
            one, since settings such as a repetition penalty would change the sampled distribution.
        adapter: name of the adapter inside the model that is this policy's; None if it has none:
            its weights are the model's own.
        share: which of the agent's ranks this is; beyond one, the model is sharded.
        clock: what the chat template takes for now.
        split_special_tokens: whether control tokens that a prompt spells are encoded as text.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    stop_ids: tuple[int, ...]
    template_args: dict[str, Any]
    generation_config: GenerationConfig
    adapter: str | None = None
    share: Share = ALONE
    clock: datetime = field(default_factory=datetime.now)
    split_special_tokens: bool = False

    def activate(self) -> None:
        """Let this policy's adapter act, and no other. To be called before the model is used,
        since policies can share one."""
        if not getattr(self.model, "peft_config", None):
            return
        if self.adapter is None:
            self.model.disable_adapters()
        else:
            self.model.enable_adapters()
            self.model.set_adapter(self.adapter)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.device

    @property
    def pad_id(self) -> int:
        """Fills batches. Masks come from lengths, so it may equal the end token."""
        pad = self.tokenizer.pad_token_id
        usable = pad is not None and pad < self.vocab_size  # one may have been added
        return int(pad) if usable else self.stop_ids[0]

    @property
    def vocab_size(self) -> int:
        """Entries of the output layer."""
        return int(self.model.config.get_text_config().vocab_size)

    @property
    def max_tokens(self) -> int | None:
        """Positions that the model can address, None if unlimited."""
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return int(limit) if limit else None

    @functools.cached_property
    def control_ids(self) -> frozenset[int]:
        """Ids that are no text: the tokenizer's special tokens and the end tokens."""
        return frozenset((*control_tokens(self.tokenizer).values(), *self.stop_ids))

    @functools.cached_property
    def token_ids(self) -> frozenset[int]:
        """Ids that the tokenizer has a token for; the output layer may have more."""
        return frozenset(self.tokenizer.get_vocab().values())

    def without_gradients(self) -> AbstractContextManager[object]:
        """In the block nothing is kept for a backward pass, and little that autograd asks for.

        What a module keeps of a pass in inference mode cannot take part in a backward pass later:
        sharded modules keep gathered weights, and code that comes with a model may keep anything.
        """
        own_code = not type(self.model).__module__.startswith("transformers.")
        return torch.no_grad() if own_code or self.share.size > 1 else torch.inference_mode()

    @functools.cached_property
    def _counts_positions(self) -> bool:
        return "position_ids" in inspect.signature(self.model.base_model.forward).parameters

    def hidden_states(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        *,
        position_ids: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Last hidden states, (rows, positions, width).

        Args:
            attention_mask: 1 on what counts, of what is in the cache too; None masks nothing.
            position_ids: of the input; None counts from the end of the cache. Left out for models
                that tell positions by the mask.
            cache: of what came before, is continued.
        """

        def work() -> Tensor:
            output = self.model.base_model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                past_key_values=cache,
                use_cache=cache is not None,
                **({"position_ids": position_ids} if self._counts_positions else {}),
            )
            return output.last_hidden_state  # type: ignore[no-any-return]

        return through_root(self.model, work)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits of hidden states (..., width) -> (..., vocabulary), in single precision.

        Applied to chosen positions only; the model's own forward would compute all of them.
        """
        config = self.model.config.get_text_config()
        head: nn.Module = self.model.get_output_embeddings()
        logits = through_root(self.model, lambda: head(hidden)).float()
        if scale := getattr(config, "logit_scale", None):  # Cohere
            logits = logits * scale
        if divisor := getattr(config, "logits_scaling", None):  # Granite
            logits = logits / divisor
        if cap := getattr(config, "final_logit_softcapping", None):  # Gemma 2
            logits = torch.tanh(logits / cap) * cap
        return logits


def restore_policy(policy: Policy, folder: Path) -> None:
    """Set the weights to what `save_policy` wrote. Executes no code from the folder.

    Raises:
        UserError: they cannot be read, or do not fit.
    """
    if policy.adapter is not None:
        from hacrl.agents.policy.adapters import load_adapter

        load_adapter(policy.adapter, policy.model, folder)
        return
    try:
        saved = plain_class(policy.model).from_pretrained(
            folder, config=policy.model.config, dtype=policy.model.dtype
        )
        if policy.share.size == 1:
            policy.model.load_state_dict(saved.state_dict())
        else:
            _restore_shards(policy.model, saved)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise UserError(
            f"agent {policy.name}: {folder} cannot be loaded ({first_line(error)})"
        ) from error


def save_policy(policy: Policy, folder: Path) -> None:
    """Write an ordinary Hugging Face folder: weights as safetensors, tokenizer, generation config.

    A policy with an adapter writes the adapter, as PEFT does, in place of the model's weights.
    """
    if policy.adapter is None:
        sharded = policy.share.size > 1
        weights = whole_state(policy.model, keep=policy.share.leads) if sharded else None
        policy.share.write(lambda: policy.model.save_pretrained(folder, state_dict=weights))
    else:
        from hacrl.agents.policy.adapters import save_adapter

        save_adapter(policy.adapter, policy.model, folder)
    policy.share.write(lambda: _save_companions(policy, folder))


def _save_companions(policy: Policy, folder: Path) -> None:
    policy.tokenizer.save_pretrained(folder)
    keep_begin_setting(policy.tokenizer, folder)
    policy.generation_config.save_pretrained(folder)


@torch.no_grad()
def _restore_shards(model: PreTrainedModel, saved: PreTrainedModel) -> None:
    values = dict(saved.named_parameters())
    for name, parameter in model.named_parameters():
        parameter.copy_(placed_like(parameter, values[name].detach()))
