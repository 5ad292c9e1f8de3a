// What the drawings of points share: sharp canvases, painting once a frame, and colours by a column.
"use strict";

const SHADES = 24;

// Size a canvas for its element; its context draws in CSS pixels.
kernbench.sized = (canvas, width, height) => {
  const ratio = devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
};

// Have `paint` called at the next frame, once however often it is asked for.
kernbench.soon = (paint) => {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; paint(); });
  };
};

// Points by the colour that a scale gives them: [colour, their numbers] with what has no value first.
kernbench.shades = (points, scale) => {
  const none = [];
  const by = Array.from({ length: SHADES }, () => []);
  for (let i = 0; i < points.count; i++) {
    if (!points.kept[i]) continue;
    const at = scale.at[i];
    if (Number.isNaN(at)) none.push(i);
    else by[Math.min(SHADES - 1, Math.floor(at * SHADES))].push(i);
  }
  const found = by.map((each, shade) => [kernbench.colour((0.92 * (shade + 0.5)) / SHADES), each]);
  return [[kernbench.css("--kb-warn"), none], ...found].filter(([, each]) => each.length);
};
