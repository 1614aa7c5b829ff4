"""docs/benchmarks.md from what is stored: method, versions, targets, times, plots."""

import math
from pathlib import Path

from .. import selection
from ..common import note, table, write_page
from . import plots, prediction, targets
from .curves import LEVELS, Curve, Outcome, fastest, median, nearest, off, proven, short, time_to
from .solvers import REFERENCE, SOLVERS
from .store import load
from .targets import ms
from .tasks import COSTS, TABLES, Task

NAMES = [solver.NAME for solver in SOLVERS]
OWN = {solver.NAME for solver in SOLVERS if solver.CERTIFIED}
METHOD = """\
Every solver runs from its loosest setting to its tightest, in a process of its own, after a warm-up
fit. A time is the median of 5 repeats (3 when a fit takes more than 0.1 s, 1 when more than 1 s);
no tighter setting is tried when 6 s are spent on a task, and slow peers run at fewer C. One judge
computes the true objective of every result. Suboptimality is (objective − best) / best, best being
the least objective that any solver reached. **The time to a level is the least median among the
settings that reach it**; ours, besides, must have been asked for that tolerance and have certified
it by its own duality gap. Where there are methods to choose from (HiGHS, RidgeClassifier), the
fastest counts and is named.

Figures are milliseconds of solving with the data in memory, converted beforehand where a solver's
interface allows it; from file to model, of a whole process. `—` is a level not reached, with the
nearest result. LIBLINEAR ends at the limit of epochs that is built into it; skglm runs with its
defaults and with more rounds from a larger working set, since the defaults often end far off.

The bias of LIBLINEAR, LinearSVC, snapml and rehline is penalised: with a bias they minimise another
problem, and are judged by the true one, where the bias is free. LS-SVM is ½‖w‖² + C Σ r²; LIBLINEAR
solves it as −s 11 −p 0, RidgeClassifier with α = 1/(2C). The RBF kernel has γ = 1/features and a
free bias; several classes are trained one against one, and their objectives added up."""


def gather(tasks: list[Task], among=SOLVERS) -> dict[Task, Outcome]:
    """What is stored of the tasks."""
    found = {}
    for task in tasks:
        stored = {solver.NAME: (solver, load(task, solver)) for solver in (REFERENCE, *among)}
        curves = {
            name: Curve(name, result["points"], solver.CERTIFIED, result["notice"])
            for name, (solver, result) in stored.items()
            if result
        }
        outcome = Outcome(task, next((r["data"] for _, r in stored.values() if r), ""), curves)
        if math.isfinite(outcome.best):
            found[task] = outcome
    return found


def cell(outcome: Outcome, curve: Curve | None, level: float) -> str:
    """Milliseconds to a level, or how near the solver came."""
    if curve is None:
        return ""
    point = fastest(curve, outcome.best, level)
    if point:
        method = f" ({point['setting']})" if isinstance(point["setting"], str) else ""
        return ms(median(point)) + method
    last = nearest(curve, outcome.best)
    if last is None:
        return f"failed ({curve.notice})"
    word, value = "reached", off(last, outcome.best)
    if curve.certified:
        word, value = "certified only", proven(last)
    return f"— ({word} {short(value)} in {ms(median(last))})"


def _columns(outcomes: list[Outcome]) -> list[str]:
    return [name for name in NAMES if any(name in o.curves for o in outcomes)]


def _times(outcomes: list[Outcome]) -> str:
    """A table per level, a row per task, a column per solver."""
    names = _columns(outcomes)
    parts = []
    for level in LEVELS:
        rows = [
            (o.data, f"{o.task.C:g}", *(cell(o, o.curves.get(name), level) for name in names))
            for o in outcomes
        ]
        parts += [f"Milliseconds to {short(level)}:", table(rows, ("data", "C", *names))]
    return "\n\n".join(parts)


def _spreads(outcomes: dict[Task, Outcome]) -> str:
    linear = [(data, targets.over_costs(data)) for data in TABLES]
    groups = (
        (("nesvm-jit", "LIBLINEAR", "LinearSVC"), linear),
        (("nesvm-jit", *targets.KERNEL_PEERS), [("a6a, rbf", targets.over_rbf_costs("a6a"))]),
    )
    parts = []
    for names, of_data in groups:
        rows = []
        for data, tasks in of_data:
            found = [targets.spread(outcomes, tasks, name) for name in names]
            if not math.isnan(found[0]):
                shown = (f"{s:.1f}" if math.isfinite(s) else "some C not reached" for s in found)
                rows.append((data, *shown))
        if rows:
            parts.append(table(rows, ("data", *names)))
    if not parts:
        return f"Not measured: it takes all of C = {', '.join(f'{C:g}' for C in COSTS)}."
    return "\n\n".join(["Slowest over fastest C, to 1e-3.", *parts])


