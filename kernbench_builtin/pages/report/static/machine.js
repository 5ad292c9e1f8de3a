// The machine: one part at a time, coloured by use or queueing, with what a click tells.
"use strict";

const { make } = kernbench;

const spelled = (part, name) => (name[0] === "~" ? part + name.slice(1)
  : name[0] === "^" ? part.split(".").slice(0, -1).join(".") + name.slice(1)
    : name[0] === "=" ? name.slice(1) : name);

// A name with places where its line may break.
const broken = (name) => name.split("_").flatMap((word, i) => (i ? ["_", make("wbr"), word] : [word]));

class Machine {
  constructor(element, data, run) {
    Object.assign(this, { element, data, run, part: "", chosen: null });
    this.total = data.use.total_ns || 1;
    this.figures = new kernbench.Figures(data, this.total);
    this.ground = element.querySelector(".ground");
    this.detail = element.querySelector(".detail");
    this.busiest = make("div");
    this.detail.prepend(this.busiest);
    this.metric = element.querySelector(".metric");
    this.scope = element.querySelector(".scope");
    this.metric.addEventListener("change", () => this.paint());
    this.scope.addEventListener("change", () => this.over());
    window.addEventListener("kernbench-theme", () => { this.drawn = ""; this.paint(); });
    this.strip(element.querySelector(".window"));
    run.on("window", () => {
      if (run.window === null) this.scope.value = "run";
      else this.scope.value = run.window.launch === undefined ? "window" : `launch${run.window.launch}`;
      this.soon();
    });
    run.on("place", (place, source) => { if (source !== this) this.find(place); });
    this.show(this.start());
  }
  // Where there is something to see: around the slowest PE; else the whole, or of a single part that part.
  start() {
    const { timeline } = this.run;
    let part = timeline && timeline.pe >= 0 ? timeline.data.tracks[timeline.pe][3].split(".").slice(0, -1).join(".") : "";
    if (part && this.data.parts[part] !== undefined) return part;
    part = "";
    for (;;) {
      const shape = this.data.shapes[this.data.parts[part]];
      const inner = shape.boxes.filter(([name, , opens, outside]) => opens && !outside && !/^~?\.?io\d+$/.test(name));
      if (inner.length !== 1 || shape.boxes.length > 6) return part;
      part = spelled(part, inner[0][0]);
    }
  }
  strip(element) {
    if (element === null || this.data.activity === null) return;
    const { edges, busy, places } = this.data.activity;
    const count = edges.length - 1;
    const together = new Float64Array(count);
    places.forEach((_, row) => {
      const full = busy.most[row] / 65535;
      for (let i = 0; i < count; i++) together[i] += full * busy.rows[row * count + i];
    });
    const most = together.reduce((high, each) => Math.max(high, each), 0) || 1;
    this.run.profile = Array.from(together, (sum, i) => [edges[i], edges[i + 1], sum / most]);
    kernbench.brush(element, this.run, this.total, this.run.profile);
  }
  // Take what was chosen in the list as the window of the whole page; a launch's says which it is.
  over() {
    const match = this.scope.value.match(/^launch(\d+)$/);
    if (match !== null) {
      const launch = this.data.launches[Number(match[1])];
      this.run.set("window", Object.assign([launch.from, launch.to], { launch: Number(match[1]), name: `Launch ${launch.name}` }));
    } else if (this.scope.value === "run") this.run.set("window", null);
    else if (this.run.window !== null) this.run.set("window", [...this.run.window]);
    this.paint();
  }
  // Open the view of a part, and mark where it is.
  show(part) {
    this.part = part;
    const shape = this.data.shapes[this.data.parts[part]];
    // The drawing is kernbench's own text, in which every name was escaped when it was written.
    const parsed = new DOMParser().parseFromString(shape.svg, "image/svg+xml");
    const svg = document.importNode(parsed.documentElement, true);
    svg.setAttribute("aria-label", part || this.data.title || "machine");
    // On a narrow page it is moved rather than made unreadable; beside another run it is smaller, but whole.
    svg.style.minWidth = `${Math.min(document.querySelector("main").dataset.scale ? 480 : 1200, 0.93 * shape.width)}px`;
    const { width, height } = svg.viewBox.baseVal; // all of it is in sight, where it can be read so
    svg.style.maxWidth = `${Math.min(1.6 * width, (700 * width) / height)}px`;
    this.ground.replaceChildren(svg);
    this.ground.scrollLeft = (this.ground.scrollWidth - this.ground.clientWidth) / 2; // where it is moved, begin in its middle
    this.things = [];
    for (const element of svg.querySelectorAll("[data-box],[data-line]")) this.prepare(element, shape);
    this.crumbs();
    this.paint();
    this.run.set("part", part);
  }
  prepare(element, shape) {
    const isBox = element.dataset.box !== undefined;
    const found = isBox ? shape.boxes[element.dataset.box] : shape.lines[element.dataset.line];
    const thing = isBox
      ? { element, name: spelled(this.part, found[0]), model: found[1], opens: found[2], outside: found[3] }
      : { element, name: `${spelled(this.part, found[0])}->${spelled(this.part, found[1])}`,
        wires: found[2].map(([a, b, n]) => [`${spelled(this.part, a)}->${spelled(this.part, b)}`, n]) };
    thing.places = isBox ? this.figures.below.get(thing.name) || [] : thing.wires.map(([wire]) => wire);
    element.setAttribute("tabindex", isBox ? "0" : "-1");
    element.setAttribute("role", "button");
    element.addEventListener("click", () => {
      if (this.chosen === thing.name && thing.opens) this.show(thing.name);
      else this.choose(thing);
    });
    element.addEventListener("dblclick", () => { if (thing.opens) this.show(thing.name); });
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && thing.opens && this.data.parts[thing.name] !== undefined) { this.show(thing.name); this.first(); }
      else if (event.key === "Enter" || event.key === " ") this.choose(thing);
      else if (event.key === "ArrowRight" || event.key === "ArrowDown") this.step(thing, 1);
      else if (event.key === "ArrowLeft" || event.key === "ArrowUp") this.step(thing, -1);
      else if (event.key === "Escape" && this.part) { this.show(this.part.split(".").slice(0, -1).join(".")); this.first(); }
      else return;
      event.preventDefault();
    });
    this.things.push(thing);
  }
  // Go to the next box or, behind the last box, to the lines.
  step(thing, by) {
    const order = [...this.things.filter((each) => !each.wires), ...this.things.filter((each) => each.wires)];
    order[(order.indexOf(thing) + by + order.length) % order.length].element.focus();
  }
  first() {
    const box = this.ground.querySelector("[data-box]");
    if (box !== null) box.focus();
  }
  crumbs() {
    const words = this.part ? this.part.split(".") : [];
    const list = make("ol");
    ["", ...words.map((_, i) => words.slice(0, i + 1).join("."))].forEach((part, i) => {
      const name = part ? words[i - 1] : "machine";
      list.append(make("li", {}, part === this.part ? make("b", { "aria-current": "location" }, name)
        : make("button", { type: "button", onclick: () => this.show(part) }, name)));
    });
    this.element.querySelector(".crumbs").replaceChildren(list);
  }
  soon() {
    if (!this.waiting) this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.paint(); });
  }
  // Colour everything by the metric and the window chosen; a number and a width say it too.
  paint() {
    const metric = this.metric.value;
    const span = this.figures.activity === null ? null : this.run.window;
    for (const thing of this.things) {
      thing.most = this.figures.most(thing.places, metric, span);
      thing.nothing = this.figures.nothing(thing.name, thing.places, metric, span);
    }
    const top = metric === "queue" ? this.figures.longest(span) : 1;
    for (const thing of this.things) this.colour(thing, metric, top);
    this.legend(metric, top, span);
    if (this.current) this.tell(this.current);
    else this.tellBusiest(span);
  }
  // While nothing is chosen: what was busiest of each kind in the launch, or the run, anywhere in the machine.
  tellBusiest(span) {
    const launch = span === null || span.launch === undefined ? undefined : this.data.launches[span.launch];
    const exact = span === null ? this.data.busiest : launch === undefined ? [] : launch.exact;
    const found = [...exact].sort(([, a], [, b]) => b - a).slice(0, 6);
    const item = ([place, share]) => make("li", {}, make("button", { type: "button", onclick: () => this.find(place) }, place.replace("->", " → ")), ` ${kernbench.share(share)}`);
    this.busiest.replaceChildren(...(found.length ? [make("h4", {}, `Busiest of each kind in the ${span === null ? "run" : "launch"}`), make("ul", { class: "busiest" }, ...found.map(item))] : []));
  }
  colour(thing, metric, top) {
    const value = thing.most === null ? 0 : thing.most.value;
    const share = Math.sqrt(value / top);
    const number = value <= 0 ? "" : metric === "queue" ? value.toPrecision(2) : kernbench.share(value);
    const { element } = thing;
    const shown = value > 0 && !thing.outside;
    if (thing.wires) {
      const stroke = element.querySelector(".kb-stroke");
      stroke.style.stroke = shown ? kernbench.colour(share) : "";
      stroke.style.strokeWidth = `${shown ? 1.6 + 4 * share : 1}px`;
    } else {
      element.querySelector("rect").style.fill = shown ? kernbench.colour(share) : "";
      for (const text of element.querySelectorAll("text")) text.style.fill = shown ? kernbench.ink(share) : "";
      this.badge(element, shown ? number : "", share);
    }
    element.querySelector("title").textContent = `${thing.name.replace("->", " to ")}: ${number || thing.nothing}`;
    element.setAttribute("aria-label", number ? `${thing.name}, ${number} ${metric === "queue" ? "waiting" : "busy"}` : `${thing.name}, ${thing.nothing}`);
  }
  // The number of a box stands in its second line.
  badge(element, told, share) {
    let line = element.querySelector(".kb-badge");
    const rect = element.querySelector("rect");
    const label = element.querySelector("text");
    if (line === null) {
      const sub = element.querySelector(".kb-sub");
      line = sub || make("text", { class: "kb-sub" });
      line.dataset.plain = sub ? sub.textContent : "";
      line.classList.add("kb-badge");
      line.dataset.y = label.getAttribute("y");
      line.setAttribute("x", label.getAttribute("x"));
      element.append(line);
    }
    line.textContent = told || line.dataset.plain;
    line.style.fill = told ? kernbench.ink(share) : "";
    line.style.fontSize = "";
    const [long, room] = [line.getComputedTextLength(), Number(rect.getAttribute("width")) - 10];
    if (long > room) line.style.fontSize = `${(parseFloat(getComputedStyle(line).fontSize) * room) / long}px`;
    const middle = Number(rect.getAttribute("y")) + Number(rect.getAttribute("height")) / 2;
    const apart = Number(rect.getAttribute("height")) < 30 ? 6 : 7;
    label.setAttribute("y", String(line.textContent ? middle - apart : middle));
    line.setAttribute("y", String(middle + apart + 1));
  }
  legend(metric, top, span) {
    const step = this.figures.step(span);
    const known = this.figures.known();
    const over = span === null ? "the run" : span.launch === undefined ? "the window" : "the launch";
    if (this.drawn === `${metric} ${top} ${step} ${over}`) return;
    this.drawn = `${metric} ${top} ${step} ${over}`;
    const marks = [0, 0.05, 0.25, 0.5, 1];
    const svg = make("svg", { viewBox: "0 0 260 30", class: "kb-plot legend-scale" });
    for (let i = 0; i < 65; i++) svg.append(make("rect", { x: i * 4, y: 0, width: 4.5, height: 12, fill: kernbench.colour(i / 64) }));
    for (const mark of marks) {
      const text = metric === "queue" ? Number((mark * top).toPrecision(2)) : `${100 * mark}%`;
      const anchor = mark === 0 ? "start" : mark === 1 ? "end" : "middle";
      svg.append(make("text", { x: Math.sqrt(mark) * 260, y: 25, "text-anchor": anchor }, String(text)));
    }
    this.element.querySelector(".scale").replaceChildren(svg, make("span", {}, metric === "queue"
      ? `messages that waited, on average over ${over}; a box shows the worst place in it.`
      : `busy, as a share of ${over} (on a square-root scale). A box shows the busiest place in it; the busier a line, the thicker it is.`,
    step ? ` What is busy when is known in steps of ${kernbench.time(step)}.` : "",
    known === null ? "" : ` It is known from ${kernbench.time(known[0])} to ${kernbench.time(known[1])} only.`));
  }
  choose(thing) {
    this.chosen = thing.name;
    for (const each of this.things) each.element.classList.toggle("chosen", each === thing);
    this.tell(thing);
    this.run.set("place", thing.name, this);
  }
  // Open the part that a place of another section is in, and choose it there.
  find(place) {
    const inner = place.split("->")[0].split("#")[0].split(".");
    for (let length = inner.length - 1; length >= 0; length--) {
      const part = inner.slice(0, length).join(".");
      if (this.data.parts[part] === undefined) continue;
      this.show(part);
      const node = place.split("#")[0];
      const thing = this.things.find((each) => each.name === node || (each.wires || []).some(([wire]) => wire === node));
      if (thing) { this.chosen = thing.name; thing.element.classList.add("chosen"); this.tell(thing); return; }
    }
  }
  tell(thing) {
    this.current = thing;
    const rows = [make("h4", {}, thing.name.replace("->", " → "))];
    if (thing.most !== null && thing.most.place !== thing.name) rows.push(make("p", { class: "small" }, `The most: ${thing.most.place.replace("->", " → ")}.`));
    if (thing.opens && this.data.parts[thing.name] !== undefined && thing.name !== this.part) {
      rows.push(make("button", { type: "button", onclick: () => this.show(thing.name) }, "Open"));
    }
    for (const place of thing.places.slice(0, thing.opens ? 0 : 12)) rows.push(...this.figuresOf(place, thing.places.length > 1));
    const why = thing.most === null || thing.most.value <= 0 ? this.whyNothing(thing) : "";
    if (why) rows.push(make("p", { class: "note" }, why));
    if (thing.wires) rows.push(...this.wiresOf(thing));
    else if (thing.model >= 0) rows.push(...this.modelOf(this.data.models[thing.model]));
    this.detail.replaceChildren(...rows);
  }
  // Why a box or a line has no figures, or none of the window; "" where it did nothing.
  whyNothing(thing) {
    if (thing.nothing === "not counted") {
      return "How busy it is is not counted: what it does takes time, but no place that others would wait for. There is nothing over time, then.";
    }
    if (thing.nothing !== "not recorded") return "";
    const known = this.figures.known();
    return known === null ? "The timeline does not go down to it: over time nothing is known."
      : `The window was not recorded: the timeline is known from ${kernbench.time(known[0])} to ${kernbench.time(known[1])} only.`;
  }
  figuresOf(place, named) {
    const { figures } = this;
    const whole = figures.whole.get(place);
    const span = figures.activity === null ? null : this.run.window;
    const over = span !== null && span.launch !== undefined ? "launch" : "window";
    const rows = [];
    if (named) rows.push(make("h5", {}, place.split("#").pop().replace("->", " → ")));
    const facts = [];
    if (whole) facts.push(["busy over the run", `${kernbench.share(whole.share)}, ${kernbench.time(whole.busy)}`]);
    if (whole && whole.bytes) facts.push(["moved", kernbench.bytes(whole.bytes)]);
    const told = (value, written) => (value !== null ? written(value) : whole || figures.rows.has(place) ? "not recorded" : "never");
    if (span !== null) facts.push([`busy in the ${over}`, told(figures.busy(place, span), kernbench.share)]);
    const queue = figures.counted.get(place);
    const waiting = figures.queue(place, null);
    if (queue) facts.push(["waits over the run", `${queue.waits.toLocaleString("en")}, ${kernbench.time(queue.ns)} together, ${kernbench.time(queue.longest)} at most`]);
    if (waiting) facts.push(["waiting over the run", `${kernbench.number(waiting)} on average`]);
    if (waiting && span !== null) {
      facts.push([`waiting in the ${over}`, told(figures.queue(place, span), (mean) => `${kernbench.number(mean)} on average`)]);
    }
    if (!facts.length) facts.push(["busy", "never"]);
    rows.push(this.list(facts));
    const busy = figures.overTime("busy", place);
    if (busy !== null) rows.push(this.curve(busy, 1, "busy over time, up to 100%"));
    const waited = figures.overTime("waiting", place);
    if (waited !== null) {
      const most = Math.max(...waited.map((each) => each[2]));
      rows.push(this.curve(waited, most, `waiting over time, up to ${kernbench.number(most)}`));
    }
    return rows;
  }
  curve(stretches, top, told) {
    const canvas = make("canvas", { class: "curve", width: 512, height: 60, role: "img", "aria-label": `${told}, from the begin to the end of the run` });
    const context = canvas.getContext("2d");
    const at = (time) => (512 * time) / this.total;
    context.fillStyle = kernbench.css("--kb-c0");
    for (const [from, to, much] of stretches) {
      const high = (58 * Math.min(much, top)) / top;
      if (high) context.fillRect(at(from), 60 - high, Math.max(1, at(to) - at(from)), high);
    }
    if (this.run.window) {
      context.fillStyle = kernbench.css("--kb-shade");
      const [from, to] = this.run.window.map(at);
      context.fillRect(0, 0, from, 60);
      context.fillRect(to, 0, 512 - to, 60);
    }
    return make("figure", { class: "over-time" }, canvas, make("figcaption", {}, told));
  }
  wiresOf(thing) {
    return thing.wires.slice(0, 8).flatMap(([wire, number]) => {
      const found = this.data.wires[number];
      return [make("p", { class: "small" }, wire.replace("->", " → ")), this.list([
        ["kind", found.kind], ["bandwidth", kernbench.bandwidth(found.bandwidth)], ["latency", kernbench.time(found.latency)],
        ["framing", `${found.payload_bytes} B of payload, ${found.header_bytes} B of header`],
      ])];
    });
  }
  modelOf(model) {
    const rows = [this.list([["kind", model.kind], ["model", model.impl || "none"]])];
    if (!model.params.length) return rows;
    const body = make("tbody", {}, ...model.params.map(([name, value, source]) => make("tr", {}, make("td", {}, ...broken(name)),
      make("td", { class: "value" }, ...broken(String(value))), make("td", { class: "small", title: source }, ...broken(source.split(/[\\/]/).pop())))));
    const head = make("thead", {}, make("tr", {}, ...["parameter", "value", "from"].map((each) => make("th", { scope: "col" }, each))));
    rows.push(make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Parameters" }, kernbench.stacked(make("table", {}, head, body))));
    return rows;
  }
  list(facts) {
    return make("dl", { class: "facts" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  }
}

kernbench.section("machine", (element, data, run) => {
  if (data !== null) run.machine = new Machine(element, data, run);
});
