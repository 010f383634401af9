"""An optimizer's state on disk, by the names of its parameters, as safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from hacrl.agents.policy.sharding import ALONE, Share, placed_like, whole_on_host
from hacrl.errors import UserError, first_line

__all__ = ["load_optimizer", "save_optimizer"]


def save_optimizer(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, Tensor],
    path: Path,
    share: Share = ALONE,
) -> None:
    """Write the state of every parameter, as far as there is one yet.

    Args:
        parameters: by name; those that the optimizer has.
        share: of which the first rank writes the file, to which all ranks contribute.
    """
    state = {
        f"{name}:{key}": value
        for name, parameter in parameters.items()
        for key, value in optimizer.state.get(parameter, {}).items()
    }
    state = whole_on_host(state, keep=share.leads)
    share.write(lambda: save_file({key: value.contiguous() for key, value in state.items()}, path))


def load_optimizer(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, Tensor], path: Path
) -> None:
    """Set the state to what `save_optimizer` wrote. Learning rates are left alone.

    Raises:
        UserError: the file cannot be read, or belongs to other parameters.
    """
    state: dict[Tensor, dict[str, Tensor]] = {}
    try:
        with safe_open(path, framework="pt") as file:
            for entry in file.keys():  # noqa: SIM118 - no mapping
                name, _, key = entry.rpartition(":")
                parameter = parameters[name]
                value = file.get_tensor(entry)
                if value.ndim and value.shape != parameter.shape:
                    raise UserError(f"{path}: {name} has another shape than the model's")
                # AdamW counts its steps on the host, or on the device where it is fused.
                state.setdefault(parameter, {})[key] = placed_like(parameter, value)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: cannot be read ({first_line(error)})") from error
    except KeyError as error:
        raise UserError(f"{path}: holds {error}, which is no parameter of the model") from error
    optimizer.state.clear()
    optimizer.state.update(state)
