// Parallel coordinates: a line for each point through an axis for each column; a part of an axis keeps what goes through it.
"use strict";

const { make } = kernbench;
const EDGE = 14; // how far from an axis a brush may begin
const NONE = -0.085; // where points without a value stand

kernbench.parallel = (element, points, run) => {
  const columns = points.drawn();
  const axes = columns.map((column) => ({ column, log: column.log, scale: new kernbench.Scale(column, points.count, column.log), from: 0, to: 1 }));
  const canvas = make("canvas", { "aria-hidden": "true" });
  const ground = make("div", { class: "ground" }, canvas);
  element.append(ground);
  let place = null; // of the drawing: width, height, whether axes lie
  const [all, lines] = [make("canvas"), make("canvas")]; // all lines in grey; those that are kept over them
  let stale = []; // which of both must be drawn anew
  let moving = 0; // while a brush moves only some of many lines are drawn
  const paint = kernbench.soon(draw);
  const anew = (...which) => () => {
    stale = [...new Set([...stale, ...which])];
    paint();
  };

  for (const axis of axes) {
    const { column } = axis;
    const best = { least: " ↓", greatest: " ↑" }[column.best] || "";
    axis.name = make("div", { class: "name", title: column.name }, make("span", {}, column.short + best));
    if (column.numbers && axis.scale.low > 0 && axis.scale.high > axis.scale.low) {
      const button = make("button", { type: "button", "aria-label": `Logarithmic axis of ${column.name}`, "aria-pressed": String(axis.log) }, "log");
      button.addEventListener("click", () => {
        axis.log = !axis.log;
        button.setAttribute("aria-pressed", String(axis.log));
        axis.scale = new kernbench.Scale(column, points.count, axis.log);
        anew("all")();
        set(axis, 0, 1);
      });
      axis.name.append(button);
    }
    axis.band = make("div", { class: "band" });
    axis.handles = ["from", "to"].map((end, at) => {
      const handle = make("div", { class: `handle ${end}`, role: "slider", tabindex: "0", "aria-valuemin": "0", "aria-valuemax": "100", "aria-label": `${at ? "Largest" : "Smallest"} ${column.name} that is kept` });
      handle.addEventListener("keydown", (event) => key(axis, at, event));
      return handle;
    });
    ground.append(axis.name, axis.band, ...axis.handles);
  }

  function key(axis, end, event) {
    const sign = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -5, PageUp: 5 }[event.key];
    const now = [axis.from, axis.to];
    const { scale } = axis;
    if (sign !== undefined) {
      const steps = scale.values ? scale.values.map((each) => scale.of(each)) : Array.from({ length: 51 }, (_, n) => n / 50);
      const near = steps.reduce((a, b, n) => (Math.abs(b - now[end]) < Math.abs(steps[a] - now[end]) ? n : a), 0);
      now[end] = steps[Math.max(0, Math.min(steps.length - 1, near + sign))];
    } else if (event.key === "Home") now[end] = end ? now[0] : 0;
    else if (event.key === "End") now[end] = end ? 1 : now[1];
    else return;
    event.preventDefault();
    if (now[0] <= now[1]) set(axis, ...now);
  }
  function move(axis, from, to) {
    clearTimeout(moving);
    moving = setTimeout(() => { moving = 0; anew("lines")(); }, 150);
    set(axis, from, to);
  }
  function set(axis, from, to) {
    [axis.from, axis.to] = [Math.max(0, from), Math.min(1, to)];
    points.brush(axis.column, axis.scale, axis.from, axis.to);
  }
  // Axes stand side by side; on a narrow page they lie, one below the other.
  function layout() {
    const width = element.clientWidth;
    if (!width) return;
    const lying = width < 36 * parseFloat(getComputedStyle(document.documentElement).fontSize);
    const apart = lying ? 76 : Math.max(92, (width - 140) / Math.max(1, axes.length - 1));
    const long = lying ? width - 40 : 300;
    const size = lying ? [width, 40 + apart * axes.length] : [Math.max(width, 140 + apart * (axes.length - 1)), long + 104];
    place = { lying, apart, long, width: size[0], height: size[1] };
    ground.classList.toggle("lying", lying);
    ground.style.width = `${size[0]}px`;
    ground.style.height = `${size[1]}px`;
    for (const [n, axis] of axes.entries()) {
      const [x, y] = lying ? [0, n * apart + 2] : [cross(n) - apart / 2, 0];
      axis.name.style.left = `${Math.max(0, x)}px`;
      axis.name.style.top = `${y}px`;
      axis.name.style.width = lying ? "100%" : `${Math.min(apart, size[0]) - 6}px`;
    }
    stale = ["all", "lines"];
    draw();
  }
  const cross = (n) => (place.lying ? 46 + n * place.apart : 50 + n * place.apart);
  const along = (at) => (place.lying ? 26 + (place.long - 12) * at : 52 + place.long * (1 - at));
  const xy = (n, at) => (place.lying ? [along(Number.isNaN(at) ? NONE : at), cross(n)] : [cross(n), along(Number.isNaN(at) ? NONE : at)]);

  function line(context, i) {
    for (const [n, axis] of axes.entries()) {
      const [x, y] = xy(n, axis.scale.at[i]);
      if (n === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    if (axes.length === 1) context.lineTo(...xy(0, axes[0].scale.at[i]).map((each, n) => each + (n === (place.lying ? 1 : 0) ? 6 : 0)));
  }
  function draw() {
    if (place === null) return;
    const kept = points.keptCount;
    if (stale.includes("all") && kept < points.count) {
      drawAll();
      stale = ["lines"];
    }
    if (stale.includes("lines")) drawKept(kept);
    stale = stale.filter((each) => each === "all");
    const context = kernbench.sized(canvas, place.width, place.height);
    context.drawImage(lines, 0, 0, place.width, place.height);
    if (run.point !== null && run.point !== undefined) {
      context.lineJoin = "round";
      context.lineWidth = 3.5;
      context.strokeStyle = kernbench.css("--kb-c5");
      stroke(context, run.point);
    }
    marks(context);
    for (const axis of axes) handles(axis);
  }
  function drawAll() {
    const context = kernbench.sized(all, place.width, place.height);
    context.strokeStyle = kernbench.css("--kb-rule");
    context.globalAlpha = points.count > 1000 ? 0.25 : 0.6;
    const each = Math.ceil(points.count / 3000);
    for (let i = 0; i < points.count; i += each) stroke(context, i);
  }
  function drawKept(kept) {
    const context = kernbench.sized(lines, place.width, place.height);
    if (kept < points.count) context.drawImage(all, 0, 0, place.width, place.height);
    context.lineJoin = "round";
    const each = moving ? Math.ceil(kept / 1000) : 1;
    const strong = kept / each > 3000 ? 0.25 : kept / each > 300 ? 0.5 : 0.85;
    context.lineWidth = kept > 300 ? 1 : 1.6;
    for (const [colour, some] of kernbench.shades(points, run.colour.scale)) {
      context.strokeStyle = colour;
      for (let n = 0; n < some.length; n += each) {
        context.globalAlpha = points.front[some[n]] ? Math.min(1, 2 * strong) : 0.4 * strong; // dominated ones stand back
        stroke(context, some[n]);
      }
    }
  }
  function stroke(context, i) {
    context.beginPath();
    line(context, i);
    context.stroke();
  }
  function marks(context) {
    const [ink, soft, shade] = ["--kb-ink", "--kb-soft", "--kb-ground"].map(kernbench.css);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [n, axis] of axes.entries()) {
      context.strokeStyle = soft;
      context.lineWidth = 1.2;
      context.beginPath();
      context.moveTo(...xy(n, 0));
      context.lineTo(...xy(n, 1));
      context.stroke();
      const most = place.lying ? Math.max(2, Math.floor(place.long / 70)) : 7;
      const all = axis.scale.ticks(most);
      if (axis.scale.at.some(Number.isNaN)) all.unshift([NaN, "–"]);
      for (const [at, told] of all) {
        const [x, y] = xy(n, at);
        const text = fitted(context, told);
        const wide = context.measureText(text).width;
        const left = place.lying ? Math.max(0, Math.min(place.width - wide, x - wide / 2)) : x + 14;
        const top = place.lying ? y + 19 : y;
        context.fillStyle = shade;
        context.globalAlpha = 0.8;
        context.fillRect(left - 2, top - 7, wide + 4, 14);
        context.globalAlpha = 1;
        context.fillStyle = ink;
        context.fillText(text, left, top);
        context.fillRect(x - (place.lying ? 0.5 : 3), y - (place.lying ? 3 : 0.5), place.lying ? 1 : 6, place.lying ? 6 : 1);
      }
    }
  }
  function fitted(context, told) {
    let text = told;
    while (text.length > 4 && context.measureText(text).width > (place.lying ? place.width / 2 : place.apart - 26)) text = `${text.slice(0, -2)}…`;
    return text;
  }
  function handles(axis) {
    const n = axes.indexOf(axis);
    const ends = [axis.from, axis.to].map((at) => xy(n, at));
    axis.handles.forEach((handle, end) => {
      handle.style.left = `${ends[end][0]}px`;
      handle.style.top = `${ends[end][1]}px`;
      const at = [axis.from, axis.to][end];
      handle.setAttribute("aria-valuenow", String(Math.round(100 * at)));
      handle.setAttribute("aria-valuetext", axis.scale.empty ? "no value" : axis.scale.say(at));
    });
    const whole = axis.from <= 0 && axis.to >= 1;
    axis.band.hidden = whole;
    const [[x0, y0], [x1, y1]] = ends;
    Object.assign(axis.band.style, { left: `${Math.min(x0, x1)}px`, top: `${Math.min(y0, y1)}px`, width: `${Math.max(0, Math.abs(x1 - x0))}px`, height: `${Math.max(0, Math.abs(y1 - y0))}px` });
  }
  // The axis that a place is on, and where on it.
  function under(event) {
    const box = ground.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const [over, down] = place.lying ? [y, x] : [x, y];
    const n = axes.findIndex((_, each) => Math.abs(cross(each) - over) <= EDGE);
    const at = place.lying ? (down - 26) / (place.long - 12) : 1 - (down - 52) / place.long;
    return { x, y, axis: n < 0 ? null : axes[n], at: Math.max(0, Math.min(1, at)) };
  }
  ground.addEventListener("pointerdown", (event) => {
    if (event.target.closest("button")) return;
    const begun = under(event);
    const handle = axes.flatMap((axis) => axis.handles.map((each, end) => [each, axis, end])).find(([each]) => each === event.target);
    const axis = handle ? handle[1] : begun.axis;
    const other = handle ? [handle[1].to, handle[1].from][handle[2]] : begun.at;
    let last = null;
    const follow = kernbench.soon(() => {
      const { at } = under(last);
      move(axis, Math.min(at, other), Math.max(at, other));
    });
    const moved = (now) => {
      if (axis === null || Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) < 4) return;
      last = now;
      follow();
    };
    const ended = (now) => {
      ground.removeEventListener("pointermove", moved);
      if (Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) >= 4 || handle) return;
      if (axis !== null && (axis.from > 0 || axis.to < 1)) set(axis, 0, 1);
      else pick(begun.x, begun.y);
    };
    if (axis !== null) {
      event.preventDefault();
      ground.setPointerCapture(event.pointerId);
    }
    ground.addEventListener("pointermove", moved);
    ground.addEventListener("pointerup", ended, { once: true });
    ground.addEventListener("pointercancel", () => ground.removeEventListener("pointermove", moved), { once: true });
  });
  // Choose the kept line that is nearest to a place, at most 8 pixels away.
  function pick(x, y) {
    const [over, down] = place.lying ? [y, x] : [x, y];
    const share = (over - cross(0)) / place.apart;
    const n = Math.max(0, Math.min(axes.length - 2, Math.floor(share)));
    if (share < -0.2 || share > axes.length - 0.8) return;
    let [nearest, least] = [null, 8];
    for (let i = 0; i < points.count; i++) {
      if (!points.kept[i]) continue;
      const [a, b] = [n, Math.min(axes.length - 1, n + 1)].map((each) => along(Number.isNaN(axes[each].scale.at[i]) ? NONE : axes[each].scale.at[i]));
      const away = Math.abs(a + (b - a) * (share - n) - down) / Math.hypot(1, (b - a) / place.apart);
      if (away < least) [nearest, least] = [i, away];
    }
    if (nearest !== null) run.set("point", nearest, null);
  }
  run.on("point", paint);
  for (const what of ["kept", "colour"]) run.on(what, anew("lines"));
  // Give the axes back what the filter was cleared of.
  run.on("kept", () => {
    for (const axis of axes) if (!points.brushes.has(axis.column) && (axis.from > 0 || axis.to < 1)) [axis.from, axis.to] = [0, 1];
  });
  window.addEventListener("kernbench-theme", anew("all", "lines"));
  new ResizeObserver(layout).observe(element);
};
