// What was chosen stays when the page is loaded again, or a newer one is in its place: in this tab, while it is open.
"use strict";

const key = `kernbench ${document.title} ${location.pathname}${location.search.replace(/\bn=\d+/, "")}`;

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(key)) || {};
  } catch { // the browser keeps nothing
    return {};
  }
}

kernbench.kept = (name) => read()[name];
kernbench.keep = (name, value) => {
  try {
    sessionStorage.setItem(key, JSON.stringify({ ...read(), [name]: value }));
  } catch { // the browser keeps nothing
  }
};

// Show the window and the part of the machine that were chosen before, as far as the run has them, and keep what is chosen.
// Without a choice it is the longest launch, or the latest part of a run that goes on; of runs side by side, as much of each as the longest of these.
kernbench.remember = (run) => {
  const { machine, timeline } = run;
  const before = kernbench.kept(`run ${run.number}`);
  const { span, said, part } = before || {};
  const total = machine ? machine.total : timeline ? timeline.total : 0;
  if (machine && part !== machine.part && machine.data.parts[part] !== undefined) machine.show(part);
  if (span && span[0] < span[1] && span[1] <= total) {
    const launch = said && machine ? machine.data.launches[said.launch] : undefined;
    run.set("window", launch && launch.from === span[0] && launch.to === span[1] ? Object.assign([...span], said) : [...span]);
  } else if (!before && timeline && timeline.data.opens) { 
    const { from, to, launch, name, beside } = timeline.data.opens;
    const window = [from, Math.min(kernbench.scale(timeline.total), from + (beside || to - from))];
    run.set("window", beside ? window : Object.assign(window, { launch, name }));
  }
  if (timeline) timeline.sumUp(); // at once: what is below it stays where it is
  const keep = () => kernbench.keep(`run ${run.number}`, {
    part: machine && machine.part,
    span: run.window && [...run.window],
    said: run.window && run.window.name && { launch: run.window.launch, name: run.window.name },
  });
  run.on("window", keep);
  run.on("part", keep);
};

// Of a frame the browser does not keep where it was scrolled to.
kernbench.rememberScroll = () => {
  if (window === window.parent) return;
  const top = kernbench.kept("top");
  if (top) window.scrollTo(0, top);
  document.addEventListener("scroll", () => kernbench.keep("top", document.documentElement.scrollTop));
};
