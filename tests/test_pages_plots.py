"""What matplotlib is asked to draw: the artists of the figure, their numbers, colours and names."""

import warnings

import numpy as np
import pytest
from nesvm_jit.errors import InputError
from nesvm_jit.pages.palette import CARD, COLOURS, INK, SOFT
from nesvm_jit.pages.plots import draw_svg, format_of, plot

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.colors import same_color, to_hex, to_rgba  # noqa: E402
from matplotlib.contour import ContourSet  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

COST = [{"key": "C", "label": "C", "log": True}]
EVEN = [{"key": "C", "label": "cost", "log": False}]
LINEAR, LOG = {"label": "score", "log": False}, {"label": "gap", "log": True}


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """The figure of a document, before it is written."""

    def draw(document):
        figures = []
        with monkeypatch.context() as patch:
            patch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
            plot(document, tmp_path / "a.png")
        return figures[0]

    return draw


def document(*charts, kind="path", certified=True):
    return {
        "kind": kind,
        "title": "a $title$",
        "subtitle": "what it is",
        "certificate": {"sentence": "How good.", "certified": certified},
        "sections": [{"title": "all", "charts": list(charts)}],
    }


def lines(*series, axes=COST, y=LINEAR, **more):
    return {
        **{"kind": "lines", "id": "x", "title": "Lines", "axes": axes, "y": y},
        **{"series": list(series), **more},
    }


def curve(name="curve", y=(1.0, 2.0, 4.0), x=None, **more):
    x = [10.0**k for k in range(len(y))] if x is None else list(x)
    return {"name": name, "columns": {"C": x}, "y": list(y), **more}


def histogram(*counts, edges=(0, 1, 2), log=False, **more):
    series = [{"name": f"group {k}", "counts": list(c)} for k, c in enumerate(counts)]
    labels = {"x": {"label": "value"}, "y": {"label": "rows", "log": log}}
    chart = {"kind": "histogram", "id": "u", "title": "Bins", "edges": list(edges), "names": {}}
    return {**chart, **labels, "series": series, **more}


def matrix(counts):
    n = len(counts)
    labels = [f"class {k}" for k in range(n)]
    return {
        **{"kind": "matrix", "id": "confusion", "title": "Classes"},
        **{"labels": labels, "counts": np.asarray(counts).tolist()},
    }


THREE = ("seconds", "passes", "round")


def training(*charts, axes=("seconds",), classes=2):
    """A document of a training run with the charts that all have."""
    columns = {key: [0, 1, 2] for key in axes}
    axes = [{"key": key, "label": f"in {key}", "log": False} for key in axes]
    again = [*axes[1:], axes[0]]
    both = lines({"name": "objective", "y": [3, 2, 1]}, axes=axes, columns=columns)
    gap = lines({"name": "gap", "y": [1, 0.1, 0.01], "columns": columns}, axes=axes, y=LOG)
    all_charts = [{**both, "id": "objective", "title": "objective"}]
    all_charts += [{**gap, "id": "gap", "title": "gap"}]
    if len(axes) > 1:
        all_charts += [{**gap, "id": "gap-again", "title": "gap again", "axes": again}]
    all_charts += charts
    if "confusion" not in [c["id"] for c in charts]:
        all_charts.append(matrix(np.eye(classes, dtype=int)))
    return document(*all_charts, kind="train")


def panel(figure, title):
    (ax,) = [a for a in figure.axes if a.get_title(loc="left") == title]
    return ax


def titles(figure):
    return [a.get_title(loc="left") for a in figure.axes]


def names(ax):
    return [t.get_text() for t in ax.get_legend().get_texts()]


def look(line):
    return (
        to_hex(line.get_color()),
        line.get_linestyle(),
        line.get_marker(),
        line.get_linewidth(),
        line.get_markersize(),
        line.get_alpha(),
    )


# ---------------------------------------------------------------- the whole figure


@pytest.mark.parametrize(
    ("n", "rows", "columns"), [(1, 1, 2), (2, 1, 2), (3, 2, 2), (4, 2, 2), (5, 2, 3), (6, 2, 3)]
)
def test_panels_stand_in_two_columns_or_three(drawn, n, rows, columns):
    figure = drawn(document(*(lines(curve(), title=f"{k}") for k in range(n))))
    assert titles(figure) == [str(k) for k in range(n)]
    places = [ax.get_subplotspec().get_geometry() for ax in figure.axes]
    assert places == [(rows, columns, k, k) for k in range(n)]
    assert figure.get_size_inches() == pytest.approx([5.0 * columns, 3.9 * rows + 1.0])
    assert figure.dpi == 110


@pytest.mark.parametrize("n", [1, 6])
def test_margins_and_heading_have_their_inches_whatever_the_size(drawn, n):
    figure = drawn(document(*(lines(curve()) for _ in range(n))))
    wide, high = figure.get_size_inches()
    around = figure.subplotpars
    assert around.left * wide == pytest.approx(0.8)
    assert (1 - around.right) * wide == pytest.approx(0.2)
    assert around.bottom * high == pytest.approx(0.55)
    assert (1 - around.top) * high == pytest.approx(1.35)
    assert (around.wspace, around.hspace) == (0.2, 0.3)
    assert [(1 - t.get_position()[1]) * high for t in figure.texts] == pytest.approx(
        [0.4, 0.67, 0.93]
    )


