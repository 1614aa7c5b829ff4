"""A path for people: the table and what was chosen."""

from collections.abc import Iterator
from typing import Any

from .result import Choice, PathResult


def table_lines(result: PathResult) -> Iterator[str]:
    """A line per γ and cost: the mean score and its spread between folds, the seconds of all fits,
    mean support vectors and weights, the largest gap."""
    kernel, linear = result.gammas[0] is not None, result.settings.kernel == "linear"
    heads = ["C", *(["gamma"] if kernel else []), result.scoring.replace("_", " "), "time"]
    heads += ["SV", *(["weights"] if linear else []), "gap", ""]
    rows = [heads]
    means, spreads = result.means(), result.stds()
    for g, gamma in enumerate(result.gammas):
        for i, C in enumerate(result.costs):
            cells = {name: values[g, i] for name, values in result.table.items()}
            row = [f"{C:g}", *([f"{gamma:g}"] if kernel else [])]
            row += [f"{means[g, i]:.4f} +/- {spreads[g, i]:.4f}", f"{cells['seconds'].sum():.2f} s"]
            row += [f"{cells['n_support'].mean():.0f}"]
            row += [f"{cells['n_nonzero'].mean():.0f}"] if linear else []
            row += [f"{cells['gap'].max():.1e}", _marks(result, C, gamma)]
            rows.append(row)
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    for row in rows:
        line = "  ".join(cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False))
        yield f"{line}  {row[-1]}".rstrip()


def _marks(result: PathResult, C: float, gamma: float | None) -> str:
    named = (("best", result.best), ("one-se", result.one_se))
    return " ".join(name for name, choice in named if (choice.C, choice.gamma) == (C, gamma))


def choice_lines(result: PathResult) -> Iterator[str]:
    """What the two rules choose."""
    yield f"Best: {_described(result, result.best)}"
    yield f"Within one standard error: {_described(result, result.one_se)}"


def _described(result: PathResult, choice: Choice) -> str:
    gamma = "" if choice.gamma is None else f", gamma = {choice.gamma:g}"
    score = result.scoring.replace("_", " ")
    return f"C = {choice.C:g}{gamma}, {score} = {choice.mean:.4f} +/- {choice.std_error:.4f}"


def judged_line(facts: dict[str, Any]) -> str:
    """The scores on a test file."""
    names = ("accuracy", "balanced_accuracy", "f1", "auc")
    scores = ", ".join(f"{name.replace('_', ' ')} = {facts[name]:.4f}" for name in names)
    return f"Test: {scores} ({facts['n_samples']} rows)"


def warnings(result: PathResult) -> Iterator[str]:
    """A line if fits did not reach their tolerance."""
    off = ~result.table["certified"].astype(bool)
    if off.any():
        worst, tol = result.table["gap"].max(), result.settings.tol
        yield (
            f"warning: {off.sum()} of {off.size} fits end above the tolerance {tol:g}, "
            f"the largest gap is {worst:.2e}"
        )
