// The editor: a manifest, what the server says of it at its lines, and an apply, first dry and then for real.

import { button, failure, fill, h, notice, toast } from "./dom.js";
import { byKind, objectLink, objectPath } from "./discovery.js";
import { diffElement } from "./diffview.js";
import { nodeAt, outline, valueAt } from "./outline.js";
import { problems } from "./problems.js";
import { selection } from "./selection.js";
import { request } from "./session.js";
import { TextArea } from "./textarea.js";
import { parseObject, text as yaml } from "./yaml.js";

/** The console's name among the managers of fields. */
const MANAGER = "pintle-console";
const SET_BY_SERVER = [
  "managedFields",
  "resourceVersion",
  "uid",
  "creationTimestamp",
  "generation",
  "selfLink",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
];

const EXAMPLE = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: default
data:
  colour: blue
`;

export class Editor {
  #base = "";
  #object;
  #force = false;
  /** The text that a dry run has accepted. */
  #accepted;

  /** The editor of an object, or of a new one where there is no `kind`. */
  constructor({ kind, followed, open, namespace }) {
    Object.assign(this, { kind, followed, open, title: "Apply a manifest" });
    this.area = new TextArea("Manifest", () => this.#typed());
    this.result = h("div.result", { "aria-live": "polite" });
    this.dry = button("Dry run", () => this.#send(true), { kind: ".primary", keys: "Ctrl ↵" });
    this.real = button("Apply", () => this.#send(false), { disabled: true });
    this.whole = h("input", { type: "checkbox", onchange: () => this.#typed() });
    const option =
      kind &&
      h(
        "label",
        { title: "Off: only the lines that you change, and those that the console applied before, are sent" },
        this.whole,
        "Send all fields",
      );
    this.element = h(
      "section.editor",
      {},
      !kind && h("header.bar", {}, h("h1", {}, "Apply a manifest")),
      h(
        "div.bar",
        {},
        this.dry,
        this.real,
        option,
        h("span.space"),
        h("small", {}, "applied as ", h("code", {}, MANAGER)),
      ),
      h("div.panes", {}, this.area.element, this.result),
    );
    this.keys = [
      { keys: ["Ctrl-Enter"], says: "Dry run", run: () => this.#send(true) },
      { keys: ["Ctrl-s"], says: "Apply what the dry run accepted", run: () => this.#send(false) },
      { keys: ["Escape"], run: () => this.#leave() },
    ];
    this.#hint();
    if (!kind)
      this.#begin(namespace ? EXAMPLE.replace("namespace: default", `namespace: ${namespace}`) : EXAMPLE);
  }

  focus() {
    this.area.focus();
  }

  /** Takes a newer state of the object, unless the user is at work on an older one. */
  update(object) {
    const isTouched = this.#object && this.area.text !== this.#base;
    if (isTouched) {
      this.area.note(
        this.#object.metadata.resourceVersion === object.metadata.resourceVersion
          ? ""
          : "The object has changed since you began. What you send is merged into its newest state.",
      );
      return;
    }
    this.#object = object;
    this.#begin(editable(object));
  }

  #begin(text) {
    this.#base = text;
    this.area.text = text;
    this.area.note("");
    this.#typed();
  }

  /** Escape leaves the text first, and the view next. */
  #leave() {
    if (!this.area.hasFocus()) return false;
    this.dry.focus();
  }

  #hint() {
    fill(
      this.result,
      notice(
        this.kind ? "Change something, then try it" : "Write or paste a manifest, then try it",
        "A dry run asks the server what it would store, and stores nothing. Problems appear at their lines.",
      ),
    );
  }

  #typed() {
    this.#accepted = undefined;
    this.#force = false;
    this.real.disabled = true;
    this.area.mark([]);
  }

  /** What is sent: lines with their numbers in the text. */
  #lines() {
    const all = this.area.text.split("\n").map((text, line) => ({ text, line }));
    if (!this.#object || this.whole.checked) return all;
    return selection(this.area.text, this.#base, this.#object, MANAGER) ?? all;
  }

  #target(read) {
    const { root } = read;
    const kind = byKind(valueAt(root, "apiVersion"), valueAt(root, "kind"));
    const name = valueAt(root, "metadata", "name");
    if (!kind)
      return {
        line: nodeAt(root, ["kind"])?.line ?? 0,
        message: "the server has no kind of this apiVersion and kind",
      };
    if (!name) return { line: nodeAt(root, ["metadata"])?.line ?? 0, message: "metadata.name is missing" };
    const namespace = kind.isNamespaced ? valueAt(root, "metadata", "namespace") || "default" : "";
    const version = valueAt(root, "apiVersion").split("/").at(-1);
    return {
      path: objectPath({ ...kind, version }, namespace, name),
      link: objectLink(kind, namespace, name),
      name,
    };
  }

  async #send(isDry) {
    const text = this.area.text;
    if (!isDry && this.#accepted !== text) return;
    const read = outline(text);
    const target = this.#target(read);
    if (!target.path) {
      this.#complain([target], read);
      return;
    }
    const lines = this.#lines();
    const query = new URLSearchParams({
      fieldManager: MANAGER,
      fieldValidation: "Strict",
      ...(this.#force && { force: "true" }),
      ...(isDry && { dryRun: "All" }),
    });
    this.dry.disabled = true;
    try {
      const body = lines.map((line) => line.text).join("\n");
      const before = isDry ? await this.#stored(target.path) : undefined;
      const response = await request(`${target.path}?${query}`, {
        method: "PATCH",
        headers: { "content-type": "application/apply-patch+yaml" },
        body,
      });
      const object = parseObject(await response.text());
      this.area.mark([]);
      if (isDry) this.#accept(text, before, object, response.headers.get("warning"), lines);
      else this.#applied(object, target);
    } catch (error) {
      this.#complain(
        problems(error, read, (line) => lines[line]?.line),
        read,
        error,
      );
    } finally {
      this.dry.disabled = false;
    }
  }

  async #stored(path) {
    try {
      return parseObject(await (await request(path)).text());
    } catch (error) {
      if (error.code === 404) return undefined;
      throw error;
    }
  }

  #accept(text, before, after, warning, lines) {
    this.#accepted = text;
    this.real.disabled = false;
    this.result.scrollTop = 0;
    const isPart = lines.length < text.split("\n").length - 1;
    fill(
      this.result,
      h("h2", {}, before ? "What would change" : "What would be created"),
      warning && h("p.warning", {}, /"((?:[^"\\]|\\.)*)"/.exec(warning)?.[1] ?? warning),
      diffElement(
        before,
        after,
        "The server would store what it has. An apply still makes the console an owner of the fields that it sends.",
      ),
      isPart &&
        h(
          "details",
          {},
          h("summary", {}, `What is sent: ${lines.length} lines`),
          h("pre", { tabindex: "0" }, lines.map((line) => line.text).join("\n")),
        ),
    );
    this.real.focus();
  }

  #applied(object, { link, name }) {
    toast(`${name} is applied, version ${object.metadata.resourceVersion}`);
    this.#hint();
    if (!this.kind) {
      this.open(link);
      return;
    }
    this.#object = object;
    this.#begin(editable(object));
  }

  #complain(found, read, error) {
    this.area.mark(found.filter(({ line }) => line !== undefined));
    this.real.disabled = true;
    const conflicts = found.filter(({ manager }) => manager !== undefined);
    const managers = [...new Set(conflicts.map(({ manager }) => manager))];
    const entry = ({ line, field, message }) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", disabled: line === undefined, onclick: () => this.area.goTo(line) },
          line !== undefined && h("span.place", {}, `line ${line + 1}`),
          field && h("code", {}, field),
          h("span", {}, message),
        ),
      );
    fill(
      this.result,
      h(
        "h2",
        {},
        conflicts.length > 0
          ? "Others own these fields"
          : found.length === 1
            ? "One problem"
            : `${found.length} problems`,
      ),
      h("div", { role: "alert" }, h("ul.problems", {}, found.map(entry))),
      conflicts.length > 0 &&
        h(
          "p",
          {},
          `To change them, take them over: ${managers.join(", ")} will no longer own them, and may set them back.`,
        ),
      conflicts.length > 0 &&
        button("Take over, dry run", () => {
          this.#force = true;
          this.#send(true);
        }),
      error && found.every(({ line }) => line === undefined) && found.length > 1 && failure(error),
    );
  }
}

/** The part of an object that a user can write. */
function editable({ apiVersion, kind, status, ...object }) {
  const metadata = Object.fromEntries(
    Object.entries(object.metadata).filter(([name]) => !SET_BY_SERVER.includes(name)),
  );
  return yaml({ apiVersion, kind, ...object, metadata });
}
