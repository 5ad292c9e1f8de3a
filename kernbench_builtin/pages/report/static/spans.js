// The spans of a timeline: found by track and time, lit by the critical path, followed from message to message.
"use strict";

const BLOCK = 64;

kernbench.Spans = class {
  constructor(data) {
    const { name, ...columns } = data.spans;
    Object.assign(this, columns, { named: name });
    this.data = data;
    this.count = this.start.length;
    this.tick = data.tick;
    this.first = new Int32Array(data.tracks.length + 1);
    for (let i = 0; i < this.count; i++) this.first[this.track[i] + 1]++;
    for (let t = 0; t < data.tracks.length; t++) this.first[t + 1] += this.first[t];
    // Starts and ops came as steps from the span before on the same track.
    for (let i = 1; i < this.count; i++) {
      if (this.track[i] !== this.track[i - 1]) continue;
      this.start[i] += this.start[i - 1];
      this.issue[i] += this.issue[i - 1];
    }
    // The latest end within each block of rows, so that a window is found without looking at all.
    this.latest = new Float64Array(Math.ceil(this.count / BLOCK));
    for (let i = 0; i < this.count; i++) {
      const block = (i / BLOCK) | 0;
      this.latest[block] = Math.max(this.latest[block], this.start[i] + this.length[i]);
    }
    this.use = new Map(Array.from(data.use.tracks, (track, row) => [track, row]));
    this.outward = null;
  }
  from(i) { return this.start[i] * this.tick; }
  to(i) { return (this.start[i] + this.length[i]) * this.tick; }
  name(i) { return this.data.names[this.named[i]]; }
  // The first row of a track that begins at or after a time in ticks.
  after(track, ticks) {
    let low = this.first[track];
    let high = this.first[track + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[middle] < ticks) low = middle + 1; else high = middle;
    }
    return low;
  }
  // How many spans of a track begin in a window of ticks.
  within(track, from, to) { return this.after(track, to) - this.after(track, from); }
  // Call visit(i) for each span of a track that touches a window of ticks, in order.
  each(track, from, to, visit) {
    const end = this.after(track, to + 1);
    for (let i = this.first[track]; i < end;) {
      if (this.latest[(i / BLOCK) | 0] < from) { i = (((i / BLOCK) | 0) + 1) * BLOCK; continue; }
      const stop = Math.min(end, (((i / BLOCK) | 0) + 1) * BLOCK);
      for (; i < stop; i++) if (this.start[i] + this.length[i] >= from) visit(i);
    }
  }
  // The innermost span of a track at a time (ticks) and lane, -1 for none.
  at(track, ticks, slack, lane) {
    let found = -1;
    let least = Infinity;
    this.each(track, ticks - slack, ticks + slack, (i) => {
      if (lane !== null && this.lane[i] !== lane) return;
      const away = Math.max(0, this.start[i] - ticks, ticks - this.start[i] - this.length[i]);
      if (away < least || (away === least && this.lane[i] > this.lane[found])) { least = away; found = i; }
    });
    return found;
  }
  // Mark the spans that the segments of the critical path lead through: those of its ops, while they are on it.
  light(path) {
    const lit = new Uint8Array(this.count);
    const wanted = new Map();
    for (const segment of path) {
      if (!segment.op_id) continue;
      const key = `${segment.op_id[0]},${segment.op_id[1]}`;
      if (!wanted.has(key)) wanted.set(key, []);
      wanted.get(key).push(segment);
    }
    const pes = new Set(path.filter((each) => each.op_id).map((each) => each.op_id[0]));
    for (let i = 0; i < this.count; i++) {
      if (this.issue[i] < 0 || !pes.has(this.pe[i])) continue;
      for (const segment of wanted.get(`${this.pe[i]},${this.issue[i]}`) || []) {
        if (this.from(i) < segment.to_ns && this.to(i) > segment.from_ns) lit[i] = 1;
      }
    }
    return lit;
  }
  // What was at the place where a segment of the critical path waited, before its turn came: one entry an op, the
  // longest first, and when that was. Of a memory it is the channels that the op went to. null where no span tells of the place.
  holders({ waited_at, op_id, from_ns, to_ns }) {
    const { tracks } = this.data;
    const here = tracks.map((_, track) => track).filter((track) => this.first[track] < this.first[track + 1]
      && tracks[track][2] !== "kernel" && (tracks[track][3] === waited_at || tracks[track][3].startsWith(`${waited_at}#`)));
    if (!here.length) return null;
    const own = (i) => Boolean(op_id) && this.pe[i] === op_id[0] && this.issue[i] === op_id[1];
    const turns = here.map((track) => [track, this.turn(track, own, from_ns, to_ns)]);
    const went = turns.filter(([, turn]) => turn !== null);
    const found = new Map();
    let until = from_ns;
    for (const [track, turn] of went.length ? went : turns) {
      until = Math.max(until, turn === null ? to_ns : turn);
      for (const [op, each] of this.before(track, own, from_ns, turn === null ? to_ns : turn)) {
        const entry = found.get(op) || { ...each, ns: 0, on: [] };
        found.set(op, { ...entry, ns: Math.max(entry.ns, each.ns), on: [...entry.on, track] });
      }
    }
    return { ops: [...found.values()].sort((a, b) => b.ns - a.ns).slice(0, 6), until };
  }
  // When the last span of an op that begins in a window of ns does so, null where none does.
  turn(track, own, from, to) {
    let found = null;
    this.each(track, from / this.tick, to / this.tick, (i) => {
      if (own(i) && this.from(i) > from && this.from(i) <= to) found = this.from(i);
    });
    return found;
  }
  // How long each op was on a track in a window of ns; of the op that waited, what was over before its last part began.
  before(track, own, from, to) {
    const found = new Map();
    this.each(track, from / this.tick, to / this.tick, (i) => {
      if (own(i) && this.to(i) > to + this.tick) return;
      const op = this.issue[i] < 0 ? this.name(i) : `${this.pe[i]},${this.issue[i]}`;
      const entry = found.get(op) || { span: i, own: own(i), ns: 0, until: from };
      const end = Math.min(this.to(i), to);
      entry.ns += Math.max(0, end - Math.max(this.from(i), entry.until)); // a part of a span is not counted twice
      entry.until = Math.max(entry.until, end);
      found.set(op, entry);
    });
    return [...found].filter(([, { ns }]) => ns > this.tick);
  }
  // All spans of one message, in time.
  message_of(i) {
    if (this.message[i] < 0) return [];
    const found = [];
    for (let j = 0; j < this.count; j++) if (this.message[j] === this.message[i]) found.push(j);
    return found.sort((a, b) => this.start[a] - this.start[b]);
  }
  // The arrows from and to a span.
  flows(i) {
    if (this.outward === null) {
      this.outward = new Map();
      const { from, to } = this.data.flows;
      for (let f = 0; f < from.length; f++) {
        for (const end of [from[f], to[f]]) {
          if (!this.outward.has(end)) this.outward.set(end, []);
          this.outward.get(end).push(f);
        }
      }
    }
    return this.outward.get(i) || [];
  }
  // The kernel lines of a window of ns that took time, those first that had most of it or most of the critical path.
  weights(from, to) {
    const { time, all } = this.lines(from, to);
    const { onPath, whole } = this.onPath(from, to);
    const weight = this.data.lines.map(({ file, number }, i) => Math.max(time[i] / (all || 1), (onPath.get(`${file}:${number}`) || 0) / (whole || 1)));
    return [...weight.keys()].filter((i) => weight[i] > 0).sort((a, b) => weight[b] - weight[a]);
  }
  // How long each line, as FILE:LINE, was on the critical path in a window of ns, and all of that path.
  onPath(from, to) {
    const onPath = new Map();
    let whole = 0;
    for (const segment of this.data.path) {
      const inside = Math.min(segment.to_ns, to) - Math.max(segment.from_ns, from);
      if (inside <= 0) continue;
      whole += inside;
      if (segment.line) onPath.set(segment.line, (onPath.get(segment.line) || 0) + inside);
    }
    return { onPath, whole };
  }
  // Whether a span is what a program waited after its last line, for what it had left in flight.
  atTheEnd(i) { return this.name(i) === "end of the program"; }
  // Time of each kernel line in a window of ns, that in lines that it called, and how many ops it made: what else it
  // spends is waiting for others. `ended` is what programs waited after their last line, `left` the lines whose ops they
  // waited for then, `all` the time of all kernels.
  lines(from, to) {
    const time = new Float64Array(this.data.lines.length);
    const called = new Float64Array(this.data.lines.length);
    const ops = new Int32Array(this.data.lines.length);
    const left = new Set();
    let [ended, all] = [0, 0];
    this.data.tracks.forEach(([, , kind], track) => {
      if (kind !== "kernel") return;
      let last = -1; // the end of the kernel that all until then is in
      this.each(track, from / this.tick, to / this.tick, (i) => {
        const long = this.to(i) - this.from(i);
        const inside = Math.min(this.to(i), to) - Math.max(this.from(i), from);
        if (inside <= 0 || long <= 0) return;
        if (this.from(i) >= last) {
          all += inside;
          last = this.to(i);
        } else if (this.atTheEnd(i)) {
          ended += inside;
          if (this.line[i] >= 0) left.add(this.line[i]);
          return;
        }
        if (this.line[i] < 0) return;
        const within = Math.min(long, this.inner[i] * this.tick);
        time[this.line[i]] += ((long - within) * inside) / long;
        called[this.line[i]] += (within * inside) / long;
        if (this.issue[i] >= 0) ops[this.line[i]]++;
      });
    });
    return { time, called, ops, ended, left, all };
  }
};
