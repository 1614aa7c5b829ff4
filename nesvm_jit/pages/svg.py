"""Turn SVG files of matplotlib into parts of a page: smaller, in its colours, with tips."""

import re
from xml.etree import ElementTree

from .palette import NAMES

TIP = "tip:"  # the start of the id of a shape with a tip; the rest is the tip's text
COLOUR = re.compile(r"#[0-9a-f]{6}")
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
# Matplotlib 3.9 and before write `font: 9px 'DejaVu Sans', …`, later ones `font-family: …`.
FONT = re.compile(r"(font-family:|font: [^;]*?px) [^;]*")
REFERENCE = re.compile(r"#([\w.-]+)")
POINTING = ("clip-path", "href")  # attributes that name another element


def inline(svg: bytes, prefix: str, label: str) -> str:
    """Return an SVG file of matplotlib as an element of a page.

    Its ids get `prefix`, which no other element of the page has; screen readers read `label`.
    """
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if _name(child.tag) in ("metadata", "style"):
                parent.remove(child)
    elements = list(root.iter())
    for element in elements:
        element.tag = _name(element.tag)
        element.attrib = {_name(key): value for key, value in element.attrib.items()}
    pointed_at = {
        name for e in elements for key in POINTING for name in REFERENCE.findall(e.get(key, ""))
    }
    for element in elements:
        _translate(element, pointed_at, prefix)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode")


def _name(name: str) -> str:
    """Return a name without its namespace, which HTML does not write."""
    return name.rpartition("}")[2]


def _translate(element: ElementTree.Element, pointed_at: set[str], prefix: str) -> None:
    """Prefix the ids that are used, turn tips into titles, and use the page's colours and fonts."""
    if element.tag != "text" and element.tag != "tspan":
        element.text = None
    element.tail = None
    own = element.attrib.pop("id", "")
    if own in pointed_at:
        element.set("id", prefix + own)
    elif own.startswith(TIP):
        title = ElementTree.Element("title")
        title.text = own.removeprefix(TIP)
        element.insert(0, title)
    for key, value in element.attrib.items():
        if key in POINTING:
            value = REFERENCE.sub(rf"#{prefix}\1", value)
        elif key == "style":
            value = COLOUR.sub(lambda match: f"var(--{NAMES[match[0]]})", value)
            value = FONT.sub(r"\1 var(--font)", value)
        elif key not in ("id", "class"):
            value = LONG_NUMBER.sub(lambda match: f"{float(match[0]):.2f}", value)
            value = " ".join(value.split())
        element.set(key, value)
