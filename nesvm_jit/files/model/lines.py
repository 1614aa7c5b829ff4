"""Parse the lines of model files: a header of keys and values, and a last line of JSON."""

import io
import json
import math
import re
from collections.abc import Collection
from typing import Any

import numpy as np

from ...errors import FormatError
from .record import LARGEST_INT

CLOSING = b"nesvm_jit "
IN_NUMBERS = b"+-.0123456789eE"
WHOLE = re.compile(rb"[+-]?[0-9]{1,18}")


def quote_word(text: bytes) -> str:
    """Return the first word in quotes, made printable and cut to 40 characters."""
    word = (text[:200].split() or [b""])[0].decode("ascii", "backslashreplace")
    word = "".join(ch if ch.isprintable() else f"\\x{ord(ch):02x}" for ch in word)
    return f"'{word[:40]}…'" if len(word) > 40 else f"'{word}'"


class Lines:
    """The lines of a file with their numbers, and errors that name the line."""

    def __init__(self, data: bytes, name: str):
        self.data, self.name, self.number = data, name, 0
        self._file = io.BytesIO(data)

    @property
    def position(self) -> int:
        return self._file.tell()

    def skip_to(self, position: int, n_lines: int) -> None:
        self._file.seek(position)
        self.number += n_lines

    def next(self) -> bytes:
        """Return the next line with its newline; after the last line, nothing."""
        line = self._file.readline()
        self.number += bool(line)
        return line

    def error(self, what: str, number: int | None = None) -> FormatError:
        return FormatError(f"{self.name}:{self.number if number is None else number}: {what}")


class Header:
    """The `key value …` lines up to the line of a section, and checked values of their keys."""

    def __init__(self, lines: Lines, line: bytes, keys: tuple, sections: tuple):
        self.lines = lines
        self._rest: dict[str, tuple[int, bytes]] = {}
        while True:
            parts = line.split(None, 1)
            key = parts[0].decode("latin-1") if parts and len(parts[0]) < 40 else ""
            if key in sections:
                if len(parts) > 1:
                    raise lines.error(
                        f"nothing is required after '{key}', got {quote_word(parts[1])}"
                    )
                if not line.endswith(b"\n"):
                    raise lines.error(f"lines are required after '{key}', the file ends")
                self.section, self.end = key, lines.number
                return
            if parts:
                if key not in keys:
                    raise lines.error(f"one of {', '.join(keys)} required, got {quote_word(line)}")
                if key in self._rest:
                    raise lines.error(f"'{key}' is required once, got it again")
                self._rest[key] = lines.number, parts[1] if len(parts) > 1 else b""
            line = lines.next()
            if not line:
                raise lines.error(f"a line '{sections[-1]}' is required, the file ends before it")

    def __contains__(self, key: str) -> bool:
        return key in self._rest

    def error(self, key: str, what: str) -> FormatError:
        return self.lines.error(f"{key} must be {what}", self._rest[key][0])

    def words(self, key: str, count: int) -> list[bytes]:
        if key not in self._rest:
            raise self.lines.error(f"'{key}' is required before '{self.section}'", self.end)
        words = self._rest[key][1].split(None, count)
        if len(words) != count:
            got = len(words) if len(words) < count else "more"
            raise self.error(key, f"{count} value{'s' * (count != 1)}, got {got}")
        return words

    def choice(self, key: str, choices: Collection[str]) -> str:
        word = self.words(key, 1)[0]
        name = word.decode("latin-1")
        if name not in choices:
            raise self.error(key, f"one of {', '.join(choices)}, got {quote_word(word)}")
        return name

    def wholes(self, key: str, count: int, low: int, high: int) -> list[int]:
        wholes = []
        for word in self.words(key, count):
            value = int(word) if WHOLE.fullmatch(word) else None
            if value is None or not low <= value <= high:
                limits = f"from {low} to {high}"
                raise self.error(key, f"a whole number {limits}, got {quote_word(word)}")
            wholes.append(value)
        return wholes

    def whole(self, key: str, low: int, high: int) -> int:
        return self.wholes(key, 1, low, high)[0]

    def numbers(self, key: str, count: int) -> np.ndarray:
        words = self.words(key, count)
        for word in words:
            if not is_number(word):
                raise self.error(key, f"a finite number, got {quote_word(word)}")
        return np.array([float(word) for word in words])

    def number(self, key: str) -> float:
        return float(self.numbers(key, 1)[0])

    def labels(self, whole: bool) -> np.ndarray:
        k = self.whole("nr_class", 2, LARGEST_INT)
        if whole:
            labels = np.array(self.wholes("label", k, -LARGEST_INT - 1, LARGEST_INT), dtype=float)
        else:
            labels = self.numbers("label", k)
        if len(np.unique(labels)) < k:
            raise self.error("label", f"{k} distinct labels, got one twice")
        return labels

    def probability(self, count: int) -> tuple[np.ndarray, np.ndarray] | None:
        if "probA" not in self and "probB" not in self:
            return None
        return self.numbers("probA", count), self.numbers("probB", count)


def is_number(word: bytes) -> bool:
    """Return True if a word is a finite decimal number."""
    try:
        return not word.translate(None, IN_NUMBERS) and math.isfinite(float(word))
    except ValueError:
        return False


# ---------------------------------------------------------------- the last line


def read_closing(lines: Lines, required: bool = False) -> dict[str, Any] | None:
    """Return the object of a last line `nesvm_jit {JSON}`, or None if the file ends without one.

    Any other line is an error.
    """
    facts = None
    while line := lines.next():
        if not line.strip():
            continue
        if facts is not None:
            raise lines.error(f"the end of the file is required, got {quote_word(line)}")
        if not line.startswith(CLOSING):
            raise lines.error(f"the end or 'nesvm_jit' required, got {quote_word(line)}")
        facts = _facts(lines, line[len(CLOSING) :])
    if facts is None and required:
        raise lines.error("a last line 'nesvm_jit {...}' is required, the file ends before it")
    return facts


def _facts(lines: Lines, text: bytes) -> dict[str, Any]:
    try:
        facts = json.loads(text.decode("utf-8"), object_pairs_hook=_refuse_repeated_keys)
        if not isinstance(facts, dict):
            raise ValueError
    except (ValueError, RecursionError):
        raise lines.error(f"a JSON object is required, got {quote_word(text)}") from None
    version = facts.get("version")
    if version != 1 or type(version) is not int:
        raise lines.error(f"version 1 is required, got {version!r:.40}")
    if not isinstance(facts.get("extra"), dict):
        raise lines.error("'extra' must be a JSON object")
    return facts


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    facts = dict(pairs)
    if len(facts) < len(pairs):
        raise ValueError
    return facts
