// An object: its head, and one of its tabs.

import { age, announce, failure, fill, h, skeleton } from "./dom.js";
import { objectLink, plural, tableLink } from "./discovery.js";
import { Editor } from "./editor.js";
import { Followed } from "./followed.js";
import { HistoryTab } from "./history.js";
import { RelationsTab } from "./relations.js";
import { YamlTab } from "./yamlview.js";

const TABS = [
  { name: "yaml", title: "YAML", key: "1", Tab: YamlTab },
  { name: "relations", title: "Relations", key: "2", Tab: RelationsTab },
  { name: "history", title: "History", key: "3", Tab: HistoryTab },
  { name: "edit", title: "Edit", key: "4", Tab: Editor },
];

/** The view of one object. A tab has an element, `update(object)`, `close()`, and keys of its own. */
export class ObjectView {
  constructor(kind, namespace, name, tab, { open }) {
    Object.assign(this, { kind, namespace, name, open, title: name });
    this.chosen = TABS.find((known) => known.name === tab) ?? TABS[0];
    this.facts = h("p.facts");
    this.body = h("div.tab", {}, skeleton(12));
    this.element = h("section.object-view", {}, this.#head(), this.body);
    this.followed = new Followed(kind, namespace, name, () => this.#changed());
    this.keys = this.#shortcuts();
  }

  close() {
    this.followed.close();
    this.tab?.close?.();
  }

  focus() {
    this.tab?.focus?.();
  }

  #link = (tab) => objectLink(this.kind, this.namespace, this.name, tab.name);

  #head() {
    const tabs = TABS.filter(({ name }) => name !== "edit" || this.kind.verbs.includes("patch"));
    const links = tabs.map((tab) =>
      h(
        "a",
        { href: this.#link(tab), "aria-current": tab === this.chosen ? "page" : null },
        tab.title,
        h("kbd", { "aria-hidden": "true" }, tab.key),
      ),
    );
    return h(
      "header.object-head",
      {},
      h(
        "nav.crumbs",
        { "aria-label": "Place" },
        h("a", { href: tableLink(this.kind, this.namespace) }, plural(this.kind)),
        this.namespace && [h("span", { "aria-hidden": "true" }, "/"), h("span", {}, this.namespace)],
      ),
      h("h1", {}, this.name),
      this.facts,
      h("nav.tabs", { "aria-label": "Tabs" }, links),
    );
  }

  #shortcuts() {
    return [
      ...TABS.map((tab) => ({ keys: [tab.key], says: tab.title, run: () => this.open(this.#link(tab)) })),
      { keys: ["y"], run: () => this.open(this.#link(TABS[0])) },
      { keys: ["r"], run: () => this.open(this.#link(TABS[1])) },
      { keys: ["e"], run: () => this.open(this.#link(TABS[3])) },
      {
        keys: ["Escape"],
        says: `Back to the table`,
        run: () => this.open(tableLink(this.kind, this.namespace)),
      },
    ];
  }

  #changed() {
    const { object, error, isDeleted } = this.followed;
    if (!object) {
      fill(
        this.body,
        failure(error, () => location.reload()),
      );
      return;
    }
    this.#drawFacts(object, isDeleted);
    if (!this.tab) {
      const context = {
        kind: this.kind,
        namespace: this.namespace,
        name: this.name,
        followed: this.followed,
        open: this.open,
      };
      this.tab = new this.chosen.Tab(context);
      this.keys.unshift(...(this.tab.keys ?? []));
      fill(this.body, this.tab.element);
      this.tab.update(object);
      this.tab.focus?.();
      return;
    }
    if (isDeleted) announce(`${this.name} is deleted`);
    else this.tab.update(object);
  }

  #drawFacts({ metadata }, isDeleted) {
    const labels = Object.entries(metadata.labels ?? {});
    fill(
      this.facts,
      isDeleted && h("span.tag.bad", {}, "Deleted"),
      !isDeleted && metadata.deletionTimestamp && h("span.tag.watched", {}, "Terminating"),
      h("span", { title: metadata.creationTimestamp }, `${age(metadata.creationTimestamp)} old`),
      h("span.version", {}, "version ", h("code", {}, metadata.resourceVersion)),
      labels.slice(0, 8).map(([name, value]) => h("span.tag", {}, `${name}=${value}`)),
      labels.length > 8 && h("span", {}, `and ${labels.length - 8} more labels`),
    );
  }
}
