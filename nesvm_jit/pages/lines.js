// Curves against time, passes or cost, with bands, levels, stages of μ, errors and marks.

const STRIP = 20; // pixels for the stages of μ

function drawLines(chart, state, W) {
  const H = clamp(Math.round(0.6 * W), 240, 340);
  const axis = chart.axes.find((a) => a.key === state.axis) || chart.axes[0];
  const columns = (s) => s.columns || chart.columns;
  const xsOf = (s) => columns(s)[axis.key];
  const { xlog, ylog } = state;
  const many = chart.series.length > 8;
  const all = chart.series.flatMap((s) => s.y.flatMap((v, i) => {
    const e = s.errors && number(s.errors[i]) ? s.errors[i] : 0;
    return number(v) ? [v - e, v + e] : [];
  }));
  for (const level of chart.levels || []) all.push(level.value);
  const few = chart.axes[0].key === "C" ? 0.06 : 0.01;
  const f = frame(
    W, H,
    { range: range(chart.series.flatMap(xsOf), xlog, few), log: xlog },
    { range: range(all, ylog, 0.06), log: ylog },
    { x: axis.label, y: chart.y.label },
    columns(chart.series[0]).mu ? STRIP : 0,
  );
  const { x, y, box } = f;
  const root = svg("g", {}, f.node);
  const fits = (s, i) => x.has(xsOf(s)[i]) && y.has(s.y[i]);
  const spot = (s, i) => [x.at(xsOf(s)[i]), y.at(s.y[i])];
  const path = (s) => {
    let d = "";
    let pen = false;
    s.y.forEach((_, i) => {
      if (!fits(s, i)) { pen = false; return; }
      const [px, py] = spot(s, i);
      d += `${pen ? "L" : "M"}${px.toFixed(1)},${py.toFixed(1)}`;
      pen = true;
    });
    return d;
  };
  stages(root, columns(chart.series[0]), xsOf(chart.series[0]), x, box);
  if (chart.band) root.append(band(chart, fits, spot, box));
  for (const level of chart.levels || []) {
    const at = y.at(level.value);
    root.append(line(box.left, at, box.right, at, "rule"));
  }
  chart.series.forEach((s, k) => {
    const style = {
      d: s.dots === "only" ? "" : path(s), fill: "none", stroke: colour(many ? 0 : k),
      "stroke-width": s.thin ? 1.2 : many && k ? 1 : 2, "stroke-linejoin": "round",
    };
    if (s.thin) style["stroke-dasharray"] = "5 3";
    if (many && k) style.opacity = 0.4;
    root.append(svg("path", style));
    const dots = s.dots || (s.y.length < 30 && !s.thin && !many);
    const size = s.dots ? 3.3 : 2.6;
    s.y.forEach((v, i) => {
      if (!dots || !fits(s, i)) return;
      const [px, py] = spot(s, i);
      const e = s.errors && s.errors[i];
      if (number(e)) {
        const [low, high] = [y.has(v - e) ? y.at(v - e) : box.bottom, y.at(v + e)];
        for (const [a, b, c, d] of [[px, low, px, high], [px - 3, low, px + 3, low], [px - 3, high, px + 3, high]]) {
          root.append(svg("line", { x1: a, y1: b, x2: c, y2: d, stroke: colour(k), opacity: 0.7 }));
        }
      }
      root.append(svg("circle", { cx: px, cy: py, r: size, fill: colour(k), opacity: s.dots === "only" ? 0.65 : 1 }));
    });
  });
  (chart.marks || []).forEach((mark, k) => {
    const s = chart.series[mark.series];
    if (!fits(s, mark.index)) return;
    const [px, py] = spot(s, mark.index);
    const square = { x: px - 9, y: py - 9, width: 18, height: 18, rx: 2, class: "ring" };
    root.append(k ? svg("rect", square) : svg("circle", { cx: px, cy: py, r: 8, class: "ring" }));
  });
  return { node: root, H, reader: lineReader(chart, { fits, spot, columns, axis, box }) };
}

/** The runs of constant μ as a strip on the x axis, the darker the smaller. */
function stages(root, columns, xs, x, box) {
  const { mu } = columns;
  if (!mu) return;
  const known = mu.filter((m) => number(m) && m > 0);
  const [lo, hi] = [Math.log(Math.min(...known)), Math.log(Math.max(...known))];
  const top = box.floor - STRIP + 3;
  root.append(svg("rect", { x: box.left, y: top - 3, width: box.right - box.left, height: STRIP - 1, fill: "var(--card)" }));
  root.append(label(box.left - 6, top + 11, "μ", "end"));
  for (let i = 0; i < mu.length;) {
    let end = i;
    while (end < mu.length && mu[end] === mu[i]) end++;
    const from = x.has(xs[Math.max(0, i - 1)]) ? x.at(xs[Math.max(0, i - 1)]) : box.left;
    const to = x.has(xs[end - 1]) ? x.at(xs[end - 1]) : box.left;
    if (number(mu[i]) && mu[i] > 0 && to > from) {
      const depth = hi > lo ? (hi - Math.log(mu[i])) / (hi - lo) : 0.5;
      root.append(svg("rect", {
        x: from, width: Math.max(0.8, to - from - 1), y: top, height: STRIP - 6, rx: to - from > 6 ? 2 : 0, fill: colour(3), opacity: 0.15 + 0.7 * depth,
      }));
      const text = format(mu[i], 2);
      if (wide(text) + 6 < to - from) {
        const inside = label((from + to) / 2, top + 11, text, "middle", "axis");
        if (depth > 0.5) inside.setAttribute("style", "fill: var(--card)");
        root.append(inside);
      }
    }
    i = end;
  }
}