@pytest.mark.parametrize(("certified", "colour"), [(True, COLOURS[2]), (False, COLOURS[1])])
def test_the_heading_names_the_run_and_its_certificate(drawn, certified, colour):
    figure = drawn(document(lines(curve()), certified=certified))
    found = [
        (t.get_text(), t.get_fontsize(), t.get_weight(), to_hex(t.get_color()))
        for t in figure.texts
    ]
    assert found == [
        ("a $title$", 15, "bold", INK),
        ("what it is", 10, "normal", SOFT),
        ("How good.", 10.5, "bold", colour),
    ]
    assert [t.get_parse_math() for t in figure.texts] == [False] * 3
    assert {t.get_position()[0] for t in figure.texts} == {0.012}


def test_panels_have_a_grid_below_the_curves_and_two_spines(drawn):
    ax = drawn(document(lines(curve("a"), curve("b"), axes=EVEN))).axes[0]
    assert {side: s.get_visible() for side, s in ax.spines.items()} == {
        **{"left": True, "bottom": True, "top": False, "right": False}
    }
    assert all(line.get_visible() for line in ax.get_xgridlines() + ax.get_ygridlines())
    assert ax.get_axisbelow() is True
    assert ax.title.get_fontsize() == pytest.approx(10.8)
    assert {t.get_fontsize() for t in ax.get_xticklabels()} == {9.0}
    assert ax.get_legend().get_frame_on() is False
    assert {t.get_fontsize() for t in ax.get_legend().get_texts()} == {9.0}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("cost", "score")


def test_a_path_shows_its_first_section(drawn):
    found = document(lines(curve(), title="one"), lines(curve(), title="two"))
    found["sections"].append({"title": "more", "charts": [lines(curve(), title="three")]})
    assert titles(drawn(found)) == ["one", "two"]


def test_a_table_is_not_drawn(drawn):
    table = {"kind": "table", "id": "problems", "title": "Sub-problems", "rows": []}
    assert titles(drawn(training(table))) == ["objective", "gap", "Classes"]


def bars(values=(2.0, -1.0)):
    labels = [f"feature {k}" for k in range(len(values))]
    return {
        **{"kind": "bars", "id": "weights", "title": "Weights", "x": {"label": "weight"}},
        **{"labels": labels, "values": list(values)},
    }


def plane(classes=2, values=None, support=(1, 0)):
    return {
        **{"kind": "plane", "id": "plane", "title": "Plane", "values": values},
        "x": {"label": "feature 1", "range": [0, 4]},
        "y": {"label": "feature 2", "range": [-1, 1]},
        "classes": [f"{k}" for k in range(classes)],
        "regions": [[0, 0, 1], [0, 1, 1], [1, 1, 1]],
        "points": {"x": [1.0, 2.0], "y": [0.0, 0.5], "class": [0, 1], "support": list(support)},
    }


def test_a_training_run_has_six_panels_at_most(drawn):
    decision = histogram([1, 2], id="decision", title="decision")
    charts = [plane(), histogram([1, 2], title="u"), decision, bars()]
    found = titles(drawn(training(*charts, axes=THREE)))
    assert found == ["objective", "gap", "gap again", "Plane", "u", "decision"]


@pytest.mark.parametrize(
    ("classes", "last"), [(2, ["Weights", "Classes"]), (3, ["Classes", "Weights"])]
)
def test_of_two_classes_weights_come_before_the_matrix(drawn, classes, last):
    charts = [histogram([1, 2], title="u"), bars()]
    assert titles(drawn(training(*charts, classes=classes))) == [*("objective", "gap", "u", *last)]


def test_the_gap_is_drawn_against_two_axes_the_objective_against_the_first(drawn):
    figure = drawn(training(axes=THREE))
    assert [a.get_xlabel() for a in figure.axes[:3]] == ["in seconds", "in seconds", "in passes"]
    assert titles(figure)[:3] == ["objective", "gap", "gap again"]
    assert titles(drawn(training())) == ["objective", "gap", "Classes"]


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("kind", "dated"),
    [("png", [b"Software"]), ("svg", [b"dc:date", b"Matplotlib v"]), ("pdf", [b"Date", b"Creat"])],
)
def test_files_are_the_same_whenever_they_are_written(tmp_path, kind, dated):
    plot(document(lines(curve())), tmp_path / f"a.{kind}")
    written = (tmp_path / f"a.{kind}").read_bytes()
    assert not [word for word in dated if word in written]


def test_dashes_are_four_and_three_long(tmp_path):
    level = {"value": 2.0, "label": "level"}
    plot(document(lines(curve(), levels=[level])), tmp_path / "a.svg")
    assert "stroke-dasharray: 4,3; stroke-dashoffset: 0;" in (tmp_path / "a.svg").read_text()


