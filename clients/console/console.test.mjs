// The console as a user meets it. The tests run in order on one server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { check, close, go, launch, leave, until, visit } from "./browser.mjs";
import { address, certificate, key, send, token } from "./server.mjs";
import { HOSTILE, put } from "./stock.mjs";

const WEB = "#/o/apps/deployments/shop/web";
const DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/web";
let admin;
let viewer;

before(async () => {
  await launch();
  await put(send);
  admin = await token("console-admin", "cluster-admin");
  viewer = await token("console-viewer", "view");
});

after(close);

test("a token logs in, stays in its tab, and is forgotten", async () => {
  const page = await visit();
  await page.getByLabel("Bearer token").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("The server does not accept this token.").waitFor();
  await page.getByLabel("Bearer token").fill(admin);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const kept = () =>
    page.evaluate(() => ({
      local: JSON.stringify({ ...localStorage }),
      cookies: document.cookie,
      tab: sessionStorage.length,
      address: location.href,
    }));
  const stored = await kept();
  assert.equal(stored.local.includes(admin) || stored.address.includes(admin), false);
  assert.deepEqual([stored.cookies, stored.tab], ["", 1]);
  await page.reload();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Bearer token").waitFor();
  assert.equal((await kept()).tab, 0);
  await leave(page);
});

test("a client certificate needs no token", async () => {
  const page = await visit({ clientCertificates: [{ origin: address, cert: certificate, key }] });
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await leave(page);
});

test("a table is the server's, and follows it", async () => {
  const page = await visit({ token: admin, at: "#/k/core/pods?ns=shop" });
  const row = (name) => page.locator("tr[data-id]", { hasText: name });
  await row("web-7d9c5b6f4-xv5lc").getByText("ImagePullBackOff").waitFor();
  assert.deepEqual(await page.locator(".grid th").allInnerTexts(), [
    "Name",
    "Ready",
    "Status",
    "Restarts",
    "Age",
  ]);
  const pods = "/api/v1/namespaces/shop/pods";
  await send("POST", pods, { metadata: { name: "new" }, spec: { containers: [{ name: "a", image: "b" }] } });
  await row("new").getByText("Pending").waitFor();
  await send("PATCH", `${pods}/new/status`, { status: { phase: "Running" } }, "application/merge-patch+json");
  await row("new").getByText("Running").waitFor();
  await send("DELETE", `${pods}/new?gracePeriodSeconds=0`);
  await row("new").waitFor({ state: "detached" });
  await page.keyboard.press("w");
  await page.getByRole("columnheader", { name: "Node", exact: true }).waitFor();
  await leave(page);
});

test("a watch that breaks off resumes where it was, and one that is too old lists again", async () => {
  const page = await visit({ token: admin });
  const asked = [];
  let answers = ["break", "gone"];
  await page.route(/configmaps/, async (route) => {
    const query = new URL(route.request().url()).searchParams;
    asked.push(query.get("watch") ? `watch ${query.get("resourceVersion")}` : "list");
    const next = query.get("watch") && answers.shift();
    if (next === "break") await route.abort("connectionreset");
    else if (next === "gone")
      await route.fulfill({
        status: 410,
        contentType: "application/json",
        body: JSON.stringify({ kind: "Status", code: 410, message: "too old resource version" }),
      });
    else await route.continue();
  });
  await go(page, "#/k/core/configmaps?ns=shop");
  await page.getByText("Reconnecting").waitFor();
  await until(() => asked.length >= 5, "five requests");
  const [first, broken, resumed, again, last] = asked;
  assert.deepEqual([first, again], ["list", "list"]);
  assert.equal(broken, resumed);
  assert.match(last, /^watch [1-9]/);
  await page.getByText("Live").waitFor();
  await leave(page);
});

