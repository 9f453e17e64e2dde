// The command palette: kinds, namespaces and actions, found by a few letters.

import { fill, h } from "./dom.js";

const SHOWN_MAX = 60;

/** Opens the palette over items `{title, hint, words, run}`. */
export function openPalette(items, placeholder) {
  const earlier = document.querySelector("dialog.palette");
  if (earlier?.open) return;
  earlier?.remove(); // It is closed, and its "close" event is still queued.
  let found = [];
  let selected = 0;
  const list = h("ul", { role: "listbox", id: "palette-list", "aria-label": "Results" });
  const input = h("input", {
    type: "text",
    placeholder,
    role: "combobox",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": placeholder,
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    "aria-autocomplete": "list",
    oninput: search,
    onkeydown: steer,
  });
  const dialog = h(
    "dialog.palette",
    { "aria-label": placeholder, onclose: () => dialog.remove(), onclick: leave },
    input,
    list,
  );

  function leave(event) {
    if (event.target === dialog) dialog.close();
  }

  function search() {
    found = rank(items, input.value).slice(0, SHOWN_MAX);
    select(0);
  }

  function select(index) {
    selected = Math.max(0, Math.min(index, found.length - 1));
    const options = found.map((item, at) =>
      h(
        "li",
        {
          role: "option",
          id: `palette-${at}`,
          "aria-selected": String(at === selected),
          onclick: () => choose(item),
        },
        h("span.title", {}, item.title),
        item.hint && h("span.hint", {}, item.hint),
      ),
    );
    fill(
      list,
      options.length > 0
        ? options
        : h("li.none", { role: "option", "aria-selected": "false" }, "Nothing has these letters"),
    );
    if (found.length > 0) input.setAttribute("aria-activedescendant", `palette-${selected}`);
    else input.removeAttribute("aria-activedescendant");
    list.children[selected]?.scrollIntoView({ block: "nearest" });
  }

  function choose(item) {
    dialog.close();
    item?.run();
  }

  function steer(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (event.key === "Enter") choose(found[selected]);
    else if (step) select(selected + step);
    else return;
    event.preventDefault();
  }

  document.body.append(dialog);
  dialog.showModal();
  input.focus();
  search();
}

/** The items that have the letters in order, the closest first. */
export function rank(items, typed) {
  const wanted = typed.trim().toLowerCase();
  if (!wanted) return items;
  const scored = items.map((item) => ({
    item,
    score: Math.max(...[item.title, ...(item.words ?? [])].map((word) => score(word.toLowerCase(), wanted))),
  }));
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ item }) => item);
}

function score(word, wanted) {
  if (word === wanted) return 100;
  if (word.startsWith(wanted)) return 80 - word.length / 100;
  const at = word.indexOf(wanted);
  if (at > 0) return 60 - at / 10;
  let from = 0;
  for (const letter of wanted) {
    from = word.indexOf(letter, from) + 1;
    if (from === 0) return 0;
  }
  return 20 - word.length / 100;
}
