// Metrics at a glance: figures of the server, newly read every few seconds, each with its last minutes.

import { age, failure, fill, h, skeleton, svg } from "./dom.js";
import { allKinds, byResource, tableLink } from "./discovery.js";
import { latency, parse, rates, sum, sumsBy } from "./metrics.js";
import { read, request } from "./session.js";

const EVERY_MS = 3000;
const KEPT = 60;

/** The figures: what each is, how it is computed from two readings, and how it is written. */
const FIGURES = [
  {
    title: "Requests",
    unit: "per second",
    of: ({ before, now, seconds }) => delta(before, now, "apiserver_request_total") / seconds,
    say: count,
  },
  {
    title: "Latency, p50",
    unit: "without watches",
    of: ({ before, now }) => latency(before, now, 0.5),
    say: duration,
  },
  {
    title: "Latency, p99",
    unit: "without watches",
    of: ({ before, now }) => latency(before, now, 0.99),
    say: duration,
  },
  {
    title: "Errors",
    unit: "5xx per second",
    of: ({ before, now, seconds }) =>
      delta(before, now, "apiserver_request_total", ({ code }) => code.startsWith("5")) / seconds,
    say: count,
  },
  {
    title: "Watchers",
    unit: "open watches",
    of: ({ now }) => sum(now, "apiserver_longrunning_requests", ({ verb }) => verb === "WATCH"),
    say: whole,
  },
  {
    title: "In flight",
    unit: "requests",
    of: ({ now }) => sum(now, "apiserver_current_inflight_requests"),
    say: whole,
  },
  {
    title: "Objects",
    unit: "stored",
    of: ({ now }) => stored(now).reduce((total, [, value]) => total + value, 0),
    say: whole,
  },
  {
    title: "Store",
    unit: "on disk",
    of: ({ now }) =>
      now.has("apiserver_storage_size_bytes") ? sum(now, "apiserver_storage_size_bytes") : undefined,
    say: bytes,
  },
  {
    title: "Memory",
    unit: "resident",
    of: ({ now }) => sum(now, "process_resident_memory_bytes"),
    say: bytes,
  },
  {
    title: "Processor",
    unit: "of one core",
    of: ({ before, now, seconds }) => delta(before, now, "process_cpu_seconds_total") / seconds,
    say: (value) => `${(100 * value).toFixed(0)} %`,
  },
];

const delta = (before, now, name, has) => Math.max(0, sum(now, name, has) - sum(before, name, has));
const stored = (series) =>
  sumsBy(series, "apiserver_resource_objects", "resource").filter(([, value]) => value > 0);

export class Overview {
  title = "Overview";
  keys = [];
  #kept = FIGURES.map(() => []);
  #before;

  constructor() {
    this.facts = h("p.facts");
    this.figures = h("div.figures", {}, skeleton(4));
    this.lists = h("div.lists");
    this.element = h(
      "section.overview",
      {},
      h("header", {}, h("h1", {}, "Overview"), this.facts),
      this.figures,
      this.lists,
    );
    this.#drawFacts();
    this.#poll();
    this.timer = setInterval(() => document.hidden || this.#poll(), EVERY_MS);
  }

  close() {
    clearInterval(this.timer);
  }

  async #drawFacts() {
    const version = await read("/version").catch(() => undefined);
    if (!version) return;
    this.version = version;
    fill(
      this.facts,
      h("span", {}, "Kubernetes ", h("b", {}, version.gitVersion)),
      h("span", {}, version.platform),
      h("span", {}, `${allKinds().length} kinds served`),
      this.up,
    );
  }

  async #poll() {
    try {
      const now = parse(await (await request("/metrics", { headers: { accept: "text/plain" } })).text());
      const at = performance.now();
      const { series: before, at: then } = this.#before ?? { series: new Map(), at: 0 };
      if (this.#before) this.#draw(before, now, (at - then) / 1000);
      else setTimeout(() => this.#poll(), 1000);
      this.#before = { series: now, at };
    } catch (error) {
      fill(this.figures, failure(error));
      if (error.code === 403) clearInterval(this.timer);
    }
  }

  #draw(before, now, seconds) {
    const started = sum(now, "process_start_time_seconds");
    if (started && !this.up) {
      this.up = h("span", {}, `up for ${age(new Date(started * 1000).toISOString())}`);
      this.facts.append(this.up);
    }
    const cards = FIGURES.map((figure, index) => {
      const value = figure.of({ before, now, seconds });
      const kept = this.#kept[index];
      if (value !== undefined || kept.length > 0) kept.push(value ?? kept.at(-1));
      if (kept.length > KEPT) kept.shift();
      return h(
        "article.card",
        {},
        h("h2", {}, figure.title),
        h("p.value", {}, value === undefined ? "–" : figure.say(value)),
        h("small", {}, figure.unit),
        spark(kept),
      );
    });
    fill(this.figures, cards);
    this.#drawLists(before, now, seconds);
  }

  #drawLists(before, now, seconds) {
    const verbs = rates(before, now, "apiserver_request_total", "verb", seconds);
    const codes = rates(before, now, "apiserver_request_total", "code", seconds);
    fill(
      this.lists,
      bars("Objects by kind", objectsByKind(now).slice(0, 12), whole),
      bars(
        "Requests per second by verb",
        verbs
          .sort((a, b) => b[1] - a[1])
          .slice(0, 8)
          .map(([title, value]) => ({ title, value })),
        count,
      ),
      bars(
        "Responses per second by code",
        codes
          .sort((a, b) => b[1] - a[1])
          .slice(0, 8)
          .map(([title, value]) => ({ title, value })),
        count,
      ),
    );
  }
}

function objectsByKind(now) {
  const series = (now.get("apiserver_resource_objects") ?? []).filter(({ value }) => value > 0);
  return series
    .sort((a, b) => b.value - a.value)
    .map(({ labels, value }) => {
      const kind = byResource(labels.group ?? "", labels.resource);
      return { title: labels.resource, value, link: kind && tableLink(kind) };
    });
}

/** A list of values with bars. */
function bars(title, entries, say) {
  const largest = Math.max(...entries.map(({ value }) => value), 0.001);
  const rows = entries.map(({ title, value, link }) => {
    const bar = h("i.bar", { "aria-hidden": "true" });
    bar.style.width = `${(100 * value) / largest}%`;
    return h(
      "li",
      {},
      link ? h("a", { href: link }, title) : h("span", {}, title),
      h("b", {}, say(value)),
      bar,
    );
  });
  return h("section.card.list", {}, h("h2", {}, title), h("ul", {}, rows));
}

/** A line of the last values. */
function spark(values) {
  const [width, height] = [160, 36];
  const [largest, smallest] = [Math.max(...values), Math.min(...values)];
  const span = largest - smallest || 1;
  const points = values.map((value, index) => {
    const x = (width * index) / Math.max(1, values.length - 1);
    const y = largest === smallest ? height / 2 : height - 3 - ((height - 6) * (value - smallest)) / span;
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  const line = `M${points.join("L")}`;
  return svg(
    "svg.spark",
    { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    values.length > 1 && [
      svg("path.area", { d: `${line}L${width} ${height}L0 ${height}Z` }),
      svg("path.line", { d: line }),
    ],
  );
}

function count(value) {
  return value >= 100 || value === 0 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

function whole(value) {
  return Math.round(value).toLocaleString("en");
}

function duration(seconds) {
  if (seconds < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  return seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : `${seconds.toFixed(1)} s`;
}

function bytes(value) {
  const power = value < 1 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
  return `${(value / 1024 ** power).toFixed(power > 1 ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}