test("each line of an object has its owners", async () => {
  const page = await visit({ token: admin, at: `${WEB}/yaml` });
  await page.locator(".legend li").first().waitFor();
  await page.locator(".line .owners i").first().waitFor();
  const managers = await page.locator(".legend b").allInnerTexts();
  const owners = (text) =>
    page
      .locator(".line", { has: page.locator(".source", { hasText: text }) })
      .first()
      .locator(".owners i")
      .allInnerTexts();
  const names = async (text) => (await owners(text)).map((letter) => managers[letter.charCodeAt(0) - 97]);
  assert.deepEqual(await names("replicas: 3"), ["kubectl-create"]);
  assert.deepEqual(await names("example.com/owner: payments"), ["team-payments"]);
  assert.deepEqual(await names('memory: "128Mi"'), ["team-payments"]); // an item by its key
  assert.deepEqual((await names("- name: log")).sort(), ["kubectl-create", "team-payments"]);
  assert.deepEqual(await names("readyReplicas: 2"), ["kube-controller-manager"]);
  assert.deepEqual(await names("uid:"), []);
  await page.getByRole("button", { name: /team-payments/ }).click();
  const bright = await page.locator(".line.owned .source").allInnerTexts();
  assert.deepEqual(
    bright.map((text) => text.trim()),
    ["example.com/owner: payments", "- name: log", 'memory: "128Mi"'],
  );
  // A change is shown as it happens.
  await send(
    "PATCH",
    `${DEPLOYMENT}?fieldManager=someone-else`,
    { metadata: { annotations: { fresh: "yes" } } },
    "application/merge-patch+json",
  );
  await page.locator(".line.fresh", { hasText: "fresh:" }).waitFor();
  await page.getByRole("button", { name: /someone-else/ }).waitFor();
  await leave(page);
});

test("owners, dependents and events are a graph", async () => {
  const page = await visit({ token: admin, at: `${WEB}/relations` });
  await page.locator("a.node", { hasText: "web-7d9c5b6f4-8mwtp" }).waitFor();
  assert.equal(await page.locator("a.node").count(), 5);
  await page.locator(".pill", { hasText: "FailedRollout" }).waitFor();
  await page.getByText("has timed out progressing").waitFor();
  await page.locator("a.node", { hasText: "xv5lc" }).click();
  await page.getByRole("heading", { name: "web-7d9c5b6f4-xv5lc" }).waitFor();
  await page.locator("a.node", { hasText: "Deployment" }).waitFor(); // the owner of the owner
  await leave(page);
});

test("two versions differ as the server has them", async () => {
  const page = await visit({ token: admin, at: `${WEB}/history` });
  await page.locator(".versions button").nth(3).waitFor();
  await page.locator(".line.added", { hasText: 'fresh: "yes"' }).waitFor();
  const versions = (await page.locator(".versions code").allInnerTexts()).map(Number);
  assert.deepEqual(
    versions,
    [...versions].sort((a, b) => b - a),
  );
  await page.keyboard.press("j");
  await page.locator(".line.added", { hasText: "readyReplicas: 2" }).waitFor();
  // Versions that the list does not name are read by number.
  const [newest, oldest] = [versions[0], versions.at(-1)];
  const asked = page.waitForRequest((request) => request.url().includes("resourceVersionMatch=Exact"));
  await page.getByLabel("Compare from resource version").fill(String(oldest + 100_000));
  await page.keyboard.press("Enter");
  await asked;
  await page.getByLabel("Compare from resource version").fill(String(oldest));
  await page.getByLabel("Compare to resource version").fill(String(newest));
  await page.keyboard.press("Enter");
  await page.locator(".line.added", { hasText: "example.com/owner" }).waitFor();
  await leave(page);
});

