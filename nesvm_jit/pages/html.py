"""A document as one HTML page that needs nothing else: no network, no fonts, no other file."""

import html
import json
import re
from importlib.resources import files
from typing import Any

from ..files.text import writing

SCRIPTS = ("scales.js", "frame.js", "lines.js", "charts.js", "page.js")
SLOT = re.compile(r"\{\{(\w+)\}\}")


def write_html(document: dict[str, Any], path) -> None:
    """Write the page; it appears whole or not at all."""
    with writing(path) as f:
        f.write(page(document).encode())


def page(document: dict[str, Any]) -> str:
    """The page as text."""
    certificate = document["certificate"]
    parts = {
        "title": html.escape(document["title"]),
        "subtitle": html.escape(document["subtitle"]),
        "kind": {"train": "Training run", "path": "Path over costs"}[document["kind"]],
        "state": "proved" if certificate["certified"] else "open",
        "seal": "✓" if certificate["certified"] else "!",
        "sentence": html.escape(certificate["sentence"]),
        "more": html.escape(certificate["more"]),
        "tiles": "\n".join(_tile(*tile) for tile in document["tiles"]),
        "facts": "\n".join(_fact(*fact) for fact in document["facts"]),
        "program": html.escape(document["program"]),
        "style": _part("page.css"),
        "script": "\n".join(_part(name) for name in SCRIPTS),
        "data": script_json({"sections": document["sections"]}),
    }
    return SLOT.sub(lambda slot: parts[slot[1]], _part("page.html"))


def script_json(value: Any) -> str:
    """JSON that nothing inside a script element can end or turn into markup."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _tile(value: str, name: str) -> str:
    return f'<div class="tile"><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>'


def _fact(name: str, value: str) -> str:
    return f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>"
