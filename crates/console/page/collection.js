// A collection that is followed: listed in chunks, then watched. The watch resumes where it ended; a server
// that no longer has the changes since then (410) makes the collection list again.

import { Failure, documents, request } from "./session.js";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const CHUNK = 500;
const PAUSE_FIRST_MS = 1000;
/** A watch that ends sooner is not begun again at once. */
const TURN_SHORTEST_MS = 1000;
const PAUSE_LONGEST_MS = 15000;

/** The rows of a kind's Table, by namespace and name. */
export class Collection {
  /** The columns as the server defines them. */
  columns = [];
  rows = new Map();
  /** `loading`, `live`, `reconnecting` or `failed`. */
  phase = "loading";
  error = undefined;
  /** How many objects are not listed yet. */
  remaining = 0;
  #version = "";
  #stop = new AbortController();

  /** Follows the collection at `path` until it is closed, and calls `changed` after each change. */
  constructor(path, changed, selectors = {}) {
    this.path = path;
    this.changed = changed;
    this.selectors = selectors;
    this.#follow();
  }

  close() {
    this.#stop.abort();
  }

  async #follow() {
    let pause = PAUSE_FIRST_MS;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const began = performance.now();
      try {
        if (!this.#version) await this.#list();
        this.#enter("live");
        await this.#watch();
        pause = PAUSE_FIRST_MS;
      } catch (error) {
        if (signal.aborted) return;
        if (error.code === 410) {
          this.#version = "";
        } else {
          const isFinal = [401, 403, 404, 405].includes(error.code);
          this.error = error;
          this.#enter(isFinal ? "failed" : "reconnecting");
          if (isFinal) return;
          await sleep(pause);
          pause = Math.min(2 * pause, PAUSE_LONGEST_MS);
        }
      }
      await sleep(Math.max(0, TURN_SHORTEST_MS - (performance.now() - began)));
    }
  }

  #enter(phase) {
    this.phase = phase;
    if (phase === "live") this.error = undefined;
    this.changed(this);
  }

  #request(query) {
    const parameters = new URLSearchParams({ ...this.selectors, ...query });
    return request(`${this.path}?${parameters}`, { headers: { accept: TABLE }, signal: this.#stop.signal });
  }

  /** Lists in chunks. The first list shows each chunk as it comes; a later one replaces the rows at its end. */
  async #list() {
    const isFirst = this.rows.size === 0;
    const rows = isFirst ? this.rows : new Map();
    let continuation = "";
    do {
      const query = { limit: CHUNK, ...(continuation && { continue: continuation }) };
      const table = await (await this.#request(query)).json();
      this.columns = table.columnDefinitions ?? this.columns;
      for (const row of table.rows ?? []) put(rows, row);
      continuation = table.metadata.continue ?? "";
      this.remaining = continuation ? (table.metadata.remainingItemCount ?? 0) : 0;
      this.#version = table.metadata.resourceVersion;
      if (isFirst) this.changed(this);
    } while (continuation);
    this.rows = rows;
  }

  async #watch() {
    const query = { watch: "1", allowWatchBookmarks: "true", resourceVersion: this.#version };
    const response = await this.#request(query);
    for await (const { type, object } of documents(response)) {
      if (type === "ERROR") throw new Failure(object.code, object.message, object);
      this.columns = object.columnDefinitions ?? this.columns;
      for (const row of object.rows ?? []) {
        this.#version = row.object.metadata.resourceVersion;
        if (type === "DELETED") this.rows.delete(key(row.object.metadata));
        else if (type !== "BOOKMARK") put(this.rows, row, Date.now());
      }
      if (type !== "BOOKMARK") this.changed(this);
    }
  }
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const key = ({ namespace = "", name }) => `${namespace}/${name}`;

/** Keeps of a row what is shown; the rest of the metadata may be large. */
function put(rows, { cells, object }, changedAt = 0) {
  const { namespace = "", name, uid, creationTimestamp, deletionTimestamp, labels } = object.metadata;
  const id = key(object.metadata);
  rows.set(id, {
    id,
    namespace,
    name,
    uid,
    cells,
    labels,
    changedAt,
    created: creationTimestamp,
    isLeaving: Boolean(deletionTimestamp),
  });
}
