// A scatter of two columns, with the front where both are objectives.
"use strict";

const { make } = kernbench;
const LEFT = 74;
const BOTTOM = 34;
const ROOM = 16; // above and to the right, and between the frame and what has no value

// The points that none is better than in both of two columns, in the order of the first: a staircase.
kernbench.front = (points, x, y) => {
  const sign = (column) => (column.best === "greatest" ? -1 : 1);
  const [a, b] = [sign(x), sign(y)];
  const found = [];
  for (let i = 0; i < points.count; i++) if (points.ranked[i] && Number.isFinite(x.value(i)) && Number.isFinite(y.value(i))) found.push(i);
  found.sort((i, j) => a * (x.value(i) - x.value(j)) || b * (y.value(i) - y.value(j)));
  const front = [];
  let least = Infinity;
  for (const i of found) {
    const last = front[front.length - 1];
    const value = b * y.value(i);
    if (value < least || (last !== undefined && value === least && x.value(i) === x.value(last))) {
      front.push(i);
      least = value;
    }
  }
  return front;
};

kernbench.scatter = (element, points, run) => {
  const canvas = make("canvas", { tabindex: "0", role: "application", "aria-roledescription": "scatter plot" });
  const told = make("output", { class: "told" });
  const [across, up] = [choice("across"), choice("up")];
  const keys = make("p", { class: "note keys" }, "Keys: ← → from point to point, ↑ ↓ along the front, Enter shows the point, Esc lets go.");
  element.append(make("div", { class: "bar", role: "toolbar", "aria-label": "Axes of the scatter" }, across.label, across.logs, up.label, up.logs), canvas, told, keys);
  const paint = kernbench.soon(draw);
  let place = null;
  let front = [];
  let order = [];
  let near = null;

  function choice(name) {
    const select = make("select", { "aria-label": `Column ${name}` }, ...points.columns.map((each, n) => make("option", { value: String(n) }, each.short)));
    const log = make("input", { type: "checkbox", "aria-label": `Logarithmic ${name}` });
    select.addEventListener("change", () => show({ [name]: points.columns[select.value] }));
    log.addEventListener("change", () => show({}));
    return { select, log, label: make("label", {}, `${name} `, select), logs: make("label", {}, log, " log") };
  }
  function show(asked) {
    for (const [name, side] of [["across", across], ["up", up]]) {
      if (asked[name]) {
        side.column = asked[name];
        side.select.value = String(points.columns.indexOf(side.column));
        side.log.checked = side.column.log === true;
      }
      side.scale = new kernbench.Scale(side.column, points.count, side.log.checked);
      side.log.disabled = !side.column.numbers || !(side.scale.low > 0);
    }
    const both = across.column.best && up.column.best && across.column !== up.column;
    front = both ? kernbench.front(points, across.column, up.column) : [];
    arrange();
    const what = `${up.column.name} over ${across.column.name}`;
    canvas.setAttribute("aria-label", `Scatter of ${what}; arrow keys go from point to point`);
    near = null;
    tell();
    paint();
  }
  function arrange() {
    order = [];
    for (let i = 0; i < points.count; i++) if (points.kept[i] && drawn(i)) order.push(i);
    order.sort((i, j) => across.scale.at[i] - across.scale.at[j] || up.scale.at[i] - up.scale.at[j] || i - j);
  }
  const drawn = (i) => !Number.isNaN(across.scale.at[i]) && !Number.isNaN(up.scale.at[i]);
  function xy(i) {
    const [a, b] = [across.scale.at[i], up.scale.at[i]];
    const wide = place.width - LEFT - 2 * ROOM;
    const high = place.height - BOTTOM - 3 * ROOM;
    return [Number.isNaN(a) ? LEFT - 5 : LEFT + ROOM + wide * a, Number.isNaN(b) ? place.height - BOTTOM + 2 : ROOM + high * (1 - b)];
  }
  function tell() {
    const i = near; // of the chosen point its panel tells
    if (i === null) {
      let without = 0;
      for (let n = 0; n < points.count; n++) if (points.kept[n] && !drawn(n)) without++;
      const line = front.length ? `The line is the front, with ${front.length === 1 ? "one point" : `${front.length} points`}: what is better in one objective there is worse in the other.`
        : across.column.best && up.column.best && across.column !== up.column ? "No point has both figures." : "A front is drawn where both columns are objectives.";
      told.textContent = `${line}${without ? ` ${without === 1 ? "One point has" : `${without} points have`} no value here, and ${without === 1 ? "stands" : "stand"} as × at the edge.` : ""}`;
      return;
    }
    const more = [points.status(i) === "ok" ? "" : points.status(i), front.includes(i) ? "on the front" : ""].filter(Boolean);
    told.textContent = `Point ${points.index[i]}: ${across.column.short} ${across.column.text(i)}, ${up.column.short} ${up.column.text(i)}${more.map((each) => `, ${each}`).join("")}.`;
  }
  function draw() {
    const width = element.clientWidth;
    if (!width) return;
    place = { width, height: Math.max(240, Math.min(440, 0.62 * width)) };
    const context = kernbench.sized(canvas, place.width, place.height);
    frame(context);
    const wide = points.count > 2000 ? 1.5 : points.count > 300 ? 2.8 : 4;
    context.fillStyle = kernbench.css("--kb-rule");
    for (let i = 0; i < points.count; i++) if (!points.kept[i]) dot(context, i, wide);
    for (const [colour, some] of kernbench.shades(points, run.colour.scale)) {
      context.fillStyle = context.strokeStyle = colour;
      for (const i of some) {
        context.globalAlpha = front.length && !front.includes(i) ? 0.5 : 1; // what another point beats in both stands back
        dot(context, i, wide);
      }
    }
    context.globalAlpha = 1;
    stairs(context);
    labels(context);
    for (const [i, line] of [[run.point, 3], [near, 2]]) {
      if (i === null || i === undefined) continue;
      context.strokeStyle = kernbench.css("--kb-c5");
      context.lineWidth = line;
      context.beginPath();
      context.arc(...xy(i), wide + 4, 0, 7);
      context.stroke();
    }
  }
  // A point, or a cross at the edge where one of its values is none.
  function dot(context, i, wide) {
    const [x, y] = xy(i);
    if (drawn(i) && points.count > 2000) {
      context.fillRect(x - wide, y - wide, 2 * wide, 2 * wide);
      return;
    }
    if (drawn(i)) {
      context.beginPath();
      context.arc(x, y, wide, 0, 7);
      context.fill();
      return;
    }
    context.strokeStyle = context.fillStyle;
    context.lineWidth = 1.4;
    context.beginPath();
    for (const turn of [-1, 1]) {
      context.moveTo(x - 3, y - 3 * turn);
      context.lineTo(x + 3, y + 3 * turn);
    }
    context.stroke();
  }
  // The front: from each of its points a step towards the next.
  function stairs(context) {
    if (!front.length) return;
    context.strokeStyle = context.fillStyle = kernbench.css("--kb-ink");
    context.lineWidth = 1.4;
    context.beginPath();
    let before = null;
    for (const i of front) {
      const [x, y] = xy(i);
      if (before !== null) context.lineTo(x, before);
      if (before === null) context.moveTo(x, y);
      else context.lineTo(x, y);
      before = y;
    }
    context.stroke();
    for (const i of front) {
      context.beginPath();
      context.arc(...xy(i), 2.2, 0, 7);
      context.fill();
    }
  }
  // The numbers of the front's points, where there is room.
  function labels(context) {
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = kernbench.css("--kb-ink");
    context.textAlign = "left";
    context.textBaseline = "bottom";
    const taken = [];
    for (const i of front) {
      const [x, y] = xy(i);
      const text = `#${points.index[i]}`;
      const left = Math.min(x + 6, place.width - context.measureText(text).width - 2);
      if (taken.some(([a, b]) => Math.abs(a - left) < 34 && Math.abs(b - y) < 13)) continue;
      taken.push([left, y]);
      context.fillText(text, left, y - 4);
    }
  }
  function frame(context) {
    const [ink, soft, rule] = ["--kb-ink", "--kb-soft", "--kb-rule"].map(kernbench.css);
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = ink;
    context.strokeStyle = rule;
    context.lineWidth = 1;
    const low = place.height - BOTTOM - ROOM / 2;
    for (const [at, text] of across.scale.ticks(Math.max(2, Math.floor((place.width - LEFT) / 90)))) {
      const x = LEFT + ROOM + (place.width - LEFT - 2 * ROOM) * at;
      rules(context, x, ROOM / 2, x, low);
      context.textAlign = "center";
      context.textBaseline = "top";
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(place.width - half, x), low + 14);
    }
    for (const [at, text] of up.scale.ticks(6)) {
      const y = ROOM + (place.height - BOTTOM - 3 * ROOM) * (1 - at);
      rules(context, LEFT, y, place.width, y);
      context.textAlign = "right";
      context.textBaseline = "middle";
      let short = text;
      while (short.length > 3 && context.measureText(short).width > LEFT - 14) short = `${short.slice(0, -2)}…`;
      context.fillText(short, LEFT - 12, y);
    }
    context.fillStyle = soft; // what the axes are of
    context.textAlign = "right";
    context.textBaseline = "bottom";
    context.fillText(`${across.column.short} →`, place.width - 8, low - 6);
    context.textBaseline = "top";
    context.fillText(`↑ ${up.column.short}`, place.width - 8, ROOM / 2 + 6);
    context.strokeStyle = soft;
    context.strokeRect(LEFT + 0.5, ROOM / 2 + 0.5, place.width - LEFT - 1, low - ROOM / 2);
  }
  function rules(context, x0, y0, x1, y1) {
    context.beginPath();
    context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
    context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
    context.stroke();
  }
  function nearest(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [found, least] = [null, 14];
    for (let i = 0; i < points.count; i++) {
      if (!points.kept[i]) continue;
      const [a, b] = xy(i);
      const away = Math.hypot(a - x, b - y);
      if (away < least) [found, least] = [i, away];
    }
    return found;
  }
  function look(i) {
    if (i === near) return;
    near = i;
    tell();
    paint();
  }
  canvas.addEventListener("pointermove", (event) => look(nearest(event)));
  canvas.addEventListener("pointerleave", () => look(null));
  canvas.addEventListener("click", (event) => { const i = nearest(event); if (i !== null) run.set("point", i, null); });
  canvas.addEventListener("keydown", (event) => {
    const along = { ArrowLeft: [order, -1], ArrowRight: [order, 1], ArrowDown: [front, -1], ArrowUp: [front, 1] }[event.key];
    if (event.key === "Enter" && near !== null) run.set("point", near, canvas);
    if (!along || !along[0].length) return;
    event.preventDefault();
    const [list, step] = along;
    const at = list.indexOf(near);
    look(list[at < 0 ? (step > 0 ? 0 : list.length - 1) : Math.max(0, Math.min(list.length - 1, at + step))]);
  });
  run.on("kept", () => { arrange(); tell(); paint(); });
  run.on("point", paint);
  run.on("colour", paint);
  window.addEventListener("kernbench-theme", paint);
  new ResizeObserver(paint).observe(element);
  const varied = (columns) => columns.filter((each) => points.varies(each));
  const [first, second] = varied(points.objectives());
  const [one, other] = second ? [first, second] : [...varied(points.parameters()), ...varied(points.columns), ...points.columns];
  show({ across: one, up: second || first || other || one });
  return { show };
};
