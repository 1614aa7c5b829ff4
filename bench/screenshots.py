"""The pictures of docs/pictures.md: `make screenshots`. Data: a9a if it is in NESVM_DATA, else the
breast cancer data of scikit-learn; for two features, moons that scikit-learn makes."""

import sys
import time
from pathlib import Path

import numpy as np
from nesvm_jit import read_libsvm, train
from nesvm_jit.machine import facts as report
from nesvm_jit.pages.html import page
from nesvm_jit.pages.pictures import training_document
from nesvm_jit.pages.plots import plot

from .browser import View, chromium, draw
from .common import DOCS, data_file, note

PLOTS = DOCS / "plots"
COLOURS = 160  # of a picture, so that it stays small


def document(X, y, title: str, **settings) -> dict:
    """A training run, drawn."""
    train(X, y, **settings)  # compiles
    began = time.perf_counter()
    machine = train(X, y, keep_solutions=True, **settings)
    seconds = {"solve": time.perf_counter() - began}
    facts = report.training(machine, settings.get("solver", "auto"), seconds)
    return training_document(machine, X, y, facts, title)


def rows() -> tuple:
    """(X, y, name)"""
    path = data_file("a9a")
    if path is not None:
        return *read_libsvm(path), "a9a"
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return X / np.abs(X).max(axis=0), 2.0 * y - 1, "breast cancer"


def shrink(path: Path, size: tuple[int, int] | None = None) -> None:
    """The upper left part of this size, in fewer colours: a third of the bytes."""
    from PIL import Image

    with Image.open(path) as image:
        part = image.crop((0, 0, *(size or image.size)))
        fewer = part.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    fewer.save(path, optimize=True)
    note(f"{path.name}: {path.stat().st_size // 1000} kB")


def main() -> None:
    if chromium() is None:
        sys.exit("screenshots need Chromium: install it, or name it in CHROMIUM")
    from sklearn.datasets import make_moons

    X, y, name = rows()
    linear = document(X, y, name)
    text = page(linear)
    desktop, phone = PLOTS / "page-desktop.png", PLOTS / "page-phone.png"
    shrink(desktop, draw(text, [View(1280, 1625)], desktop))
    phones = [
        View(360, 780),
        View(360, 780, "dark", "#chart-objective"),
        View(360, 780, "light", "#chart-decision"),
    ]
    shrink(phone, draw(text, phones, phone))
    Z, z = make_moons(400, noise=0.25, random_state=0)
    moons = document(Z, 2.0 * z - 1, "moons", kernel="rbf", gamma=1.0, C=10.0)
    for found, picture in ((linear, "train"), (moons, "plane")):
        plot(found, PLOTS / f"{picture}.png")
        shrink(PLOTS / f"{picture}.png")


if __name__ == "__main__":
    main()
