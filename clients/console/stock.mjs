// What the tests put into the server: a shop with its deployment, pods, events and owners, an object whose texts
// try to be HTML, and as many pods as a test asks for.

/** An API client of the kubeconfig's server: `send(method, path, body, type)` returns the parsed response. */
export async function put(send) {
  const core = "/api/v1/namespaces/shop";
  const apps = "/apis/apps/v1/namespaces/shop";
  await send("POST", "/api/v1/namespaces", { metadata: { name: "shop" } });
  const deployment = await send("POST", `${apps}/deployments?fieldManager=kubectl-create`, {
    metadata: { name: "web", labels },
    spec: { replicas: 3, selector: { matchLabels: labels }, template },
  });
  await send("PATCH", `${apps}/deployments/web?fieldManager=team-payments`, annotated, APPLY);
  await send(
    "PATCH",
    `${apps}/deployments/web/status?fieldManager=kube-controller-manager`,
    { status: { replicas: 3, readyReplicas: 2, updatedReplicas: 3 } },
    MERGE,
  );
  const set = await send("POST", `${apps}/replicasets?fieldManager=kube-controller-manager`, {
    metadata: { name: "web-7d9c5b6f4", labels, ownerReferences: [owner(deployment)] },
    spec: { replicas: 3, selector: { matchLabels: labels }, template },
  });
  for (const [name, phase, reason] of [
    ["web-7d9c5b6f4-2kqzx", "Running"],
    ["web-7d9c5b6f4-8mwtp", "Running"],
    ["web-7d9c5b6f4-xv5lc", "Pending", "ImagePullBackOff"],
  ]) {
    await send("POST", `${core}/pods`, {
      metadata: { name, labels, ownerReferences: [owner(set)] },
      spec: template.spec,
    });
    await send("PATCH", `${core}/pods/${name}/status`, { status: status(phase, reason) }, MERGE);
  }
  const about = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    name: "web",
    namespace: "shop",
    uid: deployment.metadata.uid,
  };
  await event(send, about, "ScalingReplicaSet", "Scaled up replica set web-7d9c5b6f4 from 0 to 3", "Normal");
  await event(
    send,
    about,
    "FailedRollout",
    'ReplicaSet "web-7d9c5b6f4" has timed out progressing.',
    "Warning",
  );
  await send("POST", `${core}/services`, {
    metadata: { name: "web" },
    spec: { selector: labels, ports: [{ name: "http", port: 80, targetPort: 8080 }] },
  });
  const hostile = await send("POST", `${core}/configmaps`, {
    metadata: {
      name: "hostile",
      labels: { harmless: "yes" },
      annotations: {
        "example.com/note": HOSTILE,
        "example.com/second": "\"><script>document.title='owned'</script>",
      },
    },
    data: { page: HOSTILE, lines: `first\n${HOSTILE}\nlast\n`, link: "javascript:document.title='owned'" },
  });
  await event(
    send,
    { apiVersion: "v1", kind: "ConfigMap", name: "hostile", namespace: "shop", uid: hostile.metadata.uid },
    "<b>Reason</b>",
    HOSTILE,
    "Warning",
  );
}

/** A text that would run if anything took it for HTML. */
export const HOSTILE = "<img src=x onerror=\"document.title='owned'\">";

const APPLY = "application/apply-patch+yaml";
const MERGE = "application/merge-patch+json";
const labels = { app: "web", tier: "front" };
const template = {
  metadata: { labels },
  spec: {
    containers: [
      {
        name: "web",
        image: "nginx:1.29",
        args: ["--port", "8080"],
        ports: [{ name: "http", containerPort: 8080 }],
        resources: { requests: { cpu: "100m", memory: "64Mi" } },
      },
      { name: "log", image: "fluent-bit:4.1", env: [{ name: "LEVEL", value: "info" }] },
    ],
  },
};
const annotated = JSON.stringify({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", annotations: { "example.com/owner": "payments" } },
  spec: { template: { spec: { containers: [{ name: "log", resources: { limits: { memory: "128Mi" } } }] } } },
});

const owner = ({ apiVersion, kind, metadata: { name, uid } }) => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
});

function status(phase, reason) {
  const isReady = phase === "Running";
  const state = isReady
    ? { running: { startedAt: new Date().toISOString().replace(/\.\d+/, "") } }
    : { waiting: { reason } };
  const statuses = ["web", "log"].map((name) => ({
    name,
    ready: isReady,
    restartCount: 0,
    image: "",
    imageID: "",
    state,
  }));
  return {
    phase,
    podIP: "10.1.0.7",
    containerStatuses: statuses,
    conditions: [{ type: "Ready", status: isReady ? "True" : "False" }],
  };
}

async function event(send, involvedObject, reason, message, type) {
  const now = new Date().toISOString().replace(/\.\d+/, "");
  await send("POST", `/api/v1/namespaces/shop/events`, {
    metadata: { generateName: `${involvedObject.name}.` },
    involvedObject,
    reason,
    message,
    type,
    count: type === "Normal" ? 1 : 4,
    firstTimestamp: now,
    lastTimestamp: now,
    source: { component: "deployment-controller" },
  });
}

/** Creates many pods in a namespace of their own. */
export async function manyPods(send, count, atOnce = 64) {
  await send("POST", "/api/v1/namespaces", { metadata: { name: "many" } });
  const spec = { containers: [{ name: "web", image: "nginx" }] };
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const name = `pod-${String((next += 1)).padStart(5, "0")}`;
      await send("POST", "/api/v1/namespaces/many/pods", {
        metadata: { name, labels: { app: "many" } },
        spec,
      });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
