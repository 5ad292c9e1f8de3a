// The page of a sweep: what its parts share is the state of the page, as in the page of a run.
"use strict";

const { make } = kernbench;
const beside = matchMedia("(min-width: 70.01rem)");

// What points are coloured by, and which of them are kept.
function filterBar(element, points, run) {
  const numbers = points.drawn();
  const colour = make("select", {}, ...numbers.map((each, n) => make("option", { value: String(n) }, each.short)));
  const legend = make("span", { class: "scale" });
  const words = make("input", { type: "search", placeholder: "rows=16 time_ns<5000 error …", "aria-label": "Filter points", spellcheck: "false" });
  const only = make("select", { "aria-label": "Which points" }, ...[["", "all points"], ["ok", "those that ran"], ["failed", "those that failed"], ["front", "the best"]].map(([value, text]) => make("option", { value }, text)));
  const told = make("output", { class: "told" });
  const clear = make("button", { type: "button" }, "clear");
  const ask = () => Object.assign(points, { words: words.value, only: only.value }).filter();
  const paint = () => {
    const { scale } = run.colour;
    const canvas = make("canvas", { "aria-hidden": "true" });
    const context = kernbench.sized(canvas, 96, 12);
    for (let x = 0; x < 96; x++) {
      context.fillStyle = kernbench.colour((0.92 * x) / 95);
      context.fillRect(x, 0, 1, 12);
    }
    legend.replaceChildren(scale.empty ? "" : scale.label(scale.low), canvas, scale.empty ? "" : scale.label(scale.high));
  };
  const choose = () => {
    const column = numbers[colour.value];
    run.set("colour", { scale: new kernbench.Scale(column, points.count, column.log) });
    paint();
  };
  colour.value = String(Math.max(0, numbers.findIndex((each) => each.role === "objective" && points.varies(each))));
  colour.addEventListener("change", choose);
  words.addEventListener("input", ask);
  only.addEventListener("change", ask);
  clear.addEventListener("click", () => {
    words.value = only.value = "";
    points.brushes.clear();
    ask();
  });
  run.on("kept", () => {
    const kept = points.keptCount;
    told.textContent = `${kept === points.count ? "All" : `${kept.toLocaleString("en")} of`} ${points.count.toLocaleString("en")} points${points.wrong ? `. ${points.wrong}` : ""}`;
    told.classList.toggle("warn", Boolean(points.wrong));
    clear.disabled = kept === points.count && !points.words;
  });
  window.addEventListener("kernbench-theme", paint);
  element.append(make("label", {}, "Filter ", words), only, clear, told, make("label", {}, "Colour ", colour), legend);
  choose();
}

// The point that the address names: `#point-` and the begin of its key.
function addressed(points) {
  const [, key] = location.hash.match(/^#point-([0-9a-f]+)$/) || [];
  if (!key) return null;
  for (let i = 0; i < points.count; i++) if (points.key(i).startsWith(key)) return i;
  return null;
}

kernbench.section("sweep", (element, data, run) => {
  if (!data.count) return;
  const points = new kernbench.Points(data, run);
  run.points = points;
  run.point = null;
  const part = (name) => element.querySelector(`.${name}`);
  if (!points.columns.length) {
    run.colour = null; // there is nothing to draw
    kernbench.pointPanel(part("point"), points, run);
    kernbench.pointsTable(part("table"), points, run);
    return;
  }
  filterBar(part("filter"), points, run);
  kernbench.pointPanel(part("point"), points, run);
  kernbench.parallel(part("parallel"), points, run);
  const scatter = kernbench.scatter(part("scatter"), points, run);
  kernbench.pointsTable(part("table"), points, run);
  for (const button of element.querySelectorAll("button[data-over]")) {
    button.addEventListener("click", () => {
      scatter.show({ across: points.parameters()[button.dataset.over], up: points.objectives()[button.dataset.of] });
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      part("scatter").scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "center" });
      part("scatter").querySelector("canvas").focus({ preventScroll: true });
    });
  }
  window.addEventListener("hashchange", () => { const i = addressed(points); if (i !== null) run.set("point", i, null); });
  points.filter();
  const asked = addressed(points) ?? (beside.matches ? points.best() : null); // below a narrow page it would lie over it
  if (asked !== null) run.set("point", asked, null);
  run.on("point", (i) => history.replaceState(null, "", i === null ? location.pathname + location.search : `#point-${points.key(i).slice(0, 16)}`));
});
