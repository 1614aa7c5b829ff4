// Histograms, bars, matrices and the plane of two features.

function drawHistogram(chart, state, W) {
  const H = clamp(Math.round(0.6 * W), 240, 340);
  const { edges } = chart;
  const n = edges.length - 1;
  const most = Math.max(1, ...chart.series.flatMap((s) => s.counts));
  const f = frame(
    W, H,
    { range: [edges[0], edges[n]], log: false },
    { range: state.ylog ? [0.6, most * 1.6] : [0, most * 1.06], log: state.ylog },
    { x: chart.x.label, y: chart.y.label },
  );
  const { x, y, box } = f;
  const root = svg("g", {}, f.node);
  const top = (v) => (v > 0 ? y.at(v) : box.bottom);
  chart.series.forEach((s, k) => {
    s.counts.forEach((v, i) => {
      if (!v) return;
      const tint = (chart.tints || {})[i];
      const [from, to] = [x.at(edges[i]), x.at(edges[i + 1])];
      root.append(svg("rect", {
        x: from + 0.5, width: Math.max(0.7, to - from - 1), y: top(v), height: box.bottom - top(v),
        fill: colour(tint === undefined ? k : tint), opacity: chart.series.length > 1 ? 0.55 : 0.85,
      }));
    });
  });
  for (const rule of chart.rules || []) {
    if (rule < edges[0] || rule > edges[n]) continue;
    root.append(line(x.at(rule), box.top, x.at(rule), box.bottom, "rule"));
  }
  for (const [i, name] of Object.entries(chart.tints ? chart.names : {})) {
    const middle = (x.at(edges[i]) + x.at(edges[Number(i) + 1])) / 2;
    const height = top(chart.series[0].counts[i]);
    root.append(label(clamp(middle, box.left + 20, box.right - 20), Math.max(height - 5, box.top - 2), format(chart.series[0].counts[i]), "middle", "strong halo"));
  }
  const bin = (i) => (chart.names || {})[i] || `${format(edges[i])} to ${format(edges[i + 1])}`;
  const heights = edges.slice(1).map((_, i) => Math.max(...chart.series.map((s) => s.counts[i])));
  return {
    node: root, H,
    reader: {
      start: () => heights.indexOf(Math.max(...heights)),
      nearest: (px) => clamp(Math.floor(((px - box.left) / (box.right - box.left)) * n), 0, n - 1),
      move: (i, key) => along(i, n, key),
      place: (i) => [i, n],
      show(i) {
        const [from, to] = [x.at(edges[i]), x.at(edges[i + 1])];
        const nodes = [svg("rect", { x: from, width: to - from, y: box.top, height: box.bottom - box.top, fill: "var(--ink)", opacity: 0.1 })];
        return { nodes, said: [[chart.x.label, bin(i)], ...chart.series.map((s) => [s.name, format(s.counts[i])])] };
      },
    },
  };
}

// ---------------------------------------------------------------- bars

function drawBars(chart, state, W) {
  const step = 17;
  const n = chart.values.length;
  const left = 12 + Math.max(40, ...chart.labels.map(wide));
  const H = n * step + 46;
  const bottom = H - 40;
  const lo = Math.min(0, ...chart.values);
  const hi = Math.max(0, ...chart.values);
  const x = scale(lo, hi > lo ? hi : 1, left, W - 14, false);
  const root = svg("g");
  ticksBelow(root, x, W, 2, bottom);
  chart.values.forEach((v, i) => {
    const [from, to] = [x.at(Math.min(0, v)), x.at(Math.max(0, v))];
    root.append(
      svg("rect", { x: from, width: Math.max(1, to - from), y: 4 + i * step, height: step - 5, fill: colour(v < 0 ? 1 : 0), opacity: 0.85 }),
      label(left - 6, 14 + i * step, chart.labels[i], "end"),
    );
  });
  root.append(line(x.at(0), 2, x.at(0), bottom, "frame"), label((left + W - 14) / 2, H - 6, chart.x.label, "middle", "axis"));
  return {
    node: root, H,
    reader: {
      start: () => 0,
      nearest: (_, py) => clamp(Math.floor((py - 2) / step), 0, n - 1),
      move: (i, key) => along(i, n, key),
      place: (i) => [i, n],
      show: (i) => ({
        nodes: n ? [svg("rect", { x: 0, width: W, y: 2 + i * step, height: step, fill: "var(--ink)", opacity: 0.1 })] : [],
        said: n ? [["", chart.labels[i]], [chart.x.label, format(chart.values[i], 5)]] : [["no weights", ""]],
      }),
    },
  };
}

// ---------------------------------------------------------------- matrix

