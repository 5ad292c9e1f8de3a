// The points of a sweep: their columns, the scales of axes, and which points the filter keeps.
"use strict";

const FORMS = { time: kernbench.time, bytes: kernbench.bytes, bandwidth: kernbench.bandwidth, number: plain };
const UNITS = {
  ps: 1e-3, ns: 1, us: 1e3, ms: 1e6, s: 1e9, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30,
  TiB: 2 ** 40, "kB/s": 1e-6, "MB/s": 1e-3, "GB/s": 1, "TB/s": 1e3, "B/ns": 1, GHz: 1, MHz: 1e-3,
};
const natural = new Intl.Collator("en", { numeric: true });

function plain(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return Number(value.toPrecision(4)).toExponential();
  return value.toLocaleString("en", { maximumSignificantDigits: 6 });
}

// Texts that came once each, and which of them each point has.
function texts({ texts: joined, codes }) {
  return { known: new TextDecoder().decode(joined).split("\0"), codes };
}

class Column {
  constructor(data) {
    Object.assign(this, data);
    this.given = new Map();
    if (data.texts) {
      Object.assign(this, texts(data.texts));
      if (this.numbers) this.numbers.forEach((value, i) => this.given.set(value, this.known[this.codes[i]]));
      else {
        const sorted = this.known.map((_, code) => code).sort((a, b) => natural.compare(this.known[a], this.known[b]));
        this.sorted = sorted.filter((code) => this.known[code] !== "");
        this.rank = new Float64Array(this.known.length).fill(NaN);
        this.sorted.forEach((code, rank) => { this.rank[code] = rank; });
      }
    }
  }
  // What is drawn and sorted by: the number, or the rank of the text; NaN where there is none.
  value(i) { return this.numbers ? this.numbers[i] : this.rank[this.codes[i]]; }
  text(i) { return this.known ? this.known[this.codes[i]] || "–" : this.said(this.numbers[i]); }
  // A value as it was given, where it was; else by its unit.
  said(value) {
    if (this.given.has(value)) return this.given.get(value);
    if (Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    return (FORMS[this.form] || plain)(value);
  }
}

// Where the values of a column stand on an axis, from 0 to 1.
kernbench.Scale = class {
  constructor(column, count, log) {
    this.column = column;
    let [low, high] = [Infinity, -Infinity];
    const distinct = new Set();
    for (let i = 0; i < count; i++) {
      const value = column.value(i);
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
      if (distinct.size <= 40) distinct.add(value);
    }
    Object.assign(this, { low, high, empty: low > high, log: Boolean(log) && low > 0 && column.numbers !== undefined });
    this.values = distinct.size <= 40 ? [...distinct].sort((a, b) => a - b) : null;
    this.at = new Float32Array(count);
    for (let i = 0; i < count; i++) this.at[i] = this.of(column.value(i));
  }
  of(value) {
    if (!Number.isFinite(value)) return NaN;
    const { low, high } = this;
    if (low === high) return 0.5;
    return this.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  }
  // The value at a place, the other way round.
  back(at) {
    const { low, high } = this;
    return this.log ? low * (high / low) ** at : low + (high - low) * at;
  }
  say(at) {
    const { column, values } = this;
    const value = values ? values.reduce((a, b) => (Math.abs(this.of(b) - at) < Math.abs(this.of(a) - at) ? b : a), values[0]) : this.back(at);
    return this.label(value);
  }
  label(value) {
    const { column } = this;
    if (!column.numbers) return column.known[column.sorted[Math.round(value)]] || "";
    return column.said(value);
  }
  // At most `most` marks: of a parameter all values where they are few, else round ones.
  ticks(most) {
    if (this.empty) return [];
    const few = this.values && this.values.length <= (this.column.role === "parameter" ? 2 * most : 2);
    const all = few ? this.values : this.round(most);
    const shown = [];
    for (const value of all) {
      const at = this.of(value);
      if (!shown.length || at - shown[shown.length - 1][0] >= 0.7 / most) shown.push([at, this.label(value)]);
    }
    return shown;
  }
  round(most) {
    const { low, high } = this;
    const found = [];
    if (!this.log || high / low < 20) {
      const step = this.column.form === "bytes" ? 2 ** Math.ceil(Math.log2((high - low) / most)) : kernbench.step(high - low, most);
      if (!(step > 0)) return [low];
      for (let n = Math.ceil(low / step); n * step <= high && found.length <= most; n++) found.push(n * step);
      return found;
    }
    const decades = Math.max(1, Math.ceil(Math.log10(high / low) / most));
    for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power += decades) found.push(10 ** power);
    return found;
  }
};

