// Draw the rows of a timeline on a canvas: spans one by one where there is room, else how busy a track was.
"use strict";

// How wide the names of tracks are: less on a narrow screen.
kernbench.labelWidth = (width) => Math.round(Math.min(190, 0.34 * width));
const LANE = 14;
const SQUARE = Float32Array.from({ length: 256 }, (_, root) => (root / 255) ** 2);
// Of kernel lines, the longest first; the last is for all others. Vermilion is the critical path's alone.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#b3a500", "#8f6fc9", "#999999"];
const INKS = ["#fff", "#000", "#000", "#000", "#000", "#000", "#000", "#000"];
const OTHERS = COLOURS.length - 1;
kernbench.OTHER = COLOURS[OTHERS];

// Give each kernel line a colour, by its weight in the whole run: here and wherever else it stands.
kernbench.colourLines = (data, spans) => {
  data.colourOf = new Uint8Array(data.lines.length).fill(OTHERS);
  spans.weights(0, data.total).slice(0, OTHERS).forEach((line, rank) => { data.colourOf[line] = rank; });
};
kernbench.lineColour = (data, line) => ({ ground: COLOURS[data.colourOf[line]], ink: INKS[data.colourOf[line]] });

kernbench.Painter = class {
  constructor(canvas, spans, data) {
    Object.assign(this, { canvas, spans, data });
    this.context = canvas.getContext("2d");
    this.shares = new Map();
  }
  // The colour of a span: that of its kernel line.
  colour(i) { return this.spans.line[i] >= 0 ? this.data.colourOf[this.spans.line[i]] : OTHERS; }
  // How busy a track was in each bin, 0 to 1; of a place, the busiest track in it. A kernel is somewhere all the time.
  busy(track) {
    if (!this.shares.has(track)) {
      const { bins, rows } = this.data.use;
      const row = this.spans.use.get(track);
      const found = new Float32Array(bins);
      if (row !== undefined) for (let b = 0; b < bins; b++) found[b] = SQUARE[rows[row * bins + b]];
      const parts = this.data.below[track];
      const units = parts.filter((part) => this.data.tracks[part][2] !== "kernel");
      for (const below of units.length ? units : parts) {
        const inner = this.busy(below);
        for (let b = 0; b < bins; b++) if (inner[b] > found[b]) found[b] = inner[b];
      }
      this.shares.set(track, found);
    }
    return this.shares.get(track);
  }
  paint(view) {
    const { canvas, context } = this;
    const ratio = devicePixelRatio;
    this.left = kernbench.labelWidth(view.width);
    canvas.width = Math.round(view.width * ratio);
    canvas.height = Math.round(view.height * ratio);
    canvas.style.height = `${view.height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.ink = kernbench.css("--kb-ink");
    this.soft = kernbench.css("--kb-soft");
    this.rule = kernbench.css("--kb-rule");
    this.raised = kernbench.css("--kb-raised");
    this.accent = kernbench.css("--kb-crit");
    context.fillStyle = kernbench.css("--kb-ground");
    context.fillRect(0, 0, view.width, view.height);
    context.textBaseline = "middle";
    this.axis(view);
    for (const row of view.rows) if (row.path) this.row(view, row, view.top - row.height);
    context.save();
    context.beginPath();
    context.rect(0, view.top, view.width, view.height - view.top);
    context.clip();
    for (const row of view.rows) {
      if (row.path) continue;
      const y = row.y - view.scroll + view.top;
      if (y + row.height < view.top || y > view.height) continue;
      this.row(view, row, y);
    }
    if (view.arrows) {
      context.beginPath();
      context.rect(this.left, view.top, view.width - this.left, view.height - view.top);
      context.clip();
      this.arrows(view);
    }
    context.restore();
  }
  x(view, ns) { return this.left + ((ns - view.from) / (view.to - view.from)) * (view.width - this.left - 8); }
  axis(view) {
    const { context } = this;
    const step = kernbench.step(view.to - view.from, Math.max(2, (view.width - this.left) / 120));
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
    for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
      const x = this.x(view, time);
      context.fillStyle = this.rule;
      context.fillRect(x, 0, 1, view.height);
      context.fillStyle = this.soft;
      const text = kernbench.mark(time, step, view.to);
      if (x + context.measureText(text).width < view.width) context.fillText(text, x + 4, 10);
    }
  }
  row(view, row, y) {
    const { context } = this;
    if (row.chosen) {
      context.fillStyle = this.raised;
      context.fillRect(0, y, view.width, row.height);
    }
    context.fillStyle = this.rule;
    context.fillRect(0, y + row.height - 1, view.width, 1);
    context.save();
    context.beginPath();
    context.rect(this.left, y, view.width - this.left, row.height);
    context.clip();
    if (row.path) this.segments(view, row, y);
    else if (row.closed || this.dense(view, row.track)) this.density(view, row, y);
    else this.each(view, row, y);
    if (view.lit && !row.path) this.litPlaces(view, row, y);
    context.restore();
    this.label(row, y);
  }
  label(row, y) {
    const { context } = this;
    context.fillStyle = row.chosen ? this.ink : this.soft;
    context.font = `${row.opens || row.path ? "600 " : ""}12px system-ui, sans-serif`;
    context.textAlign = "left";
    const x = 8 + 12 * Math.min(row.depth, 6);
    const mark = row.opens ? (row.closed ? "▸ " : "▾ ") : "";
    let text = mark + row.name;
    while (text.length > 3 && context.measureText(text).width > this.left - x - 6) text = `${text.slice(0, -2)}…`;
    context.fillText(text, x, y + Math.min(row.height, 20) / 2);
  }
  // Whether more spans begin in the window than there is room to tell apart.
  dense(view, track) {
    return this.spans.within(track, view.from / this.spans.tick, view.to / this.spans.tick) > 3 * (view.width - this.left);
  }
  density(view, row, y) {
    const { context } = this;
    const shares = this.busy(row.track);
    const bins = shares.length;
    const height = row.height - 4;
    context.fillStyle = COLOURS[OTHERS];
    const scale = bins / this.data.total;
    const wide = view.width - this.left - 8;
    const perPixel = ((view.to - view.from) / wide) * scale;
    let begun = 0;
    let before = 0;
    for (let px = 0; px <= wide; px++) { // columns of one height are one rectangle
      const high = px < wide ? this.column(shares, view.from * scale + px * perPixel, perPixel, height) : 0;
      if (high === before) continue;
      if (before > 0) context.fillRect(this.left + begun, y + 2 + height - before, px - begun, before);
      begun = px;
      before = high;
    }
  }
  // The height of one column: the mean of the bins in it, at least a pixel where there is anything.
  column(shares, from, length, height) {
    const first = Math.max(0, Math.floor(from));
    const last = Math.min(shares.length, Math.max(Math.ceil(from + length), first + 1));
    let sum = 0;
    for (let b = first; b < last; b++) sum += shares[b];
    return sum > 0 ? Math.max(1, Math.round((height * sum) / (last - first))) : 0;
  }
  each(view, row, y) {
    const { context, spans } = this;
    const reached = new Float64Array(16).fill(-1);
    context.font = "11px system-ui, sans-serif";
    spans.each(row.track, view.from / spans.tick, view.to / spans.tick, (i) => {
      const lane = spans.lane[i];
      const left = Math.max(this.left, this.x(view, spans.from(i)));
      const right = Math.min(view.width, this.x(view, spans.to(i)));
      if (right - reached[lane] < 0.4 && right - left < 0.8 && i !== view.span) return;
      reached[lane] = right;
      this.span(view, i, left, Math.max(right - left, 0.8), y + 2 + lane * LANE);
    });
  }
  span(view, i, left, width, top) {
    const { context, spans } = this;
    const colour = this.colour(i);
    const dimmed = view.line >= 0 && spans.line[i] !== view.line;
    context.globalAlpha = dimmed ? 0.45 : 1;
    context.fillStyle = COLOURS[colour];
    context.fillRect(left, top, width > 3 ? width - 0.6 : width, LANE - 2);
    if (width > 34) {
      context.fillStyle = dimmed ? this.ink : INKS[colour];
      const room = Math.floor((width - 8) / 6.7);
      const name = spans.name(i);
      context.textAlign = "left";
      context.globalAlpha = 1;
      context.fillText(name.length > room ? `${name.slice(0, room - 1)}…` : name, left + 4, top + LANE / 2 - 0.5);
    }
    context.globalAlpha = 1;
    if (view.lit && spans.lit && spans.lit[i] && width > 2) {
      context.fillStyle = this.accent;
      context.fillRect(left, top + LANE - 3, width, 3);
    }
    if (i === view.span) {
      context.strokeStyle = this.ink;
      context.lineWidth = 2;
      context.strokeRect(left, top - 0.5, Math.max(2, width - 1), LANE - 1);
    }
  }
  // The critical path itself, segment by segment.
  segments(view, row, top) {
    const { context } = this;
    context.font = "11px system-ui, sans-serif";
    for (const [index, segment] of this.data.path.entries()) {
      if (segment.to_ns < view.from || segment.from_ns > view.to) continue;
      const left = Math.max(this.left, this.x(view, segment.from_ns));
      const width = Math.max(0.8, Math.min(view.width, this.x(view, segment.to_ns)) - left);
      const waits = segment.waited_at ? (segment.parts.queueing || 0) / (segment.to_ns - segment.from_ns) : 0;
      const y = top + 2 + 20 * segment.lane;
      context.fillStyle = this.accent;
      context.globalAlpha = index % 2 ? 0.75 : 1;
      context.fillRect(left, y, width > 3 ? width - 0.6 : width, 17);
      context.globalAlpha = 1;
      if (waits > 0) { // what of it was waiting, as a dark foot
        context.fillStyle = this.ink;
        context.fillRect(left, y + 15, width * waits, 2);
      }
      if (width > 40) {
        context.fillStyle = "#000";
        context.textAlign = "left";
        const name = segment.call || this.data.words[segment.sort];
        const room = Math.floor((width - 8) / 6.7);
        context.fillText(name.length > room ? `${name.slice(0, room - 1)}…` : name, left + 4, y + 8);
      }
      if (index === view.segment) {
        context.strokeStyle = this.ink;
        context.lineWidth = 2;
        context.strokeRect(left, y - 1, Math.max(2, width - 1), 18);
      }
    }
  }
  // On a place, or one that is closed around it, where the critical path was.
  litPlaces(view, row, y) {
    const { context } = this;
    context.fillStyle = this.accent;
    for (const [from, to] of this.data.lit(row)) {
      if (to < view.from || from > view.to) continue;
      const left = Math.max(this.left, this.x(view, from));
      context.fillRect(left, y, Math.max(1, this.x(view, to) - left), 2);
    }
  }
  // Arrows of the chosen span; faintly those of sends in the window, an end of which stands on a row of its own, while they
  // are few.
  arrows(view) {
    const { flows } = this.data;
    const shown = new Set(view.span === null ? [] : this.spans.flows(view.span));
    for (const f of shown) this.arrow(view, flows.from[f], flows.to[f], flows.left[f], flows.came[f]);
    const [begin, end] = [view.from / this.spans.tick, view.to / this.spans.tick];
    const open = (i) => view.rowOf.has(this.spans.track[i]);
    const sends = this.sends().filter((f) => flows.came[f] >= begin && flows.left[f] <= end && !shown.has(f)
      && (open(flows.from[f]) || open(flows.to[f])));
    this.context.globalAlpha = 0.4;
    if (sends.length <= 200) for (const f of sends) this.arrow(view, flows.from[f], flows.to[f], flows.left[f], flows.came[f]);
    this.context.globalAlpha = 1;
  }
  sends() {
    if (!this.sent) this.sent = [...this.data.flows.kind.keys()].filter((f) => this.data.flows.kind[f] === 3);
    return this.sent;
  }
  // How high a span stands: on its own row, or on that of the closed place that it is in.
  height(view, i) {
    let track = this.spans.track[i];
    while (track >= 0 && !view.rowOf.has(track)) [, track] = this.data.tracks[track];
    const row = view.rowOf.get(track);
    if (row === undefined) return null;
    const own = track === this.spans.track[i] && !row.closed;
    return row.y - view.scroll + view.top + (own ? 2 + this.spans.lane[i] * LANE + LANE / 2 - 1 : row.height / 2);
  }
  arrow(view, from, to, left, came) {
    const a = this.height(view, from);
    const b = this.height(view, to);
    if (a === null || b === null) return;
    const { context } = this;
    const [x0, y0, x1, y1] = [this.x(view, left * this.spans.tick), a, this.x(view, came * this.spans.tick), b];
    if (Math.max(y0, y1) < view.top || Math.min(y0, y1) > view.height) return;
    context.strokeStyle = this.ink;
    context.fillStyle = this.ink;
    context.lineWidth = 1.3;
    context.beginPath();
    context.moveTo(x0, y0);
    const bend = Math.max(12, Math.abs(x1 - x0) / 3);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 6, y1 - 3.5);
    context.lineTo(x1 - 6, y1 + 3.5);
    context.fill();
  }
};
