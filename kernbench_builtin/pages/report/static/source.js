// The source of the kernels, with the time of each line in the window, over all PEs, and on the critical path.
"use strict";

const { make } = kernbench;

function bar(share, name, kind) {
  return make("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": name },
    make("rect", { class: kind, x: 0, y: 1, width: Math.max(share > 0 ? 1 : 0, 100 * share), height: 8 }, make("title", {}, name)));
}

// A time as a bar of its share of the whole, with the number beside it; nothing where there was none.
function amount(ns, whole, name, kind) {
  if (!(ns > 0)) return "";
  const share = kernbench.share(ns / whole);
  return make("div", { class: "amount" }, bar(ns / whole, `${name}, ${share} of all`, kind), make("span", {}, kernbench.time(ns)));
}

// Show the files with their lines; choose(line) is called with the number of a line that ran.
kernbench.source = (element, data, spans, choose) => {
  // How long each line was on the critical path in a window of ns, and all of that path.
  function onPathIn(from, to) {
    const found = new Map();
    let whole = 0;
    for (const segment of data.path) {
      const inside = Math.min(segment.to_ns, to) - Math.max(segment.from_ns, from);
      if (inside <= 0) continue;
      whole += inside;
      if (segment.line) found.set(segment.line, (found.get(segment.line) || 0) + inside);
    }
    return { onPath: found, whole };
  }
  const files = new Map();
  data.lines.forEach((line, index) => {
    if (!files.has(line.file)) files.set(line.file, new Map());
    files.get(line.file).set(line.number, index);
  });
  const rows = new Map();

  // The lines of a file that are worth a look: those around what ran; all else is left out.
  function chosen(file, ran) {
    const text = data.files[file];
    if (text === undefined) return [...ran].sort(([a], [b]) => a - b).map(([number, index]) => [number, data.lines[index].text]);
    const near = (number) => [...ran.keys()].some((each) => number >= each - 12 && number <= each + 3);
    return text.map((line, i) => [i + 1, line]).filter(([number]) => near(number));
  }
  for (const [file, ran] of files) {
    const body = make("tbody");
    for (const [number, text] of chosen(file, ran)) {
      const index = ran.get(number);
      const cells = [make("td", { class: "flame" }), make("td", { class: "flame" }), make("td", { class: "no" }, String(number)), make("td", {}, text)];
      const row = make("tr", index === undefined ? {} : { class: "hot", tabindex: "0", "aria-label": `line ${number}` }, ...cells);
      if (index !== undefined) {
        rows.set(index, row);
        row.addEventListener("click", () => choose(index));
        row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(index); });
      }
      body.append(row);
    }
    const head = make("thead", {}, make("tr", {}, ...["time", "critical", "", file.split("/").pop()].map((each) => make("th", { scope: "col" }, each))));
    element.append(make("table", {}, make("caption", {}, file), head, body));
  }
  const atTheEnd = make("tr", {}, make("td", { class: "flame" }), make("td"), make("td"), make("td", { class: "note" }, "waiting at the end of the program"));
  const last = element.querySelector("table:last-of-type");
  if (last !== null) last.append(make("tfoot", {}, atTheEnd));
  if (!files.size) element.append(make("p", { class: "note" }, "No kernel line is on the timeline."));

  return {
    show(from, to) {
      const { time, called, ops, ended, left, all } = spans.lines(from, to);
      const { onPath, whole } = onPathIn(from, to);
      const end = `${kernbench.time(ended)} over all PEs`;
      atTheEnd.hidden = !(ended > 0);
      atTheEnd.children[0].replaceChildren(amount(ended, all, end, "kb-c0"));
      const asked = [...left].map((line) => data.lines[line]).sort((a, b) => a.number - b.number);
      const named = asked.map((line) => (files.size > 1 ? `${line.file.split("/").pop()}:${line.number}` : String(line.number)));
      const what = named.length ? `, for what line${named.length > 1 ? "s" : ""} ${named.join(", ")} asked for` : "";
      atTheEnd.children[3].textContent = `waiting at the end of the program${what}`;
      for (const [index, row] of rows) {
        const line = data.lines[index];
        const path = onPath.get(`${line.file}:${line.number}`) || 0;
        const made = ops[index] ? `, ${ops[index].toLocaleString("en")} ${ops[index] === 1 ? "op" : "ops"}` : "";
        const calls = called[index] > 0 ? `, and ${kernbench.time(called[index])} in lines that it calls` : "";
        const spent = `${kernbench.time(time[index])} over all PEs${made}${calls}`;
        row.children[0].replaceChildren(amount(time[index], all, spent, "kb-c0"));
        row.children[1].replaceChildren(amount(path, whole, `${kernbench.time(path)} on the critical path`, "crit"));
        row.setAttribute("aria-label", `line ${line.number}: ${spent}, ${kernbench.time(path)} on the critical path`);
      }
    },
    mark(index) {
      for (const [each, row] of rows) row.classList.toggle("chosen", each === index);
      const row = rows.get(index);
      if (row === undefined) return;
      const [box, line] = [element.getBoundingClientRect(), row.getBoundingClientRect()];
      if (line.top < box.top || line.bottom > box.bottom) element.scrollTop += line.top - box.top - box.height / 3;
    },
  };
};
