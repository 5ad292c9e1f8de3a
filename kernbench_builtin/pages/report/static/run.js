// Commands can be copied.
"use strict";

const { make } = kernbench;

// Put a text where it can be pasted from; older browsers, and pages that are not let, copy what is selected.
async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
  } catch {
    getSelection().selectAllChildren(element);
    if (!document.execCommand("copy")) return false;
    getSelection().removeAllRanges();
  }
  return true;
}

kernbench.section("run", (element) => {
  for (const command of element.querySelectorAll("pre.command")) {
    const told = make("span", { role: "status" });
    const button = make("button", { type: "button", "aria-label": `Copy the command ${command.textContent}` }, "copy");
    button.addEventListener("click", async () => {
      told.textContent = (await copy(command)) ? "copied" : "select it, and copy it by the keyboard";
    });
    command.after(make("div", { class: "copy" }, button, told));
  }
});
