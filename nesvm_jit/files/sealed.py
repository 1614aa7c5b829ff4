"""Small JSON files that name their own format and version and hold a checksum."""

import json
import zlib

from .text import replacing


def seal(kind: str, version: int, facts: dict) -> bytes:
    """Return the text of a file that holds the facts and a checksum over them."""
    whole = {"format": kind, "version": version, **facts}
    return json.dumps({**whole, "crc32": _crc(whole)}).encode("ascii") + b"\n"


def unseal(kind: str, version: int, data: bytes) -> dict:
    """Return the facts in a sealed text; raise ValueError with the reason if it is not intact."""
    facts = parse(data)
    if facts.get("format") != kind:
        raise ValueError(f"format must be {kind!r}, got {facts.get('format')!r:.40}")
    if facts.get("version") != version:
        raise ValueError(f"version {version} is required, got {facts.get('version')!r:.40}")
    if facts.pop("crc32", None) != _crc(facts):
        raise ValueError("damaged: its checksum does not match")
    return facts


def parse(data: bytes) -> dict:
    """Return the object in a JSON text; raise ValueError if there is none."""
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("damaged: it is no JSON text") from None
    if not isinstance(facts, dict):
        raise ValueError("damaged: it is no JSON object")
    return facts


def write_sealed(path: str, data: bytes) -> None:
    """Write a sealed file or leave the old one; only one process may write it at a time."""
    with replacing(path, path + ".new") as f:
        f.write(data)


def _crc(facts: dict) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode("ascii"))
