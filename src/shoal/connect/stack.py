"""Several files as one table: the same columns, of the same types, in every file."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from shoal.core.errors import InputError


def stacked(frames: Sequence[pl.DataFrame], paths: Sequence[str]) -> pl.DataFrame:
    """One table of several. Columns may stand in another order; an error names the file, never a column of it.

    >>> stacked([pl.DataFrame({"a": [1], "b": ["x"]}), pl.DataFrame({"b": ["y"], "a": [2]})], ["1.csv", "2.csv"]).rows()
    [(1, 'x'), (2, 'y')]
    """
    first = frames[0]
    types = dict(first.schema)
    for frame, path in zip(frames, paths, strict=True):
        if set(frame.columns) != set(first.columns):
            missing = sum(name not in frame.columns for name in first.columns)
            more = sum(name not in first.columns for name in frame.columns)
            raise InputError(
                f"expected the {first.width} columns of {paths[0]}: {missing} are missing, {more} are others",
                where=path,
                hint="files of one table have the same header; does this one have a header line?",
            )
        for at, name in enumerate(first.columns, 1):
            found, expected = frame.schema[name], types[name]
            if expected == pl.Null:
                types[name] = found  # a column without a value has no type of its own
            elif found not in (expected, pl.Null):
                raise InputError(
                    f"expected column {at} to hold {_kind(expected)} as in {paths[0]}, found {_kind(found)}",
                    where=path,
                    hint="declare what the column holds, for example --type NAME=float",
                )
    same = [frame.select(pl.col(name).cast(dtype) for name, dtype in types.items()) for frame in frames]
    return pl.concat(same)


def _kind(dtype: pl.DataType) -> str:
    """The kind of a type, without categories or the names of fields: those are data."""
    return type(dtype).__name__