test("what a user types stays, and only the last comparison is shown", async () => {
  const page = await visit({ token: admin, at: `${WEB}/history` });
  const entries = page.locator(".versions code");
  await entries.nth(3).waitFor();
  const [newest, ...others] = await entries.allInnerTexts();
  const oldest = others.at(-1);
  const from = page.getByLabel("Compare from resource version");
  const to = page.getByLabel("Compare to resource version");
  await from.fill("7");
  const count = await entries.count();
  await send("PATCH", DEPLOYMENT, { metadata: { labels: { later: "yes" } } }, "application/merge-patch+json");
  await entries.nth(count).waitFor();
  assert.deepEqual([await from.inputValue(), await to.inputValue()], ["7", newest]);

  // The server answers with an error after three seconds, when the user has asked for another comparison.
  const answered = page.waitForResponse((response) => response.status() === 504);
  await from.fill(String(Number(oldest) + 100_000));
  await page.keyboard.press("Enter");
  await from.fill(oldest);
  await to.fill(newest);
  await page.keyboard.press("Enter");
  const owner = page.locator(".line.added", { hasText: "example.com/owner" });
  await owner.waitFor();
  await (await answered).finished();
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  assert.equal(await owner.count(), 1);

  // A comparison that failed is tried again by Enter.
  await from.fill(String(Number(oldest) + 200_000));
  for (const key of ["Enter", "Enter"]) {
    const failed = page.waitForResponse((response) => response.status() === 504);
    await from.press(key);
    await (await failed).finished();
    await page.locator(".difference .notice").waitFor();
  }
  await leave(page);
});

test("an apply is tried first, and problems are at their lines", async () => {
  const page = await visit({ token: admin, at: `${WEB}/edit` });
  const text = page.getByLabel("Manifest");
  await until(async () => (await text.inputValue()).includes("replicas: 3"), "the manifest");
  const manifest = await text.inputValue();
  const lineOf = (part) => manifest.split("\n").findIndex((line) => line.includes(part)) + 1;
  const tryIt = async (next) => {
    await text.fill(next);
    await page.keyboard.press("Control+Enter");
  };

  await tryIt(
    manifest.replace("image: fluent-bit:4.1", "image: fluent-bit:4.1\n        imagePullPolice: Never"),
  );
  await page.locator(".picture .wrong", { hasText: "field not declared in schema" }).waitFor();
  assert.equal(await page.locator(".numbers .wrong").innerText(), String(lineOf("fluent-bit") + 1));

  await tryIt(manifest.replace("replicas: 3", "replicas: three"));
  await page.locator(".picture .wrong", { hasText: "expected" }).waitFor();
  assert.equal(await page.locator(".numbers .wrong").innerText(), String(lineOf("replicas")));

  await tryIt(manifest.replace("  replicas: 3", '  replicas: "3\n'));
  await page.locator(".problems .place").waitFor(); // the parser's own line

  await tryIt(manifest.replace("replicas: 3", "replicas: 5"));
  await page.locator(".picture .conflict", { hasText: "kubectl-create owns this field" }).waitFor();
  assert.equal(await page.locator(".numbers .wrong").innerText(), String(lineOf("replicas")));
  assert.equal(await page.getByRole("button", { name: "Apply", exact: true }).last().isDisabled(), true);

  await page.getByRole("button", { name: "Take over, dry run" }).click();
  await page.locator(".line.added", { hasText: "replicas: 5" }).waitFor();
  assert.equal((await send("GET", DEPLOYMENT)).spec.replicas, 3, "a dry run stores nothing");
  await page.getByRole("button", { name: "Apply", exact: true }).last().click();
  await page
    .getByText(/web is applied/)
    .first()
    .waitFor();
  const stored = await send("GET", DEPLOYMENT);
  assert.equal(stored.spec.replicas, 5);
  const own = stored.metadata.managedFields.find(({ manager }) => manager === "pintle-console");
  assert.deepEqual(
    own.fieldsV1,
    { "f:spec": { "f:replicas": {} } },
    "the console owns what the user changed",
  );

  // A refused value: the field path of the Status leads to the line, through an index.
  await until(async () => (await text.inputValue()).includes("replicas: 5"), "the new state");
  await tryIt((await text.inputValue()).replace("replicas: 5", "replicas: -5"));
  await page.locator(".picture .wrong", { hasText: "must be greater than or equal to 0" }).waitFor();
  await leave(page);
});

