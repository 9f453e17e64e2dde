// The versions of an object that the server still has, and the difference of two of them.

import { age, failure, fill, h, notice, skeleton } from "./dom.js";
import { collectionPath } from "./discovery.js";
import { diffElement } from "./diffview.js";
import { changes, readAt } from "./followed.js";

const VERSIONS_MAX = 300;

export class HistoryTab {
  #versions = [];
  #from = "";
  #to = "";
  #comparing = false;
  #stop = new AbortController();
  #known = new Map();

  constructor({ kind, namespace, name }) {
    this.collection = collectionPath(kind, namespace);
    this.name = name;
    this.list = h("ol.versions", { "aria-label": "Versions" }, skeleton(4));
    this.diff = h("div.difference", {}, skeleton(6));
    this.inputs = ["from", "to"].map((side) =>
      h("input", {
        inputmode: "numeric",
        pattern: "[0-9]+",
        "aria-label": `Compare ${side} resource version`,
        onchange: () => this.#typed(),
      }),
    );
    this.element = h(
      "div.history-tab",
      {},
      h(
        "aside",
        {},
        h(
          "form.pair",
          {
            onsubmit: (event) => {
              event.preventDefault();
              this.#typed();
            },
          },
          this.inputs[0],
          h("span", {}, "→"),
          this.inputs[1],
          // Without a button, Enter submits no form of two inputs.
          h("button", { type: "submit", hidden: true }, "Compare"),
        ),
        this.list,
      ),
      this.diff,
    );
    this.keys = [
      { keys: ["j", "ArrowDown"], says: "Earlier version", run: () => this.#step(-1) },
      { keys: ["k", "ArrowUp"], says: "Later version", run: () => this.#step(1) },
    ];
    this.#follow("1");
  }

  close() {
    this.#stop.abort();
  }

  update() {}

  /** Reads all changes since a resource version, and then new ones. */
  async #follow(version) {
    const { signal } = this.#stop;
    const timer = setTimeout(() => this.#draw(), 800);
    try {
      for await (const { type, object } of changes(this.collection, this.name, version, signal)) {
        if (type !== "BOOKMARK") this.#add(type, object);
      }
    } catch (error) {
      if (signal.aborted) return;
      // The server names the oldest version that it has: "too old resource version: 1 (1234)".
      const oldest = error.code === 410 && /\((\d+)\)/.exec(error.message)?.[1];
      if (oldest && oldest !== version) await this.#followFrom(oldest);
      else fill(this.list, failure(error));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Begins with the object as it was when the history begins. */
  async #followFrom(oldest) {
    const first = await readAt(this.collection, this.name, oldest, this.#stop.signal).catch(() => undefined);
    if (this.#stop.signal.aborted) return;
    if (first) this.#add("FIRST", first);
    await this.#follow(oldest);
  }

  #add(type, object) {
    const { resourceVersion } = object.metadata;
    const isNewest = this.#to === "" || this.#to === this.#versions.at(-1)?.version;
    const writer = lastWriter(object, this.#known.get(this.#versions.at(-1)?.version));
    this.#versions.push({ version: resourceVersion, type, writer: writer?.manager, time: writer?.time });
    if (this.#versions.length > VERSIONS_MAX) this.#versions.shift();
    if (type !== "DELETED") this.#known.set(resourceVersion, object);
    const isTyping = this.inputs.includes(document.activeElement);
    if (isNewest && !isTyping) this.#choose(this.#versions.length - 1);
    else this.#draw();
  }

  /** Compares a version with the one before it. */
  #choose(index) {
    const chosen = this.#versions[index];
    if (!chosen) return;
    this.#to = chosen.version;
    this.#from = this.#versions[index - 1]?.version ?? "";
    // Only a choice writes the inputs: drawing the list keeps what the user types.
    [this.inputs[0].value, this.inputs[1].value] = [this.#from, this.#to];
    this.#draw();
    this.#compare();
  }

  #step(step) {
    const at = this.#versions.findIndex(({ version }) => version === this.#to);
    this.#choose(Math.max(0, Math.min(this.#versions.length - 1, at + step)));
  }

  /** Enter in a changed input is a change and a submission, which compare the pair once. */
  #typed() {
    const [from, to] = this.inputs.map((input) => input.value.trim());
    if (this.#comparing && from === this.#from && to === this.#to) return;
    [this.#from, this.#to] = [from, to];
    this.#draw();
    this.#compare();
  }

  #draw() {
    const entries = this.#versions.map(({ version, type, writer, time }, index) => {
      const isChosen = version === this.#to;
      return h(
        "li",
        {},
        h(
          `button${isChosen ? ".chosen" : ""}`,
          { type: "button", "aria-pressed": String(isChosen), onclick: () => this.#choose(index) },
          h("code", {}, version),
          h(
            "span",
            {},
            { FIRST: "last written", ADDED: "created", DELETED: "deleted", MODIFIED: "changed" }[type] ??
              type,
            writer && ` by ${writer}`,
          ),
          time && h("small", {}, `${age(time)} ago`),
        ),
      );
    });
    fill(
      this.list,
      entries.length > 0 ? entries.reverse() : h("li.none", {}, "The server has no version of it."),
    );
    if (entries.length === 0)
      fill(
        this.diff,
        notice(
          "Nothing to compare yet",
          "Changes appear here as they happen. Versions older than the server's history are gone; type two numbers to try.",
        ),
      );
  }

  async #compare() {
    const [from, to] = [this.#from, this.#to];
    const isCurrent = () => from === this.#from && to === this.#to; // the user has not chosen others since
    if (from === "" && this.#versions.find(({ version }) => version === to)?.type === "FIRST") {
      this.#comparing = false;
      fill(this.diff, notice("No earlier version", "The server's history begins with this one."));
      return;
    }
    this.#comparing = true;
    try {
      const [before, after] = await Promise.all([this.#at(from), this.#at(to)]);
      if (!isCurrent()) return;
      fill(this.diff, diffElement(before, after));
    } catch (error) {
      if (!isCurrent()) return;
      const isGone = error.code === 410;
      fill(
        this.diff,
        isGone
          ? notice(
              "This version is gone",
              `The server no longer keeps its history back to there. ${error.message}`,
            )
          : failure(error),
      );
    } finally {
      if (isCurrent()) this.#comparing = false;
    }
  }

  async #at(version) {
    if (version === "") return undefined;
    if (!this.#known.has(version))
      this.#known.set(version, await readAt(this.collection, this.name, version, this.#stop.signal));
    return this.#known.get(version);
  }
}

/** The entry of the manager that wrote this version: one that the version before does not have. */
function lastWriter({ metadata }, before) {
  const known = new Set((before?.metadata.managedFields ?? []).map((entry) => JSON.stringify(entry)));
  const entries = (metadata.managedFields ?? []).filter((entry) => !known.has(JSON.stringify(entry)));
  return entries.reduce(
    (last, entry) => ((entry.time ?? "") >= (last?.time ?? "") ? entry : last),
    undefined,
  );
}
