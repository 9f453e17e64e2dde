// Tests of the official JavaScript client with pods: exec, logs, ports.

import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { PassThrough, Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import * as k8s from '@kubernetes/client-node';

const kubelets = (process.env.PINTLE_TEST_KUBELETS ?? '').split(' ').filter(Boolean);
const skip = kubelets.length === 2 ? false : 'there are no kubelets (see ../with-kubelet)';

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const namespace = `javascript-${randomUUID().slice(0, 8)}`;
// On a kubelet before v1.36, and on one of v1.36.
const pods = ['old', 'new'];
const bytesEachWay = Number(process.env.PINTLE_TEST_BYTES ?? 8 << 20);
const node = (pod) => `${namespace}-${pod}`;

before(async () => {
  if (skip) return;
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: 'a' } } });
  for (const [place, pod] of pods.entries()) {
    const status = {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: Number(kubelets[place]) } },
      declaredFeatures: pod === 'new' ? ['ExtendWebSocketsToKubelet'] : [],
    };
    await core.createNode({ body: { metadata: { name: node(pod) } } });
    await core.patchNodeStatus(
      { name: node(pod), body: { status } },
      k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch),
    );
    const spec = { nodeName: node(pod), serviceAccountName: 'a', containers: [{ name: 'c', image: 'i' }] };
    await core.createNamespacedPod({ namespace, body: { metadata: { name: pod }, spec } });
  }
});

after(async () => {
  if (skip) return;
  await core.deleteNamespace({ name: namespace });
  for (const pod of pods) await core.deleteNode({ name: node(pod) });
});

// Runs a command to its end.
const run = (pod, command, { stdin = null, out = new PassThrough(), tty = false } = {}) =>
  new Promise((resolve, reject) => {
    const err = tty ? null : new PassThrough();
    const said = Promise.all([text(out), err ? text(err) : '']);
    const ended = async (status) => resolve({ status, said: await said });
    new k8s.Exec(config).exec(namespace, pod, 'c', command, out, err, stdin, tty, ended).catch(reject);
  });

// A stream of bytes in pieces of 64 KiB.
function pieces(bytes) {
  const starts = Array.from({ length: Math.ceil(bytes.length / 65536) }, (_, piece) => piece * 65536);
  return Readable.from(starts.map((start) => bytes.subarray(start, start + 65536)));
}

const code = (status) =>
  status.status === 'Success' ? 0 : Number(status.details.causes.find((cause) => cause.reason === 'ExitCode').message);

for (const pod of pods) {
  test(`commands end as they end: ${pod}`, { skip }, async () => {
    for (const [expected, end] of [[0, 'true'], [1, 'exit 1'], [137, 'kill -9 $$']]) {
      const { status, said } = await run(pod, ['sh', '-c', `echo out; echo err >&2; ${end}`]);
      assert.deepEqual([code(status), ...said], [expected, 'out\n', 'err\n']);
    }
  });

  test(`input ends: ${pod}`, { skip }, async () => {
    const { status, said } = await run(pod, ['wc', '-c'], { stdin: Readable.from([Buffer.from('x'.repeat(1000))]) });
    assert.deepEqual([code(status), said[0].trim()], [0, '1000']);
  });

  test(`many bytes go both ways: ${pod}`, { skip }, async () => {
    const sent = randomBytes(bytesEachWay);
    const hash = createHash('sha256');
    const out = new Writable({ write: (piece, _, done) => { hash.update(piece); done(); } });
    const status = await new Promise((resolve, reject) => {
      new k8s.Exec(config).exec(namespace, pod, 'c', ['cat'], out, null, pieces(sent), false, resolve).catch(reject);
    });
    assert.equal(code(status), 0);
    assert.equal(hash.digest('hex'), createHash('sha256').update(sent).digest('hex'));
  });

  test(`terminals have their size: ${pod}`, { skip }, async () => {
    const out = Object.assign(new PassThrough(), { columns: 91, rows: 33 });
    const { said } = await run(pod, ['size'], { out, stdin: new PassThrough(), tty: true });
    assert.equal(said[0], '91 columns, 33 rows\n');
  });

  test(`logs are followed: ${pod}`, { skip }, async () => {
    const out = new PassThrough();
    await new k8s.Log(config).log(namespace, pod, 'c', out, { follow: true });
    assert.equal((await text(out)).split('\n').length, 21);
  });

  test(`ports are forwarded: ${pod}`, { skip }, async () => {
    const site = createServer((request, answer) => answer.end(`you asked for ${request.url}`));
    await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve));
    const [out, input] = [new PassThrough(), new PassThrough()];
    const socket = await new k8s.PortForward(config).portForward(namespace, pod, [site.address().port], out, null, input);
    input.write('GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    let answer = '';
    for await (const piece of out) {
      answer += piece;
      if (answer.includes('you asked for /x')) break;
    }
    assert.match(answer, /^HTTP\/1\.1 200 OK/);
    socket.close();
    site.close();
  });
}
