// The table of points: sorted by any column, a page of rows at a time.
"use strict";

const { make } = kernbench;
const narrow = matchMedia("(max-width: 40rem)");
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

kernbench.pointsTable = (element, points, run) => {
  const body = make("tbody");
  const head = make("tr");
  const table = make("table", {}, make("thead", {}, head), body);
  const told = make("output", { class: "told" });
  const buttons = ["first", "back", "on", "last"].map((name, i) => make("button", { type: "button", "aria-label": `${["First", "Previous", "Next", "Last"][i]} rows`, onclick: () => turn(name) }, ["«", "‹", "›", "»"][i]));
  const all = make("input", { type: "checkbox" });
  const figures = points.columns.some((each) => each.role === "figure");
  const bar = make("div", { class: "bar", role: "toolbar", "aria-label": "Rows of the table" }, ...buttons, told);
  if (figures) bar.append(make("label", {}, all, " all figures"));
  element.append(bar, make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Points" }, table));
  // By the first objective, the best first.
  const objective = points.columns.findIndex((each) => each.role === "objective" && points.varies(each));
  let sorted = objective < 0 ? { key: "index", up: true } : { key: objective, up: points.columns[objective].best !== "greatest" };
  let rows = [];
  let top = 0;
  let many = narrow.matches ? 10 : 50; // rows at a time

  // What stands in the table: a name, how to sort by it, and how to write it.
  function shown() {
    const found = [{ key: "index", name: "point", number: true, value: (i) => points.index[i], cell: opener }];
    if (points.statuss.some((each) => each !== "ok")) found.push({ key: "status", name: "status", value: points.status, cell: status });
    if (points.fidelitys.some(Boolean)) found.push({ key: "fidelity", name: "fidelity", value: points.fidelity, cell: (i) => points.fidelity(i) || "–" });
    if (points.front.some(Boolean)) found.push({ key: "front", name: "front", value: (i) => -points.front[i], cell: (i) => (points.front[i] ? make("span", { role: "img", "aria-label": "none is better in all objectives" }, "★") : "") });
    for (const [at, column] of points.columns.entries()) {
      if (column.role === "figure" && !all.checked) continue;
      const says = column.best ? `, the ${column.best} is the best` : "";
      found.push({ key: at, name: column.short, title: column.name + says, number: column.numbers !== undefined, value: (i) => column.value(i), cell: (i) => column.text(i) });
    }
    return found;
  }
  function opener(i) {
    const button = make("button", { type: "button", class: "open", "aria-pressed": String(run.point === i), "aria-label": `Point ${points.index[i]}` }, String(points.index[i]));
    button.addEventListener("click", (event) => run.set("point", i, event.detail === 0 ? button : null));
    return button;
  }
  function status(i) {
    return points.status(i) === "ok" ? "ok" : make("span", { class: "warn" }, points.status(i));
  }
  function heads() {
    head.replaceChildren(...shown().map((each) => {
      const on = each.key === sorted.key;
      const button = make("button", { type: "button", class: "sort", title: each.title }, each.name);
      button.addEventListener("click", () => { sorted = { key: each.key, up: on ? !sorted.up : true }; arrange(); focusOn(each.key); });
      return make("th", { scope: "col", class: each.number ? "n" : false, "aria-sort": on ? (sorted.up ? "ascending" : "descending") : false, "data-key": String(each.key) }, button);
    }));
  }
  // Heads are made anew: the one that was used keeps the focus.
  function focusOn(key) { head.querySelector(`[data-key="${key}"] button`).focus(); }
  function arrange() {
    rows = [];
    for (let i = 0; i < points.count; i++) if (points.kept[i]) rows.push(i);
    const by = shown().find((each) => each.key === sorted.key) || shown()[0];
    const values = new Map(rows.map((i) => [i, by.value(i)]));
    const sign = sorted.up ? 1 : -1;
    rows.sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      const [none, other] = [Number.isNaN(x), Number.isNaN(y)]; // what has no value comes last, either way
      return none || other ? none - other || a - b : sign * order(x, y) || a - b;
    });
    top = 0;
    fill();
  }
  function turn(name) {
    const last = Math.max(0, Math.floor((rows.length - 1) / many) * many);
    top = { first: 0, back: Math.max(0, top - many), on: Math.min(last, top + many), last }[name];
    fill();
  }
  function fill() {
    heads();
    const columns = shown();
    const here = rows.slice(top, top + many);
    body.replaceChildren(...here.map((i) => {
      const row = make("tr", { class: run.point === i ? "chosen" : false }, ...columns.map((each) => make("td", { class: each.number ? "n" : false }, each.cell(i))));
      row.addEventListener("click", (event) => { if (!event.target.closest("button")) run.set("point", i, null); });
      return row;
    }));
    if (narrow.matches) kernbench.stacked(table);
    told.textContent = rows.length ? `${(top + 1).toLocaleString("en")}–${(top + here.length).toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "No point is kept: clear the filter.";
    buttons.forEach((button, i) => { button.setAttribute("aria-disabled", String(i < 2 ? top === 0 : top + many >= rows.length)); });
  }
  // Turn to the page that a point is on.
  function find(i) {
    const at = rows.indexOf(i);
    if (at >= 0 && (at < top || at >= top + many)) top = Math.floor(at / many) * many;
    if (at < 0 || body.children.length === 0) return;
    for (const [row, each] of rows.slice(top, top + many).entries()) mark(row, each);
  }
  function mark(row, i) {
    body.children[row].classList.toggle("chosen", run.point === i);
    body.children[row].querySelector(".open").setAttribute("aria-pressed", String(run.point === i));
  }
  narrow.addEventListener("change", () => {
    many = narrow.matches ? 10 : 50;
    arrange();
  });
  all.addEventListener("change", fill);
  run.on("kept", kernbench.soon(arrange));
  run.on("point", (i) => {
    const before = top;
    if (i !== null && rows.indexOf(i) >= 0) top = Math.floor(rows.indexOf(i) / many) * many;
    if (top !== before) fill();
    else find(i === null ? rows[top] : i);
  });
  arrange();
};
