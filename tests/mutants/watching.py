"""A pytest plugin: coverage by test, and how long each test takes."""

import json
import os
from collections import defaultdict
from pathlib import Path

import coverage
import pytest

_config = os.environ.get("MUTANTS_REACH", "")
_cover: coverage.Coverage | None = None
_seconds: dict[str, float] = defaultdict(float)
_failed: set[str] = set()
_skipped: set[str] = set()


def pytest_configure(config) -> None:
    global _cover
    if _config and hasattr(config, "workerinput"):
        _cover = coverage.Coverage(config_file=_config, context="")
        _cover.start()
        os.environ["COVERAGE_PROCESS_START"] = _config


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    if _cover is not None:
        _cover.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report) -> None:
    _seconds[report.nodeid] += report.duration
    if report.failed:
        _failed.add(report.nodeid)
    if report.skipped:
        _skipped.add(report.nodeid)


def pytest_sessionfinish() -> None:
    if _cover is None:
        return
    _cover.stop()
    _cover.save()
    passed = _seconds.keys() - _failed - _skipped
    seconds = {test: round(s, 4) for test, s in _seconds.items() if test in passed}
    folder = Path(_config).parent
    (folder / f"tests-{os.getpid()}.json").write_text(json.dumps(seconds))
    (folder / f"failed-{os.getpid()}.json").write_text(json.dumps(sorted(_failed)))
