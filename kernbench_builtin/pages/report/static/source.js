// The source of the kernels, with the time of each line in the window, over all PEs, and on the critical path.
"use strict";

const { make } = kernbench;

// The parts of a line of Python that have a colour of their own: comments, texts, keywords, and what is called.
const WORDS = "and as assert async await break class continue def del elif else except finally for from global if import in is lambda not or pass raise return try while with yield None True False";
const PARTS = new RegExp(`(?<aside>#.*)|(?<text>"""(?:(?!""").)*(?:"""|$)|'''(?:(?!''').)*(?:'''|$)|"(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*')|(?<word>\\b(?:${WORDS.replaceAll(" ", "|")})\\b)|(?<call>[A-Za-z_][\\w.]*(?=\\())`, "g");

function coloured(text) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(PARTS)) {
    const [kind] = Object.entries(match.groups).find(([, part]) => part !== undefined);
    found.push(text.slice(at, match.index), make("span", { class: kind }, match[0]));
    at = match.index + match[0].length;
  }
  return [...found, text.slice(at)];
}

function bar(share, name, kind) {
  return make("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": name },
    make("rect", { ...kind, x: 0, y: 1, width: Math.max(share > 0 ? 1 : 0, 100 * share), height: 8 }, make("title", {}, name)));
}

// A time as a bar of its share of the whole, with the number beside it; nothing where there was none.
function amount(ns, whole, name, kind) {
  if (!(ns > 0)) return "";
  const share = kernbench.share(ns / whole);
  return make("div", { class: "amount" }, bar(ns / whole, `${name}, ${share} of all`, kind), make("span", {}, kernbench.time(ns)));
}

// Show the files with their lines; choose(line) is called with the number of a line that ran.
kernbench.source = (element, data, spans, choose) => {
  const files = new Map();
  data.lines.forEach((line, index) => {
    if (!files.has(line.file)) files.set(line.file, new Map());
    files.get(line.file).set(line.number, index);
  });
  const rows = new Map();
  const pes = data.tracks.filter(([, , kind], track) => kind === "kernel" && spans.first[track] < spans.first[track + 1]).length;

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
      const cells = [make("td", { class: "flame" }), make("td", { class: "flame" }), make("td", { class: "no" }, String(number)), make("td", {}, ...coloured(text))];
      const row = make("tr", index === undefined ? {} : { class: "hot", tabindex: "0", "aria-label": `line ${number}` }, ...cells);
      if (index !== undefined) {
        rows.set(index, row);
        cells[2].style.borderLeftColor = kernbench.lineColour(data, index).ground;
        row.addEventListener("click", () => choose(index));
        row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(index); });
      }
      body.append(row);
    }
    const head = make("thead", {}, make("tr", {}, ...[[pes === 1 ? "time" : `sum of ${pes} PEs`, "The time of each line, over all PEs"], ["critical path", "The time of each line on the critical path: a wait for tl.recv is the tl.send that it waits for"], ["", ""], [file.split("/").pop(), file]]
      .map(([name, title]) => make("th", { scope: "col", title }, name))));
    element.append(make("table", {}, head, body));
  }
  const atTheEnd = make("tr", {}, make("td", { class: "flame" }), make("td"), make("td"), make("td", { class: "note" }, "waiting at the end of the program"));
  const last = element.querySelector("table:last-of-type");
  if (last !== null) last.append(make("tfoot", {}, atTheEnd));
  if (!files.size) element.append(make("p", { class: "note" }, "No kernel line is on the timeline."));

  function inSight(row) {
    const [box, line] = [element.getBoundingClientRect(), row.getBoundingClientRect()];
    if (line.top < box.top || line.bottom > box.bottom) element.scrollTop += line.top - box.top - box.height / 3;
  }
  // At first, the line that the critical path spends most time at is in sight.
  function begin(onPath, time) {
    const worth = ([index]) => (onPath.get(`${data.lines[index].file}:${data.lines[index].number}`) || 0) + time[index] * 1e-9;
    const [first] = [...rows].sort((a, b) => worth(b) - worth(a));
    if (first !== undefined) inSight(first[1]);
  }
  let begun = false;

  return {
    show(from, to) {
      const { time, called, ops, ended, left, all } = spans.lines(from, to);
      const { onPath, whole } = spans.onPath(from, to);
      const end = `${kernbench.time(ended)} over all PEs`;
      atTheEnd.hidden = !(ended > 0);
      atTheEnd.children[0].replaceChildren(amount(ended, all, end, { class: "kb-c7" }));
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
        row.children[0].replaceChildren(amount(time[index], all, spent, { fill: kernbench.lineColour(data, index).ground }));
        row.children[1].replaceChildren(amount(path, whole, `${kernbench.time(path)} on the critical path`, { class: "crit" }));
        row.setAttribute("aria-label", `line ${line.number}: ${spent}, ${kernbench.time(path)} on the critical path`);
      }
      if (!begun) begin(onPath, time);
      begun = true;
    },
    mark(index) {
      for (const [each, row] of rows) row.classList.toggle("chosen", each === index);
      if (rows.has(index)) inSight(rows.get(index));
    },
    // The number of the line that stands at FILE:LINE, -1 for none.
    at(place) { return data.lines.findIndex(({ file, number }) => `${file}:${number}` === place); },
  };
};
