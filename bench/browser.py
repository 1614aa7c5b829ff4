"""Headless Chromium: pages in frames of a given width, asked by a script or drawn as PNG."""

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-dev-shm-usage", "--virtual-time-budget=5000", "--timeout=30000"),
)
WATCH = """<script>
window.failures = [];
addEventListener("error", (e) => failures.push(String(e.message)));
addEventListener("unhandledrejection", (e) => failures.push(String(e.reason)));
addEventListener("securitypolicyviolation", (e) => failures.push("loads " + e.blockedURI));
</script>"""


class View(NamedTuple):
    """A frame: how wide, how high, light or dark, and the element it is scrolled to."""

    width: int
    height: int
    scheme: str = "light"
    top: str = "html"


def chromium() -> str | None:
    """The browser named by CHROMIUM, or one that is installed."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


def ask(page: str, view: View, script: str) -> dict:
    """What `script`, the body of a function of the frame's window and document, returns."""
    inside = page.replace("<head>", f"<head>{WATCH}", 1)
    probe = f"""<pre id="answer"></pre><script>
    addEventListener("load", () => setTimeout(() => {{
      const frame = document.querySelector("iframe");
      let answer;
      try {{
        answer = ((window, document) => {{ {script} }})(frame.contentWindow, frame.contentDocument);
      }} catch (e) {{ answer = {{ failed: String(e) }}; }}
      document.getElementById("answer").textContent =
        JSON.stringify({{ failures: frame.contentWindow.failures, ...answer }});
    }}, 500));
    </script>"""
    dom = _run(_frames(inside, [view]) + probe, "--dump-dom", "--window-size=1400,1000")
    found = re.search(r'<pre id="answer">(.*?)</pre>', dom.decode(), re.DOTALL)
    if found is None or not found[1]:
        raise RuntimeError(f"the page gave no answer: {dom[-300:]!r}")
    return json.loads(html.unescape(found[1]))


def draw(page: str, views: list[View], path: Path) -> tuple[int, int]:
    """The page in frames side by side, as PNG; returns the width and height of what counts, since
    Chromium leaves the last lines of a window undrawn."""
    gap = 24 * (len(views) > 1)
    width = sum(v.width for v in views) + gap * (len(views) + 1)
    height = max(v.height for v in views) + 2 * gap
    size = f"--window-size={width},{height + 150}"
    _run(_frames(page, views, gap), f"--screenshot={path}", size)
    return width, height


def _frames(page: str, views: list[View], gap: int = 0) -> str:
    frames = "".join(
        f'<iframe width="{v.width}" height="{v.height}" data-top="{v.top}" '
        f'style="border: 0; flex: none; color-scheme: {v.scheme}" '
        f'srcdoc="{html.escape(page)}"></iframe>'
        for v in views
    )
    body = f"margin: 0; padding: {gap}px; gap: {gap}px; display: flex; background: #8a9199"
    scroll = """<script>addEventListener("load", () => {
      for (const frame of document.querySelectorAll("iframe"))
        frame.contentDocument.querySelector(frame.dataset.top).scrollIntoView();
    });</script>"""
    return f'<!DOCTYPE html><meta charset="utf-8"><body style="{body}">{frames}{scroll}'


def _run(text: str, *flags: str) -> bytes:
    browser = chromium()
    if browser is None:
        raise FileNotFoundError("no Chromium: install it, or name it in CHROMIUM")
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "page.html"
        page.write_text(text, encoding="utf-8")
        command = [browser, *FLAGS, f"--user-data-dir={name}/profile", *flags, page.as_uri()]
        return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout
