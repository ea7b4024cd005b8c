/* A button beside what is meant to be copied. */

function offerCopy(block) {
  const code = block.firstChild;
  const text = code.textContent;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${text.split("\n")[0]}`);
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code);
    const copied = (navigator.clipboard && await navigator.clipboard.writeText(text).then(() => true, () => false)) || document.execCommand("copy");
    if (copied) getSelection().removeAllRanges();
    button.textContent = copied ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  block.append(button);
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("pre.copied").forEach(offerCopy));
