"""The colours of charts and pages: each has a name, a light value and a dark one.

Charts are drawn with the light values; on a page these become CSS variables of the same name.
"""

from typing import Literal

Theme = Literal["light", "dark"]

PALETTE = {
    "page": ("#f6f6f3", "#121518"),
    "card": ("#ffffff", "#1b1f24"),
    "edge": ("#dcdcd6", "#343a42"),
    "ink": ("#1b2027", "#e9ecef"),
    "soft": ("#56606b", "#a7b0ba"),
    "grid": ("#e7e7e2", "#2b3037"),
    "focus": ("#1358b8", "#8fc0ff"),
    "good": ("#17693b", "#84d9a5"),
    "good-back": ("#e6f3ea", "#16291f"),
    "open": ("#8a4b00", "#ffc074"),
    "open-back": ("#fdf1de", "#2e2413"),
    "c0": ("#1f62c4", "#7db3ff"),
    "c1": ("#c4500c", "#ff9f5a"),
    "c2": ("#1a7a4b", "#6ed19a"),
    "c3": ("#8441b5", "#cb9cff"),
    "c4": ("#b8295f", "#ff8ab4"),
    "c5": ("#0e7c86", "#5fd0da"),
    "c6": ("#7a6a00", "#d9c64a"),
    "c7": ("#6b7480", "#98a2ad"),
}
CARD, INK, SOFT, GRID = (PALETTE[name][0] for name in ("card", "ink", "soft", "grid"))
COLOURS = tuple(PALETTE[f"c{k}"][0] for k in range(8))  # of curves and classes, in this order
NAMES = {light: name for name, (light, _) in PALETTE.items()}


def css_variables(theme: Theme) -> str:
    """Return the declarations of all colours, for a rule of a style sheet."""
    which = ("light", "dark").index(theme)
    return " ".join(f"--{name}: {values[which]};" for name, values in PALETTE.items())
