"use strict";
// Numbers as text, and scales: a linear or logarithmic range laid out on pixels, with its ticks.

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

const raised = (n) => [...String(n)].map((c) => RAISED[c]).join("");

const number = (v) => typeof v === "number" && Number.isFinite(v);

/** A number for people: 12 345.6, 0.0123, 1.2 × 10⁻⁷. */
function format(v, digits = 4) {
  if (!number(v)) return "–";
  if (v === 0) return "0";
  const size = Math.abs(v);
  const sign = v < 0 ? "−" : "";
  if (size < 1e-3 || size >= 1e9) {
    const [part, power] = size.toExponential(Math.min(digits, 3) - 1).split("e");
    return `${sign}${Number(part)} × 10${raised(Number(power))}`;
  }
  if (size >= 1e4) {
    const decimals = Number.isInteger(v) || size >= 1e6 ? 0 : 1;
    const [whole, part] = size.toFixed(decimals).split(".");
    return sign + whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") + (part ? `.${part}` : "");
  }
  return sign + String(Number(size.toPrecision(digits)));
}

/** Ticks as text: all as 10ⁿ where powers of ten reach far. */
function tickTexts(ticks) {
  const powers = ticks.map((t) => Math.log10(Math.abs(t)));
  const pure = ticks.length > 1 && powers.every((p) => Math.abs(p - Math.round(p)) < 1e-9);
  const far = Math.min(...powers) < -3.5 || Math.max(...powers) > 4.5;
  if (pure && far) return powers.map((p) => `10${raised(Math.round(p))}`);
  const small = Math.max(...ticks.map(Math.abs)) < 1 && ticks.every((t) => t === 0 || Math.abs(t) >= 1e-6);
  return ticks.map((t) => (small ? String(Number(t.toPrecision(6))).replace("-", "−") : format(t, 6)));
}

function linearTicks(lo, hi, count) {
  const power = 10 ** Math.floor(Math.log10((hi - lo) / count));
  const step = power * [1, 2, 5, 10].find((s) => s * power >= ((hi - lo) / count) * 0.999);
  const ticks = [];
  for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + step * 1e-9; k++) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(lo, hi, count) {
  const first = Math.ceil(Math.log10(lo) - 1e-9);
  const last = Math.floor(Math.log10(hi) + 1e-9);
  if (last - first < 1) {
    const between = [];
    for (let power = first - 1; power <= last; power++) {
      for (const s of [1, 2, 3, 5]) between.push(s * 10 ** power);
    }
    const inside = between.filter((t) => t >= lo * 0.999 && t <= hi * 1.001);
    return inside.length > 1 ? inside : linearTicks(lo, hi, count).filter((t) => t > 0);
  }
  const step = Math.max(1, Math.ceil((last - first + 1) / count));
  const ticks = [];
  for (let power = last; power >= first; power -= step) ticks.unshift(10 ** power);
  return ticks.map((t) => Number(t.toPrecision(3)));
}

/** Values lo … hi on pixels from … to. */
function scale(lo, hi, from, to, log) {
  const f = log ? Math.log10 : (v) => v;
  if (!(f(hi) > f(lo))) [lo, hi] = log ? [lo / 2, hi * 2] : [lo - 0.5, hi + 0.5];
  const a = f(lo);
  const b = f(hi);
  return {
    lo, hi, log, from, to,
    at: (v) => from + ((f(v) - a) / (b - a)) * (to - from),
    has: (v) => number(v) && (!log || v > 0),
    ticks: (count) => (log ? logTicks : linearTicks)(lo, hi, count),
  };
}

/** The range of numbers, a little wider; of those above zero for a logarithmic scale. */
function range(values, log, pad = 0.04) {
  let lo = Infinity;
  let hi = -Infinity;
  for (const v of values) {
    if (!number(v) || (log && v <= 0)) continue;
    if (v < lo) lo = v;
    if (v > hi) hi = v;
  }
  if (lo > hi) return log ? [0.1, 1] : [0, 1];
  if (log) {
    const by = Math.min((hi / lo) ** pad, 2.5);
    return [lo / by, hi * by];
  }
  return [lo - pad * (hi - lo), hi + pad * (hi - lo)];
}