def test_rules_of_histograms_are_dashed_alike(tmp_path):
    chart = training(histogram([1, 2], rules=[1]))
    plot(chart, tmp_path / "a.svg")
    assert "stroke-dasharray: 4,3; stroke-dashoffset: 0;" in (tmp_path / "a.svg").read_text()


def test_only_missing_glyphs_are_drawn_without_a_word(tmp_path, monkeypatch):
    def warn(*_, **__):
        warnings.warn("Glyph 25968 missing", stacklevel=1)
        warnings.warn("something else", stacklevel=1)

    monkeypatch.setattr(Figure, "savefig", warn)
    with pytest.warns(UserWarning) as said:  # noqa: PT030
        plot(document(lines(curve())), tmp_path / "a.png")
    assert [str(w.message) for w in said] == ["something else"]


@pytest.mark.parametrize(
    ("path", "shown"), [("-", "-"), ("a.gif", "a.gif"), ("a\nb.x", r"'a\nb.x'"), ("png", "png")]
)
def test_a_plot_must_have_an_ending_that_is_known(path, shown):
    with pytest.raises(InputError) as e:
        format_of(path)
    assert str(e.value) == f"{shown}: a plot must end in .png, .svg or .pdf"
    assert [format_of(f"x.{k}") for k in ("png", "SVG", "Pdf")] == ["png", "svg", "pdf"]


# ---------------------------------------------------------------- lines


def test_series_differ_by_colour_and_by_kind(drawn):
    ax = drawn(
        document(
            lines(
                curve("plain"),
                curve("thin", thin=True),
                curve("dots", dots="only"),
                curve("dotted", dots=True),
                curve("long", np.arange(1.0, 31.0), x=np.arange(1, 31)),
                curve("short", np.arange(1.0, 30.0), x=np.arange(1, 30)),
                curve("long with dots", np.arange(1.0, 31.0), x=np.arange(1, 31), dots=True),
            )
        )
    ).axes[0]
    found = {line.get_label(): look(line) for line in ax.lines}
    assert found == {
        "plain": (COLOURS[0], "-", "o", 1.7, 3.0, None),
        "thin": (COLOURS[1], "--", "None", 1.0, 6.0, None),
        "dots": (COLOURS[2], "None", "o", 1.5, 4.0, 0.6),
        "dotted": (COLOURS[3], "-", "o", 1.7, 3.0, None),
        "long": (COLOURS[4], "-", "None", 1.7, 3.0, None),
        "short": (COLOURS[5], "-", "o", 1.7, 3.0, None),
        "long with dots": (COLOURS[6], "-", "o", 1.7, 3.0, None),
    }
    dots = next(line for line in ax.lines if line.get_label() == "dots")
    assert dots.get_markeredgewidth() == 0
    assert dots.get_xydata().tolist() == [[1, 1], [10, 2], [100, 4]]


def test_the_first_series_lies_on_top_and_first_in_the_legend(drawn):
    ax = drawn(document(lines(curve("a"), curve("b"), curve("c", thin=True)))).axes[0]
    assert [line.get_label() for line in ax.lines] == ["c", "b", "a"]
    assert names(ax) == ["a", "b", "c"]
    handles = ax.get_legend().legend_handles
    assert [to_hex(h.get_color()) for h in handles] == list(COLOURS[:3])


def test_errors_are_bars_with_caps_and_none_where_unknown(drawn):
    series = curve("mean", y=[1.0, 2.0, 4.0], errors=[0.5, None, 0.25], dots=True)
    ax = drawn(document(lines(series, axes=EVEN))).axes[0]
    (bars_,) = ax.collections
    assert [s.tolist() for s in bars_.get_segments()] == [
        [[1, 0.5], [1, 1.5]],
        [[10, 2], [10, 2]],
        [[100, 3.75], [100, 4.25]],
    ]
    (container,) = ax.containers
    line, caps, _ = container
    assert container.get_label() == "mean"
    assert (line.get_marker(), line.get_linestyle(), line.get_markersize()) == ("o", "-", 4)
    assert {to_hex(c) for c in [line.get_color(), *(cap.get_color() for cap in caps)]} == {
        COLOURS[0]
    }
    assert {cap.get_markersize() for cap in caps} == {5.0}


@pytest.mark.parametrize("n", [8, 9])
def test_more_curves_than_colours_are_one_colour_and_faint_but_the_first(drawn, n):
    ax = drawn(document(lines(*(curve(f"{k}") for k in range(n))))).axes[0]
    found = {line.get_label(): look(line) for line in ax.lines}
    first, others = (COLOURS[0], "-", "o", 1.7, 3.0, None), (COLOURS[0], "-", "None", 0.8, 6.0, 0.4)
    if n == 8:
        assert found == {f"{k}": (COLOURS[k], *first[1:]) for k in range(n)}
        assert names(ax) == [f"{k}" for k in range(n)]
    else:
        assert found == {"0": first, **{f"{k}": others for k in range(1, n)}}
        assert ax.get_legend() is None


