// Chromium and what the tests do with each page: log in, go somewhere, see that no rule was broken.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { address } from "./server.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const screenshots = process.env.SCREENSHOTS;
if (screenshots) mkdirSync(screenshots, { recursive: true });

let browser;

export async function launch() {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
}

export const close = () => browser.close();

/** A page on the console of a new session. Each breach of the page's policy and each error of a script is kept. */
export async function visit({ token, width = 1280, scheme = "light", at = "", ...context } = {}) {
  const session = await browser.newContext({
    viewport: { width, height: 800 },
    colorScheme: scheme,
    ignoreHTTPSErrors: true,
    ...context,
  });
  session.setDefaultTimeout(15_000);
  const page = await session.newPage();
  page.breaches = [];
  page.on("pageerror", (error) => page.breaches.push(String(error.stack)));
  page.on(
    "console",
    (message) => /Content Security|Trusted/.test(message.text()) && page.breaches.push(message.text()),
  );
  page.on("dialog", (dialog) => {
    page.breaches.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(`${address}/console/${at}`);
  if (token) {
    await page.getByLabel("Bearer token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.locator(".top").waitFor();
  }
  return page;
}

/** Goes to an address within the console. */
export const go = (page, hash) =>
  page.evaluate((to) => {
    location.hash = to;
  }, hash);

/** Ends a visit; the page must have kept its policy. */
export async function leave(page) {
  assert.deepEqual(page.breaches, []);
  await page.context().close();
}

/** Axe finds nothing, and nothing is wider than the window. */
export async function check(page, name) {
  if (screenshots) await page.screenshot({ path: `${screenshots}/${name}.png` });
  const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(isWide, false, `${name} is wider than the window`);
  assert.deepEqual(page.breaches, []);
  // Axe is run by the debugger, so the page's policy does not concern it.
  const debug = await page.context().newCDPSession(page);
  await debug.send("Runtime.evaluate", { expression: axe });
  const run =
    "axe.run().then(({ violations }) => JSON.stringify(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])))";
  const { result } = await debug.send("Runtime.evaluate", { expression: run, awaitPromise: true });
  assert.deepEqual(JSON.parse(result.value), [], name);
  await debug.detach();
  page.breaches.length = 0;
}

/** Waits until `read` returns a true value. */
export async function until(read, what, ms = 15_000) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await read();
    if (value) return value;
    if (Date.now() > end) assert.fail(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
