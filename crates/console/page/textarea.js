// A text area with line numbers and colours, which shows problems at the ends of their lines. The text area is
// the browser's own; a picture of its text lies below it.

import { fill, h } from "./dom.js";

const MEMBER = /^(\s*(?:- )*)((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s:#'"-][^:#]*?|-[^\s:][^:#]*?))(:)(\s.*|)$/;

export class TextArea {
  #problems = new Map();

  constructor(label, changed) {
    this.numbers = h("div.numbers", { "aria-hidden": "true" });
    this.picture = h("div.picture", { "aria-hidden": "true" });
    this.input = h("textarea", {
      "aria-label": label,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      wrap: "off",
      oninput: () => {
        changed();
        this.#draw();
      },
      onscroll: () => this.#scroll(),
      onkeydown: (event) => this.#indent(event),
    });
    this.remark = h("p.remark", { role: "status" });
    this.element = h(
      "div.text-area",
      {},
      this.remark,
      h("div.paper", {}, this.numbers, h("div.sheet", {}, this.picture, this.input)),
    );
  }

  get text() {
    return this.input.value;
  }

  set text(text) {
    this.input.value = text;
    this.#draw();
  }

  focus() {
    this.input.focus();
    this.input.setSelectionRange(0, 0);
  }

  hasFocus = () => document.activeElement === this.input;

  /** Shows a sentence above the text. */
  note(text) {
    this.remark.textContent = text;
  }

  /** Shows problems `{line, message, manager}` at their lines. */
  mark(problems) {
    this.#problems = Map.groupBy(problems, ({ line }) => line);
    this.#draw();
    if (problems.length > 0) this.goTo(Math.min(...problems.map(({ line }) => line)), false);
  }

  /** Moves the caret to a line, and the line into sight. */
  goTo(line, takesFocus = true) {
    const start = this.text
      .split("\n")
      .slice(0, line)
      .reduce((sum, row) => sum + row.length + 1, 0);
    this.input.setSelectionRange(start, start);
    if (takesFocus) this.input.focus();
    const height = this.input.scrollHeight / Math.max(1, this.text.split("\n").length);
    const { scrollTop, clientHeight } = this.input;
    if (line * height < scrollTop || (line + 2) * height > scrollTop + clientHeight)
      this.input.scrollTop = line * height - clientHeight / 3;
  }

  #draw() {
    const rows = this.text.split("\n");
    fill(
      this.numbers,
      rows.map((_, line) => h(`div${this.#problems.has(line) ? ".wrong" : ""}`, {}, String(line + 1))),
    );
    fill(
      this.picture,
      rows.map((row, line) => {
        const found = this.#problems.get(line);
        const said = found?.map(({ message }) => message).join("; ");
        return h(
          `div${found ? `.wrong${found.some(({ manager }) => manager !== undefined) ? ".conflict" : ""}` : ""}`,
          {},
          coloured(row),
          found && h("em", {}, said),
        );
      }),
    );
    this.#scroll();
  }

  #scroll() {
    const { scrollTop, scrollLeft } = this.input;
    this.picture.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
    this.numbers.style.transform = `translateY(${-scrollTop}px)`;
  }

  /** A new line begins where the line before it began. */
  #indent(event) {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const { selectionStart, selectionEnd, value } = this.input;
    const row = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
    const [indent] = /^ */.exec(row);
    this.input.setRangeText(
      `\n${indent}${/:\s*$/.test(row) ? "  " : ""}`,
      selectionStart,
      selectionEnd,
      "end",
    );
    this.input.dispatchEvent(new Event("input"));
    event.preventDefault();
  }
}

function coloured(row) {
  if (/^\s*#/.test(row)) return h("span.remark", {}, row);
  const found = MEMBER.exec(row);
  if (!found) return h("span.text", {}, row || "\u200b");
  const [, lead, name, mark, rest] = found;
  const kind = /^\s+-?[\d.]+\s*$/.test(rest)
    ? "number"
    : /^\s+(?:true|false|null)\s*$/.test(rest)
      ? "word"
      : "text";
  return [
    h("span.mark", {}, lead),
    h("span.key", {}, name),
    h("span.mark", {}, mark),
    h(`span.${kind}`, {}, rest),
  ];
}
