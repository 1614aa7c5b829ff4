"""A checkpoint that somebody edited and sealed again: it goes on, or is refused in one line."""

import copy
import random
import warnings

import numpy as np
import pytest
from nesvm_jit import NesvmError
from nesvm_jit.checkpoint.form import MismatchError, one_random_state
from nesvm_jit.checkpoint.snapshot import read_snapshot, write_snapshot

from .endings import path, solve, train

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = np.where(X[:, 0] + 0.3 * RNG.standard_normal(60) > 0, 1.0, -1.0)
LABELS = np.arange(60) % 3 * 1.0
JUNK = [
    *(None, True, -1, 0, 3, 1e308, float("nan"), float("inf"), "x", "", [], {}, [1, 2], {"a": 1}),
    *(np.zeros(3), np.zeros((2, 2)), np.zeros(60, dtype=np.int32), np.zeros(0)),
    *(np.array(["x"]), np.full(60, 10**9)),
]


def search(file, callback=None):
    return path(X, LABELS, "0.1:10:3", None, 3, state=file, callback=callback, tol=1e-6)


RUNS = {
    **{
        f"solve by {name}": lambda name=name, **given: solve(X, Y, solver=name, C=10.0, **given)
        for name in ("nesvm", "homotopy", "newton", "coordinate")
    },
    "a class of three": lambda **given: train(X, LABELS, solver="homotopy", **given),
    "pairs": lambda **given: train(X, LABELS, kernel="rbf", **given),
    "path": lambda **given: search(given["checkpoint"]),
}


def run(name, file, resume, callback=None):
    """Ends after a few hundred rounds at the latest."""
    often = 60.0 if resume else 1e-9
    options = {"tol": 1e-6, "max_iter": 300, "checkpoint_every": often, "callback": callback}
    return RUNS[name](checkpoint=file, resume=resume, **options)


def interrupted(name, file):
    """What the checkpoint has after some rounds, or some sub-problems."""
    rounds = []

    def stop(row):
        rounds.append(row)
        return len(rounds) >= (8 if name.startswith("solve") else 14)

    if name == "path":
        kept = []

        def give_up(row):
            kept.append(row["done"])
            return kept[-1] >= 12

        with pytest.raises(KeyboardInterrupt):
            search(file, give_up)
    else:
        run(name, file, False, stop)
    return read_snapshot(file)


def places(tree, above=()):
    yield above
    parts = tree if isinstance(tree, dict) else {}
    parts = dict(enumerate(tree)) if isinstance(tree, list) else parts
    for key, part in parts.items():
        yield from places(part, (*above, key))


def edit(tree, draw):
    """The tree with one field removed or replaced."""
    tree = copy.deepcopy(tree)
    *above, last = draw.choice([place for place in places(tree) if place])
    at = tree
    for key in above:
        at = at[key]
    old, how = at[last], draw.randrange(4)
    if how == 0 and isinstance(at, dict):
        del at[last]
    elif how == 1 and isinstance(old, np.ndarray):
        shapes = [old[:-1], np.append(old.ravel(), 0), old.reshape(-1, 1), old.astype(np.float32)]
        at[last] = draw.choice([*shapes, old * np.nan])
    else:
        at[last] = draw.choice(JUNK)
    return tree


def try_edits(name, file, cases):
    """How many edits went on, and how many were refused; anything else is raised."""
    good, found = interrupted(name, file), {"went on": 0, "refused": 0}
    for case in range(cases):
        write_snapshot(file, edit(good, random.Random(f"{name} {case}")))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run(name, file, True)
            found["went on"] += 1
        except NesvmError as e:
            found["refused" if "\n" not in str(e) else "in several lines"] += 1
    return found


@pytest.mark.parametrize("name", RUNS)
def test_an_edited_checkpoint_goes_on_or_is_refused(tmp_path, name):
    found = try_edits(name, str(tmp_path / "state"), 40)
    assert sum(found.values()) == 40
    assert found["refused"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_thousand_edits_of_every_kind_of_checkpoint(tmp_path, name):
    assert sum(try_edits(name, str(tmp_path / "state"), 1000).values()) == 1000


@pytest.mark.parametrize("name", [name for name in RUNS if name != "path"])
def test_what_nobody_edited_goes_on(tmp_path, name):
    file = str(tmp_path / "state")
    write_snapshot(file, interrupted(name, file))
    assert run(name, file, True) is not None


@pytest.mark.parametrize(
    "value", [None, 7, [1], np.zeros(1), np.zeros(2, np.uint64), np.zeros((1, 1), np.uint64)]
)
def test_one_random_state_is_one_number_of_64_bits(value):
    one_random_state(np.zeros(1, np.uint64))
    with pytest.raises(MismatchError, match=r"^the state of random numbers is required$"):
        one_random_state(value)