/** Between two curves; down to the axis where the lower one has no place on it. */
function band(chart, fits, spot, box) {
  const [upper, lower] = chart.band.map((k) => chart.series[k]);
  const there = [];
  const back = [];
  upper.y.forEach((_, i) => {
    if (fits(upper, i) && number(lower.y[i])) {
      there.push(spot(upper, i));
      back.unshift(fits(lower, i) ? spot(lower, i) : [spot(upper, i)[0], box.bottom]);
    }
  });
  const points = [...there, ...back].map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" ");
  return svg("polygon", { points, fill: colour(2), opacity: 0.16 });
}

function lineReader(chart, { fits, spot, columns, axis, box }) {
  const shared = Boolean(chart.columns);
  const usable = chart.series.map((s) => s.y.map((_, i) => i).filter((i) => (shared ? chart.series.some((t) => fits(t, i)) : fits(s, i))));
  const first = usable.findIndex((u) => u.length);
  const at = (s, i) => {
    const t = fits(chart.series[s], i) ? chart.series[s] : chart.series.find((r) => fits(r, i));
    return spot(t, i);
  };
  const closest = (s, px, py, weight) => {
    let best = null;
    for (const i of usable[s]) {
      const [qx, qy] = at(s, i);
      const far = Math.hypot(qx - px, weight * (qy - py));
      if (!best || far < best.far) best = { s, i, far };
    }
    return best;
  };
  return {
    start() {
      const s = Math.max(0, first);
      const mark = (chart.marks || [])[0];
      if (mark) return { s: mark.series, i: mark.index };
      return { s, i: usable[s][usable[s].length - 1] };
    },
    nearest(px, py) {
      if (shared) return closest(Math.max(0, first), px, py, 0);
      return chart.series.map((_, s) => closest(s, px, py, 1)).filter(Boolean).sort((a, b) => a.far - b.far)[0];
    },
    move(cursor, key) {
      if (!shared && (key === "ArrowUp" || key === "ArrowDown")) {
        const s = clamp(cursor.s + STEPS[key], 0, chart.series.length - 1);
        return usable[s].length ? closest(s, at(cursor.s, cursor.i)[0], 0, 0) : cursor;
      }
      const list = usable[cursor.s];
      return { s: cursor.s, i: list[along(Math.max(0, list.indexOf(cursor.i)), list.length, key)] };
    },
    place: (cursor) => [usable[cursor.s].indexOf(cursor.i), usable[cursor.s].length],
    show({ s, i }) {
      if (i === undefined) return { nodes: [], said: [["no value here", ""]] };
      const lines = shared ? chart.series : [chart.series[s]];
      const [px, py] = at(s, i);
      const nodes = [line(px, box.top, px, box.floor, "cursor")];
      const said = [];
      if (!shared && chart.series.length > 1) said.push(["", chart.series[s].name]);
      const here = columns(chart.series[s]);
      for (const a of chart.axes) said.push([a.label, format(here[a.key][i])]);
      for (const t of lines) {
        const e = t.errors && number(t.errors[i]) ? ` ± ${format(t.errors[i], 2)}` : "";
        said.push([shared ? t.name : chart.y.label, format(t.y[i], chart.columns ? 6 : 4) + e]);
        if (fits(t, i)) {
          const [cx, cy] = spot(t, i);
          nodes.push(svg("circle", { cx, cy, r: 5, class: "spot", fill: colour(chart.series.length > 8 ? 1 : chart.series.indexOf(t)) }));
        }
      }
      if (here.mu && number(here.mu[i])) said.push(["μ", format(here.mu[i], 3)]);
      if (!shared && chart.series.length > 8) nodes.unshift(trail(chart.series[s], fits, spot));
      return { nodes, said };
    },
  };
}

function trail(s, fits, spot) {
  const points = s.y.map((_, i) => i).filter((i) => fits(s, i)).map((i) => spot(s, i).map((v) => v.toFixed(1)).join(","));
  return svg("polyline", { points: points.join(" "), fill: "none", stroke: colour(1), "stroke-width": 2 });
}
