"""The texts of pages about a run: its facts, and its certificate in a sentence for everyone."""

import math
from typing import Any

import numpy as np

from ..files.model.record import ModelRecord
from ..machine.machine import Machine
from .numbers import duration, percent, share, text

MODELS = {"csvm": "C-SVM", "lpsvm": "LP-SVM", "lssvm": "LS-SVM"}
PARTS = {
    "csvm": "half the squared length of the weights and C times the hinge loss of every row",
    "lpsvm": "the sum of the weights' sizes and C times the hinge loss of every row",
    "lssvm": "half the squared length of the weights and C times the squared loss of every row",
}
GAP = (
    "(objective − lower bound) / objective: no machine of this kind has an objective lower by a "
    "larger share, up to rounding errors of the computed values."
)
KERNELS = {"rbf": "RBF kernel", "poly": "polynomial kernel", "linear": "linear"}
ENDS = {
    "converged": "ended at the tolerance",
    "epsilon": "ended by the paper's rule, a change below ε",
    "stalled": "ended where rounding leaves nothing more to gain",
    "iteration_limit": "ended at the limit of rounds",
    "time_limit": "ended at the time limit",
    "interrupted": "interrupted; the best found was kept",
}


def subtitle(facts: dict[str, Any]) -> str:
    """Describe the machine and the size of its data in a line."""
    kernel = KERNELS.get(facts["kernel"], f"{facts['kernel']} kernel")
    classes = facts.get("n_classes") or len(facts.get("classes", ()))
    model = MODELS.get(facts["model"], facts["model"])
    return (
        f"{model}, {kernel} · {text(facts['n_samples'])} rows · "
        f"{text(facts['n_features'])} features · {classes} classes"
    )


def certificate(facts: dict[str, Any], tol: float, problems: int) -> dict[str, Any]:
    """Explain the gap: up to rounding, no objective is below (1 − gap) times the one reached."""
    gap, several = facts["gap"], problems > 1
    kind = "over these landmarks " if "approx" in facts else ""
    start = f"In each of the {problems} sub-problems, no machine" if several else "No machine"
    if not math.isfinite(gap) or gap >= 1.0:
        sentence = "Nothing is proved yet: training ended before a useful lower bound was found."
    elif gap == 0.0:
        sentence = f"{start} of this kind {kind}can have a lower objective, but for rounding."
    else:
        than = "than the one found" if several else "than this one"
        sentence = (
            f"{start} of this kind {kind}can have an objective more than {percent(gap, up=True)} "
            f"lower {than}."
        )
    goal = f"The tolerance was {percent(tol)}" + (
        "." if facts["certified"] else f", which was not reached: {ENDS[facts['status']]}."
    )
    return {
        "sentence": sentence,
        "more": f"{goal} The objective is what training minimises: {PARTS[facts['model']]}.",
        "certified": bool(facts["certified"]),
    }


def training_tiles(facts: dict[str, Any], right: str) -> list[list[str]]:
    """Return the four main numbers of a training run, each with its name."""
    return [
        [percent(facts["gap"], up=True), "certified gap"],
        [right, "training rows right"],
        [text(facts["n_support"]), "support vectors"],
        [duration(facts["seconds"]["solve"]), "to train"],
    ]


def training_facts(machine: Machine, facts: dict[str, Any]) -> list[list[str]]:
    """Name and value of everything else."""
    record, seconds = machine.record, facts["seconds"]
    several = len(machine.problems) > 1
    rows = [
        ["model", MODELS[facts["model"]]],
        ["kernel", _kernel(record)],
        ["C", text(facts["C"])],
        ["bias", "free" if record.extra["bias"] else "none"],
        ["rows", text(facts["n_samples"])],
        ["features", text(facts["n_features"])],
        ["classes", text(facts["n_classes"])],
    ]
    if several:
        how = {"ovo": "one against one", "ovr": "one against the rest"}[record.multiclass]
        rows.append(["sub-problems", f"{len(machine.problems)}, {how}"])
    if "approx" in facts:
        rows.append(["approximation", f"Nyström, {text(facts['approx']['landmarks'])} landmarks"])
    rows += [
        ["solver", facts["solver"]],
        ["why this one", facts["why"] or "–"],
        ["rounds", text(facts["iterations"])],
        ["end", ENDS[facts["status"]]],
        ["objective" + (", sum" if several else ""), text(facts["objective"], 8)],
        ["lower bound" + (", sum" if several else ""), text(facts["dual_objective"], 8)],
        ["gap" + (", the largest" if several else ""), text(facts["gap"], 3)],
        ["tolerance", text(record.extra["tol"])],
        ["support vectors", text(facts["n_support"])],
    ]
    if record.weights is not None:
        used = int(np.count_nonzero(record.weights))
        rows.append(["weights not zero", f"{text(used)} of {text(record.weights.size)}"])
    return rows + _times(seconds)


def _kernel(record: ModelRecord) -> str:
    if record.kernel == "rbf":
        return f"RBF, γ = {text(record.gamma)}"
    if record.kernel == "poly":
        return f"polynomial, degree {record.degree}, γ = {text(record.gamma)}, coef0 = " + text(
            record.coef0
        )
    return str(record.kernel)


