// Shows the difference of two objects, line by line.

import { h, notice } from "./dom.js";
import { difference, hunks } from "./diff.js";
import { lineText, lines } from "./yaml.js";

/** An object as lines, without what changes with every write. */
export function comparable(object) {
  if (!object) return [];
  const { managedFields, resourceVersion, generation, ...metadata } = object.metadata;
  return lines({ ...object, metadata }).map(lineText);
}

/** The difference of two objects; either may be `undefined`. */
export function diffElement(
  before,
  after,
  same = "Nothing but the resource version and the owners of fields differs.",
) {
  const changes = difference(comparable(before), comparable(after));
  const count = (sign) => changes.filter((change) => change.sign === sign).length;
  if (count("+") + count("-") === 0) return notice("No difference", same);
  const rows = hunks(changes).map(({ sign, line, skipped }) =>
    skipped
      ? h("div.skipped", {}, `${skipped} ${skipped === 1 ? "line is" : "lines are"} the same`)
      : h(
          `div.line${{ "+": ".added", "-": ".removed", " ": "" }[sign]}`,
          {},
          h("span.sign", {}, sign),
          h("span.source", {}, line),
        ),
  );
  return h(
    "div.diff",
    {},
    h(
      "p.sums",
      {},
      h("b.added", {}, `+${count("+")}`),
      " ",
      h("b.removed", {}, `−${count("-")}`),
      ` ${count("+") + count("-") === 1 ? "line" : "lines"}`,
    ),
    h("div.code", { tabindex: "0", role: "region", "aria-label": "Difference" }, rows),
  );
}
