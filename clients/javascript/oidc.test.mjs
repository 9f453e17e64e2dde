// Logins at an OpenID provider (npm's oidc-provider) through a credential plugin.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import * as k8s from '@kubernetes/client-node';
import { Provider } from 'oidc-provider';
import { generate } from 'selfsigned';

// The test needs its own server, with flags.
const skip = process.env.PINTLE ? false : 'PINTLE does not name the program';
const directory = mkdtempSync(join(tmpdir(), 'oidc-'));
const authority = join(directory, 'authority.pem');
const kubeconfig = join(directory, 'kubeconfig');
let identity, issuer, provider, server;

// Serves the provider on a port (0 for any), with a new key each time.
async function provide(port, algorithm) {
  const kind = algorithm === 'ES256' ? ['ec', { namedCurve: 'P-256' }] : ['rsa', { modulusLength: 2048 }];
  const key = generateKeyPairSync(...kind).privateKey.export({ format: 'jwk' });
  const listener = createServer(identity);
  await once(listener.listen(port, '127.0.0.1'), 'listening');
  issuer = `https://127.0.0.1:${listener.address().port}`;
  const oidc = new Provider(issuer, {
    clients: [
      {
        client_id: 'pintle',
        token_endpoint_auth_method: 'none',
        application_type: 'native',
        redirect_uris: ['http://127.0.0.1/callback'],
        id_token_signed_response_alg: algorithm,
      },
      {
        client_id: 'other',
        token_endpoint_auth_method: 'none',
        application_type: 'native',
        redirect_uris: ['http://127.0.0.1/callback'],
        id_token_signed_response_alg: algorithm,
      },
    ],
    claims: { openid: ['sub', 'groups'] },
    conformIdTokenClaims: false,
    cookies: { keys: ['of no use'] },
    enabledJWA: { idTokenSigningAlgValues: [algorithm] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, groups: id === 'jane' ? ['viewers'] : [] }),
    }),
    jwks: { keys: [{ ...key, alg: algorithm, use: 'sig', kid: `${algorithm}-${Date.now()}` }] },
  });
  listener.on('request', oidc.callback());
  return listener;
}

async function close(listener) {
  listener.closeAllConnections();
  await new Promise((closed) => listener.close(closed));
}

// The clients of a user who logs in.
function loggedIn(account, client = 'pintle') {
  const config = new k8s.KubeConfig();
  config.loadFromFile(kubeconfig);
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: process.execPath,
    args: [join(import.meta.dirname, 'login.mjs'), issuer, client, account],
    env: [{ name: 'NODE_EXTRA_CA_CERTS', value: authority }],
    interactiveMode: 'Never',
  };
  const cluster = config.getCurrentCluster();
  config.loadFromOptions({
    clusters: [cluster],
    users: [{ name: account, exec }],
    contexts: [{ name: account, cluster: cluster.name, user: account }],
    currentContext: account,
  });
  return config;
}

const whoami = async (config) => {
  const review = await config.makeApiClient(k8s.AuthenticationV1Api).createSelfSubjectReview({ body: {} });
  return review.status.userInfo;
};

before(async () => {
  if (skip) return;
  const names = [{ name: 'commonName', value: '127.0.0.1' }];
  const altNames = [{ type: 7, ip: '127.0.0.1' }];
  const extensions = [{ name: 'basicConstraints', cA: true }, { name: 'subjectAltName', altNames }];
  const { private: key, cert } = await generate(names, { extensions, keySize: 2048 });
  identity = { key, cert };
  writeFileSync(authority, cert);
  provider = await provide(0, 'RS256');
  const flags = [
    'serve',
    '--ephemeral',
    '--secure-port=0',
    `--kubeconfig=${kubeconfig}`,
    `--oidc-issuer-url=${issuer}`,
    '--oidc-client-id=pintle',
    `--oidc-ca-file=${authority}`,
    '--oidc-username-prefix=oidc:',
    '--oidc-groups-claim=groups',
    '--oidc-groups-prefix=oidc:',
    '--oidc-signing-algs=RS256,ES256',
  ];
  server = spawn(process.env.PINTLE, flags, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(server.stdout, 'data');
});

after(async () => {
  server?.kill();
  if (provider) await close(provider);
  rmSync(directory, { recursive: true });
});

test('a login gives the user its name and groups', { skip }, async () => {
  const user = await whoami(loggedIn('jane'));
  assert.equal(user.username, 'oidc:jane');
  assert.deepEqual(user.groups, ['oidc:viewers', 'system:authenticated']);
});

test('bindings of groups grant their rights', { skip }, async () => {
  const admin = new k8s.KubeConfig();
  admin.loadFromFile(kubeconfig);
  await admin.makeApiClient(k8s.RbacAuthorizationV1Api).createClusterRoleBinding({
    body: {
      metadata: { name: 'viewers' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'oidc:viewers' }],
    },
  });
  const pods = (account) =>
    loggedIn(account).makeApiClient(k8s.CoreV1Api).listNamespacedPod({ namespace: 'default' });
  assert.deepEqual((await pods('jane')).items, []);
  await assert.rejects(pods('joe'), (error) => error.code === 403);
});

test('a token for another client is invalid', { skip }, async () => {
  await assert.rejects(whoami(loggedIn('jane', 'other')), (error) => error.code === 401);
});

test('a new key of the provider is fetched', { skip }, async () => {
  const { port } = provider.address();
  await close(provider);
  provider = await provide(port, 'ES256');
  // Keys are fetched at most once a second.
  for (let attempt = 0; ; attempt++) {
    try {
      assert.equal((await whoami(loggedIn('jane'))).username, 'oidc:jane');
      return;
    } catch (error) {
      if (error.code !== 401 || attempt === 20) throw error;
    }
  }
});
