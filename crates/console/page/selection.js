// Which part of a text an apply sends: what the user has changed, and what the console owns already. So an
// apply takes no field that the user has not touched.

import { outline } from "./outline.js";
import { ownership } from "./owners.js";
import { pathKey } from "./yaml.js";

const IDENTITY = [["apiVersion"], ["kind"], ["metadata", "name"], ["metadata", "namespace"]].map(pathKey);

/**
 * The lines to send, `{text, line}` with the line of the user's text; or `undefined` if the text has to be sent
 * as a whole. `before` is the text from which the user began, of the object whose `manager` applies.
 */
export function selection(text, before, object, manager) {
  const [now, then] = [outline(text), outline(before)];
  if (!now.isPlain || !then.isPlain) return undefined;
  const { managers, of } = ownership(object);
  const own = managers.findIndex(
    ({ name, operation, subresource }) => name === manager && operation === "Apply" && !subresource,
  );
  const select = {
    rows: now.rows,
    before: values(then),
    keys: listKeys(object.metadata.managedFields ?? []),
    isOwn: (path) => own >= 0 && of(path).includes(own),
  };
  const out = [];
  for (const child of now.root.children) write(child, select, out);
  return out;
}

/** The values of the fields without members, by path. */
function values({ root, rows }) {
  const found = new Map();
  const visit = (node) => {
    if (node.children.length === 0) found.set(pathKey(node.path), valueText(node, rows));
    node.children.forEach(visit);
  };
  root.children.forEach(visit);
  return found;
}

const valueText = (node, rows) =>
  [node.value.trim(), ...rows.slice(node.line + 1, node.end + 1).map((row) => row.trim())].join("\n");

/** The lists whose items have owners of their own, by path with `*` for an item, and the names of their keys. */
function listKeys(managedFields) {
  const found = new Map();
  const visit = (fields, path) => {
    for (const [step, below] of Object.entries(fields)) {
      const sort = step.slice(0, 2);
      if (sort === "f:") visit(below, [...path, step.slice(2)]);
      if (sort === "v:") found.set(pathKey(path), []);
      if (sort === "k:") {
        found.set(pathKey(path), Object.keys(JSON.parse(step.slice(2))));
        visit(below, [...path, "*"]);
      }
    }
  };
  for (const { fieldsV1 = {} } of managedFields) visit(fieldsV1, []);
  return found;
}

const general = (path) => pathKey(path.map((name) => (typeof name === "number" ? "*" : name)));

/** True if something at or below the node is to be sent. */
function isChosen(node, select) {
  const key = pathKey(node.path);
  if (IDENTITY.includes(key)) return true;
  if (node.children.length > 0) return node.children.some((child) => isChosen(child, select));
  return select.before.get(key) !== valueText(node, select.rows) || select.isOwn(node.path);
}

/** Writes the chosen lines of a node. `dash` is the column of the list's mark that the first of them gets. */
function write(node, select, out, dash) {
  if (!isChosen(node, select)) return;
  const isAtomic = node.sort === "list" && !select.keys.has(general(node.path));
  if (node.children.length === 0 || isAtomic) {
    push(node, node.end, select, out, dash);
    return;
  }
  if (typeof node.name !== "number") {
    push(node, node.line, select, out, dash);
    for (const child of node.children) write(child, select, out);
    return;
  }
  const keys = select.keys.get(general(node.parent.path)) ?? [];
  const chosen = node.children.filter((child) => keys.includes(child.name) || isChosen(child, select));
  chosen.forEach((child, index) => {
    const mark = index === 0 ? node.column : undefined;
    if (keys.includes(child.name)) push(child, child.end, select, out, mark);
    else write(child, select, out, mark);
  });
}

/** Writes the lines of a node up to `end`. */
function push(node, end, { rows }, out, dash) {
  const lead = dash === undefined ? " ".repeat(node.column) : `${" ".repeat(dash)}-`.padEnd(node.column);
  out.push({ text: lead + rows[node.line].slice(node.column), line: node.line });
  for (let line = node.line + 1; line <= end; line += 1) out.push({ text: rows[line], line });
}
