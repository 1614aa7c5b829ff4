"""Charts as parts of a page: SVG without ids, fonts and colours of its own; tables of numbers."""

import re
from xml.etree import ElementTree

import pytest
from nesvm_jit.pages.palette import COLOURS, INK
from nesvm_jit.pages.svg import inline
from nesvm_jit.pages.tables import table

LINK = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def svg(body, style=""):
    """A file as matplotlib writes it."""
    return f"""<?xml version="1.0" encoding="utf-8" standalone="no"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg {LINK} width="367.2pt" height="259.2pt" viewBox="0 0 367.2 259.2" version="1.1">
 <metadata><x>no</x></metadata>
 <defs><style type="text/css">*{{stroke-linejoin: round}}</style></defs>
 {body}
</svg>""".encode()


def test_a_file_becomes_an_element_without_namespaces():
    assert inline(svg(""), "a-", 'b "c" <d>') == (
        '<svg viewBox="0 0 367.2 259.2" role="img" aria-label="b &quot;c&quot; &lt;d&gt;">'
        "<defs /></svg>"
    )


def test_ids_are_kept_where_they_are_used_and_get_a_prefix():
    body = """<g id="axes_1"><path id="m1" d="M 0 0"/><clipPath id="p2"/>
      <use xlink:href="#m1" x="1"/><g clip-path="url(#p2)"/></g>"""
    assert inline(svg(body), "u-", "").partition("<defs />")[2] == (
        '<g><path d="M 0 0" id="u-m1" /><clipPath id="u-p2" />'
        '<use href="#u-m1" x="1" /><g clip-path="url(#u-p2)" /></g></svg>'
    )


def test_tips_become_titles():
    body = '<g id="tip:0 to 1: 3 &lt;rows&gt;"><path d="M 0 0"/></g>'
    assert "<g><title>0 to 1: 3 &lt;rows&gt;</title><path" in inline(svg(body), "u-", "")


def test_colours_are_variables_and_fonts_those_of_the_page():
    body = f"""<text style="font: 9px 'DejaVu Sans', serif; fill: {INK}">a &lt; b</text>
      <text style="font-size: 9px; font-family: 'DejaVu Sans', serif; fill: {INK}">b</text>
      <text style="font: bold 9px 'DejaVu Sans'">c</text>
      <path style="fill: {COLOURS[3]}; stroke: {COLOURS[0]}; stroke-width: 0.812345"/>"""
    assert inline(svg(body), "u-", "").partition("<defs />")[2] == (
        '<text style="font: 9px var(--font); fill: var(--ink)">a &lt; b</text>'
        '<text style="font-size: 9px; font-family: var(--font); fill: var(--ink)">b</text>'
        '<text style="font: bold 9px var(--font)">c</text>'
        '<path style="fill: var(--c3); stroke: var(--c0); stroke-width: 0.812345" /></svg>'
    )
    with pytest.raises(KeyError):
        inline(svg('<path style="fill: #123456"/>'), "u-", "")


def test_coordinates_have_two_decimals():
    body = '<path d="M 1.23456 -2.5 \nL 10 0.999999 \nz"/><use x="0.126789" y="3"/>'
    text = inline(svg(body), "u-", "")
    assert '<path d="M 1.23 -2.5 L 10 1.00 z" />' in text
    assert '<use x="0.13" y="3" />' in text


def test_what_is_written_is_well_formed():
    text = inline(svg('<text x="1.23456">a &amp; &lt;b&gt;</text>'), "u-", "<&>")
    (written,) = ElementTree.fromstring(text).iter("text")
    assert written.text == "a & <b>"
    assert not re.search(r"http|xlink|ns\d:", text)


# ---------------------------------------------------------------- tables

COSTS = [{"key": "C", "label": "C", "log": True}]


def test_curves_over_the_same_rounds_are_columns():
    chart = {
        "kind": "lines",
        "axes": [{"key": "seconds", "label": "seconds"}, {"key": "round", "label": "rounds"}],
        "columns": {"seconds": [0.5, 1.25], "round": [1, 2], "mu": [5, 5]},
        "series": [{"name": "a", "y": [None, 12345]}, {"name": "b", "y": [1.23456789, 0]}],
    }
    assert table(chart) == (
        ["seconds", "rounds", "a", "b"],
        [["0.5", "1", "–", "1.23457"], ["1.25", "2", "12\u202f345", "0"]],
    )


def test_other_curves_follow_each_other_with_their_errors():
    chart = {
        "kind": "lines",
        "axes": COSTS,
        "y": {"label": "score"},
        "series": [
            {"name": "a", "columns": {"C": [0.1, 1]}, "y": [0.5, 0.25], "errors": [0.123, None]},
            {"name": "b", "columns": {"C": [10]}, "y": [0.75]},
        ],
    }
    assert table(chart) == (
        ["curve", "C", "score"],
        [["a", "0.1", "0.5 ± 0.12"], ["a", "1", "0.25"], ["b", "10", "0.75"]],
    )


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n", [200, 201, 1000])
def test_tables_have_two_hundred_rows_at_most(n, shared):
    columns = {"C": list(range(n))}
    series = [{"name": "a", "y": [1] * n, **({} if shared else {"columns": columns})}]
    chart = {"kind": "lines", "axes": COSTS, "y": {"label": "y"}, "series": series}
    _, rows = table(chart | ({"columns": columns} if shared else {}))
    place = 0 if shared else 1
    assert len(rows) == 200
    assert (rows[0][place], rows[-1][place]) == ("0", str(n - 1))


def test_bins_weights_and_classes_are_rows():
    bins = {
        **{"kind": "histogram", "edges": [0, 1, 2], "names": {"1": "above 1"}},
        **{"x": {"label": "value"}, "series": [{"name": "a", "counts": [3, 10000]}]},
    }
    assert table(bins) == (["value", "a"], [["0 to 1", "3"], ["above 1", "10\u202f000"]])
    bars = {"kind": "bars", "labels": ["f"], "values": [-0.5], "x": {"label": "weight"}}
    assert table(bars) == (["feature", "weight"], [["f", "−0.5"]])
    matrix = {"kind": "matrix", "labels": ["1", "2"], "counts": [[3, 0], [1, 4]]}
    assert table(matrix) == (
        ["true \\ decided", "1", "2"],
        [["1", "3", "0"], ["2", "1", "4"]],
    )


def test_points_of_a_plane_are_rows():
    n = 201
    chart = {
        **{"kind": "plane", "x": {"label": "one"}, "y": {"label": "two"}, "classes": ["5", "7"]},
        "points": {
            **{"x": [0.5] * n, "y": list(range(n))},
            **{"class": [0] + [1] * (n - 1), "support": [1] + [0] * (n - 1)},
        },
    }
    head, rows = table(chart)
    assert head == ["one", "two", "class", "support vector"]
    assert (rows[0], rows[-1]) == (["0.5", "0", "5", "yes"], ["0.5", "200", "7", "no"])
    assert len(rows) == 200


def test_a_table_is_what_it_is():
    assert table({"kind": "table", "head": ["a"], "rows": [["b"]]}) == (["a"], [["b"]])
