"""Rows of data sets of the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Iterator

from hacrl.config.sources import HubSource
from hacrl.config.text import short
from hacrl.errors import UserError
from hacrl.tasks.rows import Row

__all__ = ["hub_rows"]


_LOCAL = "set source.type to jsonl, json, csv or parquet and source.path to a file of it"


def hub_rows(source: HubSource, local: str = _LOCAL) -> Iterator[Row]:
    """The rows of a split, from the Hub or from the library's cache.

    Args:
        local: how to use a local file instead, for the error message.

    Raises:
        UserError: the data set is not there, cannot be fetched, or has no such configuration or
            split.
    """
    name, split = short(source.id), short(source.split)
    try:
        import datasets  # type: ignore[import-untyped]  # takes seconds
    except ImportError as error:
        raise UserError(
            f"data set {source.id}: needs the package datasets ({error}); pip install datasets"
        ) from error
    try:
        rows = datasets.load_dataset(
            source.id, source.config, split=source.split, revision=source.revision
        )
    # The library passes on what the network, the Hub, file formats and Arrow raise.
    except Exception as error:
        part = f", configuration {short(source.config)}" if source.config else ""
        raise UserError(
            f"data set {name}{part}, split {split}: cannot be loaded: "
            f"{short(str(error) or type(error).__name__)}\n"
            f"Check the id, or use a local file: {local}"
        ) from error
    number, remaining = 0, iter(rows)
    while True:
        number += 1
        place = f"data set {name}, {split} row {number}"
        try:
            fields = next(remaining, None)
        # Images and the like are decoded here, and texts that are not UTF-8 found.
        except Exception as error:
            raise UserError(
                f"{place}: cannot be read: {short(str(error) or type(error).__name__)}"
            ) from error
        if fields is None:
            return
        yield Row(place, fields)