def test_a_single_curve_needs_no_legend_but_its_levels_do(drawn):
    assert drawn(document(lines(curve()))).axes[0].get_legend() is None
    level = {"value": 3.0, "label": "tolerance"}
    ax = drawn(document(lines(curve(), levels=[level]))).axes[0]
    assert names(ax) == ["tolerance"]
    line = ax.lines[1]
    assert line.get_ydata() == [3.0, 3.0]
    assert (to_hex(line.get_color()), line.get_linewidth()) == (SOFT, 1)
    ax = drawn(document(lines(curve("a"), curve("b"), levels=[level]))).axes[0]
    assert names(ax) == ["a", "b", "tolerance"]


def test_the_band_lies_between_the_two_curves(drawn):
    chart = lines(curve("upper", [5, 4, 3]), curve("lower", [0, 1, 2]), axes=EVEN, band=[0, 1])
    (band,) = drawn(document(chart)).axes[0].collections
    corners = {tuple(v) for v in band.get_paths()[0].vertices.tolist()}
    assert corners == {(1, 0), (10, 1), (100, 2), (1, 5), (10, 4), (100, 3)}
    assert band.get_alpha() == 0.16
    assert band.get_linewidth().tolist() == [0]
    assert same_color(band.get_facecolor()[0], to_rgba(COLOURS[2], 0.16))


def test_marks_are_a_ring_and_a_square_around_their_points(drawn):
    marks = [
        {"series": 1, "index": 2, "label": "best"},
        {"series": 0, "index": 0, "label": "simple"},
    ]
    ax = drawn(document(lines(curve("a"), curve("b", [3, 5, 6]), marks=marks))).axes[0]
    best, simple = ax.lines[-2:]
    assert best.get_xydata().tolist() == [[100, 6]]
    assert simple.get_xydata().tolist() == [[1, 1]]
    assert (best.get_marker(), simple.get_marker()) == ("o", "s")
    for mark in (best, simple):
        assert (mark.get_markersize(), mark.get_markeredgewidth()) == (11, 1.5)
        assert (mark.get_markerfacecolor(), mark.get_markeredgecolor()) == ("none", INK)
    assert names(ax) == ["a", "b", "best", "simple"]


@pytest.mark.parametrize("x_log", [True, False])
@pytest.mark.parametrize("y_log", [True, False])
def test_scales_are_those_of_the_axes(drawn, x_log, y_log):
    axes = [{"key": "C", "label": "C", "log": x_log}]
    ax = drawn(document(lines(curve(), axes=axes, y={"label": "y", "log": y_log}))).axes[0]
    assert (ax.get_xscale() == "log", ax.get_yscale() == "log") == (x_log, y_log)
    assert (ax.get_xscale(), ax.get_yscale()) == (
        *("log" if x_log else "linear", "log" if y_log else "linear"),
    )


def test_ticks_are_seven_at_most_and_whole_for_rounds(drawn):
    figure = drawn(training(axes=["round", "passes"]))
    rounds, passes = (figure.axes[k].xaxis.get_major_locator() for k in (1, 2))
    assert rounds.tick_values(0, 7).tolist() == [0, 2, 4, 6, 8]
    assert passes.tick_values(0, 7).tolist() == [0, 1.5, 3, 4.5, 6, 7.5]
    assert rounds.tick_values(0, 2).tolist() == [0, 1, 2]
    assert passes.tick_values(0, 2) == pytest.approx([0, 0.4, 0.8, 1.2, 1.6, 2])


def test_a_logarithmic_axis_has_a_tick_for_every_power(drawn):
    ax = drawn(document(lines(curve()))).axes[0]
    assert {1, 10, 100} <= set(ax.xaxis.get_major_locator().tick_values(1, 100).tolist())


# ---------------------------------------------------------------- stages of smoothing


def staged(mu, x=None, y=None, log=False):
    """A training run whose first curve has a column μ."""
    n = len(mu)
    columns = {"seconds": list(range(n)) if x is None else x, "mu": mu}
    chart = lines(
        {"name": "objective", "y": list(range(n)) if y is None else y},
        axes=[{"key": "seconds", "label": "seconds", "log": False}],
        y=LOG if log else LINEAR,
        columns=columns,
    )
    document = training()
    document["sections"][0]["charts"][0] = {**chart, "id": "objective", "title": "objective"}
    return document


def strip_of(figure):
    (strip,) = panel(figure, "objective").child_axes
    return strip


def spans(strip):
    return [
        (p.get_x(), p.get_x() + p.get_width(), pytest.approx(p.get_alpha())) for p in strip.patches
    ]


def test_every_stage_is_a_span_the_darker_the_smaller_its_smoothing(drawn):
    strip = strip_of(drawn(staged([1, 1, 1, 0.1, 0.1, 0.01, 0.01, 0.01])))
    assert spans(strip) == [(0, 2, 0.15), (2, 4, 0.5), (4, 7, 0.85)]
    assert {to_hex(p.get_facecolor()) for p in strip.patches} == {COLOURS[3]}
    assert {p.get_linewidth() for p in strip.patches} == {0}
    assert [(t.get_text(), *t.get_position(), to_hex(t.get_color())) for t in strip.texts] == [
        ("1", 1.0, 0.45, INK),
        ("0.1", 3.0, 0.45, INK),
        ("0.01", 5.5, 0.45, CARD),
    ]
    ((ha, va, size),) = {(t.get_ha(), t.get_va(), t.get_fontsize()) for t in strip.texts}
    assert (ha, va, size) == ("center", "center", pytest.approx(9 * 0.833))


