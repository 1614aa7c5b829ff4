"""Pages in a browser: no errors, nothing wider than the screen, text that can be read."""

import pytest
from bench.browser import View, ask, chromium
from nesvm_jit.machine import facts as report
from nesvm_jit.pages.html import page
from nesvm_jit.pages.paths import path_document
from nesvm_jit.pages.pictures import training_document

from tests.endings import train

from .data import blobs
from .path_facts import path_facts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="no Chromium"),
]

VIEWS = [View(360, 760), View(1280, 900), View(360, 760, "dark")]
SECONDS = {"read": 0.1, "solve": 0.2, "write": 0.3, "total": 0.6}


def made(labels, n, p, title="rows", **settings):
    X, y = blobs(labels, n, p=p)
    machine = train(X, y, keep_solutions=True, **settings)
    facts = report.training(machine, settings.get("solver", "auto"), SECONDS)
    return training_document(machine, X, y, facts, title)


@pytest.fixture(scope="module")
def pages():
    evil = "</script><script>throw 1</script>" + "w" * 80
    two = made((1, -1), 80, 2, title=evil, solver="homotopy", max_iter=400)
    return {
        "two features": page(two),
        "ten classes": page(made(range(10), 300, 8, multiclass="ovo")),
        "path": page(path_document(path_facts((0.01, 0.1, 1.0)), "path", two)),
    }


NAMES = ["two features", "ten classes", "path"]


@pytest.mark.parametrize("view", VIEWS, ids=lambda v: f"{v.width} {v.scheme}")
@pytest.mark.parametrize("name", NAMES)
def test_pages_fit_and_have_no_errors(pages, name, view):
    found = ask(
        pages[name],
        view,
        """
        const all = (which) => [...document.querySelectorAll(which)];
        for (const d of all("details")) d.open = true;
        const wide = all("body *").filter((e) =>
          !e.closest(".data") && e.getBoundingClientRect().right > window.innerWidth + 1);
        const texts = all("svg text").filter((t) => {
          const box = t.closest("svg").getBoundingClientRect();
          const own = t.getBoundingClientRect();
          return own.left < box.left - 2 || own.right > box.right + 2;
        });
        const sizes = all("svg text").map((t) => {
          const svg = t.closest("svg");
          const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
          return scale * parseFloat(window.getComputedStyle(t).fontSize);
        });
        return {
          width: document.documentElement.scrollWidth,
          cards: all(".card:not(.table)").length,
          drawn: all(".plot svg").length,
          wide: wide.map((e) => e.outerHTML.slice(0, 80)),
          cut: texts.map((t) => t.textContent),
          smallest: Math.min(...sizes),
          tables: all(".data").map((t) => t.querySelectorAll("tbody tr").length),
          bad: /NaN|undefined|null|None/.test(document.querySelector("main").innerHTML),
        };""",
    )
    assert found["failures"] == []
    assert found["width"] == view.width
    assert found["wide"] == []
    assert found["cut"] == []
    assert found["cards"] == found["drawn"] >= 4
    assert found["smallest"] > 7
    assert min(found["tables"]) >= 1
    assert not found["bad"]


@pytest.mark.parametrize("name", NAMES)
def test_shapes_are_drawn_where_they_can_be_seen(pages, name):
    found = ask(
        pages[name],
        View(1280, 900),
        """
        const all = (which) => [...document.querySelectorAll(which)];
        const empty = all(".plot svg").filter((s) => s.getBBox().width < 200);
        const bare = all(".plot use").filter((u) =>
          !document.querySelector(u.getAttribute("href")));
        return {
          empty: empty.length, bare: bare.length,
          tips: all("svg title").map((t) => t.textContent),
        };""",
    )
    assert (found["failures"], found["empty"], found["bare"]) == ([], 0, 0)
    assert len(found["tips"]) > 20


def test_page_and_charts_follow_the_systems_colours(pages):
    script = """
        const colours = (which) => [...document.querySelectorAll(which)].map((e) =>
          window.getComputedStyle(e).fill);
        return {
          back: window.getComputedStyle(document.body).backgroundColor,
          texts: [...new Set(colours("svg text"))],
        };"""
    light, dark = (ask(pages["path"], View(360, 400, s), script) for s in ("light", "dark"))
    assert light["back"] != dark["back"]
    assert not set(light["texts"]) & set(dark["texts"])
