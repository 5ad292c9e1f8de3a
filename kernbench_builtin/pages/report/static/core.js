// What sections share: their registration, the data of each run, and what was chosen in it.
"use strict";

const made = new Map();
const runs = new Map();

// The state of one run: what is chosen in one section is shown in the others.
class Run {
  constructor(number) {
    this.number = number;
    this.window = null; // [from, to] in ns, null for the whole run
    this.place = null; // the chosen node or wire
    this.profile = null; // how busy everything was together: [from, to, share of the most]
    this.heard = [];
  }
  on(what, listener) {
    this.heard.push([what, listener]);
  }
  set(what, value, source) {
    this[what] = value;
    for (const [name, listener] of this.heard) if (name === what) listener(value, source);
  }
}

const ARRAYS = {
  int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, float32: Float32Array, float64: Float64Array,
};

async function unpacked(found) {
  const Type = ARRAYS[found.$];
  if (found.v) return Type.from(found.v);
  const stream = new Blob([bytesOf(found.z)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const size = Type.BYTES_PER_ELEMENT;
  return size === 1 ? new Type(planes.buffer) : new Type(joined(planes, found.n, size).buffer);
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Put the bytes of numbers, which came plane by plane, together again.
function joined(planes, count, size) {
  if (size === 2) {
    const made = new Uint16Array(count);
    for (let i = 0; i < count; i++) made[i] = planes[i] | (planes[count + i] << 8);
    return made;
  }
  if (size === 4) {
    const made = new Uint32Array(count);
    const [a, b, c] = [count, 2 * count, 3 * count];
    for (let i = 0; i < count; i++) made[i] = planes[i] | (planes[a + i] << 8) | (planes[b + i] << 16) | (planes[c + i] << 24);
    return made;
  }
  const made = new Uint8Array(planes.length);
  for (let plane = 0; plane < size; plane++) for (let i = 0, at = plane; i < count; i++, at += size) made[at] = planes[plane * count + i];
  return made;
}

// Replace packed arrays, wherever they stand, by typed arrays.
async function unpack(value) {
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$ === "string") return unpacked(value);
  const waiting = [];
  for (const key of Object.keys(value)) {
    const each = value[key];
    if (each !== null && typeof each === "object") waiting.push(unpack(each).then((got) => { value[key] = got; }));
  }
  await Promise.all(waiting);
  return value;
}

window.kernbench = {
  // A section's script says what to do with each run: draw(element, data, run).
  section(name, draw) {
    made.set(name, draw);
  },
  // What a section's script finds in place of this where two sections say the same name: theirs is another.
  renamed(said, name) {
    return Object.assign(Object.create(this), { section: (own, draw) => this.section(own === said ? name : own, draw) });
  },
  // Where data comes from: here, from the page itself. A server may put something else in its place.
  async load(section, run) {
    const found = document.querySelector(`script[data-of="${section}"][data-run="${run}"]`);
    return found === null ? null : JSON.parse(found.textContent);
  },
  // How long (ns) the axes of whole runs are: as long as the longest of several runs, and at least as the run itself.
  scale(total) {
    return Math.max(total, Number(document.querySelector("main").dataset.scale) || 0);
  },
  run(number) {
    if (!runs.has(number)) runs.set(number, new Run(number));
    return runs.get(number);
  },
  async start() {
    for (const article of document.querySelectorAll("article.run")) {
      const { section, run } = article.dataset;
      const draw = made.get(section);
      if (draw === undefined) continue;
      try {
        draw(article, await unpack(await kernbench.load(section, Number(run))), kernbench.run(Number(run)));
      } catch (error) {
        console.error(error);
        article.append(kernbench.make("p", { class: "warn", role: "alert" }, `This section cannot be drawn: ${error.message}.`));
      }
    }
    runs.forEach(kernbench.remember);
    kernbench.rememberScroll();
    document.documentElement.dataset.ready = "yes";
    const asked = location.hash && document.getElementById(location.hash.slice(1));
    if (asked) asked.scrollIntoView(); // what was drawn above it has moved it
  },
  // Have each cell of a table say below which head it stands, for narrow pages, where rows stand one cell below the other.
  stacked(table) {
    const heads = table.tHead === null ? [] : Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent);
    table.setAttribute("role", "table");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      Array.from(row.cells, (cell, i) => {
        cell.setAttribute("role", cell.tagName === "TH" ? "columnheader" : "cell");
        if (cell.tagName === "TD" && heads[i]) cell.dataset.head = heads[i];
      });
    }
    return table;
  },
  // Make an element: its name with classes, attributes, and what is in it; texts stay texts.
  make(name, attributes = {}, ...inside) {
    const svg = ["svg", "g", "rect", "path", "text", "line", "polyline", "title"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === false || value === null || value === undefined) continue;
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...inside);
    return made;
  },
};
