// Comfort only: every page works without this file.
"use strict";

// Progress: asks for the fragment again, and loads the page anew when the work has ended.
for (const box of document.querySelectorAll("[data-progress]")) {
  const ask = async () => {
    try {
      const answer = await fetch(box.dataset.progress, { headers: { Accept: "text/html" }, redirect: "error" });
      if (!answer.ok) return;
      const text = await answer.text();
      if (!text.trim()) {
        // Nobody loses what they are writing.
        const writing = [...document.querySelectorAll("textarea")].some((field) => field.value !== field.defaultValue);
        if (!writing) location.reload();
        return;
      }
      box.replaceChildren(new DOMParser().parseFromString(text, "text/html").body);
      box.replaceChildren(...box.firstElementChild.childNodes);
    } catch {
      // The desk does not answer: the page stays as it is.
    }
    setTimeout(ask, 2000);
  };
  setTimeout(ask, 2000);
}

// Copy buttons are shown only where they can work.
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 2000);
  });
}

// A chosen file is read into the field, so that one sees what will be submitted.
for (const field of document.querySelectorAll("input[type=file][data-into]")) {
  field.addEventListener("change", async () => {
    if (!field.files.length) return;
    document.getElementById(field.dataset.into).value = await field.files[0].text();
    field.value = "";
  });
}
