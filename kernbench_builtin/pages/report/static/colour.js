// A scale from nothing to full that is told apart with any sight, in grey too: viridis.
"use strict";

const STOPS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"]
  .map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));

// On a dark ground the scale begins where it stands out from that.
let least = 0;
const look = () => { least = Number(kernbench.css("--kb-least")) || 0; };
window.addEventListener("kernbench-theme", look);

function mixed(share) {
  const at = (least + (1 - least) * Math.min(1, Math.max(0, share))) * (STOPS.length - 1);
  const below = Math.min(STOPS.length - 2, Math.floor(at));
  return STOPS[below].map((low, i) => Math.round(low + (STOPS[below + 1][i] - low) * (at - below)));
}

kernbench.colour = (share) => `rgb(${mixed(share).join(",")})`;
// Black or white, whichever stands out more from the colour of a share.
kernbench.ink = (share) => {
  const [r, g, b] = mixed(share).map((each) => ((each / 255) ** 2.2));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000" : "#fff";
};
// What a CSS variable is now, for canvases.
kernbench.css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
look();
