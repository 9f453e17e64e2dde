// Writes an object as YAML, in lines that know the path of their field.

/** A number that JavaScript cannot hold exactly, as the server wrote it. */
class ExactNumber {
  constructor(source) {
    this.source = source;
  }
}

/** Parses an object's JSON; integers beyond 2^53 keep their digits where the browser can say them. */
export function parseObject(text) {
  return JSON.parse(text, (_, value, context) => {
    const isInexact = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
    return isInexact && context?.source ? new ExactNumber(context.source) : value;
  });
}

const SEPARATOR = "\u0001";

/** A path as one text, to look it up. */
export const pathKey = (path) => path.join(SEPARATOR);
export const pathOf = (key) => (key === "" ? [] : key.split(SEPARATOR));

/** Reads as a number, a boolean, null or a date where it is not quoted. */
const AMBIGUOUS = /^(?:[-+]?[\d.]|0[xob]|true$|false$|null$|yes$|no$|on$|off$|y$|n$|~$|\.(?:inf|nan)$)/i;
const INDICATOR = /^[\s\-?:,[\]{}#&*!|>'"%@`=]|: |:$| #|\s$|[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/;

function quoted(text) {
  if (text === "" || AMBIGUOUS.test(text) || INDICATOR.test(text)) return JSON.stringify(text);
  return text;
}

const fitsBlock = (text) =>
  text.includes("\n") && !/^\s|[^\S\n]\n|[\u0000-\u0009\u000b-\u001f\u007f]/.test(text) && text.trim() !== "";

/** The lines of an object: `{path, parts}`, where parts are pairs of a class and a text. */
export function lines(value) {
  const out = [];
  if (isEmpty(value) || typeof value !== "object") out.push({ path: [], parts: scalar(value) });
  else members(value, [], "", out, undefined);
  return out;
}

export const lineText = ({ parts }) => parts.map(([, text]) => text).join("");

export const text = (value) => lines(value).map(lineText).join("\n") + "\n";

const isEmpty = (value) =>
  value !== null &&
  typeof value === "object" &&
  !(value instanceof ExactNumber) &&
  Object.keys(value).length === 0;
const isTree = (value) =>
  value !== null && typeof value === "object" && !(value instanceof ExactNumber) && !isEmpty(value);

/** Writes the members of a map or list. `dash` begins the first line, where the map is an item of a list. */
function members(value, path, indent, out, dash) {
  const isList = Array.isArray(value);
  const entries = isList ? value.map((item, index) => [index, item]) : Object.entries(value);
  for (const [name, item] of entries) {
    const at = [...path, name];
    const lead = dash === undefined ? [["", indent]] : dash;
    dash = undefined;
    if (isList) {
      const bullet = [...lead, ["mark", "- "]];
      if (isTree(item)) members(item, at, `${indent}  `, out, bullet);
      else leaf(item, at, `${indent}  `, out, bullet);
      continue;
    }
    const title = [...lead, ["key", quoted(name)], ["mark", ":"]];
    if (isTree(item)) {
      out.push({ path: at, parts: title });
      members(item, at, Array.isArray(item) ? indent : `${indent}  `, out, undefined);
    } else {
      leaf(item, at, `${indent}  `, out, [...title, ["", " "]]);
    }
  }
}

function leaf(value, path, indent, out, lead) {
  if (typeof value !== "string" || !fitsBlock(value)) {
    out.push({ path, parts: [...lead, ...scalar(value)] });
    return;
  }
  const body = value.replace(/\n+$/, "");
  const ends = value.length - body.length;
  out.push({ path, parts: [...lead, ["mark", ends === 0 ? "|-" : ends === 1 ? "|" : "|+"]] });
  const rows = (body + "\n".repeat(Math.max(0, ends - 1))).split("\n");
  for (const row of rows)
    out.push({
      path,
      parts: row
        ? [
            ["", indent],
            ["text", row],
          ]
        : [["", ""]],
    });
}

function scalar(value) {
  if (value instanceof ExactNumber) return [["number", value.source]];
  if (typeof value === "string") return [["text", quoted(value)]];
  if (value !== null && typeof value === "object") return [["mark", Array.isArray(value) ? "[]" : "{}"]];
  return [[typeof value === "number" ? "number" : "word", String(value)]];
}
