"""The texts of commands: lines made of facts."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..endings import NAMES, Outcome, describe_uncertified
from ..settings import SCORES

if TYPE_CHECKING:
    from ..selection.result import Choice, PathResult

Facts = dict[str, Any]

# The names of settings on the command line.
OPTION_NAMES = {name: f"--{name.replace('_', '-')}" for name in NAMES} | {"C": "--cost"}

WIDTH = 79  # columns of a line of progress, at most

# ---------------------------------------------------------------- before and during the work


def scaling_hint(least: float, largest: float) -> str:
    """Return the hint about features that are badly scaled."""
    return (
        f"hint: features reach from {least:.3g} to {largest:.3g}; scaled to [0, 1] or [-1, 1] "
        "they usually train faster and predict better"
    )


def many_problems(work: Any) -> str:
    """Describe the memory and time that a machine of many classes takes."""
    return (
        f"{work.problems} sub-problems: {work.bytes / 2**30:.1f} GB of memory, and at least "
        f"{duration(work.seconds)}"
    )


def duration(seconds: float) -> str:
    """Format a time in seconds, minutes, hours or days."""
    for unit, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2.0 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def fit_line(row: Facts, first: Facts, seconds: float, *, tol: float) -> str:
    """Return the progress line of a fit: objective, gap and, if there is space for it, the
    distance to the tolerance; during a warm-up on a part of the rows, its rounds."""
    several = row.get("problems", 1) > 1
    which = f"problem {row['problem'] + 1}/{row['problems']}  " if several else ""
    if "warm_up" in row:
        return f"{which}{_warm_up(row)}  round {row['round']}  {seconds:.1f} s"
    line = f"{which}round {row['round']}  objective {row['objective']:.6g}  gap {row['gap']:.2e}"
    known = tol > 0 and math.isfinite(row["gap"])
    distance = f" ({row['gap'] / tol:.3g} x tolerance)" if known else ""
    time = f"  {seconds:.1f} s"
    return f"{line}{distance}{time}" if len(line + distance + time) <= WIDTH else f"{line}{time}"


def _warm_up(row: Facts) -> str:
    return f"warm-up on {_spaced(row['warm_up'])} of {_spaced(row['rows'])} rows"


def _spaced(count: int) -> str:
    """Format a whole number with its digits in groups of three."""
    return f"{count:,}".replace(",", " ")


def going_on(resumed: Facts) -> str:
    """Describe the state from which a run is resumed."""
    line = f"going on after {resumed['seconds']:.1f} s"
    done, begun = resumed["done"], resumed["begun"]
    return f"{line}, {done} problems solved, {begun} begun" if done else line


def path_line(row: Facts, first: Facts, seconds: float) -> str:
    """Return the progress line of a path: sub-problems solved, then the training on all rows."""
    if "done" not in row:
        what = _warm_up(row) if "warm_up" in row else f"gap {row['gap']:.2e}"
        return f"training on all rows  {what}  {seconds:.1f} s"
    line = f"{row['done']}/{row['total']} problems solved  now C = {row['C']:g}"
    time = f"  {seconds:.1f} s"
    best = ""
    if "best_score" in row:
        best = f"  best so far {row['best_score']:.4f} at C = {row['best_C']:g}"
    return f"{line}{best}{time}" if len(line + best + time) <= WIDTH else f"{line}{time}"


def reading_line(row: Facts, first: Facts, seconds: float) -> str:
    """Return the progress line of a conversion; its speed does not count what an interrupted run
    had read."""
    speed = (row["text_bytes"] - first["text_bytes"]) / 1e6 / seconds
    return (
        f"{row['rows']} rows  {row['text_bytes'] / 1e6:.0f} MB of text  "
        f"{speed:.0f} MB/s  {row['file']}"
    )


# ---------------------------------------------------------------- results


def training_lines(facts: Facts) -> Iterator[str]:
    """Yield the last lines of training in LIBLINEAR's and LIBSVM's form, and the certificate."""
    for p in facts.get("problems", []):
        yield (
            f"{_sides(p)}: #iter = {p['iterations']}, objective = {p['objective']:.6f}, "
            f"nSV = {p['n_support']}, gap = {p['gap']:.2e}"
        )
    yield f"optimization finished, #iter = {facts['iterations']}"
    yield f"Objective value = {facts['objective']:.6f}"
    yield f"nSV = {facts['n_support']}"
    if "approx" in facts:
        landmarks = facts["approx"]["landmarks"]
        yield f"Approximation = nystroem, {landmarks} landmarks; the gap is of that problem"
    yield f"Certified gap = {facts['gap']:.3e}"
    if "gap" in facts.get("approx", {}):
        yield f"Certified gap of the kernel itself = {facts['approx']['gap']:.3e}"


def uncertified_lines(outcomes: Sequence[Outcome], tol: float) -> Iterator[str]:
    """Yield a line if fits did not reach their tolerance."""
    text = describe_uncertified(outcomes, tol, OPTION_NAMES)
    if text:
        yield f"warning: {text}"


def how_to_go_on(checkpoint: str, status: str = "interrupted") -> str:
    """Return the advice on how to continue a run; `checkpoint` is its name in messages."""
    more = "" if status == "interrupted" else " and a higher limit"
    return f"the same command with --resume{more} goes on from {checkpoint}"


def cross_validation_line(accuracy: float) -> str:
    """Return the accuracy of cross-validation in LIBLINEAR's and LIBSVM's words."""
    return f"Cross Validation Accuracy = {100 * accuracy:g}%"


def prediction_lines(facts: Facts) -> Iterator[str]:
    """Yield the accuracy in LIBSVM's words, and the number of proven labels if it is known."""
    correct, n = facts["correct"], facts["n_samples"]
    yield f"Accuracy = {100 * correct / n:g}% ({correct}/{n}) (classification)"
    if "certified" in facts:
        sure = facts["certified"]
        yield f"Proven = {100 * sure / n:g}% ({sure}/{n}) have the label of the exact optimum"


