// Who owns which field: reads `managedFields` into owners by path.

import { pathKey } from "./yaml.js";

/**
 * The owners of an object's fields: `managers` in the order of the object, and `of(path)`, the indices of the
 * managers that own the field at a path.
 */
export function ownership(object) {
  const entries = object.metadata?.managedFields ?? [];
  const exact = new Map();
  const whole = new Map();
  const managers = entries.map((entry, index) => {
    const marks = { count: 0, index, exact, whole };
    walk(entry.fieldsV1 ?? {}, object, [], marks);
    return {
      name: entry.manager,
      operation: entry.operation,
      subresource: entry.subresource,
      version: entry.apiVersion,
      time: entry.time,
      count: marks.count,
    };
  });
  return { managers, of: (path) => ownersOf(path, exact, whole) };
}

/** The owners of the field itself; or of the nearest field above that somebody owns as a whole. */
function ownersOf(path, exact, whole) {
  const found = exact.get(pathKey(path));
  if (found) return [...found];
  for (let length = path.length - 1; length > 0; length -= 1) {
    const above = whole.get(pathKey(path.slice(0, length)));
    if (above) return [...above];
  }
  return [];
}

/** Marks the fields of one manager. A set without members is a leaf: all below it belongs to it. */
function walk(fields, value, path, marks) {
  for (const [step, below] of Object.entries(fields)) {
    if (step === ".") {
      mark(marks.exact, path, marks);
      continue;
    }
    const name = find(step, value);
    if (name === undefined) continue; // the field is no longer there
    const at = [...path, name];
    const isLeaf = Object.keys(below).length === 0;
    if (isLeaf) {
      mark(marks.exact, at, marks);
      mark(marks.whole, at, { ...marks, count: 0 });
    } else {
      walk(below, value[name], at, marks);
    }
  }
}

function mark(map, path, marks) {
  const key = pathKey(path);
  if (!map.has(key)) map.set(key, new Set());
  map.get(key).add(marks.index);
  marks.count += 1;
}

/** The member or index to which a path element leads: `f:name`, `k:{…}`, `v:…`, `i:0`. */
function find(step, value) {
  if (value === null || typeof value !== "object") return undefined;
  const [sort, rest] = [step.slice(0, 2), step.slice(2)];
  if (sort === "f:") return Object.hasOwn(value, rest) ? rest : undefined;
  if (!Array.isArray(value)) return undefined;
  let index = -1;
  if (sort === "i:") index = Number(rest);
  if (sort === "v:") index = value.findIndex((item) => JSON.stringify(item) === rest);
  if (sort === "k:") {
    const keys = Object.entries(JSON.parse(rest));
    index = value.findIndex((item) => keys.every(([name, wanted]) => sameKey(item?.[name], wanted, name)));
  }
  return index in value ? index : undefined;
}

/** A key that has a default may be absent from the item. */
function sameKey(found, wanted, name) {
  return found === wanted || (found === undefined && name === "protocol" && wanted === "TCP");
}
