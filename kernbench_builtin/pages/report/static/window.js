// The window of time that the colours are of: brushed with the mouse, moved and widened with the arrow keys.
"use strict";

const { make } = kernbench;

// Draw a strip of the whole run into an element; `profile` has shares of use over time: [from, to, share].
kernbench.brush = (element, run, total, profile) => {
  const canvas = make("canvas", { class: "strip", "aria-hidden": "true" });
  const shade = [make("div", { class: "shade" }), make("div", { class: "shade" })];
  const handles = ["from", "to"].map((name, index) => make("div", {
    class: `handle ${name}`, role: "slider", tabindex: "0", "aria-label": index ? "End of the window" : "Begin of the window",
    "aria-valuemin": "0", "aria-valuemax": String(total),
  }));
  const told = make("output", { class: "told" });
  const reset = make("button", { type: "button", class: "reset", onclick: () => run.set("window", null) }, "whole run");
  const track = make("div", { class: "track" }, canvas, ...shade, ...handles);
  track.style.width = `${(100 * total) / kernbench.scale(total)}%`;
  element.append(track, make("div", { class: "below" }, told, reset));

  function show() {
    const [from, to] = run.window || [0, total];
    const at = [from, to].map((time) => `${(100 * time) / total}%`);
    shade[0].style.width = at[0];
    shade[1].style.left = at[1];
    handles.forEach((handle, i) => {
      handle.style.left = at[i];
      handle.setAttribute("aria-valuenow", String([from, to][i]));
      handle.setAttribute("aria-valuetext", kernbench.time([from, to][i]));
    });
    const name = run.window && run.window.name ? `${run.window.name}, ` : "";
    told.textContent = run.window ? `${name}${kernbench.time(from)} to ${kernbench.time(to)}, ${kernbench.time(to - from)}`
      : `The whole run, ${kernbench.time(total)}: drag to choose a window.`;
    reset.disabled = run.window === null;
  }
  function paint() {
    const width = canvas.width = Math.max(1, track.clientWidth) * devicePixelRatio;
    const height = canvas.height = Math.max(1, track.clientHeight) * devicePixelRatio;
    const context = canvas.getContext("2d");
    context.fillStyle = kernbench.css("--kb-c0");
    for (const [begin, end, share] of profile) {
      const high = share * height;
      context.fillRect((begin * width) / total, height - high, Math.max(1, Math.ceil(((end - begin) * width) / total)), high);
    }
  }
  // Keep a window inside of the run, and at least a 10,000th of it long.
  function choose(from, to) {
    const least = total / 10000;
    const low = Math.max(0, Math.min(from, to));
    const high = Math.min(total, Math.max(from, to));
    const begin = Math.min(low, total - least);
    run.set("window", low <= 0 && high >= total ? null : [begin, Math.max(high, begin + least)]);
  }
  handles.forEach((handle, i) => handle.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
    const now = run.window ? [...run.window] : [0, total];
    if (event.key in steps) now[i] += (steps[event.key] * total) / (event.shiftKey ? 1000 : 100);
    else if (event.key === "Home") now[i] = i ? now[0] : 0;
    else if (event.key === "End") now[i] = i ? total : now[1];
    else return;
    event.preventDefault();
    if (now[0] < now[1]) choose(...now);
  }));
  track.addEventListener("pointerdown", (event) => {
    const box = track.getBoundingClientRect();
    const time = (x) => (total * (x - box.left)) / box.width;
    const held = event.target.classList.contains("handle") ? run.window || [0, total] : null;
    const other = held === null ? time(event.clientX) : held[event.target.classList.contains("from") ? 1 : 0];
    track.setPointerCapture(event.pointerId);
    const move = (moved) => choose(other, time(moved.clientX));
    const end = (ended) => {
      track.removeEventListener("pointermove", move);
      if (held === null && Math.abs(ended.clientX - event.clientX) < 3) run.set("window", null);
    };
    track.addEventListener("pointermove", move);
    track.addEventListener("pointerup", end, { once: true });
    track.addEventListener("pointercancel", end, { once: true });
  });
  run.on("window", show);
  new ResizeObserver(paint).observe(track);
  window.addEventListener("kernbench-theme", paint);
  show();
};
