// The YAML of an object, with the owners of each field: a colour and a letter in the margin of each line, and a
// legend of managers, each of which can be looked at alone.

import { age, copyButton, fill, h } from "./dom.js";
import { ownership } from "./owners.js";
import { lineText, lines, text } from "./yaml.js";

/** The number of colours of managers in theme.css. */
const COLOURS = 8;
/** Blocks of this many lines are laid out only when they are in sight. */
const BLOCK = 150;

export const letter = (index) => (index < 26 ? String.fromCharCode(97 + index) : String(index + 1));
export const colour = (index) => `m${index % COLOURS}`;

export class YamlTab {
  #alone = -1;
  #before = [];

  constructor() {
    this.legend = h("aside.legend", { "aria-label": "Owners of fields" });
    this.code = h("div.code", { role: "region", tabindex: "0", "aria-label": "YAML" });
    this.element = h("div.yaml-tab", {}, this.code, this.legend);
    this.keys = [
      { keys: ["o"], says: "Look at the next owner's fields", run: () => this.#lookAt(this.#alone + 1) },
      { keys: ["j"], says: "Scroll down", run: () => this.code.scrollBy(0, 60) },
      { keys: ["k"], says: "Scroll up", run: () => this.code.scrollBy(0, -60) },
    ];
  }

  focus() {
    this.code.focus({ preventScroll: true });
  }

  update(object) {
    this.object = object;
    this.owners = ownership(object);
    this.#drawLegend();
    this.#drawCode();
  }

  /** The object without `managedFields`, which the margin shows. */
  #shown() {
    const { managedFields, ...metadata } = this.object.metadata;
    const { apiVersion, kind, ...rest } = this.object;
    return { apiVersion, kind, ...rest, metadata };
  }

  #drawCode() {
    const all = lines(this.#shown());
    const known = new Set(this.#before);
    const blocks = [];
    for (let from = 0; from < all.length; from += BLOCK) {
      const block = h(
        "div.block",
        {},
        all.slice(from, from + BLOCK).map((line) => this.#line(line, known)),
      );
      block.style.setProperty("--lines", String(Math.min(BLOCK, all.length - from)));
      blocks.push(block);
    }
    this.#before = all.map((line) => `${line.path.join("/")} ${lineText(line)}`);
    fill(this.code, blocks);
    this.#dim();
  }

  #line(line, known) {
    const owners = this.owners.of(line.path);
    const isNew = known.size > 0 && !known.has(`${line.path.join("/")} ${lineText(line)}`);
    const names = owners.map((index) => this.owners.managers[index].name).join(", ");
    const marks = owners.slice(0, 3).map((index) => h(`i.${colour(index)}`, {}, letter(index)));
    const margin = h("span.owners", { title: names ? `owned by ${names}` : null }, marks);
    const source = h(
      "span.source",
      {},
      line.parts.map(([kind, part]) => (kind ? h(`span.${kind}`, {}, part) : part)),
    );
    return h(
      `div.line${owners.length > 0 ? `.${colour(owners[0])}` : ""}${isNew ? ".fresh" : ""}`,
      { "data-owners": owners.map((index) => `,${index},`).join("") },
      margin,
      source,
    );
  }

  #drawLegend() {
    const { managers } = this.owners;
    const entries = managers.map((manager, index) =>
      h(
        "li",
        {},
        h(
          "button",
          {
            type: "button",
            "aria-pressed": String(index === this.#alone),
            onclick: () => this.#lookAt(index === this.#alone ? -1 : index),
          },
          h(`i.swatch.${colour(index)}`, {}, letter(index)),
          h(
            "span.manager",
            {},
            h("b", {}, manager.name),
            h(
              "small",
              {},
              [
                manager.operation,
                manager.subresource && `of ${manager.subresource}`,
                manager.time && `${age(manager.time)} ago`,
                `${manager.count} fields`,
              ]
                .filter(Boolean)
                .join(" · "),
            ),
          ),
        ),
      ),
    );
    fill(
      this.legend,
      h("h2", {}, "Owners"),
      entries.length > 0 ? h("ul", {}, entries) : h("p", {}, "No manager owns a field of this object."),
      h(
        "p.hint",
        {},
        "A field without a letter is set by the server. Choose an owner to see its fields alone.",
      ),
      copyButton(() => text(this.#shown())),
    );
  }

  #lookAt(index) {
    this.#alone = index >= this.owners.managers.length ? -1 : index;
    this.#drawLegend();
    this.#dim();
    this.code.querySelector(".line.owned")?.scrollIntoView({ block: "nearest" });
  }

  #dim() {
    const alone = this.#alone;
    this.code.classList.toggle("alone", alone >= 0);
    for (const line of this.code.querySelectorAll(".line"))
      line.classList.toggle("owned", alone >= 0 && line.dataset.owners.includes(`,${alone},`));
  }
}
