"""Attacks on whole commands, with counts: `python -m tests.attacks NAME --count N`.

cold        commands started side by side on an empty code cache, half of them killed
kills       train, path and convert ended by SIGTERM at any time, and taken up again
mutations   models, on-disk matrices and checkpoints with bytes changed
interrupts  Ctrl-C at any time of training, path, conversion and prediction: how long it takes

Each prints what it has counted, and fails where a promise is broken.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

SEED = 18
MOST_DELAY = 1.0  # seconds from a signal to the end, or ...
SHARE = 0.05  # ... this share of the run, whichever is more
SIDE_BY_SIDE = 4


def start(folder: Path, *args: str, **environment: str) -> subprocess.Popen:
    """A command in a folder, which says nothing on this terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "nesvm_jit", *args],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write_rows(path: Path, n: int, p: int, classes: int, seed: int = 0) -> None:
    """LIBSVM text of clouds that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.standard_normal((n, p)) + 1.5 * rng.standard_normal((classes, p))[y]
    with open(path, "w") as f:
        for label, row in zip(y, X, strict=True):
            f.write(
                f"{label + 1} " + " ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(row)) + "\n"
            )


def require(promise: bool, *seen: object) -> None:
    """Stop at a promise that is broken."""
    if not promise:
        raise SystemExit(f"broken: {seen}")


# ---------------------------------------------------------------- starts on an empty cache


def cold(count: int, folder: Path) -> Iterator[str]:
    write_rows(folder / "rows", 40, 3, 2)
    (folder / "cache").mkdir(mode=0o700)
    rng = random.Random(SEED)
    ended: Counter[str] = Counter()

    def one(number: int) -> None:
        killed = number % 2 == 0
        args = ("train", "-q", "rows", f"model{number}")
        # without this so few rows would be interpreted, and nothing compiled
        tier = {"NESVM_JIT_TIER": "compiled"}
        p = start(folder, *args, NESVM_JIT_CACHE_DIR=str(folder / "cache"), **tier)
        if killed:
            time.sleep(rng.uniform(0.0, 12.0))
            p.kill()
        out, err = p.communicate()
        require(killed or p.returncode == 0, p.returncode, out, err)
        require("Traceback" not in err, err)
        ended["killed" if p.returncode < 0 else "ended by itself"] += 1

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(one, range(count)))
    models = [f.read_bytes().split(b"\nnesvm_jit ")[0] for f in folder.glob("model*")]
    require(len(set(models)) == 1, models)
    yield f"{dict(ended)}; {len(models)} models, all the same"


# ---------------------------------------------------------------- ended by SIGTERM

ENDLESS = ("-e", "1e-15", "--max-iter", "1000000000")
RUNS = {
    "train": (
        "train",
        "-q",
        "--checkpoint",
        "state",
        "-t",
        "rbf",
        "-c",
        "100",
        "-e",
        "1e-6",
        "rows",
    ),
    "linear": ("train", "-q", "--checkpoint", "state", "--solver", "nesvm", "-e", "1e-6", "rows"),
    "path": ("path", "-q", "-t", "rbf", "-c", "0.1:1000:5", "-v", "3", "-e", "1e-5", "rows"),
    "convert": ("convert", "-q", "rows", "matrix"),
}


def kills(count: int, folder: Path) -> Iterator[str]:
    write_rows(folder / "rows", 1500, 10, 4)
    rng = random.Random(SEED)
    for name, args in RUNS.items():
        home = folder / name
        home.mkdir()
        shutil.copy(folder / "rows", home)
        began = time.perf_counter()
        require(start(home, *args).wait() == 0, name)
        usual = time.perf_counter() - began
        whole = (home / "rows.model").read_bytes() if name in ("train", "linear") else b""
        ended: Counter[int] = Counter()
        resumed = 0
        for _ in range(max(1, count // len(RUNS))):
            more = ("--resume",) if (home / "state").exists() else ()
            shutil.rmtree(home / "matrix", ignore_errors=True)
            p = start(home, *args, *more)
            time.sleep(rng.uniform(0.0, 1.1 * usual))
            p.terminate()
            _, err = p.communicate()
            resumed += bool(more)
            ended[p.returncode] += 1
            require(p.returncode in (0, 143, -15), name, p.returncode, err)
            require("Traceback" not in err, err)
        more = ("--resume",) if (home / "state").exists() else ()
        require(start(home, *args, *more).wait() == 0, name)
        require(not list(home.glob("*.part")), list(home.iterdir()))
        if whole:
            plain = [
                m.split(b"\nnesvm_jit ")[0] for m in (whole, (home / "rows.model").read_bytes())
            ]
            require(plain[0] == plain[1], name, "another model")
        yield f"{name}: exit statuses {dict(ended)}, {resumed} taken up again"


# ---------------------------------------------------------------- files with bytes changed


def mutations(count: int, folder: Path) -> Iterator[str]:
    from nesvm_jit import NesvmError, convert, load_model, open_matrix, solve, train

    rng = np.random.default_rng(SEED)
    write_rows(folder / "rows", 60, 4, 3)
    X = rng.standard_normal((80, 4))
    y = np.where(X[:, 0] > 0.3 * rng.standard_normal(80), 1.0, -1.0)
    given = {"kernel": "rbf", "C": 10.0, "tol": 1e-7, "checkpoint": folder / "state"}
    given["checkpoint_every"] = 1e-9
    warnings.simplefilter("ignore")
    solve(X, y, **given, callback=lambda row: row["round"] >= 2)
    convert([folder / "rows"], folder / "matrix")
    train(X, y).save(folder / "linear")
    train(X, np.arange(80) % 3, kernel="rbf").save(folder / "kernel")
    files: dict[str, tuple[list[Path], Callable[[], object]]] = {
        "linear models": ([folder / "linear"], lambda: load_model(folder / "linear").predict(X)),
        "kernel models": ([folder / "kernel"], lambda: load_model(folder / "kernel").predict(X)),
        "matrices": (
            sorted(f for f in (folder / "matrix").iterdir() if f.is_file()),
            lambda: open_matrix(folder / "matrix").read(0, 60),
        ),
        "checkpoints": ([folder / "state"], lambda: solve(X, y, **given, resume=True)),
    }
    for name, (paths, use) in files.items():
        kept = {path: path.read_bytes() for path in paths}
        ended: Counter[str] = Counter()
        for _ in range(max(1, count // len(files))):
            path = paths[rng.integers(len(paths))]
            path.write_bytes(mutated(kept[path], rng))
            try:
                use()
                ended["read"] += 1
            except NesvmError as e:
                require("\n" not in str(e), e)
                ended["refused"] += 1
            for file, text in kept.items():
                file.write_bytes(text)
        yield f"{name}: {dict(ended)}"


def mutated(text: bytes, rng: np.random.Generator) -> bytes:
    """Bytes changed, left out, doubled or cut off."""
    out = bytearray(text)
    for _ in range(int(rng.integers(1, 4))):
        at, size = int(rng.integers(len(out) + 1)), int(rng.integers(1, 9))
        kind = rng.integers(4)
        if kind == 0:
            out[at : at + size] = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
        elif kind == 1:
            del out[at : at + size]
        elif kind == 2:
            out[at:at] = out[at : at + size]
        else:
            del out[at:]
    return bytes(out)


# ---------------------------------------------------------------- Ctrl-C at any time

PHASES = {
    "train, pairs of classes": ("train", "-q", "-t", "rbf", "-c", "10", *ENDLESS, "rows", "m"),
    "train, newton": ("train", "-q", "-t", "rbf", "--solver", "newton", *ENDLESS, "rows", "m"),
    "train, least squares": ("train", "-q", "-s", "lssvm", "-t", "rbf", "-c", "1e6", "rows", "m"),
    "train, nystroem": ("train", "-q", "-t", "rbf", "--approx", "nystroem", *ENDLESS, "rows", "m"),
    "train, linear": ("train", "-q", "--solver", "nesvm", *ENDLESS, "rows", "m"),
    "train, probabilities": ("train", "-q", "-t", "rbf", "-b", "1", "-e", "1e-5", "rows", "m"),
    "cross-validation": ("train", "-q", "-t", "rbf", "-v", "5", "-e", "1e-5", "rows"),
    "path": ("path", "-q", "-t", "rbf", "-c", "1:1000:4", "-v", "3", "-e", "1e-5", "rows"),
    "predict": ("predict", "-q", "many", "kernel", "out"),
    "convert": ("convert", "-q", "many", "matrix"),
}


def interrupts(count: int, folder: Path) -> Iterator[str]:
    write_rows(folder / "rows", 6000, 30, 5)
    (folder / "many").write_text((folder / "rows").read_text() * 10)
    train = ("train", "-q", "-t", "rbf", "--time-limit", "20", "rows", "kernel")
    require(start(folder, *train).wait() in (0,), "train")
    rng, worst = random.Random(SEED), 0.0
    for name, args in PHASES.items():
        start(folder, *args[:1], "--help").wait()
        p = start(folder, *args)  # compiles what is needed
        with_limit(p, 30.0)
        delays = []
        for _ in range(max(1, count // len(PHASES))):
            shutil.rmtree(folder / "matrix", ignore_errors=True)
            (folder / "rows.path.json").unlink(missing_ok=True)
            p, began = start(folder, *args), time.perf_counter()
            time.sleep(rng.uniform(0.6, 6.0))
            if p.poll() is not None:
                continue
            p.send_signal(signal.SIGINT)
            asked = time.perf_counter()
            _, err = p.communicate()
            delay, whole = time.perf_counter() - asked, asked - began
            if "init_import_site" in err:  # Python itself had not started yet
                continue
            require("Traceback" not in err, err)
            delays.append(delay)
            late = delay > max(MOST_DELAY, SHARE * whole)
            worst = max(worst, delay)
            if late:
                yield f"{name}: {delay:.2f} s after {whole:.2f} s"
        longest = f"longest delay {max(delays):.2f} s" if delays else "all had ended before"
        yield f"{name}: {len(delays)} interrupted, {longest}"
    yield f"longest delay of all: {worst:.2f} s"


def with_limit(p: subprocess.Popen, seconds: float) -> None:
    """Let a command run for so long at most."""
    try:
        p.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        p.send_signal(signal.SIGINT)
        p.communicate()


ATTACKS = {"cold": cold, "kills": kills, "mutations": mutations, "interrupts": interrupts}


def main() -> None:
    """Run one of the attacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=ATTACKS)
    parser.add_argument("--count", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in ATTACKS[asked.name](asked.count, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
