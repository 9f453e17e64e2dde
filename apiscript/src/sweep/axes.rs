//! Large parts of requests other than fields: operations of patches, selectors, headers, documents.

use serde_json::{Value, json};

use super::json_request;
use super::meter::get;
use crate::http::Request;

/// The most operations that a patch may have.
const OPERATIONS_MAX: usize = 10_000;
/// The largest head of a request that servers read, minus some room for its other parts.
const HEAD_BYTES_MAX: usize = 200_000;

/// Large requests by name; those with one name are sent one after another.
pub(super) fn all(namespace: &str, bytes: usize) -> Vec<(String, Vec<Request>)> {
    let mut all = patches(namespace, bytes);
    all.extend(shapes(namespace, bytes));
    all.extend(documents(namespace, bytes));
    all.extend(protobufs(namespace, bytes));
    all.extend(heads(namespace, bytes.min(HEAD_BYTES_MAX)));
    all
}

/// Patches with the maximal number of operations, on as many items as fit.
fn patches(namespace: &str, bytes: usize) -> Vec<(String, Vec<Request>)> {
    let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
    let operations = OPERATIONS_MAX.min(bytes / 100);
    let items: Vec<u8> = vec![0; (bytes - operations * 60) / 2];
    let members: Value = (0..items.len() / 6).map(|i| (format!("k{i}"), json!(0))).collect();
    let rows: [(&str, &dyn Fn(usize) -> Value); 12] = [
        ("add first", &|_| json!({"op": "add", "path": "/x/0", "value": 1})),
        ("add last", &|_| json!({"op": "add", "path": "/x/-", "value": 1})),
        ("add in the middle", &|i| json!({"op": "add", "path": format!("/x/{i}"), "value": 1})),
        ("remove first", &|_| json!({"op": "remove", "path": "/x/0"})),
        ("replace", &|_| json!({"op": "replace", "path": "/x/0", "value": 1})),
        ("move to the end", &|_| json!({"op": "move", "from": "/x/0", "path": "/x/-"})),
        ("move whole", &|i| match i % 2 {
            0 => json!({"op": "move", "from": "/x", "path": "/y"}),
            _ => json!({"op": "move", "from": "/y", "path": "/x"}),
        }),
        ("move within", &|_| json!({"op": "move", "from": "/x/1", "path": "/x/0"})),
        ("copy item", &|_| json!({"op": "copy", "from": "/x/0", "path": "/x/0"})),
        ("copy whole", &|_| json!({"op": "copy", "from": "/x", "path": "/y"})),
        ("test item", &|_| json!({"op": "test", "path": "/x/0", "value": 0})),
        ("test whole", &|i| json!({"op": "test", "path": "/x", "value": [i]})),
    ];
    let mut all = Vec::new();
    for (name, operation) in rows {
        let filled = json!({"op": "add", "path": "/x", "value": items});
        let patch = std::iter::once(filled).chain((0..operations).map(operation)).collect();
        all.push((format!("JSON patch: {name}"), patch));
    }
    let filled = json!({"op": "add", "path": "/x", "value": members});
    let operation = |i| match i % 2 {
        0 => json!({"op": "remove", "path": format!("/x/k{i}")}),
        _ => json!({"op": "add", "path": format!("/x/a{i}"), "value": 0}),
    };
    let patch = std::iter::once(filled).chain((0..operations).map(operation)).collect();
    all.push(("JSON patch: members".to_owned(), patch));
    let requests = all.into_iter().map(|(name, patch): (String, Value)| {
        let object = json!({"metadata": {"name": "patched"}});
        let mut request = json_request("PATCH", &format!("{collection}/patched"), &patch);
        let media = "application/json-patch+json".to_owned();
        request.headers.push(("Content-Type".to_owned(), media));
        (name, vec![json_request("POST", &collection, &object), request])
    });
    requests.collect()
}

/// Other patches: one whose order of a list names no item, and one that moves a value in a deep
/// document, whose depth is bounded again at each move.
fn shapes(namespace: &str, bytes: usize) -> Vec<(String, Vec<Request>)> {
    let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
    let patch = |media: &str, body: &Value| {
        let mut request = json_request("PATCH", &format!("{collection}/shaped"), body);
        request.headers.push(("Content-Type".to_owned(), media.to_owned()));
        vec![json_request("POST", &collection, &json!({"metadata": {"name": "shaped"}})), request]
    };
    let finalizers = vec!["a"; bytes / 4];
    let unordered = json!({"metadata": {
        "$setElementOrder/finalizers": [],
        "finalizers": finalizers,
    }});
    let deep = (0..DEPTH).fold(json!(0), |below, _| json!({"d": below}));
    let zeros = vec![0; bytes / 4];
    let filled = json!({"op": "add", "path": "/x", "value": {"deep": deep, "wide": zeros, "a": 0}});
    let moves = (0..OPERATIONS_MAX.min(bytes / 100)).map(|i| match i % 2 {
        0 => json!({"op": "move", "from": "/x/a", "path": "/x/deep/d/d/a"}),
        _ => json!({"op": "move", "from": "/x/deep/d/d/a", "path": "/x/a"}),
    });
    let moves: Value = std::iter::once(filled).chain(moves).collect();
    vec![
        (
            "strategic merge patch: empty order".to_owned(),
            patch("application/strategic-merge-patch+json", &unordered),
        ),
        (
            "JSON patch: move in a deep document".to_owned(),
            patch("application/json-patch+json", &moves),
        ),
    ]
}

