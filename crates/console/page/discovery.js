// The kinds that the server serves, and the paths of their objects.

import { read } from "./session.js";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** The sections of the side bar: resources by their plural names, for which users look first. */
const SECTIONS = {
  Workloads: [
    "pods",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicasets.apps",
    "jobs.batch",
    "cronjobs.batch",
  ],
  Network: [
    "services",
    "ingresses.networking.k8s.io",
    "endpointslices.discovery.k8s.io",
    "networkpolicies.networking.k8s.io",
  ],
  Configuration: [
    "configmaps",
    "secrets",
    "resourcequotas",
    "limitranges",
    "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets.policy",
  ],
  Storage: ["persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"],
  Access: [
    "serviceaccounts",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
  ],
  Cluster: [
    "namespaces",
    "nodes",
    "events",
    "leases.coordination.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "apiservices.apiregistration.k8s.io",
  ],
};

let kinds = [];

/** Reads what is served. */
export async function discover() {
  const both = await Promise.all(
    ["/api", "/apis"].map((path) => read(path, { headers: { accept: AGGREGATED } })),
  );
  kinds = both.flatMap(({ items = [] }) => items).flatMap(ofGroup);
  return kinds;
}

/** The resources of a group, each in the first version that has it: the server's preference. */
function ofGroup({ metadata = {}, versions = [] }) {
  const found = new Map();
  for (const { version, resources = [] } of versions) {
    for (const entry of resources) {
      if (found.has(entry.resource) || !entry.verbs.includes("list")) continue;
      const group = metadata.name ?? "";
      found.set(entry.resource, {
        group,
        version,
        resource: entry.resource,
        kind: entry.responseKind.kind,
        isNamespaced: entry.scope === "Namespaced",
        verbs: entry.verbs,
        shortNames: entry.shortNames ?? [],
        id: group ? `${entry.resource}.${group}` : entry.resource,
      });
    }
  }
  return [...found.values()];
}

export const allKinds = () => kinds;

/** The kind of a resource's plural name and group; of any version. */
export function byResource(group, resource) {
  return kinds.find((kind) => kind.group === group && kind.resource === resource);
}

/** The kind that `apiVersion` and `kind` of an object name. */
export function byKind(apiVersion, name) {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return kinds.find((kind) => kind.group === group && kind.kind === name);
}

/** The sections of the side bar: known ones first, then one for each other group. */
export function sections() {
  const known = new Set(Object.values(SECTIONS).flat());
  const first = Object.entries(SECTIONS).map(([title, ids]) => {
    return {
      title,
      isOpen: true,
      kinds: ids.map((id) => kinds.find((kind) => kind.id === id)).filter(Boolean),
    };
  });
  const groups = Map.groupBy(
    kinds.filter((kind) => !known.has(kind.id)),
    (kind) => kind.group || "core",
  );
  const others = [...groups].map(([title, members]) => ({
    title,
    isOpen: !title.endsWith("k8s.io") && title.includes("."),
    kinds: members,
  }));
  others.sort((a, b) => b.isOpen - a.isOpen || a.title.localeCompare(b.title));
  return [...first, ...others].filter((section) => section.kinds.length > 0);
}

/** The path of a collection, in one namespace or in all (`""`). */
export function collectionPath(kind, namespace) {
  const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`;
  const within = kind.isNamespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${within}/${kind.resource}`;
}

export function objectPath(kind, namespace, name) {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
}

/** The address of a table within the page. */
export function tableLink(kind, namespace = "") {
  const query = kind.isNamespaced && namespace ? `?ns=${encodeURIComponent(namespace)}` : "";
  return `#/k/${kind.group || "core"}/${kind.resource}${query}`;
}

/** The address of an object within the page. */
export function objectLink(kind, namespace, name, tab = "yaml") {
  const parts = [kind.group || "core", kind.resource, namespace || "-", name, tab];
  return `#/o/${parts.map(encodeURIComponent).join("/")}`;
}

/** The plural as people write it: the kind's name with the end of the resource's. */
export function plural({ kind, resource }) {
  const singular = kind.toLowerCase();
  if (resource.startsWith(singular)) return kind + resource.slice(singular.length);
  if (singular.endsWith("y") && resource === `${singular.slice(0, -1)}ies`) return `${kind.slice(0, -1)}ies`;
  return kind;
}
