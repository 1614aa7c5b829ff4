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
    if report.failed or report.skipped:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    if _cover is None:
        return
    _cover.stop()
    _cover.save()
    passed = {test: round(s, 4) for test, s in _seconds.items() if test not in _failed}
    target = Path(_config).parent / f"tests-{os.getpid()}.json"
    target.write_text(json.dumps(passed))