test("a new object is applied from a manifest", async () => {
  const page = await visit({ token: admin, at: "#/apply" });
  const text = page.getByLabel("Manifest");
  await text.fill(
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n  namespace: shop\ndata:\n  colour: green\n  wrong: {}\n",
  );
  await page.keyboard.press("Control+Enter");
  await page.locator(".picture .wrong").waitFor();
  assert.equal(await page.locator(".numbers .wrong").innerText(), "8");
  await text.fill(
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n  namespace: shop\ndata:\n  colour: green\n",
  );
  await page.keyboard.press("Control+Enter");
  await page.getByText("What would be created").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByRole("heading", { name: "made" }).waitFor();
  assert.equal((await send("GET", "/api/v1/namespaces/shop/configmaps/made")).data.colour, "green");
  await leave(page);
});

test("the keyboard alone leads everywhere", async () => {
  const page = await visit({ token: admin });
  const { keyboard } = page;
  const heading = (name) => page.getByRole("heading", { name, level: 1 }).waitFor();
  await heading("Overview");
  await keyboard.press("n");
  await page.getByRole("option", { name: "shop" }).waitFor();
  await keyboard.type("shop");
  await keyboard.press("Enter");
  await keyboard.press("/");
  await keyboard.type("po");
  await page.getByRole("option", { name: /^Pod/ }).first().waitFor();
  await keyboard.press("Enter");
  await heading(/^Pods/);
  await page.locator("tr[data-id]").nth(2).waitFor();
  for (const press of ["j", "j", "k", "j"]) await keyboard.press(press);
  assert.match(await page.locator("tr[aria-selected=true]").innerText(), /8mwtp/);
  await keyboard.press("Enter");
  await heading("web-7d9c5b6f4-8mwtp");
  await page.locator(".code .line").first().waitFor();
  await keyboard.press("2");
  await page.locator("a.node").first().waitFor();
  await keyboard.press("Escape");
  await heading(/^Pods/);
  assert.match(
    await page.locator("tr[aria-selected=true]").innerText(),
    /8mwtp/,
    "the table is as it was left",
  );
  await keyboard.press("f");
  await keyboard.type("backoff");
  await until(async () => (await page.locator("tr[data-id]").count()) === 1, "one row");
  await keyboard.press("Escape");
  await until(async () => (await page.locator("tr[data-id]").count()) === 3, "all rows");
  await keyboard.press("Control+k");
  await keyboard.type("clusterroleb");
  await keyboard.press("Enter");
  await heading(/^ClusterRoleBindings/);
  await keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard" }).waitFor();
  await keyboard.press("Escape");
  const theme = () =>
    page.evaluate(() => getComputedStyle(document.body).colorScheme + document.documentElement.dataset.theme);
  await keyboard.press("t");
  assert.match(await theme(), /dark$/);
  await keyboard.press("a");
  await heading("Apply a manifest");
  await leave(page);
});

test("a palette opens although the one before it was closed by the key before", async () => {
  const page = await visit({ token: admin });
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  await page.keyboard.press("/");
  await page.getByRole("option").first().waitFor();
  // Both keys in one task: the event of the first dialog's end comes after them.
  await page.evaluate(() => {
    const press = (target, key) =>
      target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    press(document.querySelector("dialog.palette input"), "Enter");
    press(document.body, "/");
  });
  await page.getByRole("option").first().waitFor();
  assert.equal(await page.locator("dialog.palette").count(), 1);
  await leave(page);
});

test("metrics are figures", async () => {
  const page = await visit({ token: admin });
  const card = (title) =>
    page.locator(".card", { has: page.getByRole("heading", { name: title, exact: true }) });
  await card("Objects").locator(".value").waitFor();
  const { items } = await send("GET", "/api/v1/namespaces");
  await card("Objects by kind").getByText("clusterroles", { exact: true }).waitFor();
  assert.ok(Number((await card("Objects").locator(".value").innerText()).replace(",", "")) > items.length);
  assert.match(await card("Memory").locator(".value").innerText(), /^[\d.]+ MiB$/);
  for (let count = 0; count < 50; count += 1) await send("GET", "/api/v1/namespaces/shop");
  await until(
    async () => Number(await card("Requests").locator(".value").innerText()) > 0,
    "requests per second",
  );
  await leave(page);
});