/// The depth of a document that is almost as deep as servers read.
const DEPTH: usize = 505;

/// Bodies in JSON and YAML whose syntax may be expensive to parse.
fn documents(namespace: &str, bytes: usize) -> Vec<(String, Vec<Request>)> {
    let many = |before: &str, unit: &dyn Fn(usize) -> String, after: &str| {
        let count = bytes / (unit(100_000).len().max(1));
        let units: String = (0..count).map(unit).collect();
        format!("{before}{units}{after}")
    };
    let same = |unit: &'static str| move |_| unit.to_owned();
    let yaml = [
        ("documents", many("", &same("---\na: b\n"), "")),
        ("anchors", many("", &|i| format!("a{i}: &a{i} b\n"), "")),
        ("aliases", many("a: &a b\n", &|i| format!("b{i}: *a\n"), "")),
        (
            "aliases of aliases",
            many("a0: &a0 [b]\n", &|i| format!("a{}: &a{} [*a{i}, *a{i}]\n", i + 1, i + 1), ""),
        ),
        ("merges", many("a: &a {b: c}\n", &|i| format!("k{i}: {{<<: *a}}\n"), "")),
        ("merges in one", many("a: &a {b: c}\nd:\n  <<: [", &same("*a,"), "]\n")),
        ("equal keys", many("", &same("a: b\n"), "")),
        ("distinct keys", many("data:\n", &|i| format!("  k{i}: b\n"), "")),
        ("comments", many("", &same("#\n"), "")),
        ("tags", many("a: ", &same("!!str "), "b")),
        ("directives", many("", &same("%YAML 1.2\n"), "")),
        ("flow depth", many("a: ", &same("["), "")),
        ("flow items", many("a: [", &same("a,"), "]")),
        ("block depth", many("", &same("- "), "a")),
        ("question marks", many("", &same("? "), "a")),
        ("quotes", many("a: \"", &same("\\x41"), "\"")),
        ("blank lines in a text", many("a: 'b", &same("\n"), "c'")),
        ("folded", many("a: >\n", &same(" b\n\n"), "")),
        ("spaces", many("a: b", &same(" "), "c")),
        ("unknown fields", many("", &|i| format!("x{i}: b\n"), "")),
        ("carriage returns", many("a: b", &same("\r"), "c")),
        ("colons", many("", &same("a:"), "b")),
    ];
    let json = [
        ("depth of lists", many("{\"x\":", &same("["), "")),
        ("depth of objects", many("{\"x\":", &same("{\"a\":"), "")),
        ("equal members", many("{\"data\":{\"z\":\"\"", &same(",\"a\":\"\""), "}}")),
        ("unknown members", many("{\"data\":{}", &|i| format!(",\"x{i}\":0"), "}")),
        ("unknown items", many("{\"x\":[0", &same(",{\"y\":0,\"y\":0}"), "]}")),
        ("digits", many("{\"x\":1", &same("0"), "}")),
        ("fraction", many("{\"x\":0.", &same("1"), "}")),
        ("exponent", many("{\"x\":1e", &same("9"), "}")),
        ("escapes", many("{\"x\":\"", &same("\\ud83d\\ude00"), "\"}")),
        ("white space", many("{", &same(" "), "}")),
    ];
    let yaml = yaml.map(|(name, text)| (format!("YAML: {name}"), "application/yaml", text));
    let json = json.map(|(name, text)| (format!("JSON: {name}"), "application/json", text));
    let mut all = Vec::new();
    for (name, media, text) in yaml.into_iter().chain(json) {
        for validation in ["Warn", "Strict"] {
            let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
            let path = format!("{collection}?dryRun=All&fieldValidation={validation}");
            all.push((
                format!("{name} ({validation})"),
                vec![raw("POST", &path, media, text.clone())],
            ));
        }
        let path = format!(
            "/api/v1/namespaces/{namespace}/configmaps/a?fieldManager=a&force=true&dryRun=All"
        );
        let media = "application/apply-patch+yaml";
        all.push((format!("{name} (apply)"), vec![raw("PATCH", &path, media, text)]));
    }
    all
}

/// Encodes the repetition of a field with a number.
type Encoded<'f> = &'f dyn Fn(usize) -> Vec<u8>;

