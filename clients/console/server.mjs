// The server under test: its address and an administrator's requests, as the kubeconfig has them.

import { readFileSync } from "node:fs";
import https from "node:https";

const kubeconfig = readFileSync(process.env.KUBECONFIG, "utf8");
const decoded = (name) => Buffer.from(new RegExp(`${name}: (\\S+)`).exec(kubeconfig)[1], "base64");

/** `https://host:port` */
export const [, address] = /server: (\S+)/.exec(kubeconfig);
export const authority = decoded("certificate-authority-data");
export const certificate = decoded("client-certificate-data");
export const key = decoded("client-key-data");

const agent = new https.Agent({ ca: authority, cert: certificate, key, keepAlive: true, maxSockets: 64 });

/** Sends a request as the administrator and returns the parsed response, or throws its text. */
export function send(method, path, body, type = "application/json") {
  const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const request = https.request(
      `${address}${path}`,
      {
        agent,
        method,
        headers: {
          accept: "application/json",
          ...(text && { "content-type": type, "content-length": Buffer.byteLength(text) }),
        },
      },
      (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("end", () => {
          const said = Buffer.concat(parts).toString();
          if (response.statusCode >= 300)
            reject(new Error(`${method} ${path}: ${response.statusCode} ${said}`));
          else resolve(JSON.parse(said));
        });
        response.on("error", reject);
      },
    );
    request.on("error", reject);
    request.end(text);
  });
}

/** A bearer token of a new service account with a cluster role. */
export async function token(name, role) {
  const account = await send("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name } });
  await send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: `console-${name}` },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [{ kind: "ServiceAccount", name, namespace: account.metadata.namespace }],
  });
  const { status } = await send("POST", `/api/v1/namespaces/default/serviceaccounts/${name}/token`, {
    spec: { expirationSeconds: 3600 },
  });
  return status.token;
}
