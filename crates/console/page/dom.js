// Elements. Everything that comes from objects becomes a text node or an attribute: nothing is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Makes an element: `h("button.quiet", {onclick, disabled: true}, "Save")`. A function is a listener,
 * `true` and `false` add and remove an attribute; children are nodes, texts, arrays, or nothing.
 */
export function h(selector, attributes = {}, ...children) {
  return build(document.createElement.bind(document), selector, attributes, children);
}

/** Makes an SVG element, likewise. */
export function svg(selector, attributes = {}, ...children) {
  return build((tag) => document.createElementNS(SVG, tag), selector, attributes, children);
}

function build(create, selector, attributes, children) {
  const [tag, ...classes] = selector.split(".");
  const element = create(tag);
  if (classes.length > 0) element.classList.add(...classes);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false),
  );
  return element;
}

/** Replaces what an element contains. */
export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false),
  );
  return element;
}

/** The shapes of the icons, in a square of 16. */
const ICONS = {
  menu: "M2 4h12M2 8h12M2 12h12",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.8 10.8 14 14",
  theme: "M13.5 9.7A6 6 0 1 1 6.3 2.5a4.8 4.8 0 0 0 7.2 7.2Z",
  leave: "M6 2H3v12h3M9 5l3 3-3 3M12 8H6",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  plus: "M8 3v10M3 8h10",
  copy: "M5 5h8v8H5ZM3 11V3h8",
};

/** An icon for the eye only; its button has the name. */
export function icon(name) {
  return svg("svg.icon", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** A button. */
export function button(label, run, { kind = "", shape, keys, ...rest } = {}) {
  const content = shape ? [icon(shape), rest["aria-label"] ? null : h("span", {}, label)] : [label];
  return h(
    `button${kind}`,
    { type: "button", onclick: run, ...rest },
    content,
    keys && h("kbd", { "aria-hidden": "true" }, keys),
  );
}

/** What is shown in place of content: an empty list, an error, a wait. */
export function notice(title, text, ...actions) {
  return h(
    "div.notice",
    {},
    h("h2", {}, title),
    text && h("p", {}, text),
    actions.length > 0 && h("div.actions", {}, actions),
  );
}

/** Lines that stand for content that is on its way. */
export function skeleton(lines = 8) {
  const rows = Array.from({ length: lines }, () => h("div.bone"));
  return h("div.skeleton", { role: "status", "aria-label": "Loading" }, rows);
}

/** The message of a failure, with what can be done about it. */
export function failure(error, retry) {
  const title =
    error.code === 403 ? "You may not read this" : error.code === 404 ? "Not found" : "The request failed";
  return notice(title, error.message, retry && button("Try again", retry));
}

let announcer;

/** Tells screen readers what has changed. */
export function announce(text) {
  announcer ??= document.body.appendChild(h("div.unseen", { role: "status", "aria-live": "polite" }));
  announcer.textContent = text;
}

/** A short message at the edge of the window. */
export function toast(text, kind = "") {
  const element = h(`div.toast${kind}`, {}, text);
  document.body.append(element);
  announce(text);
  setTimeout(() => element.remove(), 5000);
}

/** How long ago a time is, as kubectl writes it. */
export function age(time, now = Date.now()) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  if (Number.isNaN(seconds)) return "";
  const [minutes, hours, days] = [
    Math.floor(seconds / 60),
    Math.floor(seconds / 3600),
    Math.floor(seconds / 86400),
  ];
  const rest = (whole, part, unit) => (part > 0 ? `${whole}${part}${unit}` : whole);
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return rest(`${minutes}m`, seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return rest(`${hours}h`, minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  if (days < 8) return rest(`${days}d`, hours % 24, "h");
  if (days < 730) return `${days}d`;
  return rest(`${Math.floor(days / 365)}y`, days % 365, "d");
}

/** A button that copies a text. */
export function copyButton(text) {
  const copy = button(
    "Copy",
    async () => {
      await navigator.clipboard.writeText(text());
      announce("Copied");
      copy.lastChild.textContent = "Copied";
      setTimeout(() => (copy.lastChild.textContent = "Copy"), 1500);
    },
    { kind: ".chip", shape: "copy" },
  );
  return copy;
}
