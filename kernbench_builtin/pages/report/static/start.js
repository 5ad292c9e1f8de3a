// The colours of the page, then the sections.
"use strict";

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

if (window !== window.parent) document.querySelector("#top h1").hidden = true; // which the page around it has
button.addEventListener("click", () => {
  choose(ORDER[root.dataset.theme]);
  kernbench.keep("theme", root.dataset.theme);
});
if (kernbench.kept("theme") in ORDER) choose(kernbench.kept("theme"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => choose(root.dataset.theme));
// Only a page that is, or becomes, narrow needs heads in all cells; there may be many.
const narrow = matchMedia("(max-width: 40rem)");
const stack = () => { if (narrow.matches) document.querySelectorAll(".wide > table").forEach(kernbench.stacked); };
narrow.addEventListener("change", stack);
stack();
kernbench.start();
