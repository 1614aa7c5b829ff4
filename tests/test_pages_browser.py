"""Pages in a browser: no errors, nothing wider than the screen, read out by keys."""

import pytest
from bench.browser import View, ask, chromium
from nesvm_jit import train
from nesvm_jit.machine import facts as report
from nesvm_jit.pages.html import page
from nesvm_jit.pages.paths import path_document
from nesvm_jit.pages.pictures import training_document

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
        const wide = all("body *").filter((e) =>
          !e.closest(".hidden") && e.getBoundingClientRect().right > window.innerWidth + 1);
        const texts = all("svg text").filter((t) => {
          const box = t.closest("svg").getBoundingClientRect();
          const own = t.getBoundingClientRect();
          return own.left < box.left - 2 || own.right > box.right + 2;
        });
        return {
          width: document.documentElement.scrollWidth,
          cards: all(".card").length,
          drawn: all(".plot svg").length,
          wide: wide.map((e) => e.outerHTML.slice(0, 80)),
          cut: texts.map((t) => t.textContent),
        };""",
    )
    assert found["failures"] == []
    assert found["width"] == view.width
    assert found["wide"] == []
    assert found["cut"] == []
    assert found["cards"] == found["drawn"] >= 4


@pytest.mark.parametrize("name", NAMES)
def test_every_chart_is_read_out_by_keys(pages, name):
    found = ask(
        pages[name],
        View(1280, 900),
        """
        const said = [];
        for (const plot of document.querySelectorAll(".plot")) {
          plot.focus();
          const heard = [document.activeElement === plot ? "" : "no focus"];
          for (const key of ["Home", "ArrowRight", "End", "ArrowLeft"]) {
            const pressed = new window.KeyboardEvent("keydown", { key, cancelable: true });
            plot.dispatchEvent(pressed);
            heard.push(plot.getAttribute("aria-valuetext"));
          }
          said.push(heard);
        }
        return { said };""",
    )
    assert found["failures"] == []
    for focus, first, second, last, before in found["said"]:
        assert focus == ""
        assert first != second
        assert last != before


@pytest.mark.parametrize("name", NAMES)
def test_every_control_and_table_works(pages, name):
    found = ask(
        pages[name],
        View(360, 760),
        """
        const all = (which) => [...document.querySelectorAll(which)];
        for (const input of all(".controls input")) input.click();
        for (const box of all(".controls select")) {
          box.selectedIndex = box.options.length - 1;
          box.dispatchEvent(new window.Event("change"));
        }
        for (const d of all("details")) {
          d.open = true;
          d.dispatchEvent(new window.Event("toggle"));
        }
        return {
          used: all(".controls input, .controls select").length,
          tables: all(".data").map((t) => t.querySelectorAll("tbody tr").length),
          bad: /NaN|undefined|null/.test(document.querySelector("main").innerHTML),
          width: document.documentElement.scrollWidth,
        };""",
    )
    assert found["failures"] == []
    assert found["used"] > 5
    assert min(found["tables"]) >= 1
    assert not found["bad"]
    assert found["width"] == 360


def test_the_page_follows_the_systems_colours(pages):
    script = "return { back: getComputedStyle(document.body).backgroundColor };"
    light, dark = (ask(pages["path"], View(360, 400, s), script)["back"] for s in ("light", "dark"))
    assert light != dark
