"""The table of calls that a `Shard` in another process answers: how the answers of all shards are
combined, and what a call changes in a shard."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

import numpy as np


class Result(Enum):
    """How the answers of all shards to one call are combined."""

    NONE = "none"  # a call without an answer
    SUM = "sum"  # the answers are added
    VECTOR = "vector"  # a vector with an entry for each row, whose pieces stay on the workers
    GATHERED = "gathered"  # entries for each row, joined in the order of the rows


class Memory(Enum):
    """What a shard remembers from one call to the next, beside vectors."""

    SWEEP = "sweep"  # u of the last sweep
    WALK = "walk"  # the point that steps along directions have led to


class Method(NamedTuple):
    """The effects of a method of `Shard`."""

    result: Result
    begins: Memory | None = None  # the memory that it fills anew
    changes: Memory | None = None  # the memory that it reads and changes
    reads: Memory | None = None  # the memory that the vector it makes depends on
    scattered: bool = (
        False  # True if its argument has an entry for each row: each shard gets its own
    )


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
    """A reference to a vector on the workers: the number of the call that made it."""

    number: int


class Call(NamedTuple):
    """One call of a method. A shard carries out each number once; if it is asked again, it repeats
    its answer."""

    number: int
    method: str
    args: tuple[Any, ...]
    by: Callable[[Any, Any], Any] | None = None  # combines two answers; None adds them
    dropped: tuple[int, ...] = ()  # numbers of the vectors that are no longer needed


def replace_vectors(args: tuple[Any, ...], kind: type, function: Callable[[Any], Any]) -> Any:
    """Return the arguments with every vector of this kind, also inside tuples, replaced by the
    function's value."""
    return tuple(
        function(a)
        if isinstance(a, kind)
        else replace_vectors(a, kind, function)
        if type(a) is tuple
        else a
        for a in args
    )


def vectors_in(args: tuple[Any, ...]) -> Iterator[int]:
    """Yield the numbers of the vectors among the arguments."""
    for a in args:
        if isinstance(a, Ref):
            yield a.number
        elif type(a) is tuple:
            yield from vectors_in(a)


def add(a: Any, b: Any) -> Any:
    """Add two answers: numbers, arrays or tuples of them; two dicts are united."""
    if a is None:
        return None
    if hasattr(a, "joined"):
        return a.joined(b)
    if isinstance(a, tuple):
        return tuple(add(x, y) for x, y in zip(a, b, strict=True))
    return a | b if isinstance(a, dict) else a + b


def scatter(entries: Any, ends: list[int]) -> list[Any]:
    """Cut a vector, or a dict of vectors, where shards end; return the piece of each shard."""
    if isinstance(entries, dict):
        cut = {name: scatter(vector, ends) for name, vector in entries.items()}
        return [{name: cut[name][k] for name in cut} for k in range(len(ends))]
    return np.split(entries, ends[:-1])


def gather(pieces: list[Any]) -> Any:
    """Join the pieces of a vector, or of a dict of vectors, from all shards."""
    if isinstance(pieces[0], dict):
        return {name: gather([piece[name] for piece in pieces]) for name in pieces[0]}
    return np.concatenate(pieces)
