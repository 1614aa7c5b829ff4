"""Documents drawn by matplotlib, which only this file needs."""

import importlib.util
import os
import warnings
from typing import Any

import numpy as np

from ..errors import InputError, NesvmError
from ..files.text import display_name, writing
from .paths import path_document

FORMATS = ("png", "svg", "pdf")
COLOURS = ("#1f62c4", "#c4500c", "#1a7a4b", "#8441b5", "#b8295f", "#0e7c86", "#7a6a00", "#6b7480")
INK, SOFT, LIGHT = "#1b2027", "#56606b", "#e7e7e2"
STYLE: Any = {
    "font.size": 9.0,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.hashsalt": "nesvm-jit",
}
PANELS = 6
UNDATED = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def require_matplotlib() -> None:
    """Say how to install it where it is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise NesvmError("plots need matplotlib: pip install 'nesvm-jit[plot]'")


def format_of(path) -> str:
    """The format that the ending of a file's name asks for."""
    ending = os.path.splitext(str(path))[1].lower().removeprefix(".")
    if ending not in FORMATS:
        name = "-" if path == "-" else display_name(path)
        raise InputError(f"{name}: a plot must end in .png, .svg or .pdf")
    return ending


def plot(document: dict[str, Any], path) -> None:
    """Draw the main charts of a document; the file appears whole or not at all."""
    kind = format_of(path)
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    panels = _panels(document)
    columns = 3 if len(panels) > 4 else 2
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # of names in other scripts
        wide, high = 5.0 * columns, 3.9 * rows + 1.0
        figure = Figure(figsize=(wide, high), dpi=110)
        _heading(figure, document, high)
        figure.subplots_adjust(
            left=0.8 / wide,
            right=1 - 0.2 / wide,
            bottom=0.55 / high,
            top=1 - 1.35 / high,
            wspace=0.2,
            hspace=0.3,
        )
        for k, (chart, axis) in enumerate(panels):
            _DRAW[chart["kind"]](figure.add_subplot(rows, columns, k + 1), chart, axis)
        with writing(path) as f:
            figure.savefig(f, format=kind, metadata=UNDATED[kind])


def plot_path(facts: dict[str, Any], path, title: str = "path") -> None:
    """Draw a path over costs from `PathResult.facts()`."""
    plot(path_document(facts, title), path)


def _heading(figure, document: dict[str, Any], high: float) -> None:
    certificate = document["certificate"]
    proved = COLOURS[2 if certificate["certified"] else 1]
    for text, inches, look in (
        (document["title"], 0.4, {"fontsize": 15, "weight": "bold", "color": INK}),
        (document["subtitle"], 0.67, {"fontsize": 10, "color": SOFT}),
        (certificate["sentence"], 0.93, {"fontsize": 10.5, "weight": "bold", "color": proved}),
    ):
        figure.text(0.012, 1 - inches / high, text, parse_math=False, **look)


