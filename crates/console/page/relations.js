// What an object belongs to, what belongs to it, and its events: a graph and a list.

import { age, failure, fill, h, notice, skeleton } from "./dom.js";
import { byKind, collectionPath, objectLink, objectPath } from "./discovery.js";
import { drawGraph } from "./graph.js";
import { read } from "./session.js";
import { Collection } from "./collection.js";

const METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const OWNERS_DEEP = 5;
const READ_MAX = 500;
const SHOWN_MAX = 12;

/** The kinds whose objects usually belong to an object of a kind; `*` for all other kinds. */
const DEPENDENTS = {
  Deployment: ["apps/v1 ReplicaSet"],
  ReplicaSet: ["v1 Pod"],
  StatefulSet: ["v1 Pod", "apps/v1 ControllerRevision"],
  DaemonSet: ["v1 Pod", "apps/v1 ControllerRevision"],
  ReplicationController: ["v1 Pod"],
  CronJob: ["batch/v1 Job"],
  Job: ["v1 Pod"],
  Service: ["discovery.k8s.io/v1 EndpointSlice"],
  Node: ["coordination.k8s.io/v1 Lease"],
  Pod: ["resource.k8s.io/v1 ResourceClaim", "v1 ConfigMap"],
  ConfigMap: ["v1 ConfigMap", "v1 Secret"],
  "*": [
    "apps/v1 Deployment",
    "apps/v1 StatefulSet",
    "apps/v1 DaemonSet",
    "batch/v1 Job",
    "v1 Pod",
    "v1 Service",
    "v1 ConfigMap",
    "v1 Secret",
    "v1 PersistentVolumeClaim",
  ],
};

export class RelationsTab {
  #version = "";

  constructor(context) {
    Object.assign(this, context);
    this.graph = h("div.graph", {}, skeleton(4));
    this.events = h("div.events", {}, skeleton(3));
    this.element = h(
      "div.relations-tab",
      {},
      h("section", { "aria-label": "Owners and dependents" }, this.graph),
      h(
        "section",
        { "aria-labelledby": "events-title" },
        h("h2", { id: "events-title" }, "Events"),
        this.events,
      ),
    );
  }

  close() {
    this.collection?.close();
  }

  /** Draws the graph anew when the object's owners may have changed. */
  update(object) {
    if (!this.collection) this.#followEvents(object);
    if (this.#version === object.metadata.resourceVersion) return;
    this.#version = object.metadata.resourceVersion;
    this.object = object;
    this.#drawGraph();
  }

  #followEvents({ metadata, kind }) {
    const events = byKind("v1", "Event");
    if (!events) {
      fill(this.events, notice("No events", "The server does not serve events to you."));
      return;
    }
    // A node's events carry its name in place of its uid.
    const selector =
      kind === "Node"
        ? `involvedObject.kind=Node,involvedObject.name=${metadata.name}`
        : `involvedObject.uid=${metadata.uid}`;
    const path = collectionPath(events, metadata.namespace || "");
    this.collection = new Collection(path, () => this.#drawEvents(), { fieldSelector: selector });
  }

  #drawEvents() {
    const { rows, phase, error, columns } = this.collection;
    if (rows.size === 0) {
      fill(
        this.events,
        error
          ? failure(error)
          : phase === "live"
            ? notice("No events", "The server drops events after a while.")
            : skeleton(3),
      );
      return;
    }
    const cell = (row, name) => row.cells[columns.findIndex((column) => column.name === name)] ?? "";
    const list = [...rows.values()]
      .sort((a, b) => (a.created < b.created ? 1 : -1))
      .slice(0, 100)
      .map((row) => ({
        type: cell(row, "Type"),
        reason: cell(row, "Reason"),
        message: cell(row, "Message"),
        seen: cell(row, "Last Seen"),
        count: cell(row, "Count"),
        source: cell(row, "Source"),
      }));
    fill(
      this.events,
      h(
        "ul",
        {},
        list.map((event) =>
          h(
            "li",
            {},
            h(`span.tone.${event.type === "Normal" ? "good" : "bad"}`, {}, event.reason),
            h("p", {}, event.message),
            h(
              "small",
              {},
              [event.seen && `${event.seen} ago`, event.count > 1 && `${event.count} times`, event.source]
                .filter(Boolean)
                .join(" · "),
            ),
          ),
        ),
      ),
    );
    this.pills = Map.groupBy(list, ({ reason }) => reason);
    if (this.nodes) this.#layOut();
  }

