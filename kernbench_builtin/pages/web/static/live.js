// A run that goes on: ask how far it is four times a second, and show a new page of it in place of the old one; pages keep by
// themselves what was chosen, and where they were scrolled to.
"use strict";

const ASK_MS = 250;
const state = document.getElementById("state");
const bar = document.getElementById("bar");
const pages = document.getElementById("pages");
let shown = 0;
let coming = false;

function span(seconds) {
  return seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : `${Math.round(seconds / 60)} min`;
}

function simulated(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
    if (ns >= size) return `${(ns / size).toPrecision(4)} ${unit}`;
  }
  return `${ns.toPrecision(4)} ns`;
}

function told(progress) {
  if (progress === null) return "building the machine";
  const words = [progress.named || "simulating"];
  if (progress.of !== null) words.push(`${progress.done.toLocaleString("en")} of ${progress.of.toLocaleString("en")} ${progress.unit}`);
  words.push(`${span(progress.wall_s)} so far`, `${simulated(progress.sim_ns)} simulated`);
  words.push(`${progress.events.toLocaleString("en")} events`);
  if (progress.fraction !== null) words.push(`${Math.floor(100 * progress.fraction)} % of this step`);
  return words.join(" · ");
}

// Why there is no page yet: while there is nothing to see of the machine, until the run has made one, until it is drawn.
function nothing(found) {
  const building = found.progress === null || found.progress.phase === "building";
  if (found.page > 0) return "The first page of what has happened so far is being drawn.";
  if (found.state !== "running") return "There is nothing to see of this run.";
  return building ? "Nothing to see yet: the machine is being built."
    : "Nothing to see yet: the run goes on, and its first page is still to be made.";
}

// Wait until the sections of a page are drawn.
async function drawn(frame) {
  for (let turn = 0; turn < 100 && frame.contentWindow.kernbench && frame.contentDocument.documentElement.dataset.ready !== "yes"; turn += 1) {
    await new Promise((done) => setTimeout(done, 50));
  }
}

function look(number) {
  coming = true;
  const old = pages.querySelector("iframe");
  const frame = document.createElement("iframe");
  frame.title = "What there is of the run";
  frame.className = "coming";
  frame.addEventListener("load", async () => {
    await drawn(frame);
    frame.className = "";
    old?.remove();
    document.getElementById("none")?.remove();
    shown = number;
    coming = false;
  });
  frame.src = `/page?n=${number}`;
  pages.append(frame);
}

async function ask() {
  let found;
  try {
    found = await (await fetch("/progress")).json();
  } catch {
    state.textContent = "kernbench has ended, or cannot be reached; what was last seen stays here.";
    bar.hidden = true;
    return;
  }
  const over = found.state !== "running";
  state.textContent = {
    running: told(found.progress), complete: found.page > shown ? "complete; its page is being drawn" : "complete",
    failed: "ended without a result; the terminal says why",
  }[found.state];
  document.body.dataset.state = found.state;
  const none = document.getElementById("none");
  if (none !== null) none.textContent = nothing(found);
  bar.hidden = over;
  if (found.progress !== null && found.progress.fraction !== null) bar.value = found.progress.fraction;
  else bar.removeAttribute("value");
  if (found.page > shown && !coming) look(found.page);
  if (!over || found.page > shown) setTimeout(ask, ASK_MS);
}

ask();