/// Messages with many repetitions of a field.
fn protobufs(namespace: &str, bytes: usize) -> Vec<(String, Vec<Request>)> {
    let field = |number: u8, content: &[u8]| {
        let mut out = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            out.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
            length >>= 7;
        }
        out.push(u8::try_from(length).unwrap_or_default());
        out.extend_from_slice(content);
        out
    };
    let metadata = |content: &[u8]| field(1, content);
    let entry = |key: &[u8]| [field(1, key), field(2, b"v")].concat();
    let number = |i: usize| format!("k{i}").into_bytes();
    let rows: [(&str, Encoded<'_>); 8] = [
        ("the same message", &|_| metadata(&field(1, b"a"))),
        ("the same text", &|_| field(15, b"a")),
        ("unknown fields", &|_| field(14, b"")),
        ("entries with one key", &|_| field(2, &entry(b"k"))),
        ("entries", &|i| field(2, &entry(&number(i)))),
        ("messages with an entry each", &|i| metadata(&field(11, &entry(&number(i))))),
        ("messages with an item each", &|_| metadata(&field(14, b"a/b"))),
        ("groups", &|_| vec![14 << 3 | 3, 14 << 3 | 4]),
    ];
    let requests = rows.into_iter().map(|(name, unit)| {
        let count = bytes / unit(100_000).len();
        let object: Vec<u8> = (0..count).flat_map(unit).collect();
        let type_meta = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
        let body = [b"k8s\0".to_vec(), field(1, &type_meta), field(2, &object)].concat();
        let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
        let request = raw("POST", &path, "application/vnd.kubernetes.protobuf", body);
        (format!("Protobuf: {name}"), vec![request])
    });
    requests.collect()
}

/// Selectors, other parameters and headers.
fn heads(namespace: &str, bytes: usize) -> Vec<(String, Vec<Request>)> {
    let many = |unit: &dyn Fn(usize) -> String| -> String {
        (0..bytes / unit(100_000).len()).map(unit).collect()
    };
    let list = format!("/api/v1/namespaces/{namespace}/configmaps");
    let mut all = Vec::new();
    for (name, query) in [
        ("label requirements", format!("labelSelector=z{}", many(&|i| format!(",k{i}!=v")))),
        ("equal label requirements", format!("labelSelector=z{}", many(&|_| ",a=b".to_owned()))),
        ("values", format!("labelSelector=a+notin+(b{})", many(&|i| format!(",v{i}")))),
        (
            "field requirements",
            format!("fieldSelector=metadata.name!=z{}", many(&|i| format!(",metadata.name!=n{i}"))),
        ),
        ("commas", format!("labelSelector={}", many(&|_| ",".to_owned()))),
        ("parentheses", format!("labelSelector=a+in+{}", many(&|_| "(".to_owned()))),
        ("parameters", many(&|i| format!("&p{i}=v"))),
        ("equal parameters", many(&|_| "&limit=1".to_owned())),
        ("continue", format!("continue={}", many(&|_| "a".to_owned()))),
        ("escapes", format!("labelSelector={}", many(&|_| "%2C".to_owned()))),
    ] {
        all.push((format!("query: {name}"), vec![get(&format!("{list}?{query}"))]));
    }
    all.push(("path: segments".to_owned(), vec![get(&many(&|_| "/a".to_owned()))]));
    for (name, header, value) in [
        ("ranges", "Accept", many(&|i| format!("a/b{i};q=0.1,"))),
        ("parameters of one range", "Accept", format!("a/b{}", many(&|i| format!(";p{i}=v")))),
        ("encodings", "Accept-Encoding", many(&|i| format!("a{i},"))),
        ("type", "Content-Type", format!("a/b{}", many(&|i| format!(";p{i}=v")))),
        ("cookies", "Cookie", many(&|i| format!("c{i}=v;"))),
        ("token", "Authorization", format!("Bearer {}", many(&|_| "a.".to_owned()))),
        ("agent", "User-Agent", many(&|_| "a/".to_owned())),
        ("etag", "If-None-Match", many(&|i| format!("\"{i}\","))),
        ("protocols", "Sec-WebSocket-Protocol", many(&|i| format!("a{i},"))),
    ] {
        let mut request = get(&list);
        request.headers.retain(|(known, _)| known != header);
        request.headers.push((header.to_owned(), value));
        all.push((format!("header: {name}"), vec![request]));
    }
    for (name, header) in [("groups", "Impersonate-Group"), ("extra", "Impersonate-Extra-a")] {
        let mut request = get(&list);
        request.headers.push(("Impersonate-User".to_owned(), "u".to_owned()));
        let groups = (0..bytes / 40).map(|i| (header.to_owned(), format!("g{i}")));
        request.headers.extend(groups);
        all.push((format!("header: impersonated {name}"), vec![request]));
    }
    all
}

/// A request with a body.
pub(super) fn raw(method: &str, path: &str, media: &str, body: impl Into<Vec<u8>>) -> Request {
    let mut request = get(path);
    method.clone_into(&mut request.method);
    request.headers.push(("Content-Type".to_owned(), media.to_owned()));
    request.body = Some(body.into());
    request
}