  async #drawGraph() {
    const version = this.#version;
    try {
      const self = node(this.object, 0);
      const nodes = [self];
      await Promise.all([
        this.#owners(this.object, self, nodes, 1),
        this.#dependents(this.object, self, nodes, 1),
      ]);
      if (version !== this.#version) return;
      this.nodes = nodes;
      this.#layOut();
    } catch (error) {
      fill(
        this.graph,
        failure(error, () => this.#drawGraph()),
      );
    }
  }

  #layOut() {
    const events = [...(this.pills ?? [])]
      .slice(0, 4)
      .map(([reason, all]) => ({ reason, count: all.length, isBad: all[0].type !== "Normal" }));
    fill(
      this.graph,
      drawGraph(this.nodes, events),
      this.nodes.length === 1 &&
        h("p.hint", {}, "Nothing owns this object, and none of the usual kinds belongs to it."),
    );
  }

  /** Adds the owners, and theirs. An owner that cannot be read is shown by its reference. */
  async #owners(object, below, nodes, depth) {
    if (depth > OWNERS_DEEP) return;
    await Promise.all(
      (object.metadata.ownerReferences ?? []).map(async (reference) => {
        const kind = byKind(reference.apiVersion, reference.kind);
        const path = kind && objectPath(kind, object.metadata.namespace, reference.name);
        const owner = path && (await read(path, { headers: { accept: METADATA } }).catch(() => undefined));
        const isSame = owner?.metadata.uid === reference.uid;
        const added = node(
          {
            apiVersion: reference.apiVersion,
            kind: reference.kind,
            metadata: isSame
              ? owner.metadata
              : { name: reference.name, namespace: object.metadata.namespace, uid: reference.uid },
          },
          -depth,
        );
        added.isMissing = !isSame;
        added.to = [below];
        nodes.push(added);
        if (isSame) await this.#owners(owner, added, nodes, depth + 1);
      }),
    );
  }

  /** Adds what belongs to the object, and what belongs to that. */
  async #dependents(object, above, nodes, depth) {
    const kinds = (DEPENDENTS[above.kind] ?? DEPENDENTS["*"])
      .map((name) => byKind(...name.split(" ")))
      .filter(Boolean);
    const lists = await Promise.all(kinds.map((kind) => this.#ofNamespace(kind, object.metadata.namespace)));
    const found = lists.flatMap((items, index) =>
      items
        .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === object.metadata.uid))
        .map((item) => ({ item, kind: kinds[index] })),
    );
    const shown = found.slice(0, SHOWN_MAX);
    await Promise.all(
      shown.map(async ({ item, kind }) => {
        const added = node(
          {
            ...item,
            apiVersion: kind.group ? `${kind.group}/${kind.version}` : kind.version,
            kind: kind.kind,
          },
          depth,
        );
        above.to.push(added);
        nodes.push(added);
        if (depth < 2 && DEPENDENTS[kind.kind]) await this.#dependents(item, added, nodes, depth + 1);
      }),
    );
    if (found.length > shown.length) {
      const rest = {
        ...node({ kind: "", metadata: { name: `and ${found.length - shown.length} more` } }, depth),
        link: undefined,
      };
      above.to.push(rest);
      nodes.push(rest);
    }
  }

  /** The metadata of a namespace's objects of a kind, of the first hundreds; nothing where they may not be read. */
  #ofNamespace(kind, namespace) {
    this.lists ??= new Map();
    const path = `${collectionPath(kind, kind.isNamespaced ? namespace : "")}?limit=${READ_MAX}`;
    if (!this.lists.has(path))
      this.lists.set(
        path,
        read(path, { headers: { accept: METADATA_LIST } }).then(
          ({ items }) => items ?? [],
          () => [],
        ),
      );
    setTimeout(() => this.lists.delete(path), 2000);
    return this.lists.get(path);
  }
}

function node({ apiVersion = "", kind, metadata }, depth) {
  const known = byKind(apiVersion, kind);
  const { namespace = "", name, uid, creationTimestamp } = metadata;
  return {
    kind,
    name,
    uid,
    depth,
    to: [],
    since: creationTimestamp && age(creationTimestamp),
    link: known && objectLink(known, known.isNamespaced ? namespace : "", name, "relations"),
  };
}
