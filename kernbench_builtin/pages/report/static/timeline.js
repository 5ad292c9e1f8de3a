// The timeline: which rows there are, what is chosen, mouse and keys; the window is that of the whole page.
"use strict";

const { make } = kernbench;
const TOP = 20;
const LANE = 14;
const FLOWS = ["a kernel line to its op", "a request", "an answer", "a send to its receipt"];

class Timeline {
  constructor(element, data, run) {
    Object.assign(this, { element, data, run, span: null, segment: null, line: -1, row: 0 });
    this.total = data.total || 1;
    this.scale = kernbench.scale(this.total);
    data.below = data.tracks.map(() => []);
    this.tops = [];
    data.tracks.forEach(([, parent], track) => (parent < 0 ? this.tops : data.below[parent]).push(track));
    data.lit = (row) => this.litTimes(row);
    this.litOf = new Map();
    this.spans = new kernbench.Spans(data);
    this.spans.lit = data.path.length ? this.spans.light(data.path) : null;
    kernbench.colourLines(data, this.spans);
    this.lanes = this.countLanes();
    this.layPath();
    this.closed = new Set(data.tracks.keys());
    this.pe = data.opens ? this.peOf(data.opens.pe) : -1;
    this.openSome();
    this.canvas = element.querySelector("canvas");
    this.box = element.querySelector(".rows");
    this.painter = new kernbench.Painter(this.canvas, this.spans, data);
    this.source = kernbench.source(element.querySelector(".source"), data, this.spans, (line) => this.chooseLine(line));
    const icicle = element.querySelector(".icicle");
    this.flame = icicle === null ? null : kernbench.flame(icicle, data, this.spans, (line) => this.light(line));
    this.detail = element.querySelector(".span-detail");
    this.lay();
    this.showPe();
    kernbench.brush(element.querySelector(".window"), run, this.total, run.profile || this.profile());
    this.listen();
    this.tellLongest();
    this.tellLines();
  }
  // Have the PE that is open in sight: at the top, below the row before it, where it does not fit there anyway.
  showPe() {
    const at = this.rows.findIndex((row) => row.track === this.pe && !row.path);
    if (at < 0) return;
    const behind = this.rows.slice(at + 1).find((row) => row.depth <= this.rows[at].depth) || { y: Infinity };
    if (behind.y + this.top > this.canvasHeight) this.box.scrollTop = this.rows[at - 1].y;
  }
  // The PE that is open says where it is, which has scrolled away, where there is room.
  nameOf(track) {
    return track === this.pe && this.left() > 180 ? this.where(track).replaceAll(",", "") : this.data.tracks[track][0];
  }
  // At first, what took longest on the critical path of the launch that is open is told.
  tellLongest() {
    const { path, opens } = this.data;
    const long = (each) => each.to_ns - each.from_ns;
    const longest = path.filter((each) => opens && each.launch === opens.launch + 1).reduce((most, each) => (most === null || long(each) > long(most) ? each : most), null);
    if (longest !== null) this.detail.replaceChildren(...this.segmentTold(longest, "Longest on the critical path"), ...this.detail.childNodes);
  }
  // How busy all parts together were over time, where the drawing of the machine does not say it.
  profile() {
    const { data } = this;
    const places = this.tops.filter((track) => data.tracks[track][2] === "place");
    const profile = (places.length ? places : this.tops).map((track) => this.painter.busy(track));
    const all = Array.from(profile[0] || [0], (_, b) => profile.reduce((sum, each) => sum + each[b], 0));
    const most = all.reduce((high, each) => Math.max(high, each), 0) || 1;
    const at = (b) => (b * this.total) / all.length;
    return all.map((sum, b) => [at(b), at(b + 1), sum / most]);
  }
  countLanes() {
    const lanes = new Uint8Array(this.data.tracks.length).fill(1);
    for (let i = 0; i < this.spans.count; i++) {
      const track = this.spans.track[i];
      if (this.spans.lane[i] >= lanes[track]) lanes[track] = this.spans.lane[i] + 1;
    }
    return lanes;
  }
  // Launches that run at once have their critical paths below each other.
  layPath() {
    const free = [];
    const lane = new Map();
    for (const segment of this.data.path) {
      if (!lane.has(segment.launch)) {
        let found = free.findIndex((end) => end <= segment.from_ns);
        if (found < 0) found = free.length < 4 ? free.push(0) - 1 : 3;
        lane.set(segment.launch, found);
      }
      segment.lane = lane.get(segment.launch);
      free[segment.lane] = Math.max(free[segment.lane], segment.to_ns);
    }
    this.pathLanes = Math.max(1, free.length);
  }
  // Open places from the top as long as all that shows fits into some forty rows; wires stay closed.
  openSome() {
    if (this.pe >= 0) { // that PE, and what it is in
      for (let track = this.pe; track >= 0; track = this.data.tracks[track][1]) this.closed.delete(track);
      return;
    }
    let open = [...this.tops];
    let rows = open.length;
    while (open.length) {
      const inner = open.filter((track) => this.data.below[track].length && !/wires/.test(this.data.tracks[track][0]));
      const more = inner.reduce((sum, track) => sum + this.data.below[track].length, 0);
      if (!inner.length || rows + more > 44) {
        for (const track of inner) if (rows + this.data.below[track].length <= 44) { rows += this.data.below[track].length; this.closed.delete(track); }
        return;
      }
      rows += more;
      for (const track of inner) this.closed.delete(track);
      open = inner.flatMap((track) => this.data.below[track]);
    }
  }
  // The track of a PE that ran a kernel; -1 where there is none.
  peOf(name) {
    const kernel = this.data.tracks.find(([, , kind, node]) => kind === "kernel" && node === name);
    return kernel === undefined ? -1 : kernel[1];
  }
  // List the rows that are open, with their places; the critical path stands above them and does not scroll.
  lay() {
    this.rows = [];
    let y = 0;
    const add = (row) => { row.y = y; y += row.height; this.rows.push(row); };
    this.top = TOP;
    if (this.data.path.length) {
      const height = 4 + 20 * this.pathLanes;
      this.rows.push({ path: true, name: "critical path", depth: 0, height, track: -1, node: "", y: 0 });
      this.top += height;
    }
    const visit = (track, depth) => {
      const [, , kind, node] = this.data.tracks[track];
      const name = this.nameOf(track);
      const opens = this.data.below[track].length > 0;
      const closed = opens && this.closed.has(track);
      const lanes = closed || kind === "place" ? 1 : this.lanes[track];
      add({ track, name, node, depth, opens, closed: closed && this.spans.first[track] === this.spans.first[track + 1], shut: closed, height: 5 + Math.max(1, lanes) * LANE });
      if (opens && !closed) for (const below of this.data.below[track]) visit(below, depth + 1);
    };
    for (const track of this.tops) visit(track, 0);
    this.rowOf = new Map(this.rows.map((row) => [row.track, row]));
    this.row = Math.min(this.row, this.rows.length - 1);
    const height = Math.min(y + this.top, Math.max(220, Math.round(innerHeight * 0.6)), 540);
    this.box.style.height = `${height + 2}px`;
    this.canvas.style.height = `${height}px`; // at once, for where rows scroll to
    this.element.querySelector(".spacer").style.height = `${Math.max(0, y + this.top - height)}px`;
    this.canvasHeight = height;
    this.draw();
  }
  // When the critical path was in a unit or wire, or in anything of a part that is closed.
  litTimes({ track, node, shut, name }) {
    const key = `${track}${shut}`;
    if (!this.litOf.has(key)) {
      const below = (place) => place === node || place.startsWith(`${node}.`) || place.startsWith(`${node}#`);
      const wires = /^wires/.test(name);
      const here = ({ place }) => place === node || (shut && (wires
        ? place.includes("->") && place.split("->").every(below) : place.split("->").some(below)))
        || (!shut && !wires && place.split("->").includes(node));
      this.litOf.set(key, node === "" ? [] : this.data.path.filter(here).map(({ from_ns, to_ns }) => [from_ns, to_ns]));
    }
    return this.litOf.get(key);
  }
  view() {
    const [from, to] = this.run.window || [0, this.scale];
    this.rows.forEach((row, i) => { row.chosen = i === this.row && document.activeElement === this.canvas; });
    const lit = this.element.querySelector(".lit");
    return {
      from, to, width: this.width(), height: this.canvasHeight, top: this.top, scroll: this.box.scrollTop, rows: this.rows, rowOf: this.rowOf,
      span: this.span, segment: this.segment, line: this.line, lit: lit !== null && lit.checked, arrows: this.element.querySelector(".arrows").checked,
    };
  }
  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.painter.paint(this.view()); });
  }
  listen() {
    const { run, canvas, element } = this;
    run.on("window", () => { this.draw(); this.tellLines(); });
    this.box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
    window.addEventListener("kernbench-theme", () => this.draw());
    for (const each of element.querySelectorAll(".lit, .arrows")) each.addEventListener("change", () => this.draw());
    element.querySelector(".zoom-in").addEventListener("click", () => this.zoom(0.5));
    element.querySelector(".zoom-out").addEventListener("click", () => this.zoom(2));
    element.querySelector(".all").addEventListener("click", (event) => this.openAll(event.target));
    canvas.addEventListener("focus", () => this.draw());
    canvas.addEventListener("blur", () => this.draw());
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("dblclick", (event) => { if (this.hit(event).span >= 0) this.zoomTo(this.hit(event).span); });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(event.offsetX));
    }, { passive: false });
  }
  openAll(button) {
    const open = button.getAttribute("aria-expanded") === "true";
    this.closed = new Set(open ? this.data.tracks.keys() : []);
    if (open) this.openSome();
    button.setAttribute("aria-expanded", String(!open));
    button.textContent = open ? "open all" : "close all";
    this.lay();
  }
  width() { return Math.max(240, this.box.clientWidth); }
  left() { return kernbench.labelWidth(this.width()); }
  time(x) {
    const [from, to] = this.run.window || [0, this.scale];
    return from + ((x - this.left()) / (this.width() - this.left() - 8)) * (to - from);
  }
  // Show a window, kept inside of the run.
  show(from, to) {
    const length = Math.min(this.total, Math.max(to - from, this.total / 1e6));
    const begin = Math.max(0, Math.min(from, this.total - length));
    this.run.set("window", length >= this.total ? null : [begin, begin + length]);
  }
  zoom(factor, around) {
    const [from, to] = this.run.window || [0, this.total];
    const middle = around === undefined ? (from + to) / 2 : around;
    this.show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }
  zoomTo(span) {
    const from = this.spans.from(span);
    const to = this.spans.to(span);
    const room = Math.max((to - from) * 0.25, this.total * 1e-6);
    this.show(from - room, to + room);
  }
  // What is under the mouse: a row, and on it a span or a segment of the critical path.
  hit(event) {
    const onPath = event.offsetY < this.top;
    const y = onPath ? event.offsetY - TOP : event.offsetY - this.top + this.box.scrollTop;
    const index = this.rows.findIndex((row) => onPath === Boolean(row.path) && y >= row.y && y < row.y + row.height);
    const row = this.rows[index];
    const time = this.time(event.offsetX);
    if (row === undefined || event.offsetY < TOP || event.offsetX < this.left()) return { index, row, span: -1, segment: -1 };
    if (row.path) {
      const pathLane = Math.floor((y - row.y - 2) / 20);
      return { index, row, span: -1, segment: this.data.path.findIndex((each) => each.lane === pathLane && each.from_ns <= time && time < each.to_ns) };
    }
    const lane = Math.max(0, Math.floor((y - row.y - 2) / LANE));
    const slack = (3 * (this.time(1) - this.time(0))) / this.spans.tick;
    return { index, row, segment: -1, span: this.spans.at(row.track, time / this.spans.tick, slack, this.lanes[row.track] > 1 ? lane : null) };
  }
  press(event) {
    const found = this.hit(event);
    if (found.row === undefined) return;
    this.row = found.index;
    this.canvas.focus({ preventScroll: true });
    if (event.offsetX < this.left()) {
      if (found.row.opens) this.toggle(found.row);
      return;
    }
    const window = this.run.window;
    const start = this.time(event.offsetX);
    let moved = false;
    this.canvas.setPointerCapture(event.pointerId);
    const move = (now) => {
      if (Math.abs(now.clientX - event.clientX) > 3) moved = true;
      if (!moved || window === null) return;
      const scale = (window[1] - window[0]) / (this.width() - this.left() - 8);
      const shift = (now.clientX - event.clientX) * scale;
      this.show(window[0] - shift, window[1] - shift);
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", (ended) => {
      this.canvas.removeEventListener("pointermove", move);
      if (moved && window === null) this.show(Math.min(start, this.time(ended.offsetX)), Math.max(start, this.time(ended.offsetX)));
      else if (!moved && found.segment >= 0) this.chooseSegment(found.segment);
      else if (!moved) this.choose(found.span >= 0 ? found.span : null);
    }, { once: true });
  }
  toggle(row) {
    if (this.closed.has(row.track)) this.closed.delete(row.track); else this.closed.add(row.track);
    this.lay();
  }
  key(event) {
    const row = this.rows[this.row];
    const [from, to] = this.run.window || [0, this.total];
    const step = (to - from) / 10;
    const acts = {
      ArrowUp: () => this.go(-1), ArrowDown: () => this.go(1),
      ArrowLeft: () => (event.shiftKey ? this.show(from - step, to - step) : this.next(-1)),
      ArrowRight: () => (event.shiftKey ? this.show(from + step, to + step) : this.next(1)),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      0: () => this.run.set("window", null), Home: () => this.run.set("window", null),
      Enter: () => (row.opens ? this.toggle(row) : this.span !== null && this.zoomTo(this.span)),
      Escape: () => { this.line = -1; this.source.mark(-1); this.choose(null); },
    };
    if (!(event.key in acts) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }
  go(by) {
    this.row = Math.min(this.rows.length - 1, Math.max(0, this.row + by));
    const row = this.rows[this.row];
    this.scrollTo(row);
    this.canvas.setAttribute("aria-label", `Timeline, track ${row.name}${row.opens ? (this.closed.has(row.track) ? ", closed" : ", open") : ""}`);
    this.draw();
  }
  scrollTo(row) {
    if (row.path) return;
    if (row.y < this.box.scrollTop) this.box.scrollTop = row.y;
    if (row.y + row.height + this.top > this.box.scrollTop + this.canvasHeight) this.box.scrollTop = row.y + row.height + this.top - this.canvasHeight;
  }
  // Choose the next span of the track, or segment of the path, and keep it in sight.
  next(by) {
    const row = this.rows[this.row];
    if (row.path) {
      const now = this.segment === null ? (by > 0 ? -1 : this.data.path.length) : this.segment;
      this.chooseSegment(Math.min(this.data.path.length - 1, Math.max(0, now + by)), true);
      return;
    }
    const first = this.spans.first[row.track];
    const last = this.spans.first[row.track + 1] - 1;
    if (last < first) return;
    const [from] = this.run.window || [0, this.total];
    const here = this.span !== null && this.spans.track[this.span] === row.track;
    const found = here ? this.span + by : Math.min(last, this.spans.after(row.track, from / this.spans.tick));
    this.choose(Math.min(last, Math.max(first, found)), true);
  }
  keepInSight(from, to) {
    const [low, high] = this.run.window || [0, this.total];
    if (to > low && from < high) return;
    const middle = (from + to) / 2;
    this.show(middle - (high - low) / 2, middle + (high - low) / 2);
  }
  choose(span, follow = false) {
    Object.assign(this, { span, segment: null });
    if (span !== null && follow) this.keepInSight(this.spans.from(span), this.spans.to(span));
    if (span === null) this.detail.replaceChildren(make("p", { class: "note" }, "Nothing is chosen."));
    else {
      this.tell(span);
      if (this.spans.line[span] >= 0) this.source.mark(this.spans.line[span]);
      const node = this.data.tracks[this.spans.track[span]][3];
      if (node) this.run.set("place", node, this);
    }
    this.draw();
  }
  chooseLine(line) { this.light(this.line === line ? -1 : line); }
  // Have all but the spans of a line stand back; -1 for none.
  light(line) {
    this.line = line;
    this.source.mark(line);
    this.draw();
  }
  chooseSegment(index, follow = false) {
    Object.assign(this, { segment: index, span: null });
    const segment = this.data.path[index];
    if (follow) this.keepInSight(segment.from_ns, segment.to_ns);
    this.detail.replaceChildren(...this.segmentTold(segment));
    if (segment.line) this.source.mark(this.source.at(segment.line));
    this.draw();
  }
  // Open what a span's track is in, and show it.
  reveal(span) {
    for (let track = this.data.tracks[this.spans.track[span]][1]; track >= 0; track = this.data.tracks[track][1]) this.closed.delete(track);
    this.lay();
    this.row = this.rows.findIndex((row) => row.track === this.spans.track[span]);
    this.choose(span, true);
    this.go(0);
  }
  tell(i) {
    const { spans, data } = this;
    const facts = [["from", kernbench.time(spans.from(i))], ["for", kernbench.time(spans.to(i) - spans.from(i))], ["on", this.where(spans.track[i])]];
    if (spans.bytes[i] >= 0 && spans.bytes[i] > 0) facts.push(["moved", kernbench.bytes(spans.bytes[i])]);
    if (spans.issue[i] >= 0) facts.push(["op", `${spans.issue[i]} of PE ${spans.pe[i]}`]);
    if (spans.line[i] >= 0) facts.push(["line", `${data.lines[spans.line[i]].file.split("/").pop()}:${data.lines[spans.line[i]].number}`]);
    const rows = [make("h4", {}, spans.name(i)), this.list(facts)];
    const flows = spans.flows(i);
    if (flows.length) rows.push(make("h5", {}, "arrows"), this.links(flows.slice(0, 12).map((f) => {
      const other = data.flows.from[f] === i ? data.flows.to[f] : data.flows.from[f];
      return [`${FLOWS[data.flows.kind[f]]} ${data.flows.from[f] === i ? "to" : "from"} ${spans.name(other)}`, other];
    })));
    const way = spans.message_of(i).filter((each) => each !== i);
    if (way.length) rows.push(make("h5", {}, "the same message"), this.links(way.slice(0, 16).map((each) => [`${this.where(spans.track[each])}, ${kernbench.time(spans.from(each))}`, each])));
    this.detail.replaceChildren(...rows);
  }
  segmentTold(segment, title = "On the critical path") {
    const parts = Object.entries(segment.parts).map(([name, ns]) => [name, kernbench.time(ns)]);
    const facts = [["at", segment.place.replace("->", " → ")], ["for", `${kernbench.time(segment.to_ns - segment.from_ns)}, from ${kernbench.time(segment.from_ns)}`]];
    if (segment.line) facts.unshift(["line", segment.line.split("/").pop()]);
    if (segment.waited_at) facts.push(["waited most at", segment.waited_at.replace("->", " → ")]);
    facts.push(...parts, ["launch", String(segment.launch)]);
    const rows = [make("h4", {}, `${title}: ${segment.call || this.data.words[segment.sort]}`), this.list(facts)];
    if (segment.waited_at) {
      const found = this.spans.holders(segment);
      const held = found && found.ops;
      const note = this.whatIsMissing(segment, held);
      // It was on its way there, and had earlier parts there, at first: that is longer than it waited.
      const within = held && held.length ? `, in the ${kernbench.time(found.until - segment.from_ns)} from its begin to its last turn there,` : "";
      rows.push(make("h5", {}, `it waited most at ${segment.waited_at.replace("->", " → ")}, which was held${within} by`));
      if (held && held.length) rows.push(this.links(held.map((each) => [this.heldBy(each), each.span])));
      if (note) rows.push(make("p", { class: "note" }, note));
    }
    return rows;
  }
  heldBy({ span, own, ns, on }) {
    const { spans, data } = this;
    const unnamed = spans.issue[span] < 0 && spans.message[span] < 0; // some memories do not note for whom they transfer
    const what = own ? "its own earlier parts" : unnamed ? "transfers of unknown ops, perhaps its own too" : `${spans.name(span)}${spans.issue[span] >= 0 ? `, op ${spans.issue[span]} of PE ${spans.pe[span]}` : ""}`;
    const [name, , kind] = data.tracks[on[0]];
    const where = on.length > 1 ? `up to ${kernbench.time(ns)} on ${on.length} channels` : kernbench.time(ns) + (kind === "channel" ? ` on ${name}` : "");
    return `${what}, for ${where}, from ${kernbench.time(spans.from(span))}`;
  }
  // Why nothing, or not all, is known of what held the place where a segment waited; "" where all is.
  whatIsMissing(segment, held) {
    const known = this.run.machine ? this.run.machine.figures.known() : null;
    if (known !== null && (segment.from_ns < known[0] || segment.to_ns > known[1])) {
      return `The timeline is known from ${kernbench.time(known[0])} to ${kernbench.time(known[1])} only.`;
    }
    if (held === null) return "The timeline does not go down to it.";
    return held.length ? "" : "Nothing passed there meanwhile.";
  }
  where(track) {
    const words = [];
    for (let at = track; at >= 0; at = this.data.tracks[at][1]) words.unshift(this.data.tracks[at][0]);
    return words.filter((word) => !/^wires/.test(word)).join(", ");
  }
  links(items) {
    return make("ul", { class: "small" }, ...items.map(([text, span]) => make("li", {}, make("button", { type: "button", onclick: () => this.reveal(span) }, text))));
  }
  list(facts) {
    return make("dl", { class: "facts" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  }
  // Say whose colours are there: of the critical path, and of the first lines of the window.
  legend(most) {
    const key = (colour) => make("svg", { class: "key", viewBox: "0 0 10 10", "aria-hidden": "true" }, make("rect", { width: 10, height: 10, fill: colour }));
    const lines = most.map((index) => {
      const { file, number, text } = this.data.lines[index];
      return make("li", {}, key(kernbench.lineColour(this.data, index).ground), `${file.split("/").pop()}:${number} `, make("code", {}, text));
    });
    const sent = this.data.path.some(({ call }) => call === "tl.send") ? ", a wait for tl.recv as its tl.send" : "";
    const path = this.data.path.length ? [make("li", {}, key("var(--kb-crit)"), `critical path${sent}; its foot: in a queue`)] : [];
    const others = make("li", {}, key(kernbench.OTHER), "other lines; of a closed row, how busy it is");
    this.element.querySelector(".legend.lines").replaceChildren(...path, others, ...lines);
  }
  // Sum up the lines a moment after the window has come to rest.
  tellLines() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.sumUp(), 80);
  }
  sumUp() {
    clearTimeout(this.later);
    const window = this.run.window || [0, this.total];
    this.source.show(...window);
    this.legend(this.spans.weights(...window).slice(0, 5));
    if (this.flame !== null) this.flame.show(...window);
  }
}

kernbench.section("timeline", (element, data, run) => {
  if (data !== null) run.timeline = new Timeline(element, data, run);
});
