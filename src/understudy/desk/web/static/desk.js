// Comfort only: every page works without this file.
"use strict";

// Progress: asks for the fragment again, and loads the page anew when the work has ended.
const EVERY = 2000;

function isWriting() {
  return [...document.querySelectorAll("textarea")].some((field) => field.value !== field.defaultValue);
}

for (const box of document.querySelectorAll("[data-progress]")) {
  let last = "";
  const ask = async () => {
    try {
      const answer = await fetch(box.dataset.progress, { redirect: "error" });
      const text = answer.ok ? (await answer.text()).trim() : last;
      if (!text && !isWriting()) {
        location.reload();
        return;
      }
      // The same words again would be read aloud again.
      if (text && text !== last) {
        box.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
      }
      last = text;
    } catch {
      // The desk does not answer: the page stays as it is.
    }
    setTimeout(ask, EVERY);
  };
  setTimeout(ask, EVERY);
}

// Copy buttons are shown only where they can work.
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const from = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText((from.value ?? from.textContent).trim());
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 2000);
  });
}

function size(bytes) {
  const [unit, word] = bytes < 1e6 ? [1e3, "kB"] : [1e6, "MB"];
  return `${Number((bytes / unit).toPrecision(3))} ${word}`;
}

// A chosen file is read into the field, so that one sees what will be submitted.
for (const field of document.querySelectorAll("input[type=file][data-into]")) {
  field.addEventListener("change", async () => {
    const [file] = field.files;
    if (!file) return;
    const most = Number(field.dataset.most);
    const said = document.getElementById(field.dataset.says);
    said.textContent = "";
    if (file.size > most) {
      const [has, takes] = [size(file.size), size(most)];
      said.textContent = has === takes ? `This file has more than the ${takes} that this desk takes.` : `This file has ${has}; this desk takes ${takes}.`;
    } else {
      try {
        const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
        if (text.includes("\0")) throw new TypeError("no text");
        document.getElementById(field.dataset.into).value = text;
      } catch {
        said.textContent = "This is not a Python file. Choose the .py file with your analysis.";
      }
    }
    said.hidden = !said.textContent;
    field.value = "";
  });
}
