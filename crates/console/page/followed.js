// One object that is followed: read, then watched.

import { collectionPath, objectPath } from "./discovery.js";
import { Failure, documents, request } from "./session.js";
import { parseObject } from "./yaml.js";

const PAUSE_MS = 2000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The newest state of an object; `changed` is called for each. */
export class Followed {
  object = undefined;
  error = undefined;
  isDeleted = false;
  #stop = new AbortController();

  constructor(kind, namespace, name, changed) {
    this.path = objectPath(kind, namespace, name);
    this.collection = collectionPath(kind, namespace);
    this.isWatched = kind.verbs.includes("watch");
    this.name = name;
    this.changed = changed;
    this.#follow();
  }

  close() {
    this.#stop.abort();
  }

  /** Reads the object again. */
  async refresh() {
    this.#take(await read(this.path, this.#stop.signal));
  }

  async #follow() {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.refresh();
        if (!this.isWatched) return;
        for (;;) await Promise.all([this.#watch(signal), sleep(PAUSE_MS)]);
      } catch (error) {
        if (signal.aborted) return;
        this.isDeleted = error.code === 404 && this.object !== undefined;
        this.error = this.isDeleted ? undefined : error;
        if (error.code !== 410) this.changed();
        if ([401, 403, 404].includes(error.code)) return;
        await sleep(PAUSE_MS);
      }
    }
  }

  async #watch(signal) {
    for await (const { type, object } of changes(this.collection, this.name, this.version, signal)) {
      if (type === "BOOKMARK") this.version = object.metadata.resourceVersion;
      else if (type === "DELETED") throw new Failure(404, "the object is deleted");
      else this.#take(object);
    }
  }

  #take(object) {
    this.version = object.metadata.resourceVersion;
    this.error = undefined;
    this.object = object;
    this.changed();
  }
}

async function read(path, signal) {
  return parseObject(await (await request(path, { signal })).text());
}

/** The changes of one object after a resource version. */
export async function* changes(collection, name, version, signal) {
  const parameters = new URLSearchParams({
    watch: "1",
    allowWatchBookmarks: "true",
    resourceVersion: version,
    fieldSelector: `metadata.name=${name}`,
  });
  for await (const event of documents(await request(`${collection}?${parameters}`, { signal }))) {
    if (event.type === "ERROR") throw new Failure(event.object.code, event.object.message, event.object);
    yield event;
  }
}

/** The object as it was at a resource version; `undefined` if there was none. Fails with 410 when the history is gone. */
export async function readAt(collection, name, version, signal) {
  const parameters = new URLSearchParams({
    resourceVersion: version,
    resourceVersionMatch: "Exact",
    fieldSelector: `metadata.name=${name}`,
  });
  const list = parseObject(await (await request(`${collection}?${parameters}`, { signal })).text());
  const [item] = list.items ?? [];
  return item && { apiVersion: list.apiVersion, kind: list.kind.replace(/List$/, ""), ...item };
}
