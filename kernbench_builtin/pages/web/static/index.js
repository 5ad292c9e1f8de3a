// The index: rows that have all words of the search, and the colours of the page.
"use strict";

const words = document.getElementById("words");
const found = document.getElementById("found");
const rows = [...document.querySelectorAll("tbody tr")];

function search() {
  const asked = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let kept = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !asked.every((word) => text.includes(word));
    if (!row.hidden) kept += 1;
  }
  found.textContent = asked.length ? `${kept.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
}

if (words !== null) {
  words.addEventListener("input", search);
  search();
}

const THEMES = { auto: ["light", "◐ auto"], light: ["dark", "☀ light"], dark: ["auto", "☾ dark"] };
const button = document.getElementById("theme");
const root = document.documentElement;

function choose(theme) {
  root.dataset.theme = theme;
  button.textContent = THEMES[theme][1];
  button.setAttribute("aria-label", `Colours: ${theme === "auto" ? "as the system has them" : theme}`);
}

button.addEventListener("click", () => {
  choose(THEMES[root.dataset.theme][0]);
  try { sessionStorage.setItem("kernbench theme", root.dataset.theme); } catch { /* the browser keeps nothing */ }
});
try { choose(sessionStorage.getItem("kernbench theme") || "auto"); } catch { choose("auto"); }
