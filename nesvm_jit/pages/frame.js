// What all charts share. A chart is drawn into an SVG of a given width and has a reader of its values.
//
// A reader has start(), the cursor at first; nearest(x, y), that under the pointer; move(cursor, key),
// the next one; show(cursor), nodes to draw over the chart and what to say as [name, value] pairs;
// and place(cursor), its number and how many there are.

const SVG = document.createElement("template");
SVG.innerHTML = "<svg></svg>";
const SPACE = SVG.content.firstChild.namespaceURI; // so that no address is in this file

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.map((c) => (typeof c === "string" ? document.createTextNode(c) : c)));
  return node;
}

const colour = (k) => `var(--c${k % 8})`;
const line = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });
const label = (x, y, text, anchor = "start", kind = "") =>
  svg("text", { x, y, "text-anchor": anchor, class: kind }, text);
const wide = (text) => 7 * text.length;
const clamp = (v, lo, hi) => Math.max(lo, Math.min(hi, v));

const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };

/** The next of 0 … n − 1 by a key. */
function along(k, n, key) {
  if (key === "Home") return 0;
  if (key === "End") return n - 1;
  const page = Math.max(1, Math.round(n / 10));
  const by = { ...STEPS, PageUp: -page, PageDown: page }[key] || 0;
  return clamp(k + by, 0, n - 1);
}

/** Labels of ticks along the x axis, without those that would overlap or be cut. */
function ticksBelow(node, x, W, top, bottom) {
  const ticks = x.ticks(Math.max(3, Math.floor((x.to - x.from) / 60)));
  const texts = tickTexts(ticks);
  let free = -Infinity;
  ticks.forEach((t, k) => {
    const at = x.at(t);
    const half = wide(texts[k]) / 2;
    node.append(line(at, top, at, bottom, "grid"));
    if (at - half < free || at + half > W) return;
    node.append(label(at, bottom + 17, texts[k], "middle"));
    free = at + half + 8;
  });
}

/** Axes, grid and names around a plot; returns the node, both scales and the box of the data, which
 * leaves `strip` pixels above the x axis. */
function frame(W, H, xs, ys, names, strip = 0) {
  const floor = H - 42;
  const rows = Math.max(3, Math.floor(H / 55));
  const ticks = scale(...ys.range, 0, 1, ys.log).ticks(rows);
  const texts = tickTexts(ticks);
  const box = { left: 26 + Math.max(...texts.map(wide), 14), right: W - 14, top: 14, bottom: floor - strip, floor };
  const x = scale(...xs.range, box.left, box.right, xs.log);
  const y = scale(...ys.range, box.bottom, box.top, ys.log);
  const node = svg("g");
  ticks.forEach((t, k) => {
    const at = y.at(t);
    if (at < box.top - 1 || at > box.bottom + 1) return;
    node.append(line(box.left, at, box.right, at, "grid"), label(box.left - 6, at + 4, texts[k], "end"));
  });
  ticksBelow(node, x, W, box.top, floor);
  node.append(
    line(box.left, floor, box.right, floor, "frame"),
    label((box.left + box.right) / 2, H - 6, names.x, "middle", "axis"),
  );
  const middle = (box.top + box.bottom) / 2;
  const upright = label(11, middle, names.y, "middle", "axis");
  upright.setAttribute("transform", `rotate(-90 11 ${middle})`);
  node.append(upright);
  return { node, x, y, box };
}
