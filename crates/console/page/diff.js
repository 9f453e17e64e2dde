// The difference of two lists of lines (Myers), and the parts of it that are worth showing.

/** Beyond this many edits the rest counts as replaced: time and memory grow with their square. */
const EDITS_MAX = 600;

/** The difference: `{sign: " " | "-" | "+", line}` in order. */
export function difference(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const room = Math.min(before.length, after.length) - start;
  while (end < room && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const same = (list, from, to) => list.slice(from, to).map((line) => ({ sign: " ", line }));
  return [
    ...same(after, 0, start),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...same(after, after.length - end, after.length),
  ];
}

/** Myers' greedy search: the furthest positions by diagonal, kept for each number of edits. */
function middle(a, b) {
  const trace = [];
  let furthest = new Map([[1, 0]]);
  const longest = Math.min(a.length + b.length, EDITS_MAX);
  for (let edits = 0; edits <= longest; edits += 1) {
    trace.push(furthest);
    const next = new Map(furthest);
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down =
        diagonal === -edits ||
        (diagonal !== edits && at(furthest, diagonal - 1) < at(furthest, diagonal + 1));
      let x = down ? at(furthest, diagonal + 1) : at(furthest, diagonal - 1) + 1;
      let y = x - diagonal;
      while (x < a.length && y < b.length && a[x] === b[y]) [x, y] = [x + 1, y + 1];
      next.set(diagonal, x);
      if (x >= a.length && y >= b.length) return walkBack(trace, a, b);
    }
    furthest = next;
  }
  return [...a.map((line) => ({ sign: "-", line })), ...b.map((line) => ({ sign: "+", line }))];
}

const at = (furthest, diagonal) => furthest.get(diagonal) ?? -1;

function walkBack(trace, a, b) {
  const out = [];
  let [x, y] = [a.length, b.length];
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const furthest = trace[edits];
    const diagonal = x - y;
    const down =
      diagonal === -edits || (diagonal !== edits && at(furthest, diagonal - 1) < at(furthest, diagonal + 1));
    const previous = down ? diagonal + 1 : diagonal - 1;
    const fromX = edits === 0 ? 0 : at(furthest, previous);
    const fromY = edits === 0 ? 0 : fromX - previous;
    while (x > fromX && y > fromY) {
      out.push({ sign: " ", line: b[y - 1] });
      [x, y] = [x - 1, y - 1];
    }
    if (edits === 0) break;
    if (down) out.push({ sign: "+", line: b[fromY] });
    else out.push({ sign: "-", line: a[fromX] });
    [x, y] = [fromX, fromY];
  }
  return out.reverse();
}

/** Leaves out lines that are more than `around` lines away from a change; `{skipped}` stands for them. */
export function hunks(changes, around = 3) {
  const near = new Uint8Array(changes.length);
  changes.forEach(({ sign }, index) => {
    if (sign !== " ") near.fill(1, Math.max(0, index - around), index + around + 1);
  });
  const out = [];
  changes.forEach((change, index) => {
    if (near[index]) out.push(change);
    else if (out.at(-1)?.skipped) out.at(-1).skipped += 1;
    else out.push({ skipped: 1 });
  });
  return out;
}
