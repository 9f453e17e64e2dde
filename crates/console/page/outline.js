// The outline of a YAML text: which line has which field. It reads the block style in which people write
// manifests; the server alone decides what a text means.

/**
 * The outline of a text. `isPlain` is false where the text has more of YAML than the outline understands
 * (anchors, several documents); then lines may be missing.
 */
export function outline(text) {
  const root = { path: [], children: [], line: 0, column: -1, end: 0 };
  const scan = {
    root,
    rows: text.split("\n"),
    frames: [],
    last: root,
    isPlain: true,
    skipDeeper: undefined,
    open: 0,
  };
  scan.rows.forEach((row, line) => scanRow(scan, row, line));
  return { root, rows: scan.rows, isPlain: scan.isPlain && scan.open === 0 };
}

const KEY =
  /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#[\]{}&*!|>%@`,?](?:[^:#]|:(?=\S)|(?<=\S)#)*?)\s*:(?:\s+(.*))?$/;

function scanRow(scan, row, line) {
  const content = row.trimStart();
  const column = row.length - content.length;
  if (scan.open > 0) {
    scan.open += balance(content);
    extend(scan.last, line);
    return;
  }
  if (content === "" || (scan.skipDeeper !== undefined && column > scan.skipDeeper)) {
    if (content !== "") extend(scan.last, line);
    return;
  }
  scan.skipDeeper = undefined;
  if (content.startsWith("#")) return;
  if (/^(?:---|\.\.\.)(?:\s|$)/.test(row)) {
    if (scan.root.children.length > 0) scan.isPlain = false;
    return;
  }
  if (row.includes("\t")) scan.isPlain = false;
  take(scan, content.trimEnd(), column, line);
}

/** Takes what begins at a column: an item of a list, a member of a map, or the rest of a scalar. */
function take(scan, content, column, line) {
  const item = /^-(?:(\s+)(.*))?$/.exec(content);
  const member = item ? null : KEY.exec(content);
  if (!item && !member) {
    extend(scan.last, line);
    return;
  }
  const sort = item ? "list" : "map";
  const { frames } = scan;
  while (
    frames.length > 0 &&
    (frames.at(-1).column > column ||
      (frames.at(-1).column === column && !item && frames.at(-1).sort === "list"))
  )
    frames.pop();
  const top = frames.at(-1);
  if (!top || top.column < column || top.sort !== sort) frames.push({ column, sort, node: scan.last });
  const parent = frames.at(-1).node;
  parent.sort = sort;
  const name = item ? parent.children.length : unquoted(member[1]);
  const value = item ? (item[2] ?? "") : (member[2] ?? "");
  const node = { name, path: [...parent.path, name], parent, children: [], line, column, value, end: line };
  parent.children.push(node);
  scan.last = node;
  extend(node, line);
  if (item && value !== "" && (KEY.test(value) || /^-(?:\s|$)/.test(value))) {
    node.value = "";
    take(scan, value, column + 1 + item[1].length, line);
    return;
  }
  readValue(scan, value, column);
}

function readValue(scan, value, column) {
  if (/^[|>][-+\d]*(?:\s+#.*)?$/.test(value)) scan.skipDeeper = column;
  else if (/^[[{]/.test(value)) scan.open = Math.max(0, balance(value));
  else if (/^[&*!]/.test(value)) scan.isPlain = false;
}

/** The brackets that a text of flow style leaves open. */
function balance(text) {
  const bare = text.replace(/"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|\s#.*$/g, "");
  return [...bare].reduce(
    (sum, letter) => sum + ("[{".includes(letter) ? 1 : "]}".includes(letter) ? -1 : 0),
    0,
  );
}

function extend(node, line) {
  for (let at = node; at; at = at.parent) at.end = line;
}

/** The text of a scalar without quotation marks and comment. */
export function unquoted(text) {
  if (text.startsWith('"')) {
    const [inner] = /^"(?:[^"\\]|\\.)*"/.exec(text) ?? [];
    try {
      return JSON.parse(inner);
    } catch {
      return text;
    }
  }
  if (text.startsWith("'")) return text.replace(/^'((?:[^']|'')*)'.*$/s, "$1").replaceAll("''", "'");
  return text.replace(/\s+#.*$/, "");
}

/** The node at a path of names, or `undefined`. */
export function nodeAt(root, path) {
  return path.reduce((node, name) => node?.children.find((child) => child.name === name), root);
}

export const valueAt = (root, ...path) => unquoted(nodeAt(root, path)?.value ?? "");

/**
 * The node that a field of an error names, or the nearest one above it: `spec.ports[0].port`,
 * `.spec.containers[name="web"].image`, `metadata.labels[app/name]`, `.metadata.labels.app.example.com/x`.
 */
export function nodeOfField(root, field) {
  const steps = [...field.matchAll(/\[((?:"(?:[^"\\]|\\.)*"|[^\]"])*)\]|([^.[\]]+)/g)].map(
    ([, bracketed, plain]) => (bracketed === undefined ? { plain } : { bracketed }),
  );
  let node = root;
  for (let at = 0; at < steps.length;) {
    const [next, used] = stepFrom(node, steps, at);
    if (!next) break;
    node = next;
    at += used;
  }
  return node === root ? undefined : node;
}

function stepFrom(node, steps, at) {
  const { bracketed, plain } = steps[at];
  if (bracketed !== undefined) return [childInBrackets(node, bracketed), 1];
  let name = plain;
  for (let used = 1; ; used += 1) {
    const child = node.children.find((child) => child.name === name);
    if (child) return [child, used];
    const more = steps[at + used]?.plain; // a name with dots
    if (more === undefined) return [undefined, 0];
    name += `.${more}`;
  }
}

function childInBrackets(node, text) {
  const { children } = node;
  if (/^\d+$/.test(text) && node.sort === "list") return children[Number(text)];
  if (text.startsWith("="))
    return children.find(
      (child) => JSON.stringify(unquoted(child.value)) === text.slice(1) || child.value === text.slice(1),
    );
  const keys = [...text.matchAll(/(\w+)=("(?:[^"\\]|\\.)*"|[^,]*)/g)].map(([, name, value]) => [
    name,
    unquoted(value),
  ]);
  if (keys.length > 0 && node.sort === "list")
    return children.find((item) => keys.every(([name, value]) => [value, ""].includes(valueAt(item, name))));
  return children.find((child) => child.name === unquoted(text));
}
