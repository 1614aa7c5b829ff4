"""The calls of a `Shard` that reach shards in other processes: one table says what becomes of the
answers, and what of a shard a call changes."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

import numpy as np


class Result(Enum):
    """What becomes of the answers of all shards to one call."""

    NONE = "none"  # a call without an answer
    SUM = "sum"  # they are added
    VECTOR = "vector"  # they stay on the workers, together a vector with an entry for each row
    GATHERED = "gathered"  # entries for each row, put one after another in the order of the rows


class Memory(Enum):
    """What a shard remembers beside vectors."""

    SWEEP = "sweep"  # the u of the last sweep
    WALK = "walk"  # where steps along directions have led


class Method(NamedTuple):
    """What a method of `Shard` does."""

    result: Result
    begins: Memory | None = None  # the memory that it fills, whatever was in it
    changes: Memory | None = None  # the memory that it builds on and changes
    reads: Memory | None = None  # the memory that the vector it makes depends on
    scattered: bool = False  # whether its argument has entries for each row, which are dealt out


METHODS = {
    "sweep": Method(Result.SUM, begins=Memory.SWEEP),
    "swept": Method(Result.VECTOR, reads=Memory.SWEEP),
    "spread": Method(Result.SUM),
    "margins_at": Method(Result.VECTOR),
    "row_norms": Method(Result.VECTOR),
    "row_cells": Method(Result.VECTOR),
    "place": Method(Result.NONE, begins=Memory.WALK),
    "aim": Method(Result.NONE, changes=Memory.WALK),
    "slope": Method(Result.SUM),
    "step": Method(Result.SUM, changes=Memory.WALK),
    "centre_on": Method(Result.NONE, changes=Memory.WALK),
    "stepped": Method(Result.VECTOR, reads=Memory.WALK),
    "weight_of_curvature": Method(Result.SUM),
    "hessian": Method(Result.SUM),
    "hessian_times": Method(Result.SUM),
    "hessian_diagonal": Method(Result.SUM),
    "dual_weights": Method(Result.SUM),
    "column_products": Method(Result.SUM),
    "reduce_products": Method(Result.SUM),
    "map": Method(Result.VECTOR),
    "reduce": Method(Result.SUM),
    "deal": Method(Result.VECTOR, scattered=True),
    "collect": Method(Result.GATHERED),
    "state": Method(Result.GATHERED),
    "restore": Method(Result.NONE, begins=Memory.WALK, scattered=True),
}


class Ref(NamedTuple):
    """A vector that stays on the workers, by the number of the call that made it."""

    number: int


class Call(NamedTuple):
    """One call of a method. A shard answers the call of a number once, however often it is
    asked."""

    number: int
    method: str
    args: tuple[Any, ...]
    by: Callable[[Any, Any], Any] | None = None  # what makes one answer of two, where not their sum
    dropped: tuple[int, ...] = ()  # vectors that nobody needs any more


def replace_vectors(args: tuple[Any, ...], kind: type, function: Callable[[Any], Any]) -> Any:
    """Arguments, also those inside tuples, with the function of every vector of this kind."""
    return tuple(
        function(a)
        if isinstance(a, kind)
        else replace_vectors(a, kind, function)
        if type(a) is tuple
        else a
        for a in args
    )


def vectors_in(args: tuple[Any, ...]) -> Iterator[int]:
    """The numbers of the vectors among arguments."""
    for a in args:
        if isinstance(a, Ref):
            yield a.number
        elif type(a) is tuple:
            yield from vectors_in(a)


def add(a: Any, b: Any) -> Any:
    """The sum of two answers, whatever they are made of; two dicts become one."""
    if a is None:
        return None
    if hasattr(a, "joined"):
        return a.joined(b)
    if isinstance(a, tuple):
        return tuple(add(x, y) for x, y in zip(a, b, strict=True))
    return a | b if isinstance(a, dict) else a + b


def scatter(entries: Any, ends: list[int]) -> list[Any]:
    """A vector, or several by name, cut where the rows of shards end: what each shard gets."""
    if isinstance(entries, dict):
        cut = {name: scatter(vector, ends) for name, vector in entries.items()}
        return [{name: cut[name][k] for name in cut} for k in range(len(ends))]
    return np.split(entries, ends[:-1])


def gather(pieces: list[Any]) -> Any:
    """The vector, or several by name, whose pieces shards have given."""
    if isinstance(pieces[0], dict):
        return {name: gather([piece[name] for piece in pieces]) for name in pieces[0]}
    return np.concatenate(pieces)
