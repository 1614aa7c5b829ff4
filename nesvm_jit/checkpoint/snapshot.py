"""The file of a checkpoint: one line of sealed facts, then the arrays that they name. It appears
whole or not at all, and what is damaged is refused."""

import math
import os
import stat
import zlib
from typing import Any

import numpy as np

from ..errors import FormatError
from ..files.sealed import seal, unseal
from ..files.text import decompress, display_name, writing

FORMAT, VERSION = "nesvm-jit checkpoint", 2
START = 200  # bytes at the beginning that tell what it is
ARRAY = "array"  # {ARRAY: k} stands for array k


def write_snapshot(path: Any, facts: dict[str, Any]) -> None:
    """Write dicts, lists, numbers in full precision, strings, None and arrays."""
    arrays: list[np.ndarray] = []
    tree = _packed(facts, arrays)
    raw = [a.reshape(-1).view(np.uint8).data for a in arrays]
    table = [
        [a.dtype.str, list(a.shape), zlib.crc32(part)] for a, part in zip(arrays, raw, strict=True)
    ]
    with writing(path) as f:
        f.write(seal(FORMAT, VERSION, {"facts": tree, "arrays": table}))
        for part in raw:
            f.write(part)


def read_snapshot(path: Any) -> dict[str, Any]:
    """What was written; tuples are lists."""
    data = _bytes_of(path, -1)
    try:
        return _read(decompress(data))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as e:
        raise FormatError(f"{display_name(path)}: a checkpoint is required: {e}") from None


def require_snapshot(path: Any) -> None:
    """Refuse a file that is not there or cannot be read."""
    _bytes_of(path, 1)


def require_replaceable(path: Any) -> None:
    """Refuse a file that is there and is no checkpoint: it would be lost."""
    if not os.path.isfile(path):
        return
    start = _bytes_of(path, START)
    if start and FORMAT.encode() not in start:
        raise FormatError(
            f"{display_name(path)}: must be absent or an earlier checkpoint, it is another file"
        )


def _bytes_of(path: Any, most: int) -> bytes:
    name = display_name(path)
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):  # nobody may ever write into it
            raise ValueError("it is a pipe")
        with open(path, "rb") as f:
            return f.read(most)
    except FileNotFoundError:
        raise FormatError(f"{name}: there is no checkpoint to resume from") from None
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or e
        raise FormatError(f"{name}: cannot be read: {why}") from None


def copy_facts(tree: Any) -> Any:
    """The same facts, with arrays of their own."""
    if isinstance(tree, dict):
        return {name: copy_facts(value) for name, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [copy_facts(value) for value in tree]
    return tree.copy() if isinstance(tree, np.ndarray) else tree


def _packed(tree: Any, arrays: list[np.ndarray]) -> Any:
    """Facts for JSON; arrays are put aside."""
    if isinstance(tree, dict):
        return {str(name): _packed(value, arrays) for name, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_packed(value, arrays) for value in tree]
    if isinstance(tree, np.ndarray):
        arrays.append(np.ascontiguousarray(tree))
        return {ARRAY: len(arrays) - 1}
    return tree.item() if isinstance(tree, np.generic) else tree


def _unpacked(tree: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(tree, dict):
        if tree.keys() == {ARRAY}:
            return arrays[tree[ARRAY]]
        return {name: _unpacked(value, arrays) for name, value in tree.items()}
    return [_unpacked(value, arrays) for value in tree] if isinstance(tree, list) else tree


def _read(data: Any) -> Any:
    """The facts in such a file; a ValueError says why there are none."""
    end = data.find(b"\n") + 1 or len(data)
    found = unseal(FORMAT, VERSION, data[:end])
    body, at, arrays = memoryview(data)[end:], 0, []
    for kind, shape, crc in found["arrays"]:
        dtype = np.dtype(kind)
        size = math.prod(shape) * dtype.itemsize
        part = body[at : at + size]
        if len(part) < size or zlib.crc32(part) != crc:
            raise ValueError("damaged: its arrays are not those of its first line")
        arrays.append(np.frombuffer(part, dtype).reshape(shape).copy())
        at += size
    return _unpacked(found["facts"], arrays)
