// The index: rows that have all words of the search.
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
