// Draws objects and their owners: columns from owners to dependents where there is room, else an indented tree.

import { svg } from "./dom.js";

const BOX = { width: 216, height: 52, gapX: 72, gapY: 16 };
const PILL = { height: 24, gap: 8 };
const TREE = { indent: 20, width: 280 };

/** The graph of nodes `{kind, name, depth, to, link, since, isMissing}`; `events` hang below the node of depth 0. */
export function drawGraph(nodes, events) {
  const isNarrow = matchMedia("(max-width: 760px)").matches;
  const places = isNarrow ? asTree(nodes, events) : asColumns(nodes, events);
  const self = nodes.find(({ depth }) => depth === 0);
  const pills = events.map((event, index) => pill(event, places.of.get(self), index));
  const edges = nodes.flatMap((from) =>
    from.to.map((to) => edge(places.of.get(from), places.of.get(to), isNarrow)),
  );
  const boxes = [...nodes].sort((a, b) => a.depth - b.depth).map((node) => box(node, places.of.get(node)));
  const graph = svg(
    "svg",
    {
      viewBox: `0 0 ${places.width} ${places.height}`,
      width: places.width,
      height: places.height,
      role: "group",
      "aria-label": "Graph of owners and dependents",
    },
    edges,
    pills,
    boxes,
  );
  return graph;
}

const pillsHeight = (events) => (events.length > 0 ? events.length * (PILL.height + PILL.gap) + PILL.gap : 0);

function asColumns(nodes, events) {
  const first = Math.min(...nodes.map(({ depth }) => depth));
  const last = Math.max(...nodes.map(({ depth }) => depth));
  const columns = Array.from({ length: last - first + 1 }, (_, index) =>
    nodes.filter(({ depth }) => depth === first + index),
  );
  const tall = (column, index) =>
    column.length * (BOX.height + BOX.gapY) - BOX.gapY + (first + index === 0 ? pillsHeight(events) : 0);
  const height = Math.max(...columns.map(tall));
  const of = new Map();
  columns.forEach((column, index) => {
    const top = (height - tall(column, index)) / 2;
    column.forEach((node, at) =>
      of.set(node, {
        x: 2 + index * (BOX.width + BOX.gapX),
        y: 2 + top + at * (BOX.height + BOX.gapY),
        width: BOX.width,
      }),
    );
  });
  return { of, width: 4 + columns.length * (BOX.width + BOX.gapX) - BOX.gapX, height: height + 4 };
}

function asTree(nodes, events) {
  const first = Math.min(...nodes.map(({ depth }) => depth));
  const of = new Map();
  let y = 2;
  const place = (node) => {
    if (of.has(node)) return;
    const x = 2 + (node.depth - first) * TREE.indent;
    of.set(node, { x, y, width: TREE.width });
    y += BOX.height + BOX.gapY + (node.depth === 0 ? pillsHeight(events) : 0);
    node.to.forEach(place);
  };
  [...nodes].sort((a, b) => a.depth - b.depth).forEach(place);
  const depths = Math.max(...nodes.map(({ depth }) => depth)) - first;
  return { of, width: TREE.width + depths * TREE.indent + 4, height: y };
}

function box(node, { x, y, width }) {
  const letters = Math.floor((width - 28) / 7.4);
  const content = [
    svg("title", {}, `${node.kind} ${node.name}${node.isMissing ? " (cannot be read, or is deleted)" : ""}`),
    svg("rect", { x, y, width, height: BOX.height, rx: 10 }),
    svg("text.kind", { x: x + 14, y: y + 20 }, node.kind),
    node.since && svg("text.since", { x: x + width - 14, y: y + 20, "text-anchor": "end" }, node.since),
    svg("text.name", { x: x + 14, y: y + 39 }, shortened(node.name, letters)),
  ];
  const state = `${node.depth === 0 ? ".self" : ""}${node.isMissing ? ".missing" : ""}`;
  return node.link ? svg(`a.node${state}`, { href: node.link }, content) : svg(`g.node${state}`, {}, content);
}

/** Long names differ at their ends. */
function shortened(name, letters) {
  if (name.length <= letters) return name;
  const end = Math.floor(letters / 2) - 1;
  return `${name.slice(0, letters - end - 1)}…${name.slice(-end)}`;
}

function edge(from, to, isNarrow) {
  const middle = BOX.height / 2;
  if (isNarrow) {
    const [x, y] = [from.x + TREE.indent / 2, from.y + BOX.height];
    return svg("path.edge", { d: `M${x} ${y}V${to.y + middle}H${to.x}` });
  }
  const [x1, y1, x2, y2] = [from.x + from.width, from.y + middle, to.x, to.y + middle];
  const bend = (x2 - x1) / 2;
  return svg("path.edge", { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
}

function pill({ reason, count, isBad }, self, index) {
  const x = self.x + 40;
  const y = self.y + BOX.height + PILL.gap + index * (PILL.height + PILL.gap);
  const label = shortened(count > 1 ? `${reason} × ${count}` : reason, 22);
  const width = 26 + label.length * 7;
  return svg(
    `g.pill${isBad ? ".bad" : ""}`,
    {},
    svg("path.edge.dashed", { d: `M${self.x + 26} ${self.y + BOX.height}V${y + PILL.height / 2}H${x}` }),
    svg("rect", { x, y, width, height: PILL.height, rx: PILL.height / 2 }),
    svg("circle", { cx: x + 12, cy: y + PILL.height / 2, r: 3 }),
    svg("text", { x: x + 20, y: y + 16 }, label),
  );
}
