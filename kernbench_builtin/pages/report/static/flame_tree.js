// What kernels spent their time at in a window, over all PEs, as a tree: launches, programs, lines by who called, ops.
"use strict";

// Time in ticks: `total` with what is within, `own` without, of which `loose` was for no op of its own; `waits` for how
// many ops. Lines have their number as key.
const node = (key, label, kind, line, up) => ({ key, label, kind, line, up, total: 0, own: 0, loose: 0, waits: 0, below: new Map() });

function child(up, key, label, kind, line = -1) {
  const found = up.below.get(key);
  if (found !== undefined) return found;
  const made = node(key, label, kind, line, up);
  up.below.set(key, made);
  return made;
}

kernbench.FlameTree = class {
  constructor(data, spans) {
    Object.assign(this, { data, spans });
    this.kernels = [...data.tracks.keys()].filter((track) => data.tracks[track][2] === "kernel");
    this.launches = [];
    const track = data.tracks.findIndex(([, , kind]) => kind === "launch");
    if (track >= 0) for (let i = spans.first[track]; i < spans.first[track + 1]; i++) this.launches.push(i);
    this.made = null;
    const units = new Map(); // numbered by what they are called, whichever PE they are of
    this.unit = data.tracks.map(([name]) => { if (!units.has(name)) units.set(name, units.size); return units.get(name); });
  }
  // The op that a wait of a kernel led to, by the arrow from the one to the other; -1 for none or several.
  op(i) {
    if (this.made === null) {
      this.made = new Int32Array(this.spans.count).fill(-1);
      const { kind, from, to } = this.data.flows;
      for (let f = 0; f < kind.length; f++) if (kind[f] === 0) this.made[from[f]] = to[f];
    }
    return this.made[i];
  }
  // Sum up a window of ticks; `by` is kernel, launch or program.
  sum(from, to, by) {
    const root = node("", "all kernels, over all PEs", "all", -1, null);
    for (const track of this.kernels) this.track(root, track, from, to, by);
    this.close(root);
    return root;
  }
  // A span lies in those before it that have not ended; what is left of these is their own.
  track(root, track, from, to, by) {
    const { spans } = this;
    const open = [];
    spans.each(track, from, to, (i) => {
      const start = spans.start[i];
      const end = start + spans.length[i];
      const inside = Math.min(end, to) - Math.max(start, from);
      if (inside <= 0) return;
      while (open.length && end > open[open.length - 1].end) open.pop();
      const around = open.length ? open[open.length - 1] : null;
      const at = this.place(root, around, i, track, by);
      if (around !== null && around.at !== at) { around.at.own -= inside; around.at.loose -= inside; }
      if (around === null || around.at !== at) at.own += inside;
      if (spans.line[i] >= 0 && spans.issue[i] < 0) at.loose += inside;
      open.push({ at, end });
      if (spans.issue[i] >= 0) at.waits++;
      const op = spans.line[i] >= 0 ? this.op(i) : -1;
      if (op < 0) return;
      const on = spans.track[op];
      const below = child(at, -1 - this.unit[on] * 65536 - spans.named[op], `${this.data.tracks[on][0]}: ${spans.name(op)}`, "op");
      below.own += inside;
      below.waits++;
      at.own -= inside;
    });
  }
  // Where a span belongs: a launch or program of a kernel, or a line within the line that called it.
  place(root, around, i, track, by) {
    const { spans, data } = this;
    const line = spans.line[i];
    if (around !== null && spans.atTheEnd(i)) {
      const end = child(around.at, "end", `waiting at the ${spans.name(i)}`, "end");
      return line < 0 ? end : child(end, line, data.lines[line].text, "line", line);
    }
    if (line >= 0) return child(around === null ? root : around.at, line, data.lines[line].text, "line", line);
    if (around === null) return this.kernel(root, i, by);
    if (by !== "program") return around.at;
    const where = data.tracks[track][3];
    return child(around.at, `${spans.name(i)} ${where}`, `${spans.name(i)} on ${where}`, "program");
  }
  kernel(root, i, by) {
    const { spans } = this;
    const name = spans.name(i);
    const launch = by === "kernel" ? -1 : this.launches.findLastIndex((each) => spans.start[each] <= spans.start[i]
      && spans.start[i] <= spans.start[each] + spans.length[each] && spans.name(each).startsWith(`${name} [`));
    if (launch < 0) return child(root, `kernel ${name}`, name, "kernel");
    return child(root, `launch ${launch}`, `${launch + 1}: ${spans.name(this.launches[launch])}`, "kernel");
  }
  // Add up from the leaves, and leave out what took no time. A line that waits without an op of its own does so for
  // what was asked for before.
  close(at) {
    if (at.loose > 0) {
      child(at, "earlier", "waiting for earlier ops", "op").own = at.loose;
      at.own -= at.loose;
    }
    at.own = Math.max(0, at.own);
    at.total = at.own;
    for (const [key, each] of at.below) {
      this.close(each);
      if (each.total <= 0) at.below.delete(key);
      at.total += each.total;
    }
    at.parts = [...at.below.values()].sort((a, b) => b.total - a.total);
  }
};