test("who may not, is told so", async () => {
  const page = await visit({ token: viewer });
  await page.getByText("You may not read this").waitFor(); // metrics
  await go(page, "#/k/core/secrets?ns=shop");
  await page.getByText(/cannot list resource "secrets"/).waitFor();
  await check(page, "forbidden");
  await go(page, "#/k/core/pods?ns=shop");
  await page.locator("tr[data-id]").first().waitFor();
  await go(page, "#/k/batch/jobs?ns=shop");
  await page.getByText("No Jobs in shop").waitFor();
  await check(page, "empty");
  await leave(page);
});

test("texts of objects are texts", async () => {
  const page = await visit({ token: admin });
  for (const [hash, text] of [
    ["/yaml", HOSTILE],
    ["/relations", HOSTILE],
    ["/history", "example.com/note"],
  ]) {
    await go(page, `#/o/core/configmaps/shop/hostile${hash}`);
    await page.getByText(text).first().waitFor();
  }
  await go(page, "#/o/core/configmaps/shop/hostile/edit");
  await until(async () => (await page.getByLabel("Manifest").inputValue()).includes(HOSTILE), "the manifest");
  await go(page, "#/k/core/events?ns=shop");
  await page.getByText(HOSTILE).first().waitFor();
  await page.getByText("<b>Reason</b>").first().waitFor();
  await go(page, `#/k/core/pods?ns=${encodeURIComponent(HOSTILE)}`);
  await page.locator(".notice").waitFor();
  await go(page, `#/o/core/configmaps/shop/${encodeURIComponent(HOSTILE)}/yaml`);
  await page.locator(".notice").waitFor();
  const made = await page.evaluate(
    () => document.querySelectorAll("main img, main script, main b b, [onerror]").length,
  );
  assert.equal(made, 0);
  assert.notEqual(await page.title(), "owned");
  await leave(page);
});

for (const scheme of ["light", "dark"]) {
  for (const width of [1280, 400]) {
    test(`it is beautiful and accessible: ${scheme}, ${width} pixels`, async () => {
      const name = (what) => `${what}-${width}-${scheme}`;
      const stranger = await visit({ width, scheme });
      await stranger.getByLabel("Bearer token").waitFor();
      await check(stranger, name("login"));
      await leave(stranger);
      const page = await visit({ token: admin, width, scheme });
      const views = {
        overview: ["#/", ".list li"],
        pods: ["#/k/core/pods", "tr[data-id]"],
        yaml: [`${WEB}/yaml`, ".legend li"],
        relations: [`${WEB}/relations`, "a.node"],
        history: [`${WEB}/history`, ".line.added"],
        edit: [`${WEB}/edit`, ".picture .key"],
        apply: ["#/apply", ".picture .key"],
      };
      for (const [what, [hash, seen]] of Object.entries(views)) {
        await go(page, hash);
        await page.locator(seen).first().waitFor();
        if (what === "edit") {
          const text = page.getByLabel("Manifest");
          await text.fill(
            (await text.inputValue())
              .replace("nginx:1.29", "nginx:1.30")
              .replace("replicas: 5", "replicas: 0"),
          );
          await page.keyboard.press("Control+Enter");
          await page.locator(".problems li").first().waitFor();
        }
        await check(page, name(what));
      }
      await go(page, "#/k/core/services");
      await page.locator("tr[data-id]").first().waitFor();
      await page.keyboard.press("Control+k");
      await page.getByRole("option").first().waitFor();
      await check(page, name("palette"));
      await page.keyboard.press("Escape");
      await page.keyboard.press("?");
      await page.getByRole("heading", { name: "Keyboard" }).waitFor();
      await check(page, name("help"));
      await leave(page);
    });
  }
}
