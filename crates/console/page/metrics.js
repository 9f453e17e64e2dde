// Reads the text of /metrics, and computes figures from two readings.

const WANTED =
  /^(?:apiserver_request_total|apiserver_request_duration_seconds_bucket|apiserver_longrunning_requests|apiserver_resource_objects|apiserver_storage_size_bytes|apiserver_current_inflight_requests|apiserver_watch_cache_events_dispatched_total|process_resident_memory_bytes|process_cpu_seconds_total|process_start_time_seconds)(?=[{ ])/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The wanted series of a page, by name: `{labels, value}`. */
export function parse(page) {
  const found = new Map();
  for (const line of page.split("\n")) {
    const name = WANTED.exec(line)?.[0];
    if (!name) continue;
    const end = line.lastIndexOf(" ");
    const labels = Object.fromEntries(
      [...line.slice(name.length, end).matchAll(LABEL)].map(([, label, value]) => [label, value]),
    );
    if (!found.has(name)) found.set(name, []);
    found.get(name).push({ labels, value: Number(line.slice(end + 1)) });
  }
  return found;
}

export function sum(series, name, has = () => true) {
  return (series.get(name) ?? []).reduce(
    (total, { labels, value }) => (has(labels) ? total + value : total),
    0,
  );
}

/** Sums by a label, the largest first. */
export function sumsBy(series, name, label) {
  const sums = new Map();
  for (const { labels, value } of series.get(name) ?? [])
    sums.set(labels[label], (sums.get(labels[label]) ?? 0) + value);
  return [...sums].sort((a, b) => b[1] - a[1]);
}

/** The difference of two readings of counters, by label. */
export function rates(before, now, name, label, seconds) {
  const old = new Map(sumsBy(before, name, label));
  return sumsBy(now, name, label).map(([key, value]) => [
    key,
    Math.max(0, value - (old.get(key) ?? 0)) / seconds,
  ]);
}

const isShort = ({ verb }) => verb !== "WATCH" && verb !== "CONNECT";

/** A quantile of the requests' time between two readings, in seconds; interpolated as Prometheus does. */
export function latency(before, now, quantile) {
  const name = "apiserver_request_duration_seconds_bucket";
  const old = buckets(before, name);
  const counts = [...buckets(now, name)]
    .map(([bound, value]) => [bound, value - (old.get(bound) ?? 0)])
    .sort((a, b) => a[0] - b[0]);
  const total = counts.at(-1)?.[1] ?? 0;
  if (total <= 0) return undefined;
  const rank = quantile * total;
  const at = counts.findIndex(([, value]) => value >= rank);
  const [low, below] = at > 0 ? counts[at - 1] : [0, 0];
  const [high, value] = counts[at];
  return high === Infinity ? low : low + ((high - low) * (rank - below)) / (value - below || 1);
}

function buckets(series, name) {
  const sums = new Map();
  for (const { labels, value } of series.get(name) ?? []) {
    if (!isShort(labels)) continue;
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    sums.set(bound, (sums.get(bound) ?? 0) + value);
  }
  return sums;
}
