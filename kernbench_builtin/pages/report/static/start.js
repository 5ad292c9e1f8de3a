// The last script of a page: its sections are drawn.
"use strict";

if (window !== window.parent) document.querySelector("#top h1").hidden = true; // which the page around it has
// Only a page that is, or becomes, narrow needs heads in all cells; there may be many.
const narrow = matchMedia("(max-width: 40rem)");
const stack = () => { if (narrow.matches) document.querySelectorAll(".wide > table").forEach(kernbench.stacked); };
narrow.addEventListener("change", stack);
stack();
kernbench.start();