def test_one_stage_has_a_middle_shade(drawn):
    strip = strip_of(drawn(staged([5.0, 5.0, 5.0])))
    assert spans(strip) == [(0, 2, 0.5)]
    assert [to_hex(t.get_color()) for t in strip.texts] == [INK]


def test_rounds_without_smoothing_have_no_span(drawn):
    strip = strip_of(drawn(staged([None, 2.0, 2.0, 0, 0.5, 0.5])))
    assert spans(strip) == [(0, 2, 0.15), (3, 5, 0.85)]
    assert [t.get_text() for t in strip.texts] == ["2", "0.5"]


@pytest.mark.parametrize(("width", "named"), [(9, False), (10, True)])
def test_a_stage_is_named_where_there_is_room(drawn, width, named):
    x = [0, 50, 100 - width, 100]
    strip = strip_of(drawn(staged([1, 1, 1, 0.5], x)))
    assert [t.get_text() for t in strip.texts] == ["1", "0.5"][: 1 + named]


def test_stages_of_a_run_without_length_are_drawn(drawn):
    strip = strip_of(drawn(staged([1, 0.5], [3, 3])))
    assert [p.get_width() for p in strip.patches] == [0, 0]
    assert not strip.texts


def test_the_name_needs_nine_hundredths_of_the_width_of_the_chart(drawn):
    strip = strip_of(drawn(staged([1, 1, 0.5, 0.5], [10.0, 10.9, 10.95, 11.05])))
    assert [t.get_text() for t in strip.texts] == ["1", "0.5"]
    strip = strip_of(drawn(staged([1, 0.5, 0.5], [0, 0.08, 0.16])))
    assert [t.get_text() for t in strip.texts] == ["0.5"]


def test_the_strip_lies_on_the_axis(drawn):
    figure = drawn(staged([1, 0.5, 0.5]))
    ax, strip = panel(figure, "objective"), strip_of(figure)
    box, whole = strip.get_axes_locator()(strip, None), ax.get_position()
    assert (box.x0, box.y0, box.width) == pytest.approx((whole.x0, whole.y0, whole.width))
    assert box.height == pytest.approx(0.06 * whole.height)
    assert ax.get_shared_x_axes().joined(ax, strip)
    assert strip.get_yticks().tolist() == [0.5]
    assert [t.get_text() for t in strip.get_yticklabels()] == ["μ"]
    assert strip.yaxis.get_ticks_position() == "right"
    assert strip.yaxis.get_tick_params()["length"] == 0
    assert strip.xaxis.get_tick_params()["length"] == 0
    assert strip.xaxis.get_tick_params()["labelbottom"] is False
    assert not any(s.get_visible() for s in strip.spines.values())
    assert not any(g.get_visible() for g in strip.get_xgridlines() + strip.get_ygridlines())


def test_the_curve_makes_room_for_the_strip(drawn):
    ax = panel(drawn(staged([1, 0.5, 0.5], y=[0, 0.5, 1])), "objective")
    assert ax.get_ylim() == pytest.approx((-0.05 - 0.08 * 1.1, 1.05))
    ax = panel(drawn(staged([1, 0.5, 0.5], y=[1e-3, 0.1, 1], log=True)), "objective")
    assert np.log10(ax.get_ylim()) == pytest.approx((-3.15 - 0.08 * 3.3, 0.15))


def test_without_smoothing_there_is_no_strip(drawn):
    document = staged([1, 0.5, 0.5])
    del document["sections"][0]["charts"][0]["columns"]["mu"]
    assert panel(drawn(document), "objective").child_axes == []


# ---------------------------------------------------------------- histograms


