// The colours of a page, light or dark: chosen by its button, for all pages in this tab while it is open.
"use strict";

const KEY = "kernbench theme";
const ORDER = { auto: "light", light: "dark", dark: "auto" };
const WORDS = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" };
const NAMES = { auto: "as the system has them", light: "light", dark: "dark" };
const button = document.getElementById("theme");
const root = document.documentElement;

function choose(theme) {
  root.dataset.theme = theme;
  button.textContent = WORDS[theme];
  button.setAttribute("aria-label", `Colours: ${NAMES[theme]}`);
  window.dispatchEvent(new Event("kernbench-theme"));
}

button.addEventListener("click", () => {
  choose(ORDER[root.dataset.theme]);
  try { sessionStorage.setItem(KEY, root.dataset.theme); } catch { /* the browser keeps nothing */ }
});
try {
  const kept = sessionStorage.getItem(KEY);
  if (kept in ORDER) choose(kept);
} catch { /* the browser keeps nothing */ }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => choose(root.dataset.theme));
