// The page: a card for every chart, with its controls, its read-out and its table.

const TABLE = 200; // rows of a table

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

let serial = 0;

/** Radio buttons in a row; calls `chosen(value)`. */
function choices(title, options, value, chosen) {
  const name = `choice-${serial++}`;
  const set = element("fieldset", {}, element("legend", { class: "hidden" }, title));
  for (const [key, text] of options) {
    const input = element("input", { type: "radio", name, value: key });
    input.checked = key === value;
    input.addEventListener("change", () => chosen(key));
    set.append(element("label", { class: "choice" }, input, element("span", {}, text)));
  }
  return set;
}

/** Check boxes in a row: [text, value, changed]. */
function toggles(title, ...boxes) {
  const set = element("fieldset", {}, element("legend", { class: "hidden" }, title));
  for (const [text, value, changed] of boxes) {
    const input = element("input", { type: "checkbox" });
    input.checked = value;
    input.addEventListener("change", () => changed(input.checked));
    set.append(element("label", { class: "choice" }, input, element("span", {}, text)));
  }
  return set;
}

function select(title, names, chosen) {
  const box = element("select", { "aria-label": title });
  names.forEach((name, k) => box.append(element("option", { value: k }, name)));
  box.addEventListener("change", () => chosen(Number(box.value)));
  return box;
}

const LINEAR = { seconds: "time", passes: "passes", round: "rounds" };

/** A chart with what can be changed about it. */
class Card {
  constructor(chart) {
    this.chart = chart;
    this.state = { variant: 0, shares: false };
    this.reset();
    this.legend = element("ul", { class: "legend" });
    this.note = element("p", { class: "note" });
    this.plot = element("div", { class: "plot", tabindex: "0", role: "slider", "aria-label": `${chart.title}: read out with the arrow keys` });
    this.readout = element("p", { class: "readout", "aria-hidden": "true" });
    this.node = element("article", { class: `card ${chart.kind}`, id: `chart-${chart.id}` }, element("h3", {}, chart.title), this.note,
      this.controls(), this.legend, this.plot, this.readout, this.table());
    this.listen();
    this.width = 0;
    new ResizeObserver(() => this.resize()).observe(this.plot);
  }

  get shown() {
    const { chart } = this;
    return chart.variants ? { ...chart, ...chart.variants[this.state.variant], title: chart.title } : chart;
  }

  reset() {
    const chart = this.shown;
    this.state.axis = chart.axes ? chart.axes[0].key : null;
    this.state.xlog = chart.axes ? chart.axes[0].log : false;
    this.state.ylog = chart.y ? Boolean(chart.y.log) : false;
    this.cursor = null;
  }

  change(part) {
    Object.assign(this.state, part);
    this.cursor = null;
    this.draw();
  }

  controls() {
    const { chart, state } = this;
    const node = element("div", { class: "controls" });
    if (chart.variants && chart.variants.length > 1) {
      node.append(select(chart.kind === "lines" ? "Score" : "Sub-problem", chart.variants.map((v) => v.name), (variant) => this.change({ variant })));
    }
    if (chart.axes && chart.axes.length > 1) {
      node.append(choices("Horizontal axis", chart.axes.map((a) => [a.key, LINEAR[a.key] || a.label]), state.axis, (axis) => this.change({ axis })));
    }
    const boxes = [];
    if (chart.axes) boxes.push(["log x", state.xlog, (xlog) => this.change({ xlog })]);
    if (chart.kind === "lines" || chart.kind === "histogram") {
      boxes.push(["log y", state.ylog, (ylog) => this.change({ ylog })]);
    }
    if (boxes.length) node.append(toggles("Logarithmic axes", ...boxes));
    if (chart.kind === "matrix") {
      node.append(choices("Cells", [["rows", "rows"], ["shares", "% of class"]], "rows", (v) => this.change({ shares: v === "shares" })));
    }
    return node;
  }

  listen() {
    const { plot } = this;
    const point = (event) => {
      const box = plot.getBoundingClientRect();
      this.cursor = this.reader.nearest(event.clientX - box.left, event.clientY - box.top) || this.cursor;
      this.show(true);
    };
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", () => this.show(document.activeElement === plot));
    plot.addEventListener("focus", () => this.show(true));
    plot.addEventListener("blur", () => this.show(false));
    plot.addEventListener("keydown", (event) => {
      if (!(event.key in STEPS) && !["Home", "End", "PageUp", "PageDown"].includes(event.key)) return;
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      this.cursor = this.reader.move(this.cursor, event.key);
      this.show(true);
    });
  }

  resize() {
    const width = Math.floor(this.plot.clientWidth);
    if (width && width !== this.width) {
      this.width = width;
      this.draw();
    }
  }

  draw() {
    if (!this.width) return;
    const chart = this.shown;
    const { node, H, reader } = DRAW[chart.kind](chart, this.state, this.width);
    this.reader = reader;
    if (this.cursor === null) this.cursor = reader.start();
    this.over = svg("g", { "pointer-events": "none" });
    this.plot.replaceChildren(svg("svg", { viewBox: `0 0 ${this.width} ${H}`, "aria-hidden": "true" }, node, this.over));
    this.note.textContent = chart.note || "";
    this.drawLegend(chart);
    this.show(document.activeElement === this.plot);
    if (this.details.open) this.fill();
  }

