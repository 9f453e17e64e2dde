// What is around each view: the side bar with the kinds, and the bar at the top.

import { button, fill, h } from "./dom.js";
import { plural, sections, tableLink } from "./discovery.js";

/** Builds the frame into the document. `act` has what its buttons do. */
export class Shell {
  constructor(user, act) {
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.kinds = h("div.kinds");
    this.where = button("All namespaces", act.chooseNamespace, { kind: ".where", keys: "n" });
    this.side = h(
      "nav.side",
      { id: "side", "aria-label": "Kinds" },
      h(
        "a.brand",
        { href: "#/" },
        h("img", { src: "icon.svg", alt: "", width: "24", height: "24" }),
        h("b", {}, "Pintle"),
        h("small", {}, "console"),
      ),
      this.where,
      this.kinds,
    );
    this.toggle = button("Kinds", () => this.#open(!this.isOpen), {
      kind: ".quiet.menu",
      shape: "menu",
      "aria-label": "Kinds",
      "aria-expanded": "false",
      "aria-controls": "side",
    });
    const top = h(
      "header.top",
      {},
      this.toggle,
      button("Search or jump to", act.search, { kind: ".search", shape: "search", keys: "/" }),
      h("span.space"),
      button("Apply", act.apply, { kind: ".quiet.wide-only", shape: "plus", keys: "a" }),
      button("Theme", act.theme, {
        kind: ".quiet",
        shape: "theme",
        "aria-label": "Switch between dark and light",
      }),
      button("?", act.help, { kind: ".quiet.wide-only", "aria-label": "Keyboard help" }),
      h(
        "span.user",
        { title: `${user.username}\n${(user.groups ?? []).join("\n")}` },
        shortName(user.username),
      ),
      button("Log out", act.leave, { kind: ".quiet", shape: "leave", "aria-label": "Log out" }),
    );
    const skip = h(
      "a.skip",
      {
        href: "#main",
        onclick: (event) => {
          event.preventDefault();
          this.main.focus();
        },
      },
      "Skip to the content",
    );
    const veil = h("div.veil", { onclick: () => this.#open(false) });
    fill(document.body, skip, top, this.side, veil, this.main);
    this.side.addEventListener("click", (event) => event.target.closest("a") && this.#open(false));
    this.side.addEventListener("keydown", (event) => event.key === "Escape" && this.#open(false));
  }

  #open(isOpen) {
    this.isOpen = isOpen;
    document.body.classList.toggle("side-open", isOpen);
    this.toggle.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.side.querySelector("a, button").focus();
  }

  /** Draws the kinds, with links into a namespace. */
  drawKinds(namespace) {
    this.where.firstChild.textContent = namespace || "All namespaces";
    const item = (kind) =>
      h("li", {}, h("a", { href: tableLink(kind, namespace), "data-id": kind.id }, plural(kind)));
    fill(
      this.kinds,
      h("ul", {}, h("li", {}, h("a", { href: "#/", "data-id": "" }, "Overview"))),
      sections().map(({ title, isOpen, kinds }) =>
        h(
          "details",
          { open: isOpen || kinds.some(({ id }) => id === this.current) },
          h("summary", {}, title),
          h("ul", {}, kinds.map(item)),
        ),
      ),
    );
    this.mark(this.current);
  }

  /** Marks the kind that is shown. */
  mark(id) {
    this.current = id;
    for (const link of this.kinds.querySelectorAll("a")) {
      if (link.dataset.id === id) {
        link.setAttribute("aria-current", "page");
        link.closest("details")?.setAttribute("open", "");
      } else {
        link.removeAttribute("aria-current");
      }
    }
  }
}

/** `system:serviceaccount:shop:web` is `shop/web` to people. */
function shortName(name) {
  return name.startsWith("system:serviceaccount:") ? name.split(":").slice(2).join("/") : name;
}
