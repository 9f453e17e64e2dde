// Each test has a server of its own, and none outlives its process.

import assert from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { CoreV1Api, VersionApi } from '@kubernetes/client-node';
import { start } from 'pintle-test';

const START = `
  import { start } from 'pintle-test';
  console.log((await start()).url);`;

for (const number of [1, 2]) {
  test(`a server is the test's own, ${number}`, async (context) => {
    const pintle = await start({ test: context });
    await pintle.client(CoreV1Api).createNamespace({ body: { metadata: { name: 'shop' } } });
  });
}

test('flags are passed', async (context) => {
  const pintle = await start({ test: context, flags: ['--emulated-version=1.35'] });
  assert.equal((await pintle.client(VersionApi).getCode()).emulationMinor, '35');
});

test('servers start in parallel', async () => {
  const servers = await Promise.all(Array.from({ length: 4 }, () => start()));
  assert.equal(new Set(servers.map((server) => server.url)).size, 4);
  for (const server of servers) {
    await server.stop();
    await server.stop();
    assert.ok(!existsSync(server.kubeconfig));
    assert.ok(await refusesConnections(server.url));
  }
});

test('a server ends with a process that is killed', { timeout: 60_000 }, async () => {
  const process = run(`${START} setInterval(() => {}, 1000);`);
  const url = await firstLine(process);
  assert.ok(!(await refusesConnections(url)));
  process.kill('SIGKILL');
  await ended(process);
  assert.ok(await refusesConnections(url));
});

test('a process ends without a stop, and the server with it', { timeout: 60_000 }, async () => {
  const process = run(START);
  const url = await firstLine(process);
  await ended(process);
  assert.equal(process.exitCode, 0);
  assert.ok(await refusesConnections(url));
});

test('a wrong start is an error', async () => {
  await assert.rejects(start({ flags: ['--nonsense'] }), /does not start/);
  const { PINTLE } = process.env;
  process.env.PINTLE = '/nowhere/pintle';
  await assert.rejects(start(), /PINTLE/);
  process.env.PINTLE = PINTLE;
});

test('a server may write more than a pipe holds', { timeout: 60_000 }, async (context) => {
  const policy = join(directory(context), 'policy');
  writeFileSync(policy, '{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}');
  const pintle = await start({ flags: [`--audit-policy-file=${policy}`, '--audit-log-path=-'] });
  const core = pintle.client(CoreV1Api);
  for (let number = 0; number < 100; number++) {
    const body = { metadata: { name: `large-${number}` }, data: { text: 'x'.repeat(2048) } };
    await core.createNamespacedConfigMap({ namespace: 'default', body });
  }
  await stops(pintle);
});

test('a server that does not see the end of the pipe is stopped', async (context) => {
  program(context, 'mkfifo "$0.pipe"; exec $PINTLE <>"$0.pipe"');
  await stops(await start());
});

test('a start that fails leaves no server', async (context) => {
  const script = program(context, 'echo $$ >"$0.pid"; echo pintle ready url=u kubeconfig=/nowhere/k; exec $PINTLE');
  await assert.rejects(start(), /nowhere/);
  assert.throws(() => process.kill(Number(readFileSync(`${script}.pid`)), 0), { code: 'ESRCH' });
});

/** A directory that is removed after the test. */
function directory(context) {
  const path = mkdtempSync(join(tmpdir(), 'pintle-test-'));
  context.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** Lets PINTLE name a script, in which $PINTLE is the server with its arguments; returns its path. */
function program(context, script) {
  const { PINTLE } = process.env;
  const path = join(directory(context), 'pintle');
  writeFileSync(path, `#!/bin/sh\n${script.replace('$PINTLE', `'${PINTLE}' "$@"`)}\n`, { mode: 0o755 });
  process.env.PINTLE = path;
  context.after(() => (process.env.PINTLE = PINTLE));
  return path;
}

// A server that has to be killed takes ten seconds.
async function stops(pintle) {
  const before = Date.now();
  await pintle.stop();
  assert.ok(Date.now() - before < 5000);
  assert.ok(!existsSync(pintle.kubeconfig));
}

function run(module) {
  return spawn(process.execPath, ['--input-type=module', '--eval', module], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function firstLine(process) {
  const [bytes] = await once(process.stdout, 'data');
  return bytes.toString().trim();
}

// A server inherits standard error, which ends when the process and the server have.
async function ended(process) {
  process.stderr.resume();
  await once(process, 'close');
}

async function refusesConnections(url) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  try {
    await once(socket, 'connect');
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}