def conversion_line(facts: Facts, folder: str) -> str:
    """Describe the on-disk matrix that a conversion has made."""
    return (
        f"{facts['n_samples']} rows, {facts['n_features']} features, {facts['n_cells']} values: "
        f"{facts['bytes'] / 1e6:.1f} MB in {folder}"
    )


def matrix_lines(facts: Facts) -> Iterator[str]:
    """Yield a line for each fact of an on-disk matrix."""
    for name, value in facts.items():
        yield f"{name:10} {value}"


def model_lines(facts: Facts) -> Iterator[str]:
    """Yield a line for each fact of a model, and its certificate."""
    for name, value in facts.items():
        if value is not None and name not in ("problems", "gap"):
            yield f"{_text(name.replace('_', ' ')):16s} {_text(value)}"
    if "gap" not in facts:
        yield "certificate      none: the model was not trained by this program"
        return
    yield f"certified gap    {facts['gap']:.3e}"
    for p in facts["problems"]:
        yield (
            f"  {_sides(p)}: objective {p['objective']:.9g}, at least {p['dual_objective']:.9g}, "
            f"gap {p['gap']:.2e}, {p['iterations']} iterations of {p['solver']}, {p['status']}"
        )


def _sides(p: Facts) -> str:
    sides = [_number(c) for c in p["classes"]]
    return f"class {sides[0]} against {sides[1] if len(sides) == 2 else 'the rest'}"


