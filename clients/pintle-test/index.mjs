// Starts Pintle, a Kubernetes API server, for a test.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { KubeConfig } from '@kubernetes/client-node';

const START_MS_MAX = 60_000;
const STOP_MS_MAX = 10_000;

/**
 * Starts a server that stores nothing on disk, and resolves when it is ready.
 *
 * The server ends at `stop`, with the test of `node:test` that is given, or with this process: it waits for the end
 * of a pipe that only this process holds, and the system closes the pipe even if the process is killed.
 *
 * @param {{ flags?: string[], test?: { after(stop: () => Promise<void>): void } }} options
 *   `flags`: further flags of `pintle serve`; `test`: the context of the test with which the server ends.
 */
export async function start({ flags = [], test } = {}) {
  const command = ['serve', '--ephemeral', '--secure-port=0', '--stop-at-eof', ...flags];
  const server = spawn(process.env.PINTLE || 'pintle', command, {
    // RUST_LOG=pintle=info shows more of the log.
    env: { RUST_LOG: 'error', ...process.env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    const pintle = new Pintle(server, await ready(server));
    test?.after(() => pintle.stop());
    return pintle;
  } catch (error) {
    await stop(server);
    throw error;
  }
}

/** A running server. */
export class Pintle {
  #server;

  constructor(server, { url, kubeconfig }) {
    this.#server = server;
    /** The URL of the server. */
    this.url = url;
    /** The path of a kubeconfig of an administrator, for other tools. */
    this.kubeconfig = kubeconfig;
    /** The same as a KubeConfig. */
    this.config = new KubeConfig();
    this.config.loadFromFile(kubeconfig);
    // A test that does not stop its server ends nevertheless, and the server with it.
    for (const handle of [server, server.stdin, server.stdout]) handle.unref();
  }

  /** A client of the server: `pintle.client(CoreV1Api)`. */
  client(api) {
    return this.config.makeApiClient(api);
  }

  /** Stops the server, and resolves when it has ended. */
  stop() {
    return stop(this.#server);
  }

  [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    return this.stop();
  }
}

/** Reads the line that the server prints when it is ready. */
async function ready(server) {
  const timer = setTimeout(() => stop(server), START_MS_MAX);
  try {
    for await (const line of lines(server)) {
      // pintle ready url=https://127.0.0.1:36041 kubeconfig=/tmp/pintle-…/admin.kubeconfig
      const found = /^pintle ready url=(\S+) kubeconfig=(.*)$/.exec(line);
      if (found) return { url: found[1], kubeconfig: found[2] };
    }
  } catch (error) {
    throw new Error('no Pintle: put `pintle` on the PATH, or let PINTLE name it', { cause: error });
  } finally {
    clearTimeout(timer);
  }
  throw new Error('pintle does not start; standard error has the reason');
}

/** The lines that the server prints; an error if the program cannot be executed. What follows is dropped. */
async function* lines(server) {
  await once(server, 'spawn');
  const reader = createInterface({ input: server.stdout });
  try {
    yield* reader;
  } finally {
    reader.close();
    server.stdout.resume(); // the server waits when the pipe is full
  }
}

/** Stops a server, and resolves when it has ended. */
async function stop(server) {
  if (server.pid === undefined || server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'close');
  server.ref();
  // The server finishes open requests after the first signal, and ends at once after the second.
  server.kill();
  server.stdin.end();
  const timers = ['SIGTERM', 'SIGKILL'].map((signal, index) =>
    setTimeout(() => server.kill(signal), (index + 1) * STOP_MS_MAX),
  );
  await ended;
  timers.forEach(clearTimeout);
}
