"""Draw every kind of chart on axes of matplotlib. Only this module imports matplotlib at once."""

from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogFormatter, MaxNLocator

from .numbers import bin_name, power_text, spread, text
from .palette import CARD, COLOURS, INK, SOFT
from .svg import TIP

DASHED: dict[str, Any] = {"color": SOFT, "ls": (0, (4, 3)), "lw": 1}
LONG = 30  # curves of at least so many points have no dots
STRIP = 0.06  # height of the strip of smoothing above the x axis, as a share of the chart's
STRIP_AND_GAP = 0.08  # height added below the curves for the strip, as a share of theirs
STAGES = 60  # stages of smoothing that are drawn, at most
NAMED_STAGE = 0.09  # share of the chart's width from which on a stage is long enough to name its μ
FULL_MATRIX = 12  # classes of a confusion matrix with counts in its cells, at most
NAMED_CLASSES = 15  # with more classes, only some are named: at least so many
STRONG = 0.6  # cells with a larger share of their class are so dark that their text is light


def draw(ax: Axes, chart: dict[str, Any]) -> None:
    """Draw a chart without its title."""
    _DRAW[chart["kind"]](ax, chart)


class _Powers(LogFormatter):
    """Formats the ticks of a logarithmic axis as powers of ten, without TeX."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return power_text(x) if super().__call__(x, pos) else ""


def _numbers(values: Any) -> np.ndarray:
    return np.array(values, dtype=float)


def _set_tip(artist: Any, words: str) -> None:
    artist.set_gid(TIP + words)


# ---------------------------------------------------------------- curves


def _lines(ax: Axes, chart: dict[str, Any]) -> None:
    axis = chart["axes"][0]
    key, series = axis["key"], chart["series"]
    many = len(series) > len(COLOURS)
    columns = [s.get("columns") or chart["columns"] for s in series]
    for k, s in reversed(list(enumerate(series))):
        _curve(ax, s, _numbers(columns[k][key]), COLOURS[0 if many else k], faint=many and k > 0)
    if "band" in chart:
        upper, lower = (_numbers(series[k]["y"]) for k in chart["band"])
        ax.fill_between(_numbers(columns[0][key]), lower, upper, color=COLOURS[2], alpha=0.16, lw=0)
    for level in chart.get("levels", ()):
        ax.axhline(level["value"], label=level["label"], **DASHED)
    ax.set_xscale("log" if axis["log"] else "linear")
    ax.set_yscale("log" if chart["y"]["log"] else "linear")
    _format_ticks(ax)
    if "mu" in columns[0]:
        _stages(ax, _numbers(columns[0]["mu"]), _numbers(columns[0][key]))
    for k, mark in enumerate(chart.get("marks", ())):
        s = mark["series"]
        at = columns[s][key][mark["index"]], series[s]["y"][mark["index"]]
        ax.plot(*at, "s" if k else "o", ms=11, mfc="none", mec=INK, mew=1.5, label=mark["label"])
    ax.set_xlabel(axis["label"])
    ax.set_ylabel(chart["y"]["label"])
    if not axis["log"]:
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=key == "round"))
    _legend(ax, [s["name"] for s in series], many, above=STRIP_AND_GAP if "mu" in columns[0] else 0)


def _curve(ax: Axes, s: dict[str, Any], x: np.ndarray, colour: str, *, faint: bool) -> None:
    y = _numbers(s["y"])
    look: dict[str, Any] = {"color": colour, "label": s["name"]}
    if s.get("dots") == "only":
        ax.plot(x, y, "o", ms=4, alpha=0.6, mew=0, **look)
    elif s.get("thin"):
        ax.plot(x, y, "--", lw=1.0, **look)
    elif "errors" in s:
        errors = np.nan_to_num(_numbers(s["errors"]))
        ax.errorbar(x, y, errors, fmt="o-", ms=4, capsize=2.5, **look)
    else:
        dotted = s.get("dots") or (len(y) < LONG and not faint)
        look |= {"lw": 0.8, "alpha": 0.4} if faint else {"lw": 1.7, "ms": 3}
        ax.plot(x, y, "o-" if dotted else "-", **look)


def _format_ticks(ax: Axes) -> None:
    for axis, scale in ((ax.xaxis, ax.get_xscale()), (ax.yaxis, ax.get_yscale())):
        if scale == "log":
            axis.set_major_formatter(_Powers())
            axis.set_minor_formatter(_Powers())


def _legend(ax: Axes, curves: list[str], many: bool, above: float) -> None:
    """Add a legend above the strip: the curves in their order, then levels and marks.

    A single curve, or too many of them, are not listed.
    """
    handles, names = ax.get_legend_handles_labels()
    hidden = curves if len(curves) == 1 or many else []
    shown = {n: h for n, h in zip(names, handles, strict=True) if n not in hidden}
    order = [n for n in curves if n in shown] + [n for n in shown if n not in curves]
    if shown:
        space = (0.0, above, 1.0, 1.0 - above)
        ax.legend([shown[name] for name in order], order, loc="best", bbox_to_anchor=space)


def _stages(ax: Axes, mu: np.ndarray, x: np.ndarray) -> None:
    """Draw the stages of constant μ as a strip on the axis, darker for smaller μ."""
    positive = mu[mu > 0]
    lo, hi = np.log(positive.min()), np.log(positive.max())
    starts = np.append(0, np.flatnonzero(np.diff(mu)) + 1)
    starts = starts[spread(len(starts), STAGES)]
    ends = np.append(starts[1:], len(mu)) - 1
    strip = ax.inset_axes((0.0, 0.0, 1.0, STRIP), sharex=ax)
    left, right = ax.get_xlim()
    for a, b in zip(starts, ends, strict=True):
        if mu[a] > 0:
            depth = (hi - np.log(mu[a])) / (hi - lo) if hi > lo else 0.5
            since, to = x[max(0, a - 1)], x[b]
            span = strip.axvspan(since, to, color=COLOURS[3], alpha=0.15 + 0.7 * depth, lw=0)
            _set_tip(span, f"μ = {text(mu[a])}")
            if to - since > NAMED_STAGE * (right - left):
                look: dict[str, Any] = {"color": CARD if depth > 0.5 else INK, "size": "small"}
                middle = ((since + to) / 2, 0.45)
                strip.text(*middle, f"{mu[a]:.2g}", ha="center", va="center", **look)
    strip.yaxis.tick_right()
    strip.set_yticks([0.5], ["μ"])
    strip.tick_params(length=0, labelbottom=False)
    strip.grid(visible=False)
    strip.spines[:].set_visible(False)
    bottom, top = (ax.transLimits.inverted().transform((0, y))[1] for y in (-STRIP_AND_GAP, 1))
    ax.set_ylim(*ax.transScale.inverted().transform([(1, bottom), (1, top)])[:, 1])


# ---------------------------------------------------------------- histograms and bars


def _histogram(ax: Axes, chart: dict[str, Any]) -> None:
    edges, tints = _numbers(chart["edges"]), chart.get("tints", {})
    several = len(chart["series"]) > 1
    for k, s in enumerate(chart["series"]):
        colours = [COLOURS[tints.get(str(i), k)] for i in range(len(s["counts"]))]
        bars = ax.bar(
            *(edges[:-1], s["counts"], np.diff(edges)),
            align="edge",
            color=colours,
            alpha=0.55 if several else 0.85,
            edgecolor=CARD,
            linewidth=0.4,
            label=s["name"],
        )
        for i, bar in enumerate(bars):
            _set_tip(bar, f"{bin_name(chart, i)}: {text(s['counts'][i])} {s['name']}")
    for rule in chart.get("rules", ()):
        if edges[0] <= rule <= edges[-1]:
            ax.axvline(rule, **DASHED)
    for i in map(int, tints):
        count = chart["series"][0]["counts"][i]
        middle = (edges[i] + edges[i + 1]) / 2
        ax.annotate(
            *(text(count), (middle, max(count, 0.7)), (0, 3)),
            textcoords="offset points",
            ha="center",
            weight="bold",
        )
    if chart["y"]["log"]:
        ax.set_yscale("log")
        _format_ticks(ax)
        ax.set_ylim(0.6, 3.0 * max(max(s["counts"]) for s in chart["series"]))
    else:
        ax.margins(y=0.1)
    ax.grid(axis="x", visible=False)
    ax.set_xlabel(chart["x"]["label"])
    ax.set_ylabel(chart["y"]["label"])
    if several:
        ax.legend()


def _bars(ax: Axes, chart: dict[str, Any]) -> None:
    values = _numbers(chart["values"])
    places = np.arange(len(values))
    colours = [COLOURS[1 if v < 0 else 0] for v in values]
    for bar, name, value in zip(
        ax.barh(places, values, color=colours, alpha=0.85), chart["labels"], values, strict=True
    ):
        _set_tip(bar, f"{name}: {text(value, 5)}")
    size = np.clip(0.9 * _points_per_place(ax, len(values)), 5.0, 0.85 * rcParams["font.size"])
    ax.set_yticks(places, chart["labels"], fontsize=size)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(chart["x"]["label"])


def _points_per_place(ax: Axes, n: int) -> float:
    """Return the height of each of n places, one above the other, in typographic points."""
    figure: Any = ax.figure
    return float(ax.bbox.height * 72.0 / figure.dpi / max(n, 1))


# ---------------------------------------------------------------- matrices and planes


def _matrix(ax: Axes, chart: dict[str, Any]) -> None:
    counts, labels = np.array(chart["counts"]), chart["labels"]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    n, longest = len(counts), len(str(counts.max(initial=0)))
    size = min(rcParams["font.size"], 1.2 * _points_per_place(ax, n) / longest)
    for i, j in np.argwhere(counts > 0).tolist():
        share = shares[i, j]
        cell = Rectangle(
            (j - 0.5, i - 0.5), 1, 1, facecolor=COLOURS[0], alpha=0.1 + 0.9 * share, linewidth=0
        )
        tip = f"true {labels[i]}, decided {labels[j]}: {text(int(counts[i, j]))} rows"
        _set_tip(ax.add_patch(cell), f"{tip}, {100 * share:.1f} % of this class")
        if n <= FULL_MATRIX:
            ink = CARD if share > STRONG else INK
            count = text(int(counts[i, j]))
            ax.text(j, i, count, ha="center", va="center", color=ink, fontsize=size)
    ax.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal")
    step = max(1, n // NAMED_CLASSES)
    for ticks in (ax.set_xticks, ax.set_yticks):
        ticks(np.arange(0, n, step), labels[::step])
    ax.grid(visible=False)
    ax.set_xlabel("decided")
    ax.set_ylabel("true")


def _plane(ax: Axes, chart: dict[str, Any]) -> None:
    regions, points = np.array(chart["regions"]), chart["points"]
    (left, right), (bottom, top) = chart["x"]["range"], chart["y"]["range"]
    x, y = np.linspace(left, right, len(regions)), np.linspace(bottom, top, len(regions))
    across, up = _numbers(points["x"]), _numbers(points["y"])
    support = np.array(points["support"])
    for k, name in enumerate(chart["classes"]):
        colour, inside = COLOURS[k % len(COLOURS)], regions == k
        if inside.any():
            ax.contourf(x, y, inside, [0.5, 1.5], colors=[colour], alpha=0.18)
        rows = np.array(points["class"]) == k
        edges = np.where(support[rows] > 0, INK, "none")
        look: dict[str, Any] = {"color": colour, "edgecolors": edges, "linewidths": 0.6}
        ax.scatter(across[rows], up[rows], 12, label=f"class {name}", zorder=2, **look)
    if chart["values"] is not None:
        values = np.array(chart["values"])
        for level in (-1.0, 0.0, 1.0):
            if values.min() < level < values.max():
                look = {"linestyles": "--" if level else "-", "linewidths": 1.0 if level else 1.8}
                ax.contour(x, y, values, [level], colors=[INK], zorder=3, **look)
    ax.set(xlim=(left, right), ylim=(bottom, top))
    ax.grid(visible=False)
    ax.set_xlabel(chart["x"]["label"])
    ax.set_ylabel(chart["y"]["label"])
    if len(chart["classes"]) <= len(COLOURS):
        ax.legend(frameon=True)


_DRAW = {
    "lines": _lines,
    "histogram": _histogram,
    "bars": _bars,
    "matrix": _matrix,
    "plane": _plane,
}
