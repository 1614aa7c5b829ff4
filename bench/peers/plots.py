"""Suboptimality against time, log-log, as SVG."""

from pathlib import Path

from .curves import Outcome, median, off

# Okabe and Ito's colours, which the colour-blind tell apart; ours is black
COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
MARKERS = "osD^vP*X"
FLOOR = 1e-9  # nearer than any reference is certain


def is_plotted(outcome: Outcome) -> bool:
    """C = 1 wherever there are rivals, and a9a at C = 100, where coordinate methods struggle."""
    task = outcome.task
    hard = task.data == "a9a" and task.C == 100.0 and not task.bias
    return not task.grows and (task.C == 1.0 or hard)


def file_name(outcome: Outcome) -> str:
    task = outcome.task
    words = (
        outcome.data,
        task.model,
        "" if task.kernel == "linear" else task.kernel,
        "bias" if task.bias else "",
        "file" if task.from_file else "",
    )
    return (
        "-".join([*filter(None, words), f"C{task.C:g}"]).replace(", ", "-").replace(" ", "-")
        + ".svg"
    )


def frontier(points):
    """Those of (seconds, suboptimality), by time, that come nearer than all quicker ones."""
    return [p for i, p in enumerate(points) if all(p[1] < q[1] for q in points[:i])]


def draw(outcome: Outcome, names: list[str], path: Path) -> None:
    """A mark per setting, a line per solver through those that nothing quicker of its own beats."""
    figure, axes = blank()
    for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
        curve = outcome.curves.get(name)
        if curve is None or not curve.points:
            continue
        points = sorted((median(p), max(off(p, outcome.best), FLOOR)) for p in curve.points)
        width = 2.4 if colour == COLOURS[0] else 1.4
        axes.plot(*zip(*points, strict=True), marker, color=colour, ms=5, alpha=0.35)
        nearest = zip(*frontier(points), strict=True)
        axes.plot(*nearest, f"{marker}-", color=colour, label=name, lw=width, ms=6)
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="suboptimality")
    axes.set_title(outcome.name, fontsize=11)
    keep(figure, path)


def blank():
    """An empty figure with one pair of axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "nesvm-jit"  # the same figures make the same file
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    axes.grid(True, which="major", color="#DDDDDD", lw=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def keep(figure, path: Path) -> None:
    """Write a figure with a legend beside it."""
    from matplotlib import pyplot as plt

    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
