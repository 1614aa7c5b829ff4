"""Turn the numbers of every chart into a table of text."""

from typing import Any

from .numbers import bin_name, spread, text

ROWS = 200  # rows of a table, at most
Table = tuple[list[str], list[list[str]]]


def table(chart: dict[str, Any]) -> Table:
    """Return the head and the rows of the table of a chart; the first cell of a row names it."""
    return _TABLES[chart["kind"]](chart)


def _number(value: float | None) -> str:
    return text(value, 6)


def _lines(chart: dict[str, Any]) -> Table:
    axes, series = chart["axes"], chart["series"]
    if "columns" in chart:
        columns = [chart["columns"][a["key"]] for a in axes] + [s["y"] for s in series]
        head = [a["label"] for a in axes] + [s["name"] for s in series]
        return head, [[_number(c[i]) for c in columns] for i in spread(len(columns[0]), ROWS)]
    points = [(s, i) for s in series for i in range(len(s["y"]))]
    rows = [
        [s["name"], *(_number(s["columns"][a["key"]][i]) for a in axes), _value(s, i)]
        for s, i in (points[k] for k in spread(len(points), ROWS))
    ]
    return ["curve", *(a["label"] for a in axes), chart["y"]["label"]], rows


def _value(s: dict[str, Any], i: int) -> str:
    error = s.get("errors", {i: None})[i]
    return _number(s["y"][i]) + ("" if error is None else f" ± {text(error, 2)}")


def _histogram(chart: dict[str, Any]) -> Table:
    counts = [s["counts"] for s in chart["series"]]
    bins = range(len(chart["edges"]) - 1)
    rows = [[bin_name(chart, i), *(_number(c[i]) for c in counts)] for i in bins]
    return [chart["x"]["label"], *(s["name"] for s in chart["series"])], rows


def _bars(chart: dict[str, Any]) -> Table:
    pairs = zip(chart["labels"], chart["values"], strict=True)
    return ["feature", chart["x"]["label"]], [[name, _number(value)] for name, value in pairs]


def _matrix(chart: dict[str, Any]) -> Table:
    pairs = zip(chart["labels"], chart["counts"], strict=True)
    return ["true \\ decided", *chart["labels"]], [[n, *map(_number, row)] for n, row in pairs]


def _plane(chart: dict[str, Any]) -> Table:
    points = chart["points"]
    rows = [
        [
            *(_number(points[key][i]) for key in ("x", "y")),
            chart["classes"][points["class"][i]],
            "yes" if points["support"][i] else "no",
        ]
        for i in spread(len(points["x"]), ROWS)
    ]
    return [chart["x"]["label"], chart["y"]["label"], "class", "support vector"], rows


def _table(chart: dict[str, Any]) -> Table:
    return chart["head"], chart["rows"]


_TABLES = {
    "lines": _lines,
    "histogram": _histogram,
    "bars": _bars,
    "matrix": _matrix,
    "plane": _plane,
    "table": _table,
}