def path_certificate(facts: dict[str, Any]) -> dict[str, Any]:
    """Explain the gaps of all fits together."""
    fits = [bool(c) for cell in facts["cells"] for c in cell["certified"] if c is not None]
    gaps = [g for cell in facts["cells"] for g in cell["gaps"] if g is not None]
    largest = max(gaps, default=math.inf)
    if fits and all(fits):
        sentence = (
            f"Every one of the {text(len(fits))} fits is proved to be within "
            f"{percent(largest, up=True)} of the best objective it could have."
        )
        more = "No score below is the work of a fit that was ended too early."
    else:
        sentence = (
            f"{text(sum(fits))} of {text(len(fits))} fits are proved to be within "
            f"{percent(facts['tol'])} of the best objective they could have; the others were ended "
            "before."
        )
        more = "Scores of fits that were ended early may be lower than they need be."
    return {"sentence": sentence, "more": more, "certified": bool(fits) and all(fits)}


def path_tiles(facts: dict[str, Any]) -> list[list[str]]:
    """Return the chosen C and γ, their scores and the time of the path, each with its name."""
    best, chosen = facts["best"], facts[facts.get("chosen") or "best"]
    gamma = "" if chosen.get("gamma") is None else f", γ = {text(chosen['gamma'])}"
    tiles = [
        [f"{text(chosen['C'])}{gamma}", "C chosen" if not gamma else "C and γ chosen"],
        [percent_of(chosen["mean"]), f"{score_name(facts['scoring'])} in cross-validation"],
    ]
    if facts.get("test"):
        tiles.append([percent_of(facts["test"]["accuracy"]), "of the test file right"])
    else:
        tiles.append([percent_of(best["mean"]), "best of all"])
    total = (facts.get("seconds") or {}).get("total")
    return [*tiles, [duration(total) if total is not None else "–", "in all"]]


def path_facts(facts: dict[str, Any]) -> list[list[str]]:
    """Name and value of everything else."""
    fits = sum(len(cell["gaps"]) for cell in facts["cells"])
    repeats = f"{facts['repeats']} times over, " if facts["repeats"] > 1 else ""
    rows = [
        ["model", MODELS.get(facts["model"], facts["model"])],
        ["kernel", facts["kernel"]],
        ["solver", facts["solver"]],
        ["bias", "free" if facts["bias"] else "none"],
        ["rows", text(facts["n_samples"])],
        ["features", text(facts["n_features"])],
        ["classes", text(len(facts["classes"]))],
        ["costs", f"{len(facts['costs'])}, {_range(facts['costs'])}"],
        ["folds", f"{facts['folds']}, {repeats}seed {facts['seed']}"],
        ["fits", text(fits)],
        ["tolerance", text(facts["tol"])],
        ["scored by", score_name(facts["scoring"])],
        ["best", _cell(facts["best"])],
        ["simplest within one standard error", _cell(facts["one_se"])],
        ["chosen", "the best" if facts["chosen"] == "best" else "the simplest within one error"],
        ["end", ENDS.get(facts["status"], str(facts["status"]))],
    ]
    gammas = [g for g in facts["gammas"] if g is not None]
    if gammas:
        shown = text(gammas[0]) if len(gammas) == 1 else f"{len(gammas)}, " + _range(gammas)
        rows.insert(8, ["γ", shown])
    refit, test = facts.get("refit"), facts.get("test")
    if refit:
        proof = f"gap {text(refit['gap'], 3)}, {text(refit['n_support'])} support vectors"
        rows.append(["trained on all rows", proof])
    if test:
        right = share(round(test["accuracy"] * test["n_samples"]), test["n_samples"])
        rows.append(["test file", f"{text(test['n_samples'])} rows, {right} right"])
    return rows + _times(facts.get("seconds") or {})


def _times(seconds: dict[str, float | None]) -> list[list[str]]:
    names = {"solve": "time to train", "fits": "time of all fits", "total": "time in all"}
    return [
        [names.get(name, f"time to {name}"), duration(s)]
        for name, s in seconds.items()
        if s is not None
    ]


def _range(values: list[float]) -> str:
    return f"{text(min(values))} to {text(max(values))}"


def _cell(cell: dict[str, Any] | None) -> str:
    if not cell:
        return "–"
    gamma = "" if cell.get("gamma") is None else f", γ = {text(cell['gamma'])}"
    error = cell.get("std_error")
    error = "" if error is None or not math.isfinite(error) else f" ± {percent_of(error)}"
    return f"C = {text(cell['C'])}{gamma}: {percent_of(cell['mean'])}{error}"


def percent_of(score: float | None) -> str:
    """Format a score in per cent with two decimals."""
    return "–" if score is None or not math.isfinite(score) else f"{100 * score:.2f}\u00a0%"


def score_name(key: str) -> str:
    """Return the name of a score for people."""
    return {"f1": "F1", "auc": "area under the ROC curve"}.get(key, key.replace("_", " "))