def test_bars_of_a_histogram_stand_between_the_edges(drawn):
    chart = histogram([3, 10], [1, 0], edges=(0, 1, 3))
    ax = panel(drawn(training(chart)), "Bins")
    found = [(p.get_x(), p.get_width(), p.get_height()) for p in ax.patches]
    assert found == [(0, 1, 3), (1, 2, 10), (0, 1, 1), (1, 2, 0)]
    colours = [to_hex(p.get_facecolor()) for p in ax.patches]
    assert colours == [COLOURS[0], COLOURS[0], COLOURS[1], COLOURS[1]]
    assert {p.get_alpha() for p in ax.patches} == {0.55}
    assert {p.get_linewidth() for p in ax.patches} == {0.4}
    assert {to_hex(p.get_edgecolor()) for p in ax.patches} == {CARD}
    assert names(ax) == ["group 0", "group 1"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("value", "rows")
    assert ax.get_yscale() == "linear"
    assert ax.get_ylim() == pytest.approx((0, 11))


def test_a_single_group_is_darker_and_has_no_legend(drawn):
    ax = panel(drawn(training(histogram([3, 10]))), "Bins")
    assert {p.get_alpha() for p in ax.patches} == {0.85}
    assert ax.get_legend() is None
    assert not any(g.get_visible() for g in ax.get_xgridlines())
    assert all(g.get_visible() for g in ax.get_ygridlines())


def test_counts_of_tinted_bins_are_written_above_them(drawn):
    chart = histogram([0, 5, 9], edges=(0, 1, 2, 4), tints={"0": 7, "2": 1}, log=True)
    ax = panel(drawn(training(chart)), "Bins")
    assert [to_hex(p.get_facecolor()) for p in ax.patches] == [COLOURS[7], COLOURS[0], COLOURS[1]]
    assert [(t.get_text(), t.xy, t.xyann) for t in ax.texts] == [
        ("0", (0.5, 0.7), (0, 3)),
        ("9", (3.0, 9), (0, 3)),
    ]
    assert {(t.get_ha(), t.get_weight(), t.anncoords) for t in ax.texts} == {
        ("center", "bold", "offset points")
    }
    assert ax.get_yscale() == "log"
    assert ax.get_ylim() == pytest.approx((0.6, 27))


def test_the_highest_bar_of_all_groups_fits(drawn):
    chart = histogram([3, 10], [1, 40], log=True)
    assert panel(drawn(training(chart)), "Bins").get_ylim() == pytest.approx((0.6, 120))


def test_rules_are_drawn_from_the_first_edge_to_the_last(drawn):
    chart = histogram([1, 2, 3], edges=(-1, 0, 0.5, 1), rules=[-1.5, -1, 0, 1, 1.5])
    ax = panel(drawn(training(chart)), "Bins")
    assert [line.get_xdata()[0] for line in ax.lines] == [-1, 0, 1]
    assert {(to_hex(line.get_color()), line.get_linewidth()) for line in ax.lines} == {(SOFT, 1)}


# ---------------------------------------------------------------- bars, matrices, planes


def test_weights_are_bars_from_above_coloured_by_sign(drawn):
    ax = panel(drawn(training(bars([2.0, -1.0, 0.0]))), "Weights")
    middles = [p.get_y() + p.get_height() / 2 for p in ax.patches]
    assert middles == pytest.approx([0, 1, 2])
    assert [p.get_width() for p in ax.patches] == [2, -1, 0]
    assert [to_hex(p.get_facecolor()) for p in ax.patches] == [COLOURS[0], COLOURS[1], COLOURS[0]]
    assert {p.get_alpha() for p in ax.patches} == {0.85}
    assert ax.get_yticks().tolist() == [0, 1, 2]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["feature 0", "feature 1", "feature 2"]
    assert ax.yaxis_inverted()
    assert ax.get_xlabel() == "weight"
    assert not any(g.get_visible() for g in ax.get_ygridlines())
    assert all(g.get_visible() for g in ax.get_xgridlines())


def test_a_confusion_matrix_is_shaded_by_the_shares_of_its_rows(drawn):
    ax = panel(drawn(training(matrix([[6, 4, 0], [0, 1, 0], [0, 0, 0]]))), "Classes")
    cells = [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in ax.patches]
    assert cells == [(-0.5, -0.5, 1, 1), (0.5, -0.5, 1, 1), (0.5, 0.5, 1, 1)]
    assert [p.get_alpha() for p in ax.patches] == pytest.approx([0.64, 0.46, 1.0])
    assert {(to_hex(p.get_facecolor()), p.get_linewidth()) for p in ax.patches} == {(COLOURS[0], 0)}
    found = [(t.get_text(), *t.get_position(), to_hex(t.get_color())) for t in ax.texts]
    assert found == [
        *(("6", 0, 0, INK), ("4", 1, 0, INK), ("1", 1, 1, CARD)),
    ]
    assert {(t.get_ha(), t.get_va(), t.get_fontsize()) for t in ax.texts} == {
        ("center", "center", 9)
    }
    assert (ax.get_xlim(), ax.get_ylim(), ax.get_aspect()) == ((-0.5, 2.5), (2.5, -0.5), 1.0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("decided", "true")
    assert not any(g.get_visible() for g in ax.get_xgridlines() + ax.get_ygridlines())


@pytest.mark.parametrize(("n", "count"), [(12, 7), (13, None), (5, 123456)])
def test_numbers_fit_their_cells_and_are_left_out_of_large_matrices(drawn, n, count):
    figure = drawn(training(matrix((count or 7) * np.eye(n, dtype=int))))
    ax = panel(figure, "Classes")
    cell = ax.bbox.height * 72 / figure.dpi / n
    size = min(9.0, 1.2 * cell / len(str(count)))
    assert [t.get_fontsize() for t in ax.texts] == pytest.approx([size] * (n if count else 0))
    assert count in (7, None) or size < 9.0


@pytest.mark.parametrize(("n", "step"), [(1, 1), (14, 1), (29, 1), (30, 2), (45, 3)])
def test_classes_are_named_as_far_as_there_is_room(drawn, n, step):
    ax = panel(drawn(training(matrix(np.eye(n, dtype=int)))), "Classes")
    shown = [f"class {k}" for k in range(0, n, step)]
    assert [t.get_text() for t in ax.get_xticklabels()] == shown
    assert [t.get_text() for t in ax.get_yticklabels()] == shown
    assert ax.get_xticks().tolist() == ax.get_yticks().tolist() == list(range(0, n, step))


def regions_and_points(ax):
    """Fillings and lines of equal value, and the rows."""
    contours = [c for c in ax.collections if isinstance(c, ContourSet)]
    points = [c for c in ax.collections if not isinstance(c, ContourSet)]
    return [c for c in contours if c.filled], [c for c in contours if not c.filled], points


def corners(contour_set):
    """All points of the lines of a level."""
    return np.concatenate([p.vertices for p in contour_set.get_paths()])


def test_every_class_of_a_plane_fills_its_region(drawn):
    ax = panel(drawn(training(plane())), "Plane")
    regions, lines_, _ = regions_and_points(ax)
    assert lines_ == []
    assert [to_hex(c.get_facecolor()[0]) for c in regions] == list(COLOURS[:2])
    assert {c.get_alpha() for c in regions} == {0.18}
    # the cells are 2 wide and 1 high, and the border runs halfway between them
    (first,) = regions[0].get_paths()
    assert {tuple(v) for v in first.vertices.tolist()} == {
        *((0, -1), (2, -1), (3, -1), (2, -0.5), (1, 0), (0, 0.5), (0, 0)),
    }
    assert regions[1].get_paths()[0].contains_point((3.9, -0.9))
    assert not first.contains_point((3.9, -0.9))
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 4), (-1, 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 1", "feature 2")
    assert not any(g.get_visible() for g in ax.get_xgridlines() + ax.get_ygridlines())


def test_rows_of_a_plane_are_points_ringed_where_they_support(drawn):
    ax = panel(drawn(training(plane())), "Plane")
    *_, points = regions_and_points(ax)
    assert [p.get_offsets().tolist() for p in points] == [[[1, 0]], [[2, 0.5]]]
    assert [to_hex(p.get_facecolor()[0]) for p in points] == list(COLOURS[:2])
    assert [p.get_sizes().tolist() for p in points] == [[12], [12]]
    assert [p.get_linewidths().tolist() for p in points] == [[0.6], [0.6]]
    assert same_color(points[0].get_edgecolors()[0], INK)
    assert points[1].get_edgecolors()[0][3] == 0
    assert {p.get_zorder() for p in points} == {2}
    assert names(ax) == ["class 0", "class 1"]
    assert ax.get_legend().get_frame_on() is True


def test_boundary_and_margins_are_where_the_values_are_0_and_1(drawn):
    values = [[-2.0, 0.0, 2.0]] * 3
    ax = panel(drawn(training(plane(values=values))), "Plane")
    _, lines_, _ = regions_and_points(ax)
    assert [c.levels.tolist() for c in lines_] == [[-1], [0], [1]]
    for line, x in zip(lines_, (1, 2, 3), strict=True):
        assert {v for v, _ in corners(line).tolist()} == {x}
        assert sorted(v for _, v in corners(line).tolist()) == [-1, 0, 1]
    assert [c.get_linewidths()[0] for c in lines_] == [1.0, 1.8, 1.0]
    dashes = [c.get_linestyles()[0][1] is not None for c in lines_]
    assert dashes == [True, False, True]
    assert {to_hex(c.get_edgecolor()[0]) for c in lines_} == {INK}
    assert {c.get_zorder() for c in lines_} == {3}


@pytest.mark.parametrize(
    ("values", "levels"), [([0.5, 0.7, 1.5], [1]), ([0, 0.5, 1], []), ([-3, -2, -1.5], [])]
)
def test_levels_that_no_value_passes_have_no_line(drawn, values, levels):
    ax = panel(drawn(training(plane(values=[values] * 3))), "Plane")
    _, lines_, _ = regions_and_points(ax)
    assert [v for c in lines_ for v in c.levels.tolist()] == levels


def test_the_ninth_class_has_the_first_colour_again_and_there_is_no_legend(drawn):
    chart = plane(classes=9)
    chart["regions"] = [[0, 8, 8], [1, 8, 8], [1, 8, 8]]
    ax = panel(drawn(training(chart)), "Plane")
    regions, _, _ = regions_and_points(ax)
    assert [to_hex(c.get_facecolor()[0]) for c in regions] == [COLOURS[0], COLOURS[1], COLOURS[0]]
    assert ax.get_legend() is None
    assert names(panel(drawn(training(plane(classes=8))), "Plane"))[-1] == "class 7"


# ---------------------------------------------------------------- tips and ticks


def tips(ax):
    return [p.get_gid() for p in ax.patches]


@pytest.fixture
def pictured(monkeypatch):
    """The axes of a chart of a page."""

    def draw(chart):
        figures = []
        with monkeypatch.context() as patch:
            patch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
            draw_svg(chart)
        (ax,) = figures[0].axes
        return ax

    return draw


def test_bars_and_cells_say_what_they_are(pictured):
    two = histogram([3, 10000], [1, 0], names={"1": "above 1"})
    assert tips(pictured(two)) == [
        *("tip:0 to 1: 3 group 0", "tip:above 1: 10\u202f000 group 0"),
        *("tip:0 to 1: 1 group 1", "tip:above 1: 0 group 1"),
    ]
    assert tips(pictured(bars([0.123456]))) == ["tip:feature 0: 0.12346"]
    assert tips(pictured(matrix([[6, 2], [0, 0]]))) == [
        "tip:true class 0, decided class 0: 6 rows, 75.0 % of this class",
        "tip:true class 0, decided class 1: 2 rows, 25.0 % of this class",
    ]


def test_stages_say_their_smoothing(pictured):
    strip = pictured(staged([1, 0.5, 0.123456])["sections"][0]["charts"][0]).child_axes[0]
    assert tips(strip) == ["tip:μ = 1", "tip:μ = 0.5", "tip:μ = 0.1235"]


def test_sixty_stages_are_told_apart(drawn):
    assert len(strip_of(drawn(staged(np.linspace(1, 2, 60).tolist()))).patches) == 60
    spans_ = spans(strip_of(drawn(staged(np.linspace(1, 2, 200).tolist()))))
    assert len(spans_) == 60
    assert (spans_[0][0], spans_[-1][1]) == (0, 199)


def test_files_have_no_tips(drawn):
    figure = drawn(training(histogram([3, 10]), bars(), matrix([[1, 2], [3, 4]])))
    assert {artist.get_gid() for artist in figure.findobj()} == {None}


def test_charts_of_pages_have_no_title_and_their_own_size(pictured):
    sizes = {}
    for chart in (lines(curve()), histogram([1, 2]), bars([1.0] * 30), matrix([[1]]), plane()):
        ax = pictured(chart)
        assert ax.get_title(loc="left") == ""
        assert ax.xaxis.label.get_fontsize() == 11
        sizes[chart["kind"]] = tuple(ax.figure.get_size_inches())
    assert sizes == {
        **{"lines": (5.1, 3.6), "histogram": (5.1, 3.6), "matrix": (5.1, 4.6)},
        **{"plane": (5.1, 4.4), "bars": (5.1, 7.0)},
    }


@pytest.mark.parametrize(("n", "size"), [(3, 0.85 * 9), (30, None), (300, 5.0)])
def test_names_of_weights_are_as_large_as_there_is_space(drawn, n, size):
    figure = drawn(training(bars([1.0] * n)))
    ax = panel(figure, "Weights")
    expected = size or 0.9 * ax.bbox.height * 72 / figure.dpi / n
    assert [t.get_fontsize() for t in ax.get_yticklabels()] == pytest.approx([expected] * n)


def test_ticks_of_logarithmic_axes_are_text(drawn):
    figure = drawn(document(lines(curve(y=[1e-5, 1e-2, 1e-3]), y=LOG)))
    figure.draw_without_rendering()
    ax = figure.axes[0]
    shown = [t.get_text() for t in ax.get_yticklabels()]
    assert {"10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²"} <= set(shown)
    assert {"10⁰", "10¹", "10²"} <= {t.get_text() for t in ax.get_xticklabels()}
    assert {t.get_text() for t in ax.get_yticklabels(minor=True)} == {""}
    close = drawn(document(lines(curve(y=[2.0, 4.0, 7.0]), y=LOG)))
    close.draw_without_rendering()
    assert "3·10⁰" in [t.get_text() for t in close.axes[0].get_yticklabels(minor=True)]


def test_ticks_of_counts_are_text_too(drawn):
    figure = drawn(training(histogram([3, 1000], log=True)))
    figure.draw_without_rendering()
    assert "10²" in [t.get_text() for t in panel(figure, "Bins").get_yticklabels()]


def test_the_legend_keeps_above_the_strip(drawn):
    document_ = staged([1, 0.5, 0.5])
    document_["sections"][0]["charts"][0]["levels"] = [{"value": 0.0, "label": "level"}]
    ax = panel(drawn(document_), "objective")
    box = ax.get_legend().get_bbox_to_anchor().transformed(ax.transAxes.inverted())
    assert (box.x0, box.y0, box.x1, box.y1) == pytest.approx((0, 0.08, 1, 1))
    level = {"value": 2.0, "label": "level"}
    ax = drawn(document(lines(curve(), levels=[level]))).axes[0]
    box = ax.get_legend().get_bbox_to_anchor().transformed(ax.transAxes.inverted())
    assert (box.x0, box.y0, box.x1, box.y1) == pytest.approx((0, 0, 1, 1))


def test_charts_have_a_left_and_a_bottom_line_alone():
    from nesvm_jit.pages.plots import STYLE

    sides = {
        side: STYLE.get(f"axes.spines.{side}", True) for side in ("left", "bottom", "top", "right")
    }
    assert sides == {"left": True, "bottom": True, "top": False, "right": False}
    assert (STYLE["axes.grid"], STYLE["axes.axisbelow"]) == (True, True)
    assert STYLE["text.parse_math"] is False  # a name may have a dollar sign