// Short names of parameters: as many of their last parts as tell them apart from all columns.
function shortened(columns) {
  for (const column of columns) {
    if (column.role !== "parameter") {
      column.short = column.name;
      continue;
    }
    const parts = column.name.split(".");
    let short = parts.pop();
    while (parts.length && columns.some((each) => each !== column && (each.name === short || each.name.endsWith(`.${short}`)))) short = `${parts.pop()}.${short}`;
    column.short = short;
  }
}

kernbench.Points = class {
  constructor(data, run) {
    this.state = run;
    this.count = data.count;
    this.columns = data.columns.map((each) => new Column(each));
    shortened(this.columns);
    this.index = data.index;
    this.front = data.front;
    this.ranked = data.ranked;
    for (const name of ["key", "status", "error", "warning", "op_log", "fidelity", "again", "show", "link"]) {
      const { known, codes } = texts(data[name]);
      this[name] = (i) => known[codes[i]];
      this[`${name}s`] = known;
    }
    this.kept = new Uint8Array(this.count).fill(1);
    this.brushes = new Map(); // by column: [scale, from, to]
    this.words = "";
    this.only = "";
  }
  get keptCount() {
    let sum = 0;
    for (let i = 0; i < this.count; i++) sum += this.kept[i];
    return sum;
  }
  // What is drawn: parameters and objectives; figures where there are neither.
  drawn() {
    const asked = this.columns.filter((each) => each.role !== "figure");
    return asked.length ? asked : this.columns;
  }
  // The point that is best in the first objective, of those on the front; null where none is ranked.
  best() {
    const [first] = this.objectives();
    const sign = first && first.best === "greatest" ? -1 : 1;
    const found = [...this.ranked.keys()].filter((i) => this.front[i] && (!first || Number.isFinite(first.value(i))));
    return found.reduce((best, i) => (best === null || (first && sign * first.value(i) < sign * first.value(best)) ? i : best), null);
  }
  // Whether a column has two values or more.
  varies(column) {
    const scale = new kernbench.Scale(column, this.count);
    return scale.low < scale.high;
  }
  parameters() { return this.columns.filter((each) => each.role === "parameter"); }
  objectives() { return this.columns.filter((each) => each.role === "objective"); }
  brush(column, scale, from, to) {
    if (from <= 0 && to >= 1) this.brushes.delete(column);
    else this.brushes.set(column, [scale, from, to]);
    this.filter();
  }
  // Keep what is in all brushes and has all words; return what is wrong with the words.
  filter() {
    const { kept, count } = this;
    kept.fill(1);
    for (const [scale, from, to] of this.brushes.values()) {
      for (let i = 0; i < count; i++) if (!(scale.at[i] >= from - 1e-6 && scale.at[i] <= to + 1e-6)) kept[i] = 0;
    }
    const state = { failed: (i) => this.status(i) !== "ok", ok: (i) => this.status(i) === "ok", front: (i) => this.front[i] }[this.only];
    if (state) for (let i = 0; i < count; i++) if (!state(i)) kept[i] = 0;
    const wrong = [];
    for (const word of this.words.split(/\s+/).filter(Boolean)) {
      const passes = this.passes(word);
      if (typeof passes === "string") wrong.push(passes);
      else for (let i = 0; i < count; i++) if (kept[i] && !passes(i)) kept[i] = 0;
    }
    this.wrong = wrong.join(" ");
    this.state.set("kept", kept);
  }
  // A test of points: `name=value`, `name<value` and their like, or a text that stands anywhere; a sentence for what is neither.
  passes(word) {
    const [, name, sign, given] = word.match(/^([^<>=!]+)(<=|>=|!=|=|<|>)(.*)$/) || [];
    if (!sign) {
      const part = word.toLowerCase();
      const shown = this.columns.filter((each) => each.known);
      return (i) => [this.key(i), this.status(i), this.error(i), this.warning(i), this.fidelity(i), ...shown.map((each) => each.text(i))].some((text) => text.toLowerCase().includes(part));
    }
    const column = this.columns.find((each) => each.name === name) || this.columns.find((each) => each.short === name);
    if (!column) return `No column is called ${name}.`;
    const [, digits, unit] = given.match(/^([-+]?[\d.]+(?:e[-+]?\d+)?)(.*)$/i) || [];
    const number = digits === undefined || (unit && !(unit in UNITS)) ? NaN : Number(digits) * (unit ? UNITS[unit] : 1);
    const close = (i) => column.text(i).replace(/\s/g, "") === given || (column.numbers && Math.abs(column.value(i) - number) <= 1e-9 * Math.abs(number));
    if (sign === "=") return close;
    if (sign === "!=") return (i) => !close(i);
    if (!column.numbers || Number.isNaN(number)) return `${word} compares no numbers.`;
    const tests = { "<": (a) => a < number, ">": (a) => a > number, "<=": (a) => a <= number, ">=": (a) => a >= number };
    return (i) => tests[sign](column.value(i));
  }
};
