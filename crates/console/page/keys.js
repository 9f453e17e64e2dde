// Keys: the shortcuts of the page and of the view that is shown, and the help that lists them.

import { button, h } from "./dom.js";

/** Shortcuts: `{keys: ["j", "ArrowDown"], says, run}`. */
let global = [];
let local = [];

export function setGlobalKeys(shortcuts) {
  global = shortcuts;
}

/** Replaces the shortcuts of the view. */
export function setViewKeys(shortcuts) {
  local = shortcuts;
}

/** Begins to listen. */
export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const name = `${event.ctrlKey || event.metaKey ? "Ctrl-" : ""}${event.key}`;
    const types = isTyping(event.target) && !name.startsWith("Ctrl-") && name !== "Escape";
    if (event.altKey || types || (document.querySelector("dialog[open]") && !name.startsWith("Ctrl-")))
      return;
    // A focused button or link handles its own keys.
    if (["Enter", " "].includes(event.key) && event.target.closest("button, a, summary, select")) return;
    const found = [...local, ...global].find((shortcut) => shortcut.keys.includes(name));
    if (!found || found.run(event) === false) return;
    event.preventDefault();
  });
}

const isTyping = (target) => target.matches?.("input:not([type=checkbox]), textarea, select");

/** The names of keys as users know them. */
const NAMES = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  "Ctrl-k": "Ctrl K",
  "Ctrl-Enter": "Ctrl ↵",
  "Ctrl-s": "Ctrl S",
  Enter: "↵",
  PageDown: "PgDn",
  PageUp: "PgUp",
};

/** Shows what keys do here. */
export function showHelp() {
  const list = (title, shortcuts) =>
    h(
      "section",
      {},
      h("h3", {}, title),
      h(
        "dl",
        {},
        shortcuts
          .filter(({ says }) => says)
          .map(({ keys, says }) =>
            h(
              "div",
              {},
              h(
                "dt",
                {},
                keys.map((key) => h("kbd", {}, NAMES[key] ?? key)),
              ),
              h("dd", {}, says),
            ),
          ),
      ),
    );
  const dialog = h(
    "dialog.help",
    { "aria-labelledby": "help-title", onclose: () => dialog.remove() },
    h(
      "header",
      {},
      h("h2", { id: "help-title" }, "Keyboard"),
      button("Close", () => dialog.close(), { kind: ".quiet", shape: "close", "aria-label": "Close" }),
    ),
    h("div.columns", {}, local.length > 0 && list("In this view", local), list("Everywhere", global)),
  );
  document.body.append(dialog);
  dialog.showModal();
}
