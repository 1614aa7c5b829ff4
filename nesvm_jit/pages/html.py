"""Make an HTML page of a document; it needs no other file, no network, no fonts, no script."""

import html
import re
from importlib.resources import files
from typing import Any

from ..files.text import writing
from .palette import css_variables
from .plots import draw_svg
from .svg import inline
from .tables import table

SLOT = re.compile(r"\{\{(\w+)\}\}")
KINDS = {"train": "Training run", "path": "Path over costs"}


def write_html(document: dict[str, Any], path: Any) -> None:
    """Write the page of a document. The file appears when it is complete."""
    with writing(path) as f:
        f.write(page(document).encode())


def page(document: dict[str, Any]) -> str:
    """Return the text of the page of a document."""
    certificate = document["certificate"]
    proved = certificate["certified"]
    contents = {
        "title": html.escape(document["title"]),
        "subtitle": html.escape(document["subtitle"]),
        "kind": KINDS[document["kind"]],
        "state": "proved" if proved else "open",
        "seal": "✓" if proved else "!",
        "sentence": html.escape(certificate["sentence"]),
        "more": html.escape(certificate["more"]),
        "tiles": "\n".join(_definition(n, v, "tile") for v, n in document["tiles"]),
        "sections": "\n".join(map(_section, document["sections"])),
        "facts": "\n".join(_definition(n, v, "fact") for n, v in document["facts"]),
        "program": html.escape(document["program"]),
        "light": css_variables("light"),
        "dark": css_variables("dark"),
        "style": _resource("page.css"),
    }
    return SLOT.sub(lambda slot: contents[slot[1]], _resource("page.html"))


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _definition(name: str, value: str, kind: str) -> str:
    return f'<div class="{kind}"><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>'


def _section(section: dict[str, Any]) -> str:
    cards = "\n".join(map(_card, section["charts"]))
    title = html.escape(section["title"])
    return f'<section><h2>{title}</h2>\n<div class="cards">\n{cards}\n</div></section>'


def _card(chart: dict[str, Any]) -> str:
    """Return the HTML of a chart with its title, its note and its table."""
    name, title = html.escape(chart["id"]), html.escape(chart["title"])
    if chart["kind"] == "table":
        shown = _table(chart)
    else:
        drawn = inline(draw_svg(chart), f"{chart['id']}-", chart["title"])
        shown = f'<div class="plot">{drawn}</div>'
        if chart.get("table", True):
            shown += f"\n<details><summary>Table</summary>{_table(chart)}</details>"
    note = f'<p class="note">{html.escape(chart["note"])}</p>\n' if chart["note"] else ""
    kind = html.escape(chart["kind"])
    return (
        f'<article class="card {kind}" id="chart-{name}"><h3>{title}</h3>\n{note}{shown}</article>'
    )


def _table(chart: dict[str, Any]) -> str:
    head, rows = table(chart)
    title = html.escape(chart["title"])
    columns = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    lines = "\n".join(
        f'<tr><th scope="row">{html.escape(row[0])}</th>'
        + "".join(f"<td>{html.escape(value)}</td>" for value in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="data" tabindex="0" role="region" aria-label="{title}: table"><table>'
        f"<thead><tr>{columns}</tr></thead>\n<tbody>{lines}</tbody></table></div>"
    )
