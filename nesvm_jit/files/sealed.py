"""Small files of facts: JSON that says of itself what it is and whether it is intact."""

import json
import zlib

from .text import replacing


def seal(kind: str, version: int, facts: dict) -> bytes:
    """The text of a file with these facts, and a checksum over them."""
    whole = {"format": kind, "version": version, **facts}
    return json.dumps({**whole, "crc32": _crc(whole)}).encode("ascii") + b"\n"


def unseal(kind: str, version: int, data: bytes) -> dict:
    """The facts of such a text; a ValueError says why there are none."""
    facts = parse(data)
    if facts.get("format") != kind:
        raise ValueError(f"format must be {kind!r}, got {facts.get('format')!r:.40}")
    if facts.get("version") != version:
        raise ValueError(f"version {version} is required, got {facts.get('version')!r:.40}")
    if facts.pop("crc32", None) != _crc(facts):
        raise ValueError("damaged: its checksum does not match")
    return facts


def parse(data: bytes) -> dict:
    """The object in a JSON text, whatever it is about."""
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("damaged: it is no JSON text") from None
    if not isinstance(facts, dict):
        raise ValueError("damaged: it is no JSON object")
    return facts


def write_sealed(path: str, data: bytes) -> None:
    """Put such a file in its place, whole, where one process writes at a time."""
    with replacing(path, path + ".new") as f:
        f.write(data)


def _crc(facts: dict) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode("ascii"))
