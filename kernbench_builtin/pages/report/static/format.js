// How numbers stand in the parts of the page that are drawn here; the same units as in its tables.
"use strict";

function scaled(value, steps) {
  for (const [least, unit] of steps) {
    if (Math.abs(value) >= least) return `${Number((value / least).toPrecision(4))} ${unit}`;
  }
  const [least, unit] = steps[steps.length - 1];
  return `${Number((value / least).toPrecision(4))} ${unit}`;
}

kernbench.time = (ns) => (ns === 0 ? "0 ns" : scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"], [1e-3, "ps"]]));
kernbench.bytes = (count) => scaled(count, [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
kernbench.bandwidth = (perNs) => scaled(perNs * 1e9, [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]]);
kernbench.share = (value) => `${(100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;
kernbench.number = (value) => String(Number(value.toPrecision(2)));
// A time on an axis whose marks are `step` apart and reach `most`: neighbours differ, and all have one unit.
kernbench.mark = (ns, step, most) => {
  const [unit, name] = most >= 1e6 && step >= 1e3 ? [1e6, "ms"] : most >= 1e3 && step >= 1 ? [1e3, "us"] : [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit)));
  return `${(ns / unit).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${name}`;
};
// The least round step of which at most `most` fit into a length.
kernbench.step = (length, most) => {
  const raw = length / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((each) => each * power >= raw);
};
