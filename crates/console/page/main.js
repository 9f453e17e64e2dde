// The console: who is logged in, which view is shown, and what the keys do everywhere.

import { failure, fill, notice, skeleton } from "./dom.js";
import { byResource, discover, sections, tableLink } from "./discovery.js";
import { Editor } from "./editor.js";
import { listen, setGlobalKeys, setViewKeys, showHelp } from "./keys.js";
import { showLogin } from "./login.js";
import { ObjectView } from "./objectview.js";
import { Overview } from "./overview.js";
import { openPalette } from "./palette.js";
import { hasToken, keepToken, read, whenEnded, whoAmI } from "./session.js";
import { Shell } from "./shell.js";
import { TableView } from "./table.js";

let shell;
let view;
/** The table from which an object was opened, with its address: it stays as it is. */
let parked;
let namespace = "";

const open = (address) => {
  location.hash = address;
};

async function start() {
  applyTheme(localStorage.getItem("pintle.theme"));
  listen();
  whenEnded(
    (error) =>
      shell &&
      leave(error.message === "Unauthorized" ? "Your session has ended. Log in again." : error.message),
  );
  try {
    const user = await whoAmI();
    if (user) await enter(user);
    else showLogin(enter);
  } catch (error) {
    const had = hasToken();
    keepToken("");
    if (error.code === 401) showLogin(enter, had ? "Your session has ended. Log in again." : "");
    else
      fill(
        document.body,
        failure(error, () => location.reload()),
      );
  }
}

async function enter(user) {
  shell = new Shell(user, {
    chooseNamespace,
    search,
    apply: () => open("#/apply"),
    theme: switchTheme,
    help: showHelp,
    leave: () => leave(),
  });
  setGlobalKeys(KEYS);
  fill(shell.main, skeleton());
  try {
    await discover();
  } catch (error) {
    fill(
      shell.main,
      failure(error, () => location.reload()),
    );
    return;
  }
  shell.drawKinds(namespace);
  addEventListener("hashchange", route);
  route();
}

function leave(reason) {
  removeEventListener("hashchange", route);
  [view, parked?.view].forEach((one) => one?.close?.());
  [view, parked, shell] = [undefined, undefined, undefined];
  setGlobalKeys([]);
  setViewKeys([]);
  document.body.classList.remove("side-open");
  keepToken("");
  showLogin(enter, reason);
}

/** Shows the view that the address names. */
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decoded);
  const parameters = new URLSearchParams(query);
  const kind = ["k", "o"].includes(parts[0])
    ? byResource(parts[1] === "core" ? "" : parts[1], parts[2])
    : undefined;
  if (parts[0] === "k" && kind) showTable(kind, parameters.get("ns") ?? "");
  else if (parts[0] === "o" && kind) showObject(kind, parts);
  else if (parts[0] === "apply") show(new Editor({ open, namespace }), "apply");
  else if (path === "") show(new Overview(), "");
  else
    show(
      {
        title: "Not found",
        element: notice(
          "There is nothing at this address",
          "The kind may have been removed, or you may not see it.",
        ),
        keys: [],
      },
      undefined,
    );
}

/** A part of an address that somebody mistyped stands for itself. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function showTable(kind, chosen) {
  if (kind.isNamespaced && chosen !== namespace) {
    namespace = chosen;
    shell.drawKinds(namespace);
  }
  const address = tableLink(kind, chosen);
  if (parked?.address === address) {
    const { view: table } = parked;
    parked = undefined;
    show(table, kind.id, address);
    table.resume();
    return;
  }
  show(new TableView(kind, chosen, { chooseNamespace, open }), kind.id, address);
}

function showObject(kind, [, , , within, name, tab]) {
  const where = within === "-" ? "" : within;
  const next = new ObjectView(kind, where, name, tab, { open: (address) => open(backTo(kind, address)) });
  show(next, kind.id);
}

/** A way back to the table from which the user came, with its namespace. */
function backTo(kind, address) {
  const isBack = address.startsWith(`#/k/${kind.group || "core"}/${kind.resource}`);
  return isBack && parked?.view.kind === kind ? parked.address : address;
}

function show(next, id, address) {
  if (view instanceof TableView && next instanceof ObjectView) parked = { view, address: view.address };
  else if (view && view !== next) view.close?.();
  if (parked && parked.view !== view && !(next instanceof ObjectView)) {
    parked.view.close();
    parked = undefined;
  }
  view = next;
  view.address = address;
  shell.mark(id);
  document.title = `${next.title} · Pintle`;
  fill(shell.main, next.element);
  setViewKeys(next.keys);
  if (next.focus) next.focus();
  else shell.main.focus();
}

async function chooseNamespace() {
  const go = (name) => {
    namespace = name;
    shell.drawKinds(name);
    if (view instanceof TableView && view.kind.isNamespaced) open(tableLink(view.kind, name));
  };
  const items = [{ title: "All namespaces", words: ["*"], run: () => go("") }];
  try {
    const { items: found } = await read("/api/v1/namespaces?limit=1000", {
      headers: { accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" },
    });
    items.push(
      ...found.map(({ metadata: { name } }) => ({
        title: name,
        hint: name === namespace ? "chosen" : "",
        run: () => go(name),
      })),
    );
  } catch {
    // A user who may not list namespaces can still name one.
    for (const name of new Set([namespace, "default"].filter(Boolean)))
      items.push({ title: name, run: () => go(name) });
  }
  openPalette(items, "Choose a namespace");
}

function search() {
  const known = sections().flatMap((section) => section.kinds);
  const kinds = known.map((kind) => ({
    title: kind.kind,
    hint: kind.group || "core",
    words: [kind.resource, kind.id, ...kind.shortNames],
    run: () => open(tableLink(kind, namespace)),
  }));
  const actions = KEYS.filter(({ title }) => title).map(({ title, keys, run }) => ({
    title,
    hint: keys[0],
    run,
  }));
  openPalette([...kinds, ...actions], "Search kinds and actions");
}

function switchTheme() {
  const isDark =
    getComputedStyle(document.documentElement).getPropertyValue("color-scheme") === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  applyTheme(isDark ? "light" : "dark");
}

/** Without a choice the system's theme holds. */
function applyTheme(theme) {
  if (!["dark", "light"].includes(theme)) return;
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("pintle.theme", theme);
}

const KEYS = [
  { keys: ["/", "Ctrl-k"], says: "Search kinds and actions", run: search },
  {
    keys: ["n"],
    says: "Choose a namespace",
    title: "Choose a namespace",
    run: () => {
      chooseNamespace();
    },
  },
  { keys: ["a"], says: "Apply a manifest", title: "Apply a manifest", run: () => open("#/apply") },
  { keys: ["m"], says: "Overview and metrics", title: "Overview and metrics", run: () => open("#/") },
  { keys: ["t"], says: "Dark or light", title: "Switch between dark and light", run: switchTheme },
  { keys: ["?"], says: "This help", title: "Keyboard help", run: showHelp },
  { keys: [], title: "Log out", run: () => leave() },
];

start();