function drawMatrix(chart, state, W) {
  const n = chart.labels.length;
  const names = 30 + Math.min(80, Math.max(...chart.labels.map(wide)));
  const top = 44;
  const cell = Math.min((W - names - 6) / n, 130, Math.max(28, 420 / n));
  const left = Math.max(names, (W - n * cell) / 2);
  const H = Math.ceil(top + n * cell + 8);
  const root = svg("g");
  const sums = chart.counts.map((row) => row.reduce((a, b) => a + b, 0));
  const share = (i, j) => (sums[i] ? chart.counts[i][j] / sums[i] : 0);
  const every = Math.max(1, Math.ceil(16 / cell));
  chart.counts.forEach((row, i) => {
    row.forEach((v, j) => {
      const part = share(i, j);
      root.append(svg("rect", {
        x: left + j * cell, y: top + i * cell, width: Math.max(1, cell - 1), height: Math.max(1, cell - 1),
        fill: v ? `rgba(var(--heat), ${(0.1 + 0.9 * part).toFixed(3)})` : "var(--grid)", opacity: v ? 1 : 0.6,
      }));
      const text = state.shares ? (100 * part).toFixed(part > 0 && part < 0.1 ? 1 : 0) : format(v);
      if (v && wide(text) <= cell + 2) {
        const inside = label(left + (j + 0.5) * cell, top + (i + 0.5) * cell + 4, text, "middle", "axis");
        if (part > 0.55) inside.setAttribute("style", "fill: var(--heat-ink)");
        root.append(inside);
      }
    });
    if (i % every === 0) {
      const middle = (i + 0.5) * cell;
      const name = chart.labels[i].slice(0, 11);
      root.append(label(left - 6, top + middle + 4, name, "end"));
      if (wide(name) < cell * every) root.append(label(left + middle, top - 7, name, "middle"));
    }
  });
  root.append(label(left, 14, "decided →", "start", "axis"));
  const side = left - names + 11;
  const upright = label(side, top + 2, "← true", "end", "axis");
  upright.setAttribute("transform", `rotate(-90 ${side} ${top + 2})`);
  root.append(upright);
  return {
    node: root, H,
    reader: {
      start: () => ({ i: 0, j: 0 }),
      nearest: (px, py) => ({ i: clamp(Math.floor((py - top) / cell), 0, n - 1), j: clamp(Math.floor((px - left) / cell), 0, n - 1) }),
      move: ({ i, j }, key) =>
        key === "ArrowUp" || key === "ArrowDown" ? { i: along(i, n, key), j } : { i, j: along(j, n, key) },
      place: ({ i, j }) => [i * n + j, n * n],
      show: ({ i, j }) => ({
        nodes: [svg("rect", { x: left + j * cell - 0.5, y: top + i * cell - 0.5, width: cell, height: cell, class: "ring" })],
        said: [["true", chart.labels[i]], ["decided", chart.labels[j]], ["rows", format(chart.counts[i][j])],
          ["of this class", `${(100 * share(i, j)).toFixed(1)} %`]],
      }),
    },
  };
}

// ---------------------------------------------------------------- two features

function drawPlane(chart, state, W) {
  const H = clamp(Math.round(0.8 * W), 280, 460);
  const f = frame(W, H, { range: chart.x.range, log: false }, { range: chart.y.range, log: false }, { x: chart.x.label, y: chart.y.label });
  const { x, y, box } = f;
  const root = svg("g", {}, f.node);
  const regions = svg("g", { opacity: 0.18 });
  const rows = chart.regions.length;
  const high = (box.bottom - box.top) / rows;
  chart.regions.forEach((runs, r) => {
    const cells = runs.filter((_, k) => k % 2).reduce((a, b) => a + b, 0);
    const across = (box.right - box.left) / cells;
    let from = 0;
    for (let k = 0; k < runs.length; k += 2) {
      regions.append(svg("rect", {
        x: box.left + from * across, y: box.bottom - (r + 1) * high, width: runs[k + 1] * across + 0.4, height: high + 0.4, fill: colour(runs[k]),
      }));
      from += runs[k + 1];
    }
  });
  root.append(regions);
  const { points } = chart;
  const order = points.x.map((_, i) => i).sort((a, b) => points.x[a] - points.x[b]);
  order.forEach((i) => {
    root.append(svg("circle", {
      cx: x.at(points.x[i]), cy: y.at(points.y[i]), r: points.x.length > 500 ? 2.2 : 3, fill: colour(points.class[i]), opacity: 0.85,
      stroke: points.support[i] ? "var(--ink)" : "none", "stroke-width": 1,
    }));
  });
  for (const { level, paths } of chart.lines) {
    for (const p of paths) {
      let d = "";
      for (let k = 0; k < p.length; k += 2) d += `${k ? "L" : "M"}${x.at(p[k]).toFixed(1)},${y.at(p[k + 1]).toFixed(1)}`;
      root.append(svg("path", { d, fill: "none", stroke: "var(--ink)", "stroke-width": level ? 1.3 : 2.2, "stroke-dasharray": level ? "6 4" : "none" }));
    }
  }
  const put = (i) => [x.at(points.x[i]), y.at(points.y[i])];
  return {
    node: root, H,
    reader: {
      start: () => order[0],
      nearest: (px, py) => order.reduce((a, b) => (Math.hypot(put(b)[0] - px, put(b)[1] - py) < Math.hypot(put(a)[0] - px, put(a)[1] - py) ? b : a)),
      move: (i, key) => order[along(order.indexOf(i), order.length, key)],
      place: (i) => [order.indexOf(i), order.length],
      show: (i) => ({
        nodes: [svg("circle", { cx: put(i)[0], cy: put(i)[1], r: 8, class: "ring" })],
        said: [[chart.x.label, format(points.x[i])], [chart.y.label, format(points.y[i])], ["class", chart.classes[points.class[i]]],
          ["", points.support[i] ? "support vector" : "no support vector"]],
      }),
    },
  };
}

const DRAW = { lines: drawLines, histogram: drawHistogram, bars: drawBars, matrix: drawMatrix, plane: drawPlane };
