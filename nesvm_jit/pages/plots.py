"""Draw documents with matplotlib: a file of the main charts, or each chart as SVG."""

import importlib.util
import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import InputError, NesvmError
from ..files.text import display_name, writing
from .palette import CARD, COLOURS, GRID, INK, SOFT

FORMATS = ("png", "svg", "pdf")
STYLE: Any = {
    "text.parse_math": False,
    "text.color": INK,
    "axes.titlesize": "large",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
    "legend.facecolor": CARD,
    "legend.edgecolor": "none",
    "svg.hashsalt": "nesvm-jit",
}
FILE_STYLE = STYLE | {"font.size": 9.0}
# Text of a page stays text, and its charts have no background of their own.
PAGE_STYLE = STYLE | {
    "font.size": 11.0,
    "svg.fonttype": "none",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
PANELS = 6  # charts of a file, at most
# Files name neither the date nor the version of matplotlib: the same run gives the same bytes.
UNDATED: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
PAGE_WIDTH = 5.1  # inches: about the width of a phone, so that text keeps its size there
PAGE_HEIGHTS = {"lines": 3.6, "histogram": 3.6, "matrix": 4.6, "plane": 4.4}  # inches
BAR_HEIGHT = 0.2  # inches of a page for each bar; their axis takes one inch more


def require_matplotlib() -> None:
    """Raise NesvmError with how to install matplotlib if it is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise NesvmError("plots and pages need matplotlib: pip install 'nesvm-jit[plot]'")


def format_of(path: Any) -> str:
    """Return the format that belongs to the ending of a file's name."""
    ending = os.path.splitext(str(path))[1].lower().removeprefix(".")
    if ending not in FORMATS:
        name = "-" if path == "-" else display_name(path)
        raise InputError(f"{name}: a plot must end in .png, .svg or .pdf")
    return ending


def plot(document: dict[str, Any], path: Any) -> None:
    """Draw the main charts of a document into a file, which appears when it is complete."""
    kind = format_of(path)
    panels = _panels(document)
    columns = 3 if len(panels) > 4 else 2
    rows = -(-len(panels) // columns)
    with _drawing(FILE_STYLE) as (Figure, draw):
        wide, high = 5.0 * columns, 3.9 * rows + 1.0
        figure = Figure(figsize=(wide, high), dpi=110)
        _write_heading(figure, document, high)
        figure.subplots_adjust(
            left=0.8 / wide,
            right=1 - 0.2 / wide,
            bottom=0.55 / high,
            top=1 - 1.35 / high,
            wspace=0.2,
            hspace=0.3,
        )
        for k, chart in enumerate(panels):
            ax = figure.add_subplot(rows, columns, k + 1)
            draw(ax, chart)
            ax.set_title(chart["title"])
        for artist in figure.findobj():
            artist.set_gid(None)  # only pages show tips
        with writing(path) as f:
            figure.savefig(f, format=kind, metadata=UNDATED[kind])


def draw_svg(chart: dict[str, Any]) -> bytes:
    """Draw a single chart without its title; return the text of an SVG file."""
    high = PAGE_HEIGHTS.get(chart["kind"]) or 1.0 + BAR_HEIGHT * len(chart["labels"])
    with _drawing(PAGE_STYLE) as (Figure, draw):
        figure = Figure(figsize=(PAGE_WIDTH, high), layout="constrained")
        draw(figure.add_subplot(), chart)
        written = io.BytesIO()
        figure.savefig(written, format="svg", metadata=UNDATED["svg"])
    return written.getvalue()


@contextmanager
def _drawing(style: Any) -> Iterator[tuple[Any, Any]]:
    """Yield matplotlib's `Figure` and our `draw` in a context with this style."""
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    from .charts import draw

    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # missing for names in other scripts
        yield Figure, draw


def _write_heading(figure: Any, document: dict[str, Any], high: float) -> None:
    certificate = document["certificate"]
    proved = COLOURS[2 if certificate["certified"] else 1]
    for text, inches, look in (
        (document["title"], 0.4, {"fontsize": 15, "weight": "bold", "color": INK}),
        (document["subtitle"], 0.67, {"fontsize": 10, "color": SOFT}),
        (certificate["sentence"], 0.93, {"fontsize": 10.5, "weight": "bold", "color": proved}),
    ):
        figure.text(0.012, 1 - inches / high, text, **look)


def _panels(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Choose the charts of a file: the first section of a path; of a training run, convergence and
    as many others as there is space for."""
    sections = document["sections"]
    if document["kind"] == "path":
        return list(sections[0]["charts"])
    by_id = {chart["id"]: chart for section in sections for chart in section["charts"]}
    classes = len(by_id["confusion"]["labels"])
    last = ("weights", "confusion") if classes == 2 else ("confusion", "weights")
    names = ("objective", "gap", "gap-again", "plane", "u", "decision", *last)
    return [by_id[name] for name in names if name in by_id][:PANELS]
