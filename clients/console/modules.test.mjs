// The console's modules that need no browser: YAML, outlines, what an apply sends, differences, owners.

import assert from "node:assert/strict";
import { test } from "node:test";
import { difference, hunks } from "../../crates/console/page/diff.js";
import { latency, parse } from "../../crates/console/page/metrics.js";
import { nodeOfField, outline } from "../../crates/console/page/outline.js";
import { ownership } from "../../crates/console/page/owners.js";
import { problems } from "../../crates/console/page/problems.js";
import { selection } from "../../crates/console/page/selection.js";
import { lines, text } from "../../crates/console/page/yaml.js";
import { send } from "./server.mjs";

const ODD = [
  "",
  " ",
  "plain",
  "true",
  "Yes",
  "no",
  "on",
  "~",
  "null",
  "Null",
  "1",
  "-1",
  "+1",
  "1e3",
  "0x1f",
  "0o17",
  "0b1",
  ".5",
  "1_000",
  "1:30",
  ".inf",
  ".NaN",
  "2001-01-01",
  "2001-01-01T00:00:00Z",
  "- a",
  "-",
  "--- a",
  "? a",
  ": a",
  "a: b",
  "a:",
  "a:b",
  "a #b",
  "a#b",
  "#a",
  "[a]",
  "{a}",
  "a, b",
  "&a",
  "*a",
  "!a",
  "|",
  ">",
  "|-",
  "'a'",
  '"a"',
  "%a",
  "@a",
  "`a`",
  "\\a",
  "a\\",
  "=",
  "<<",
  "a\nb",
  "a\nb\n",
  "a\nb\n\n",
  "\na",
  "\n",
  "\n\n",
  " a\nb",
  "a\n b",
  "a \nb",
  "a\n\nb",
  "a\tb",
  "\ta",
  "a\n\tb",
  "a\r\nb",
  "a\rb",
  "\u0000",
  "\u0007",
  "\u0085",
  "\u2028",
  "\ufeff",
  "é",
  "😀",
  " end ",
  "end ",
  "# a\nb",
  "- a\n- b\n",
  "---\na",
  "...\nb",
  "a: b\nc: d\n",
  "<img src=x onerror=alert(1)>",
];

test("the server reads the YAML of an object as that object", async () => {
  const data = Object.fromEntries(
    ODD.filter((odd) => odd !== "\u0000").map((odd, index) => [`k${index}`, odd]),
  );
  await send("POST", "/api/v1/namespaces", { metadata: { name: "odd" } });
  const object = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "odd",
      annotations: Object.fromEntries(
        ODD.filter((odd) => odd !== "\u0000").map((odd, index) => [`a${index}`, odd]),
      ),
    },
    data,
  };
  const stored = await send("POST", "/api/v1/namespaces/odd/configmaps", text(object), "application/yaml");
  assert.deepEqual(stored.data, data);
  assert.deepEqual(stored.metadata.annotations, object.metadata.annotations);
  const tree = {
    apiVersion: "example.com/v1",
    kind: "ConfigMap",
    metadata: { name: "tree" },
    data: { "a/b": "1", "": "" },
  };
  assert.equal(
    lines({ a: [], b: {}, c: [[1, [2]], [], {}], d: [{ e: [{ f: null }] }], "g: h": -0.5, true: false })
      .length,
    12,
  );
  assert.match(text(tree), /"": ""/);
});

const MANIFEST = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations:
    example.com/note: "a: b" # why
    'quoted key': x
spec:
  replicas: 3
  template:
    spec:
      containers:
      - name: web
        image: nginx:1
        args: ["a",
          "b: c"]
        ports:
          - containerPort: 80
            protocol: UDP
          - containerPort: 80
      -   image: log:1
          name: log
          command:
          - sh
          - -c
          - |
            run: this
            - and that
      volumes: []
