// The table of a kind: the server's columns, live, sorted and filtered, of which only the rows in sight are in
// the document.

import { Collection } from "./collection.js";
import { age, button, failure, fill, h, notice, skeleton } from "./dom.js";
import { collectionPath, objectLink, plural } from "./discovery.js";
import { tone } from "./tone.js";

const ROW_PX = 34;
const NARROW_ROW_PX = 54;
const BEYOND = 12;
const REDRAW_MS = 120;
const FRESH_MS = 1600;
const narrow = matchMedia("(max-width: 640px)");

/** The view of a kind in a namespace, or in all (`""`). */
export class TableView {
  #rows = [];
  #selected = "";
  #sort = { column: -1, up: true };
  #filter = "";
  #isWide = false;
  #drawn = 0;
  #timer;

  constructor(kind, namespace, { chooseNamespace, open }) {
    this.kind = kind;
    this.namespace = namespace;
    this.open = open;
    this.title = plural(kind);
    this.#build(chooseNamespace);
    this.collection = new Collection(collectionPath(kind, namespace), () => this.#schedule());
    this.clock = setInterval(() => this.#drawRows(), 10_000);
    this.onresize = () => this.#draw();
    addEventListener("resize", this.onresize);
    narrow.addEventListener("change", this.onresize);
    this.keys = this.#shortcuts();
  }

  close() {
    this.collection.close();
    clearInterval(this.clock);
    clearTimeout(this.#timer);
    removeEventListener("resize", this.onresize);
    narrow.removeEventListener("change", this.onresize);
  }

  /** Shows the view again where the user left it. */
  resume() {
    this.scroller.scrollTop = this.scrollTop ?? 0;
    this.#draw();
  }

  focus() {
    this.grid?.focus({ preventScroll: true });
  }

  #build(chooseNamespace) {
    this.count = h("span.count");
    this.state = h("span.state");
    this.input = h("input.filter", {
      type: "search",
      placeholder: "Filter",
      "aria-label": "Filter rows",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => {
        this.#filter = this.input.value.trim().toLowerCase();
        this.scroller.scrollTop = 0;
        this.#draw();
      },
      onkeydown: (event) => {
        if (["Enter", "ArrowDown"].includes(event.key)) {
          this.focus();
          event.preventDefault();
        }
      },
    });
    const where =
      this.kind.isNamespaced &&
      button(this.namespace || "All namespaces", chooseNamespace, {
        kind: ".chip",
        keys: "n",
        title: "Choose a namespace",
      });
    this.wide = button("Wide", () => this.#toggleWide(), {
      kind: ".chip",
      keys: "w",
      "aria-pressed": "false",
    });
    this.scroller = h("div.scroller", {
      onscroll: () => {
        this.scrollTop = this.scroller.scrollTop;
        this.#drawRows();
      },
    });
    this.element = h(
      "section.table-view",
      {},
      h(
        "header.bar",
        {},
        h("h1", {}, plural(this.kind), this.count),
        where,
        this.wide,
        h("span.space"),
        this.input,
        this.state,
      ),
      this.scroller,
    );
    fill(this.scroller, skeleton());
  }

  #shortcuts() {
    const page = () => Math.max(1, Math.floor(this.scroller.clientHeight / this.#height()) - 2);
    return [
      { keys: ["j", "ArrowDown"], says: "Next row", run: () => this.#move(1) },
      { keys: ["k", "ArrowUp"], says: "Previous row", run: () => this.#move(-1) },
      { keys: ["PageDown"], run: () => this.#move(page()) },
      { keys: ["PageUp"], run: () => this.#move(-page()) },
      { keys: ["g", "Home"], says: "First row", run: () => this.#move(-Infinity) },
      { keys: ["G", "End"], says: "Last row", run: () => this.#move(Infinity) },
      { keys: ["Enter", "l"], says: "Open the row", run: () => this.#open("yaml") },
      { keys: ["e"], says: "Edit the row's object", run: () => this.#open("edit") },
      { keys: ["r"], says: "Relations and events of the row's object", run: () => this.#open("relations") },
      { keys: ["f"], says: "Filter rows", run: () => this.input.focus() },
      { keys: ["w"], says: "All columns, or the usual ones", run: () => this.#toggleWide() },
      { keys: ["Escape"], says: "Clear the filter", run: () => this.#clear() },
    ];
  }

  #clear() {
    if (this.#filter === "" && document.activeElement !== this.input) return false;
    this.input.value = this.#filter = "";
    this.#draw();
    this.focus();
  }

  #toggleWide() {
    this.#isWide = !this.#isWide;
    this.wide.setAttribute("aria-pressed", String(this.#isWide));
    this.#draw();
  }

  #open(tab) {
    const row = this.collection.rows.get(this.#selected);
    if (!row) return false;
    this.open(objectLink(this.kind, row.namespace, row.name, tab));
  }

  #move(step) {
    if (this.#rows.length === 0) return;
    const at = this.#rows.findIndex((row) => row.id === this.#selected);
    const to = Math.max(0, Math.min(this.#rows.length - 1, at + step));
    this.#selected = this.#rows[to].id;
    const [top, height, head] = [to * this.#height(), this.#height(), this.grid.tHead.offsetHeight];
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + height + head > scrollTop + clientHeight)
      this.scroller.scrollTop = top + height + head - clientHeight;
    this.#drawRows();
    this.focus();
  }

  #height = () => (narrow.matches ? NARROW_ROW_PX : ROW_PX);

  /** Draws soon; a burst of events is drawn once. */
  #schedule() {
    if (this.#timer) return;
    const wait = Math.max(0, this.#drawn + REDRAW_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#draw();
    }, wait);
  }

  #draw() {
    this.#drawn = performance.now();
    const { rows, phase, error, remaining } = this.collection;
    this.#drawState();
    if (rows.size === 0 && phase !== "live") {
      this.grid = undefined;
      fill(
        this.scroller,
        error ? failure(error, phase === "failed" && (() => location.reload())) : skeleton(),
      );
      return;
    }
    this.columns = this.#columns();
    this.#rows = this.#arranged([...rows.values()]);
    fill(this.count, String(remaining ? rows.size + remaining : rows.size));
    if (this.#rows.length === 0) {
      this.grid = undefined;
      const where = this.namespace ? ` in ${this.namespace}` : "";
      fill(
        this.scroller,
        this.#filter
          ? notice("No row matches", `${rows.size} rows do not contain “${this.#filter}”.`)
          : notice(`No ${plural(this.kind)}${where}`, "New ones appear here as they are created."),
      );
      return;
    }
    this.#drawGrid();
    this.#drawRows();
  }

  #drawState() {
    const { phase, error, remaining } = this.collection;
    const words = {
      loading: remaining ? `${remaining} to load` : "Loading",
      live: "Live",
      reconnecting: "Reconnecting",
      failed: "Stopped",
    };
    this.state.className = `state ${phase}`;
    this.state.title = error?.message ?? "";
    fill(this.state, words[phase]);
  }

  /** The columns that are shown, with their index among the cells. */
  #columns() {
    const all = this.collection.columns.map((column, index) => ({ ...column, index }));
    const shown = all.filter(({ priority }) => this.#isWide || priority === 0);
    const hasNamespaces = this.kind.isNamespaced && !this.namespace;
    return hasNamespaces ? [{ name: "Namespace", index: -1 }, ...shown] : shown;
  }

  #cell(row, { name, index, format }) {
    if (index === -1) return row.namespace;
    if (name === "Age" && row.created) return age(row.created);
    if (format === "name" && index === 0) return row.name;
    const cell = row.cells[index];
    return cell === null || cell === undefined ? "" : String(cell);
  }

  #arranged(rows) {
    const filter = this.#filter;
    const has = (row) =>
      row.id.toLowerCase().includes(filter) ||
      row.cells.some((cell) => String(cell).toLowerCase().includes(filter));
    const chosen = filter ? rows.filter(has) : rows;
    const column = this.columns.find(
      ({ index, name }) => (name === "Namespace" ? -2 : index) === this.#sort.column,
    );
    const byId = (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
    if (!column) return chosen.sort(byId);
    const sign = this.#sort.up ? 1 : -1;
    if (column.name === "Age")
      return chosen.sort(
        (a, b) => sign * (a.created < b.created ? 1 : a.created > b.created ? -1 : 0) || byId(a, b),
      );
    const keyed = chosen.map((row) => [this.#cell(row, column), row]);
    const order = new Intl.Collator("en", { numeric: true });
    return keyed.sort(([a, x], [b, y]) => sign * order.compare(a, b) || byId(x, y)).map(([, row]) => row);
  }

  #sortBy(column) {
    const key = column.name === "Namespace" ? -2 : column.index;
    this.#sort =
      this.#sort.column !== key
        ? { column: key, up: true }
        : this.#sort.up
          ? { column: key, up: false }
          : { column: -1, up: true };
    this.#draw();
  }

  #drawGrid() {
    const { matches } = narrow;
    const titles = matches ? [{ name: this.kind.kind, index: -3 }] : this.columns;
    const shape = JSON.stringify([titles.map(({ name }) => name), this.#sort, matches, this.#widths()]);
    if (this.grid?.isConnected && this.shape === shape) return;
    this.shape = shape;
    const hadFocus = this.grid === document.activeElement && this.grid;
    const widths = this.#widths();
    const columns = matches
      ? [h("col")]
      : widths.map((width) => {
          const col = h("col");
          col.style.width = `${width}ch`;
          return col;
        });
    const head = h(
      "tr",
      { role: "row" },
      titles.map((column) => this.#title(column, matches)),
    );
    this.body = h("tbody", { role: "rowgroup" });
    this.grid = h(
      "table.grid",
      {
        role: "grid",
        tabindex: "0",
        "aria-label": plural(this.kind),
        onclick: (event) => this.#clicked(event),
        ondblclick: () => this.#open("yaml"),
      },
      h("colgroup", {}, columns),
      h("thead", { role: "rowgroup" }, head),
      this.body,
    );
    if (!matches) this.grid.style.minWidth = `${widths.reduce((sum, width) => sum + width, 0)}ch`;
    // The new grid is as high as the old one before it is drawn, so that the user stays at the same rows.
    const { scrollTop } = this.scroller;
    fill(this.body, spacer(this.#rows.length * this.#height()));
    fill(this.scroller, this.grid);
    this.scroller.scrollTop = scrollTop;
    if (hadFocus || document.activeElement === document.body) this.focus();
  }

  #title(column, isNarrow) {
    const key = column.name === "Namespace" ? -2 : column.index;
    const sorted = this.#sort.column === key ? (this.#sort.up ? "ascending" : "descending") : "none";
    const title = isNarrow
      ? column.name
      : h("button", { type: "button", tabindex: "-1", onclick: () => this.#sortBy(column) }, column.name);
    return h(
      "th",
      {
        role: "columnheader",
        scope: "col",
        "aria-sort": isNarrow ? null : sorted,
        title: column.description,
      },
      title,
    );
  }

  /** The widths of columns in characters, by the longest cells of a sample, in steps: ages grow. */
  #widths() {
    const sample = this.#rows.slice(0, 200);
    return this.columns.map((column) => {
      const longest = Math.max(
        column.name.length + 1,
        ...sample.map((row) => this.#cell(row, column).length),
      );
      return Math.min(4 * Math.ceil(longest / 4), column.index === 0 ? 56 : 40) + 4;
    });
  }

  /** Draws the rows in sight, and space in place of the others. */
  #drawRows() {
    if (!this.grid?.isConnected) return;
    const height = this.#height();
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / height) - BEYOND);
    const last = Math.min(this.#rows.length, Math.ceil((scrollTop + clientHeight) / height) + BEYOND);
    const now = Date.now();
    const rows = this.#rows.slice(first, last).map((row, index) => this.#row(row, first + index, now));
    fill(this.body, spacer(first * height), rows, spacer((this.#rows.length - last) * height));
    this.grid.setAttribute("aria-rowcount", String(this.#rows.length + 1));
    const chosen = this.body.querySelector("[aria-selected=true]");
    if (chosen) this.grid.setAttribute("aria-activedescendant", chosen.id);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  #row(row, index, now) {
    const isSelected = row.id === this.#selected;
    const state = `${now - row.changedAt < FRESH_MS ? ".fresh" : ""}${row.isLeaving ? ".leaving" : ""}`;
    const cells = narrow.matches ? [this.#summary(row)] : this.columns.map((column) => this.#td(row, column));
    const attributes = {
      role: "row",
      id: `row-${index}`,
      "aria-rowindex": String(index + 2),
      "aria-selected": String(isSelected),
      "data-id": row.id,
    };
    return h(`tr${state}`, attributes, cells);
  }

  #td(row, column) {
    const text = this.#cell(row, column);
    const mood = tone(column.name, text);
    const content = column.index === 0 ? this.#link(row) : mood ? h(`span.tone.${mood}`, {}, text) : text;
    return h("td", { role: "gridcell", title: text.length > 24 ? text : null }, content);
  }

  #link(row) {
    return h("a", { href: objectLink(this.kind, row.namespace, row.name), tabindex: "-1" }, row.name);
  }

  /** A row of a narrow window: the name, and below it the other cells. */
  #summary(row) {
    const others = this.columns
      .filter(({ index }) => index !== 0)
      .map((column) => {
        const text = this.#cell(row, column);
        const mood = tone(column.name, text);
        return (
          text && h("span", {}, h("i", {}, `${column.name} `), mood ? h(`span.tone.${mood}`, {}, text) : text)
        );
      });
    return h("td.summary", { role: "gridcell" }, this.#link(row), h("div", {}, others));
  }

  #clicked(event) {
    const row = event.target.closest("tr[data-id]");
    if (!row) return;
    this.#selected = row.dataset.id;
    this.#drawRows();
  }
}

function spacer(height) {
  const row = h("tr.spacer", { "aria-hidden": "true" });
  row.style.height = `${height}px`;
  return row;
}
