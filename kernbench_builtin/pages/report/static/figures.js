// How busy places were, and how many messages waited there: over the run, a launch or a window.
"use strict";

// Use and queueing of places: totals of the run, and shares of any window where there is a timeline.
kernbench.Figures = class {
  constructor(data, total) {
    this.total = total;
    this.whole = new Map();
    const use = data.use;
    (use.places || []).forEach((place, i) => this.whole.set(place, { share: use.utilisation[i], busy: use.busy_ns[i], bytes: use.nbytes[i] }));
    this.counted = new Map(data.queueing.map(([place, ns, waits, longest]) => [place, { ns, waits, longest }]));
    this.uncounted = new Set(use.not_counted || []);
    this.launches = data.launches.map((launch) => new Map(launch.exact));
    this.activity = data.activity;
    this.rows = new Map((this.activity ? this.activity.places : []).map((place, i) => [place, i]));
    this.below = new Map(); // all places of a node and of a part: it, its channels, its units, the wires between these
    for (const place of new Set([...this.whole.keys(), ...this.counted.keys(), ...this.rows.keys()])) {
      if (place.includes("->")) { this.between(place); continue; }
      const words = place.split(/[.#]/);
      const marks = place.match(/[.#]/g) || [];
      let name = "";
      words.forEach((word, i) => {
        name += (i ? marks[i - 1] : "") + word;
        if (!this.below.has(name)) this.below.set(name, []);
        this.below.get(name).push(place);
      });
    }
  }
  // A wire is in all parts that both of its ends are in.
  between(wire) {
    const [source, destination] = wire.split("->").map((end) => end.split("."));
    for (let i = 0; i < source.length && source[i] === destination[i]; i++) {
      const part = source.slice(0, i + 1).join(".");
      if (!this.below.has(part)) this.below.set(part, []);
      this.below.get(part).push(wire);
    }
  }
  // The share of a window that a place was busy; null where nothing is known.
  busy(place, span) {
    if (span === null || this.activity === null) return this.whole.has(place) ? this.whole.get(place).share : null;
    const exact = span.launch === undefined ? undefined : this.launches[span.launch].get(place);
    return exact === undefined ? this.mean("busy", place, span) : exact;
  }
  // How many messages waited at a place, on average; null where nothing is known.
  queue(place, span) {
    const found = this.counted.get(place);
    if (span === null && found) return found.ns / this.total;
    return this.activity === null ? null : this.mean("waiting", place, span || [0, this.total]);
  }
  // What was busy or waiting at a place, on average over what is known of a window; within a stretch it is even.
  mean(what, place, [begin, end]) {
    const { edges } = this.activity;
    const count = edges.length - 1;
    const [from, to] = [Math.max(begin, edges[0]), Math.min(end, edges[count])];
    const row = this.rows.get(place);
    if (row === undefined || !(to > from)) return null;
    const { most, rows } = this.activity[what];
    if (!most[row]) return 0;
    let sum = 0;
    for (let i = Math.max(0, this.stretch(from)); i < count && edges[i] < to; i++) {
      const share = rows[row * count + i];
      if (share) sum += share * (Math.min(to, edges[i + 1]) - Math.max(from, edges[i]));
    }
    return (sum / 65535) * most[row] / (to - from);
  }
  // The number of the stretch that a time lies in.
  stretch(time) {
    const { edges } = this.activity;
    let [low, high] = [0, edges.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (edges[middle] <= time) low = middle;
      else high = middle;
    }
    return low;
  }
  // How long the stretches are that figures of a window are made of; 0 where the window begins and ends with some.
  step(span) {
    if (span === null || this.activity === null) return 0;
    const { edges } = this.activity;
    return Math.max(...span.map((time) => {
      const at = this.stretch(time);
      const near = Math.min(Math.abs(time - edges[at]), Math.abs(time - edges[at + 1]));
      return near <= 1e-6 * (edges[at + 1] - edges[at]) ? 0 : edges[at + 1] - edges[at];
    }));
  }
  // From and until when it is known what was busy, where that is not the whole run.
  known() {
    if (this.activity === null) return null;
    const { edges } = this.activity;
    const last = edges[edges.length - 1];
    return edges[0] > 0 || last < this.total * (1 - 1e-9) ? [edges[0], last] : null;
  }
  // The longest queue of any place.
  longest(span) {
    const places = span === null && this.counted.size ? this.counted.keys() : this.rows.keys();
    let longest = 1e-9;
    for (const place of places) longest = Math.max(longest, this.queue(place, span) || 0);
    return longest;
  }
  // The most of several places, with the one that has it.
  most(places, metric, span) {
    let best = null;
    for (const place of places) {
      const value = metric === "queue" ? this.queue(place, span) : this.busy(place, span);
      if (value !== null && (best === null || value > best.value)) best = { value, place };
    }
    return best;
  }
  // Why a part has no number: its window was not recorded, nobody counts how busy it is, or it did nothing.
  nothing(name, places, metric, span) {
    const known = this.known();
    if (span !== null && known !== null && (span[1] <= known[0] || span[0] >= known[1])) return "not recorded";
    if (metric !== "queue" && this.uncounted.has(name)) return "not counted";
    if (span !== null && places.some((place) => this.whole.has(place) && !this.rows.has(place))) return "not recorded";
    return metric === "queue" ? "nothing waits" : "idle";
  }
  // What was busy or waiting at a place over time: [from, to, how much].
  overTime(what, place) {
    const row = this.rows.get(place);
    if (row === undefined || !this.activity[what].most[row]) return null;
    const { edges } = this.activity;
    const { most, rows } = this.activity[what];
    const count = edges.length - 1;
    return Array.from({ length: count }, (_, i) => [edges[i], edges[i + 1], (rows[row * count + i] / 65535) * most[row]]);
  }
};