def _losses(outcomes: list[Outcome]) -> str:
    """Every level at which a peer is ahead of ours."""
    rows = []
    for o in outcomes:
        for level in LEVELS:
            times = {name: time_to(curve, o.best, level) for name, curve in o.curves.items()}
            ours = min((times[name] for name in OWN if name in times), default=math.inf)
            peers = {name: t for name, t in times.items() if name in NAMES and name not in OWN}
            name = min(peers, key=peers.get, default=None)
            if name and peers[name] < ours:
                mine = ms(ours) if math.isfinite(ours) else "not certified"
                rows.append((o.name, short(level), name, ms(peers[name]), mine))
    if not rows:
        return "Nowhere in what was measured."
    return table(rows, ("problem", "level", "fastest peer", "its ms", "our ms"))


def _bounds(outcomes: list[Outcome]) -> str:
    """How certain the best objective is."""
    broken = [o for o in outcomes if o.gap < -1e-9]
    loose = [o for o in outcomes if o.gap > 1e-7]
    text = (
        "The optimum lies between the best objective and the best certified lower bound, from a "
        f"run to 1e-8 of at most 60 s. Of {len(outcomes)} problems the two are within 1e-7 of each "
        f"other in {len(outcomes) - len(loose) - len(broken)}"
    )
    rows = [(o.name, f"{o.gap:.1e}") for o in loose + broken]
    if not rows:
        return text + "."
    warning = " A negative figure is a bound that a peer refutes." if broken else ""
    return f"{text}; the others:{warning}\n\n" + table(rows, ("problem", "(best − bound) / best"))


def _versions(tasks: list[Task]) -> str:
    """The versions measured, and who was skipped or stopped and why."""
    versions, notices = {}, []
    for solver in SOLVERS:
        found = [r for task in tasks if (r := load(task, solver))]
        versions.update({(r["package"], r["version"]): None for r in found})
        reasons = {solver.missing(task) for task in tasks}
        if not found and any("installed" in (reason or "") for reason in reasons):
            notices.append(f"- {solver.NAME}: skipped, not installed")
        notices += [f"- {solver.NAME}, {r['task']}: {r['notice']}" for r in found if r["notice"]]
    shown = ", ".join(f"{package} {number}" for package, number in versions)
    return "\n".join([shown + ".", *([""] if notices else []), *notices])


def _plots(outcomes: list[Outcome], folder: Path) -> str:
    parts = ["A mark per setting, a line through the best; down and to the left is better."]
    for o in filter(plots.is_plotted, outcomes):
        name = plots.file_name(o)
        try:
            plots.draw(o, _columns([o]), folder / "plots" / name)
        except ImportError:
            note("matplotlib is not installed: no plots")
            return "matplotlib was not installed."
        parts.append(f"![{o.name}](plots/{name})")
    return "\n\n".join(parts)


def write(tasks: list[Task], folder: Path) -> None:
    """Write the page, and the plots next to it."""
    by_task = gather(tasks)
    outcomes = list(by_task.values())
    groups: dict[str, list[Outcome]] = {}
    for o in outcomes:
        groups.setdefault(o.task.group, []).append(o)
    rows = targets.rows(by_task)
    demands = ("problem", "target", "measured", "")
    sections = [
        ("Method", METHOD),
        ("Versions", _versions(tasks)),
        ("Targets", table(rows, demands) if rows else "None for what was measured."),
        ("Where peers are faster", _losses(outcomes)),
        ("Spread over C", _spreads(by_task)),
        *((group, _times(found)) for group, found in groups.items()),
        *([("Prediction", found)] if (found := prediction.section()) else []),
        *([("Choosing C", found)] if (found := selection.section()) else []),
        ("How certain the optimum is", _bounds(outcomes)),
        ("Curves", _plots(outcomes, folder)),
    ]
    write_page(folder / "benchmarks.md", "Against peers", "make bench-peers", sections)
