// One point: its values and figures, what became of it, and how to run it again.
"use strict";

const { make } = kernbench;

// Put a text where it can be pasted from; older browsers, and pages that are not let, copy what is selected.
async function copied(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    const done = document.execCommand("copy");
    if (done) getSelection().removeAllRanges();
    return done;
  }
}

function command(title, text) {
  const shown = make("pre", { class: "command" }, text);
  const told = make("span", { role: "status" });
  const button = make("button", { type: "button", "aria-label": `Copy the command ${text}` }, "copy");
  button.addEventListener("click", async () => { told.textContent = (await copied(shown)) ? "copied" : "select it, and copy it by the keyboard"; });
  return [make("p", {}, title), shown, make("div", { class: "copy" }, button, told)];
}

// Long names break behind their dots.
function breaking(name) {
  return name.split(/(?<=[._])/).flatMap((part, n) => (n ? [make("wbr"), part] : [part]));
}

function facts(rows) {
  return make("dl", { class: "facts" }, ...rows.map(([name, value]) => make("div", {}, make("dt", {}, ...breaking(name)), make("dd", {}, value))));
}

// A value and, where that of the best point is another, that one, and by how much it differs.
function beside(column, i, best) {
  const text = column.text(i);
  if (best === null || best === i || column.text(best) === text) return text;
  const [own, other] = [column.value(i), column.value(best)];
  const share = column.role !== "parameter" && column.numbers && other ? own / other - 1 : NaN;
  const more = Number.isFinite(share) ? `, ${share > 0 ? "+" : "−"}${(100 * Math.abs(share)).toFixed(1)}%` : "";
  return make("span", {}, text, make("span", { class: "small" }, ` (best: ${column.text(best)}${more})`));
}

kernbench.pointPanel = (element, points, run) => {
  let from = null; // what the keyboard came from

  function show(i, source) {
    element.classList.toggle("open", i !== null);
    if (i === null) {
      element.replaceChildren(make("p", { class: "note" }, "Choose a point: its values and figures, what became of it, and how to run it again."));
      return;
    }
    const title = make("h3", { tabindex: "-1" }, `Point ${points.index[i]}`);
    const close = make("button", { type: "button", "aria-label": "Close the point", onclick: leave }, "✕");
    const inside = [make("div", { class: "title" }, title, close)];
    const marks = [points.front[i] ? "★ on the front: no point is better in all objectives" : "", points.fidelity(i) && `fidelity: ${points.fidelity(i)}`].filter(Boolean);
    if (marks.length) inside.push(make("p", { class: "note" }, marks.join("; ")));
    if (points.status(i) !== "ok") inside.push(make("p", { class: "warn" }, make("strong", {}, points.status(i))), make("pre", { class: "warn" }, points.error(i) || "Nothing more is known."));
    if (points.warning(i)) inside.push(make("pre", { class: "warn" }, points.warning(i)));
    const best = points.best();
    if (best !== null && best !== i) inside.push(make("p", { class: "note" }, "Beside the ", make("button", { type: "button", onclick: () => run.set("point", best, null) }, `best, point ${points.index[best]}`), ":"));
    if (best === i) inside.push(make("p", { class: "note" }, points.objectives().length > 1 ? `The best in ${points.objectives()[0].name}.` : "The best."));
    const rows = (role) => points.columns.filter((each) => each.role === role).map((each) => [each.name, beside(each, i, best)]);
    inside.push(facts(rows("parameter")));
    if (rows("objective").length) inside.push(make("h4", {}, "Objectives"), facts(rows("objective")));
    if (rows("figure").length) inside.push(make("details", { open: rows("figure").length < 9 }, make("summary", {}, `${rows("figure").length} more figures`), facts(rows("figure"))));
    inside.push(make("h4", {}, "The run"));
    if (points.link(i)) inside.push(make("p", {}, make("a", { class: "run", href: points.link(i) }, "Open the page of this run")));
    else if (points.show(i)) inside.push(...command("Its own page, with machine, timeline and ledger, is made by this; then load this page again:", points.show(i)));
    if (points.again(i)) inside.push(...command("The same run again, from the folder in which the sweep was begun:", points.again(i)));
    inside.push(facts([["key", make("code", {}, points.key(i))], ["op log SHA-256", make("code", {}, points.op_log(i) || "none: the run did not come to its end")]]));
    element.replaceChildren(...inside);
    element.scrollTop = 0;
    from = source || null;
    if (from) title.focus();
  }
  function leave() {
    const row = run.point; // rows are made anew when they are turned to
    run.set("point", null);
    if (from) (from.isConnected ? from : document.querySelector(`.open[aria-label="Point ${points.index[row]}"]`) || element).focus();
    from = null;
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && run.point !== null) leave(); });
  run.on("point", show);
  show(null);
};