  drawLegend(chart) {
    const entries = chart.kind === "plane"
      ? chart.classes.map((c, k) => [`class ${c}`, k, true])
      : chart.series && chart.series.length > 1 && chart.series.length <= 8
        ? chart.series.map((s, k) => [s.name, k, chart.kind === "histogram", s.thin])
        : [];
    for (const level of chart.levels || []) entries.push([level.label, "dashes"]);
    (chart.marks || []).forEach((mark, k) => entries.push([mark.label, k ? "square" : "ring"]));
    this.legend.replaceChildren(...entries.map(([name, k, box, thin]) => {
      const look = thin ? { class: "dashes", style: `border-color: ${colour(k)}` } : { class: box ? "box" : "", style: `background: ${colour(k)}` };
      return element("li", {}, element("i", typeof k === "string" ? { class: k } : look), name);
    }));
    this.legend.hidden = !entries.length;
  }

  show(active) {
    const { nodes, said } = this.reader.show(this.cursor);
    this.over.replaceChildren(...(active ? nodes : []));
    this.readout.replaceChildren(...said.map(([name, value]) => element("span", {}, name ? `${name} ` : "", element("b", {}, value))));
    const [now, of] = this.reader.place(this.cursor);
    this.plot.setAttribute("aria-valuemin", "1");
    this.plot.setAttribute("aria-valuemax", String(Math.max(1, of)));
    this.plot.setAttribute("aria-valuenow", String(now + 1));
    this.plot.setAttribute("aria-valuetext", said.map(([name, value]) => `${name} ${value}`.trim()).join(", "));
  }

  table() {
    this.data = element("div", { class: "data", tabindex: "0", role: "region", "aria-label": `${this.chart.title}: table` });
    this.details = element("details", {}, element("summary", {}, "Table"), this.data);
    this.details.addEventListener("toggle", () => { if (this.details.open) this.fill(); });
    return this.details;
  }

  fill() {
    const { head, rows } = tableOf(this.shown);
    const cells = (tag, row) => row.map((v, k) => element(tag === "th" || k === 0 ? "th" : "td", { scope: tag === "th" ? "col" : "row" }, v));
    this.data.replaceChildren(element("table", {},
      element("caption", { class: "hidden" }, this.chart.title),
      element("thead", {}, element("tr", {}, ...cells("th", head))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row))))));
  }
}

/** The numbers of a chart as text. */
function tableOf(chart) {
  const value = (v) => format(v, 6);
  if (chart.kind === "bars") return { head: ["feature", "weight"], rows: chart.labels.map((l, i) => [l, value(chart.values[i])]) };
  if (chart.kind === "matrix") {
    return { head: ["true \\ decided", ...chart.labels], rows: chart.counts.map((row, i) => [chart.labels[i], ...row.map(value)]) };
  }
  if (chart.kind === "histogram") {
    const name = (i) => (chart.names || {})[i] || `${format(chart.edges[i])} to ${format(chart.edges[i + 1])}`;
    return { head: [chart.x.label, ...chart.series.map((s) => s.name)], rows: chart.edges.slice(1).map((_, i) => [name(i), ...chart.series.map((s) => value(s.counts[i]))]) };
  }
  if (chart.kind === "plane") {
    const { x, y, class: c, support } = chart.points;
    return { head: ["feature 1", "feature 2", "class", "support vector"], rows: some(x.length).map((i) => [value(x[i]), value(y[i]), chart.classes[c[i]], support[i] ? "yes" : "no"]) };
  }
  if (chart.columns) {
    return { head: [...chart.axes.map((a) => a.label), ...chart.series.map((s) => s.name)],
      rows: some(chart.series[0].y.length).map((i) => [...chart.axes.map((a) => value(chart.columns[a.key][i])), ...chart.series.map((s) => value(s.y[i]))]) };
  }
  const all = chart.series.flatMap((s) => s.y.map((_, i) => [s, i]));
  return { head: ["curve", ...chart.axes.map((a) => a.label), chart.y.label],
    rows: some(all.length).map((k) => all[k]).map(([s, i]) => [s.name, ...chart.axes.map((a) => value(s.columns[a.key][i])), value(s.y[i]) + (s.errors && number(s.errors[i]) ? ` ± ${format(s.errors[i], 2)}` : "")]) };
}

/** At most TABLE of 0 … n − 1, evenly, with both ends. */
function some(n) {
  if (n <= TABLE) return [...Array(n).keys()];
  return [...Array(TABLE).keys()].map((k) => Math.round((k * (n - 1)) / (TABLE - 1)));
}

const cards = [];
for (const { title, charts } of JSON.parse(document.getElementById("data").textContent).sections) {
  const grid = element("div", { class: "cards" });
  document.getElementById("charts").append(element("section", {}, element("h2", {}, title), grid));
  for (const chart of charts) {
    cards.push(new Card(chart));
    grid.append(cards[cards.length - 1].node);
  }
}
for (const card of cards) card.resize();
