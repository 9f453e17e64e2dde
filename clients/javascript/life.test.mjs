// Tests of the official JavaScript client: list, watch, create, patch, delete.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import * as k8s from '@kubernetes/client-node';

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const namespace = `javascript-${randomUUID().slice(0, 8)}`;

before(() => core.createNamespace({ body: { metadata: { name: namespace } } }));
after(() => core.deleteNamespace({ name: namespace }));

// The object that a controller creates in every namespace is left out.
const fieldSelector = 'metadata.name!=kube-root-ca.crt';

const create = (name, more = {}) =>
  core.createNamespacedConfigMap({ namespace, body: { metadata: { name }, ...more } });

test('a config map is created, changed and deleted', async () => {
  const made = await create('a', { data: { k: 'v' } });
  assert.ok(made.metadata.uid);
  assert.ok(made.metadata.creationTimestamp instanceof Date);
  const list = await core.listNamespacedConfigMap({ namespace, fieldSelector });
  assert.deepEqual(list.items.map((item) => item.metadata.name), ['a']);
  const patched = await core.patchNamespacedConfigMap(
    { name: 'a', namespace, body: { data: { k: 'w' } } },
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch),
  );
  assert.deepEqual(patched.data, { k: 'w' });
  patched.data = { k: 'x' };
  const replaced = await core.replaceNamespacedConfigMap({ name: 'a', namespace, body: patched });
  assert.deepEqual(replaced.data, { k: 'x' });
  const gone = await core.deleteNamespacedConfigMap({ name: 'a', namespace });
  assert.equal(gone.status, 'Success');
  await assert.rejects(core.readNamespacedConfigMap({ name: 'a', namespace }), (error) => error.code === 404);
});

test('a watch reports changes', async () => {
  const list = await core.listNamespacedConfigMap({ namespace, fieldSelector });
  const resourceVersion = list.metadata.resourceVersion;
  const seen = [];
  let told;
  const all = new Promise((resolve) => (told = resolve));
  const note = (type, object) => {
    seen.push(`${type} ${object.metadata.name}`);
    if (type === 'DELETED') told();
  };
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const stop = await new k8s.Watch(config).watch(path, { resourceVersion, fieldSelector }, note, () => {});
  await create('b');
  await core.deleteNamespacedConfigMap({ name: 'b', namespace });
  await all;
  stop.abort();
  assert.deepEqual(seen, ['ADDED b', 'DELETED b']);
});

test('an informer follows changes', async () => {
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const list = () => core.listNamespacedConfigMap({ namespace, fieldSelector });
  const informer = k8s.makeInformer(config, path, list, undefined, fieldSelector);
  const told = new Promise((resolve) => informer.on('add', (object) => resolve(object.metadata.name)));
  await informer.start();
  await create('c');
  assert.equal(await told, 'c');
  const gone = new Promise((resolve) => informer.on('delete', (object) => resolve(object.metadata.name)));
  await core.deleteNamespacedConfigMap({ name: 'c', namespace });
  assert.equal(await gone, 'c');
  await informer.stop();
});

test('any kind can be used', async () => {
  const client = k8s.KubernetesObjectApi.makeApiClient(config);
  const spec = {
    apiVersion: 'v1', kind: 'Secret', metadata: { name: 'd', namespace }, stringData: { k: 'v' },
  };
  await client.create(spec);
  const read = await client.read(spec);
  assert.equal(read.data.k, 'dg==');
  await client.delete(spec);
});