def _panels(document: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Charts and the axis to draw each against: all of a path; of a training run, convergence and
    what fits besides."""
    charts = [
        {**chart, **chart["variants"][0], "title": chart["title"]} if "variants" in chart else chart
        for section in document["sections"]
        for chart in section["charts"]
    ]
    if document["kind"] == "path":
        return [(c, "C") for c in charts if c["kind"] == "lines" and c["axes"][0]["key"] == "C"]
    by_id = {c["id"]: c for c in charts}
    keys = [a["key"] for a in by_id["gap"]["axes"]]
    found = [(by_id["objective"], keys[0])] + [(by_id["gap"], key) for key in keys[:2]]
    classes = len(by_id["confusion"]["labels"])
    last = ("weights", "confusion") if classes == 2 else ("confusion", "weights")
    others = [by_id[name] for name in ("plane", "u", "decision", *last) if name in by_id]
    return (found + [(c, "") for c in others])[:PANELS]


def _numbers(values) -> np.ndarray:
    return np.array(values, dtype=float)


def _lines(ax, chart: dict[str, Any], key: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axis = next(a for a in chart["axes"] if a["key"] == key)
    many = len(chart["series"]) > len(COLOURS)
    columns = [s.get("columns") or chart["columns"] for s in chart["series"]]
    for k, s in reversed(list(enumerate(chart["series"]))):
        x, y, colour = _numbers(columns[k][key]), _numbers(s["y"]), COLOURS[0 if many else k]
        if s.get("dots") == "only":
            ax.plot(x, y, "o", ms=4, alpha=0.6, mew=0, color=colour, label=s["name"])
        elif s.get("thin"):
            ax.plot(x, y, "--", lw=1.0, color=colour, label=s["name"])
        elif "errors" in s:
            errors = np.nan_to_num(_numbers(s["errors"]))
            ax.errorbar(x, y, errors, fmt="o-", ms=4, capsize=2.5, color=colour, label=s["name"])
        else:
            dot = "o-" if s.get("dots") or len(y) < 30 else "-"
            faint = {"lw": 0.8, "alpha": 0.4, "ms": 1.5} if many and k else {"lw": 1.7, "ms": 3}
            ax.plot(x, y, dot, color=colour, label=s["name"], **faint)
    if "band" in chart:
        upper, lower = (_numbers(chart["series"][k]["y"]) for k in chart["band"])
        ax.fill_between(_numbers(columns[0][key]), lower, upper, color=COLOURS[2], alpha=0.16, lw=0)
    for level in chart.get("levels", ()):
        look = {"color": SOFT, "ls": (0, (4, 3)), "lw": 1}
        ax.axhline(level["value"], label=level["label"], **look)
    ax.set_xscale("log" if axis["log"] else "linear")
    ax.set_yscale("log" if chart["y"]["log"] else "linear")
    _stages(ax, columns[0], key)
    for k, mark in enumerate(chart.get("marks", ())):
        s = mark["series"]
        at = columns[s][key][mark["index"]], chart["series"][s]["y"][mark["index"]]
        ax.plot(*at, "s" if k else "o", ms=11, mfc="none", mec=INK, mew=1.5, label=mark["label"])
    _names(ax, chart, axis["label"])
    if not axis["log"]:
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=key == "round"))
    handles, names = ax.get_legend_handles_labels()
    curves = [s["name"] for s in chart["series"]]
    hidden = curves if len(curves) == 1 or many else []
    shown = {n: h for n, h in zip(names, handles, strict=True) if n not in hidden}
    order = [n for n in curves if n in shown] + [n for n in shown if n not in curves]
    if shown:
        ax.legend([shown[name] for name in order], order)


def _stages(ax, columns: dict[str, list], key: str) -> None:
    """Runs of constant μ as a strip on the axis, the darker the smaller."""
    if "mu" not in columns:
        return
    mu, x = _numbers(columns["mu"]), _numbers(columns[key])
    known = mu[mu > 0]
    lo, hi = np.log(known.min()), np.log(known.max())
    starts = np.append(0, np.flatnonzero(np.diff(mu)) + 1)
    ends = np.append(starts[1:], len(mu)) - 1
    strip = ax.inset_axes((0.0, 0.0, 1.0, 0.06), sharex=ax)
    whole = float(np.nanmax(x) - np.nanmin(x)) or 1.0
    for a, b in zip(starts, ends, strict=True):
        if mu[a] > 0:
            depth = (hi - np.log(mu[a])) / (hi - lo) if hi > lo else 0.5
            since, to = x[max(0, a - 1)], x[b]
            strip.axvspan(since, to, color=COLOURS[3], alpha=0.15 + 0.7 * depth, lw=0)
            if (to - since) / whole > 0.09:
                ink = "white" if depth > 0.5 else INK
                middle = ((since + to) / 2, 0.45)
                strip.text(*middle, f"{mu[a]:.2g}", ha="center", va="center", color=ink, fontsize=7)
    strip.set_yticks([0.5], ["μ"])
    strip.tick_params(length=0, labelbottom=False)
    strip.grid(visible=False)
    strip.spines[:].set_visible(False)
    bottom, top = (ax.transLimits.inverted().transform((0, y))[1] for y in (-0.08, 1))
    ax.set_ylim(*ax.transScale.inverted().transform([(1, bottom), (1, top)])[:, 1])


def _histogram(ax, chart: dict[str, Any], _: str) -> None:
    edges, tints = _numbers(chart["edges"]), chart.get("tints", {})
    several = len(chart["series"]) > 1
    for k, s in enumerate(chart["series"]):
        colours = [COLOURS[tints.get(str(i), k)] for i in range(len(s["counts"]))]
        ax.bar(
            *(edges[:-1], s["counts"], np.diff(edges)),
            align="edge",
            color=colours,
            alpha=0.55 if several else 0.85,
            edgecolor="white",
            linewidth=0.4,
            label=s["name"],
        )
    for rule in chart.get("rules", ()):
        if edges[0] <= rule <= edges[-1]:
            ax.axvline(rule, color=SOFT, ls=(0, (4, 3)), lw=1)
    for i in map(int, tints):
        count = chart["series"][0]["counts"][i]
        middle = (edges[i] + edges[i + 1]) / 2
        ax.annotate(
            *(f"{count}", (middle, max(count, 0.7)), (0, 3)),
            textcoords="offset points",
            ha="center",
            weight="bold",
        )
    if chart["y"]["log"]:
        ax.set_yscale("log")
        ax.set_ylim(0.6, 3.0 * max(max(s["counts"]) for s in chart["series"]))
    else:
        ax.margins(y=0.1)
    ax.grid(axis="x", visible=False)
    _names(ax, chart, chart["x"]["label"])
    if several:
        ax.legend()


def _bars(ax, chart: dict[str, Any], _: str) -> None:
    values = _numbers(chart["values"])
    ax.barh(
        np.arange(len(values)),
        values,
        color=[COLOURS[1 if v < 0 else 0] for v in values],
        alpha=0.85,
    )
    ax.set_yticks(np.arange(len(values)), chart["labels"], fontsize=6.5)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_title(chart["title"])
    ax.set_xlabel(chart["x"]["label"])


def _matrix(ax, chart: dict[str, Any], _: str) -> None:
    counts = np.array(chart["counts"])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1.15)
    n = len(counts)
    if n <= 12:
        for i, j in np.argwhere(counts > 0):
            ink = "white" if shares[i, j] > 0.6 else INK
            size = 9 if n < 6 else 6.5
            ax.text(j, i, f"{counts[i, j]}", ha="center", va="center", color=ink, fontsize=size)
    step = max(1, n // 15)
    for ticks in (ax.set_xticks, ax.set_yticks):
        ticks(np.arange(0, n, step), chart["labels"][::step])
    ax.grid(visible=False)
    ax.set_title(chart["title"])
    ax.set_xlabel("decided")
    ax.set_ylabel("true")


def _plane(ax, chart: dict[str, Any], _: str) -> None:
    from matplotlib.colors import ListedColormap

    regions = np.array([np.repeat(runs[::2], runs[1::2]) for runs in chart["regions"]])
    n = len(chart["classes"])
    colours = ListedColormap([COLOURS[k % len(COLOURS)] for k in range(n)])
    extent = (*chart["x"]["range"], *chart["y"]["range"])
    look = {"cmap": colours, "vmin": -0.5, "vmax": n - 0.5}
    ax.imshow(regions, origin="lower", extent=extent, aspect="auto", alpha=0.18, **look)
    points = {name: np.array(values) for name, values in chart["points"].items()}
    edges = np.where(points["support"] > 0, INK, "none")
    ax.scatter(
        points["x"], points["y"], 12, points["class"], edgecolors=edges, linewidths=0.6, **look
    )
    for found in chart["lines"]:
        for flat in found["paths"]:
            x, y = np.array(flat).reshape(-1, 2).T
            ax.plot(
                x, y, "--" if found["level"] else "-", color=INK, lw=1 if found["level"] else 1.8
            )
    ax.set_xlim(*chart["x"]["range"])
    ax.set_ylim(*chart["y"]["range"])
    ax.grid(visible=False)
    _names(ax, chart, chart["x"]["label"])


def _names(ax, chart: dict[str, Any], below: str) -> None:
    ax.set_title(chart["title"])
    ax.set_xlabel(below)
    ax.set_ylabel(chart["y"]["label"])


_DRAW = {
    "lines": _lines,
    "histogram": _histogram,
    "bars": _bars,
    "matrix": _matrix,
    "plane": _plane,
}
