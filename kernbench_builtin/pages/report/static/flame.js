// The flame of lines: what kernels spent their time at, as bars below the bars that they are a part of, by time.
"use strict";

const { make } = kernbench;
// Narrower parts, of the whole, are drawn as one.
const LEAST = 0.0012;
const DEEPEST = 24;

class Flame {
  constructor(element, tree, tick, choose) {
    Object.assign(this, { element, tree, tick, choose, window: [0, 0], path: [], keys: [], drawn: new Map() });
    this.bars = make("div", { class: "bars", role: "tree", "aria-label": "Time of kernels, by launch and line" });
    this.told = make("output", { class: "small" });
    this.by = make("select", {}, ...[["launch", "launch"], ["kernel", "kernel"], ["program", "program"]].map(([value, name]) => make("option", { value }, name)));
    if (tree.launches.length > 8) this.by.value = "kernel";
    this.out = make("button", { type: "button", onclick: () => this.zoom(this.at.up || this.root) }, "out");
    this.by.addEventListener("change", () => { this.keys = []; this.sum(); });
    this.element.append(make("div", { class: "bar" }, make("label", {}, "by ", this.by), this.out), this.bars, this.told);
    this.bars.addEventListener("keydown", (event) => this.key(event));
  }
  // Take the time of a window in ns.
  show(from, to) {
    this.window = [from, to];
    this.sum();
  }
  sum() {
    this.root = this.tree.sum(this.window[0] / this.tick, this.window[1] / this.tick, this.by.value);
    this.at = this.root;
    for (const key of this.keys) { // stay where one was, as far as it is there
      const found = this.at.below.get(key);
      if (found === undefined) break;
      this.at = found;
    }
    this.draw();
  }
  // Show a part as wide as all; what it is a part of stays above it.
  zoom(to) {
    this.at = to;
    this.keys = [];
    for (let each = to; each.up; each = each.up) this.keys.unshift(each.key);
    this.draw();
    this.focus(to);
  }
  draw() {
    const focused = this.bars.contains(document.activeElement);
    this.drawn = new Map();
    const rows = [];
    const put = (at, left, width, depth) => {
      if (width < LEAST || depth >= DEEPEST) return;
      (rows[depth] ||= []).push(this.bar(at, left, width, depth));
      let x = left;
      const narrow = at.parts.filter((part) => (width * part.total) / at.total < LEAST); // the last: they stand by their time
      for (const part of at.parts.slice(0, at.parts.length - narrow.length)) {
        const wide = (width * part.total) / at.total;
        put(part, x, wide, depth + 1);
        x += wide;
      }
      const rest = narrow.reduce((sum, part) => sum + part.total, 0);
      if ((width * rest) / at.total >= LEAST) (rows[depth + 1] ||= []).push(this.more(narrow.length, rest, x, (width * rest) / at.total));
    };
    const above = [];
    for (let each = this.at.up; each; each = each.up) above.unshift(each);
    above.forEach((each, depth) => { rows[depth] = [this.bar(each, 0, 1, depth)]; });
    put(this.at, 0, 1, above.length);
    this.bars.replaceChildren(...rows.map((row) => make("div", { class: "level", role: "presentation" }, ...row)));
    this.out.disabled = this.at === this.root;
    this.tell(this.at);
    const target = this.drawn.get(this.at);
    if (target) target.tabIndex = 0;
    if (focused) this.focus(this.at);
  }
  bar(at, left, width, depth) {
    const colour = at.kind === "line" ? kernbench.lineColour(this.tree.data, at.line) : null;
    const element = make("button", {
      type: "button", class: `${at.kind}${depth < this.keys.length ? " above" : ""}`, role: "treeitem", tabindex: "-1",
      "aria-level": String(depth + 1), "aria-label": this.words(at), title: this.words(at),
    }, at.label);
    element.style.left = `${100 * left}%`;
    element.style.width = `${100 * width}%`;
    if (colour) { element.style.background = colour.ground; element.style.color = colour.ink; }
    element.addEventListener("click", () => this.press(at));
    element.addEventListener("pointerenter", () => this.tell(at));
    element.addEventListener("focus", () => this.tell(at));
    this.drawn.set(at, element);
    return element;
  }
  // What stands for parts that are too narrow, where there is room for all of them together.
  more(count, total, left, width) {
    const told = `${count.toLocaleString("en")} more, ${kernbench.time(total * this.tick)} together`;
    const element = make("div", { class: "more", title: told }, told);
    element.style.left = `${100 * left}%`;
    element.style.width = `${100 * width}%`;
    return element;
  }
  // A click shows a part alone, and lights the spans of its line; a second one goes back.
  press(at) {
    const again = at === this.at && at.up !== null;
    this.choose(again || at.kind !== "line" ? -1 : at.line);
    this.zoom(again ? at.up : at);
  }
  words(at) {
    const all = this.root.total || 1;
    const { lines } = this.tree.data;
    const where = at.kind === "line" ? `${lines[at.line].file.split("/").pop()}:${lines[at.line].number}: ` : "";
    const waits = at.waits ? `, ${at.waits.toLocaleString("en")} ${at.waits === 1 ? "op" : "ops"}` : "";
    const own = at.parts.length && at.own > 0.0005 * all && at.kind !== "all" ? `, ${kernbench.time(at.own * this.tick)} of it in none of the parts below` : "";
    return `${where}${at.label}, ${kernbench.time(at.total * this.tick)}, ${kernbench.share(at.total / all)}${waits}${own}`;
  }
  tell(at) {
    this.told.textContent = this.root.total > 0 ? this.words(at) : "Nothing is known of a kernel in this window.";
  }
  focus(at) {
    const found = this.drawn.get(at);
    if (found === undefined) return;
    for (const each of this.drawn.values()) each.tabIndex = -1;
    found.tabIndex = 0;
    found.focus({ preventScroll: true });
    this.now = at;
  }
  // Up to what it is a part of, down to its largest part, aside to those of the same row.
  key(event) {
    const at = [...this.drawn].find(([, each]) => each === document.activeElement)?.[0];
    if (at === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = [...this.drawn.get(at).parentElement.children];
    const aside = (by) => {
      const next = row[row.indexOf(this.drawn.get(at)) + by];
      return [...this.drawn].find(([, each]) => each === next)?.[0];
    };
    const acts = {
      ArrowUp: () => at.up, ArrowDown: () => at.parts.find((each) => this.drawn.has(each)),
      ArrowLeft: () => aside(-1), ArrowRight: () => aside(1),
    };
    if (event.key === "Escape") { this.choose(-1); this.zoom(this.root); }
    else if (event.key in acts) { const next = acts[event.key](); if (next) this.focus(next); }
    else return;
    event.preventDefault();
  }
}

// Show the time of kernel lines in an element; choose(line) is called with a line to be lit, -1 for none.
kernbench.flame = (element, data, spans, choose) => new Flame(element, new kernbench.FlameTree(data, spans), spans.tick, choose);