`;

test("a field of an error leads to its line", () => {
  const { root, isPlain } = outline(MANIFEST);
  assert.equal(isPlain, true);
  const rows = [
    ["spec.replicas", 9],
    [".spec.replicas", 9],
    ["spec.template.spec.containers[0].image", 14],
    ["spec.template.spec.containers[1].name", 22],
    ['.spec.template.spec.containers[name="log"].image', 21],
    ['.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="UDP"].protocol', 19],
    ["spec.template.spec.containers[1].command[2]", 26],
    ["metadata.annotations[example.com/note]", 6],
    [".metadata.annotations.example.com/note", 6],
    ["metadata.annotations[quoted key]", 7],
    ["spec.template.spec.containers[0].args[1]", 15],
    ["spec.template.spec.containers[0].resources.limits", 13],
    ["spec.template.spec.volumes", 29],
    ["nothing", undefined],
  ];
  for (const [field, line] of rows) assert.equal(nodeOfField(root, field)?.line, line && line - 1, field);
  for (const odd of ["a: &x 1\nb: *x\n", "a: 1\n---\nb: 2\n", "a:\n\t- b\n", "a: [1,\n"])
    assert.equal(outline(odd).isPlain, false, odd);
});

test("problems of every kind of refusal are at their lines", () => {
  const read = outline(MANIFEST);
  const rows = [
    [
      {
        message: "x",
        status: {
          details: {
            causes: [{ reason: "FieldValueInvalid", message: "Invalid value", field: "spec.replicas" }],
          },
        },
      },
      [[8, "Invalid value", undefined]],
    ],
    [
      {
        message: "x",
        status: {
          details: {
            causes: [
              {
                reason: "FieldManagerConflict",
                message: 'conflict with "kubectl" using apps/v1',
                field: ".spec.replicas",
              },
            ],
          },
        },
      },
      [[8, "kubectl owns this field", "kubectl"]],
    ],
    [
      {
        message:
          "failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or float), got string",
        status: {},
      },
      [[8, "expected numeric (int or float), got string", undefined]],
    ],
    [
      {
        message:
          "failed to create typed patch object (/web; apps/v1, Kind=Deployment): errors:\n  .spec.replicas: field not declared in schema\n  .spec.template.spec.volumes: wrong",
        status: {},
      },
      [
        [8, "field not declared in schema", undefined],
        [28, "wrong", undefined],
      ],
    ],
    [
      {
        message: 'strict decoding error: unknown field "spec.replicas", duplicate field "metadata.name"',
        status: {},
      },
      [
        [8, "unknown field", undefined],
        [3, "duplicate field", undefined],
      ],
    ],
    [
      { message: "error converting YAML to JSON: yaml: line 8: did not find expected key", status: {} },
      [[7, "did not find expected key", undefined]],
    ],
    [{ message: "it is down", status: {} }, [[undefined, "it is down", undefined]]],
  ];
  for (const [failure, expected] of rows)
    assert.deepEqual(
      problems(failure, read).map(({ line, message, manager }) => [line, message, manager]),
      expected,
    );
});

const FIELDS = {
  "f:metadata": { "f:annotations": { "f:example.com/note": {} } },
  "f:spec": {
    "f:replicas": {},
    "f:template": {
      "f:spec": {
        "f:containers": {
          'k:{"name":"web"}': { ".": {}, "f:name": {}, "f:image": {}, "f:args": {} },
          'k:{"name":"log"}': { ".": {}, "f:name": {}, "f:command": {} },
        },
      },
    },
  },
};
const OBJECT = {
  metadata: {
    name: "web",
    annotations: { "example.com/note": "a: b" },
    managedFields: [{ manager: "kubectl", operation: "Update", fieldsV1: FIELDS }],
  },
  spec: {
    replicas: 3,
    template: {
      spec: {
        containers: [
          { name: "web", image: "nginx:1", args: ["a", "b: c"] },
          { name: "log", command: ["sh", "-c", "x"] },
        ],
      },
    },
  },
};
const IDENTITY = ["apiVersion: apps/v1", "kind: Deployment", "metadata:", "  name: web"];

test("an apply sends what the user changed", () => {
  const sent = (from, to) =>
    selection(MANIFEST.replace(from, to), MANIFEST, OBJECT, "pintle-console")?.map(({ text }) => text);
  assert.deepEqual(sent("x", "x"), IDENTITY);
  assert.deepEqual(sent("replicas: 3", "replicas: 4"), [...IDENTITY, "spec:", "  replicas: 4"]);
  assert.deepEqual(sent("nginx:1", "nginx:2"), [
    ...IDENTITY,
    "spec:",
    "  template:",
    "    spec:",
    "      containers:",
    "      - name: web",
    "        image: nginx:2",
  ]);
  // The key of an item is sent with it, and so is an atomic list as a whole.
  assert.deepEqual(sent("          - -c\n", "          - -x\n").slice(8), [
    "      -   name: log",
    "          command:",
    "          - sh",
    "          - -x",
    "          - |",
    "            run: this",
    "            - and that",
  ]);
  assert.deepEqual(sent('"b: c"', '"d"').slice(8), [
    "      - name: web",
    '        args: ["a",',
    '          "d"]',
  ]);
  assert.equal(sent("kind: Deployment", "kind: &a Deployment"), undefined);
});

test("owners of fields, items and values are found", () => {
  const { of, managers } = ownership(OBJECT);
  assert.equal(managers[0].name, "kubectl");
  const rows = [
    [["spec", "replicas"], [0]],
    [["spec"], []],
    [["spec", "template", "spec", "containers", 1], [0]],
    [["spec", "template", "spec", "containers", 0, "args", 1], [0]],
    [["spec", "template", "spec", "containers", 1, "image"], []],
    [["metadata", "annotations", "example.com/note"], [0]],
  ];
  for (const [path, expected] of rows) assert.deepEqual(of(path), expected, path.join("."));
  const set = ownership({
    metadata: {
      finalizers: ["a", "b"],
      managedFields: [
        { manager: "m", fieldsV1: { "f:metadata": { "f:finalizers": { ".": {}, 'v:"b"': {} } } } },
      ],
    },
  });
  assert.deepEqual([set.of(["metadata", "finalizers", 0]), set.of(["metadata", "finalizers", 1])], [[], [0]]);
});

test("a difference has the lines of both texts", () => {
  let seed = 7;
  const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
  for (let turn = 0; turn < 300; turn += 1) {
    const list = () => Array.from({ length: random(12) }, () => "abc"[random(3)]);
    const [before, after] = [list(), list()];
    const changes = difference(before, after);
    const side = (skipped) => changes.filter(({ sign }) => sign !== skipped).map(({ line }) => line);
    assert.deepEqual([side("+"), side("-")], [before, after]);
  }
  const long = Array.from({ length: 50 }, (_, index) => String(index));
  assert.deepEqual(
    hunks(difference(long, [...long.slice(0, 25), "x", ...long.slice(25)])).map(
      ({ skipped, sign }) => skipped ?? sign,
    ),
    [22, " ", " ", " ", "+", " ", " ", " ", 22],
  );
});

test("latency is what Prometheus computes", () => {
  const page = (counts) =>
    parse(
      ["0.1", "0.2", "+Inf"]
        .map(
          (le, index) => `apiserver_request_duration_seconds_bucket{verb="GET",le="${le}"} ${counts[index]}`,
        )
        .concat('apiserver_request_duration_seconds_bucket{verb="WATCH",le="+Inf"} 99')
        .join("\n"),
    );
  assert.equal(latency(page([0, 0, 0]), page([50, 100, 100]), 0.5), 0.1);
  assert.equal(latency(page([50, 100, 100]), page([50, 200, 200]), 0.5).toFixed(3), "0.150");
  assert.equal(latency(page([1, 1, 1]), page([1, 1, 1]), 0.5), undefined);
});