def _number(value: float) -> str:
    """Format a number with nine digits, a whole number with all of them."""
    if not isinstance(value, int) and value == value // 1 and abs(value) < 1e15:
        return str(int(value))
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def _text(value: Any) -> str:
    """Format a fact in one line; facts of other programs are shown as shortened JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, list) and all(type(v) in (int, float) for v in value):
        shown = " ".join(map(_number, value[:20]))
        return shown + (f" ... ({len(value)})" if len(value) > 20 else "")
    if isinstance(value, str) and value.isascii() and value.isprintable():
        return value
    text = json.dumps(value)
    return text if len(text) <= 200 else text[:197] + "..."


BIASES = {"free": "free bias", "none": "no bias", "penalised": "penalised bias"}
NAMES = {"csvm": "C-SVM", "lpsvm": "LP-SVM", "lssvm": "LS-SVM"}


def certificate_lines(facts: Facts) -> Iterator[str]:
    """Yield the lines of a certificate: the problem, a table of sub-problems, and their sum."""
    pairs = f", {facts['multiclass']}" if facts["multiclass"] else ""
    yield (
        f"{NAMES[facts['model']]}, {facts['kernel']}, C = {facts['C']:g}, {BIASES[facts['bias']]}"
        f"{pairs}, {facts['n_samples']} rows, {facts['n_features']} features"
    )
    rows = [["problem", "objective", "optimum at least", "gap", "dual point", "passes"]]
    for p in facts["problems"]:
        sides = [c if isinstance(c, str) else _number(c) for c in p["classes"]]
        row = [f"{sides[0]} against {sides[1] if len(sides) == 2 else 'the rest'}"]
        row += [f"{p['objective']:.9g}", f"{p['dual_objective']:.9g}", f"{p['gap']:.2e}"]
        rows.append([*row, p["dual_point"], f"{p['passes']:.3g}"])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
    how = "in rational arithmetic" if facts["problems"][0]["exact"] else "all rounding allowed for"
    yield f"Proven gap = {facts['gap']:.3e}, {how}"


# ---------------------------------------------------------------- paths


def path_lines(result: "PathResult") -> Iterator[str]:
    """Yield the lines of a path: its table, its choice, the machine trained with it, and the scores
    on a test file."""
    yield from table_lines(result)
    yield from choice_lines(result)
    if result.refit is not None:
        facts = result.refit
        gap = f"certified gap = {facts['gap']:.3e}"
        yield f"Trained on all rows: C = {facts['C']:g}, nSV = {facts['n_support']}, {gap}"
    if result.test is not None:
        yield judged_line(result.test)


def table_lines(result: "PathResult") -> Iterator[str]:
    """Yield a line per γ and cost: the mean score and its deviation between folds, the seconds of
    all fits, the mean numbers of support vectors and weights, and the largest gap."""
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


def _marks(result: "PathResult", C: float, gamma: float | None) -> str:
    named = (("best", result.best), ("one-se", result.one_se))
    return " ".join(name for name, choice in named if (choice.C, choice.gamma) == (C, gamma))


def choice_lines(result: "PathResult") -> Iterator[str]:
    """Yield the choices of the two rules."""
    yield f"Best: {_described(result, result.best)}"
    yield f"Within one standard error: {_described(result, result.one_se)}"


def _described(result: "PathResult", choice: "Choice") -> str:
    gamma = "" if choice.gamma is None else f", gamma = {choice.gamma:g}"
    score = result.scoring.replace("_", " ")
    return f"C = {choice.C:g}{gamma}, {score} = {choice.mean:.4f} +/- {choice.std_error:.4f}"


def judged_line(facts: Facts) -> str:
    """Return the scores on a test file."""
    scores = ", ".join(f"{name.replace('_', ' ')} = {facts[name]:.4f}" for name in SCORES)
    return f"Test: {scores} ({facts['n_samples']} rows)"


def state_lines(result: "PathResult", state: str | None) -> Iterator[str]:
    """Yield a line if the file of finished columns was used, ignored or kept."""
    if result.resumed:
        yield f"{result.resumed} columns of the table were in {state}"
    if result.ignored:
        yield f"{state} is of another run and has been left as it is"
