//! Makes a hostile request from a seed and a number.
//!
//! The corpus has nearly valid lines. A request takes lines, or a valid object, and mostly changes
//! them in one to three places.

use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Hostile;
use super::mutate::{disturb, hostile_value, spoil};
use crate::http::Request;
use crate::random::Random;

/// The corpus: paths, queries, documents and so on, one a line, except the objects, which are a
/// YAML list. `$ns` is the campaign's namespace.
const PATHS: &str = include_str!("../../corpus/paths.txt");
const QUERIES: &str = include_str!("../../corpus/queries.txt");
const JSON: &str = include_str!("../../corpus/json.txt");
const YAML: &str = include_str!("../../corpus/yaml.txt");
const PATCHES: &str = include_str!("../../corpus/patches.txt");
const HEADERS: &str = include_str!("../../corpus/headers.txt");
const POINTERS: &str = include_str!("../../corpus/pointers.txt");
const OBJECTS: &str = include_str!("../../corpus/objects.yaml");
const RAW: &str = include_str!("../../corpus/raw.txt");

const METHODS: [&str; 9] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"];
const PATCH_TYPES: [&str; 3] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// Makes the requests of one campaign.
pub(super) struct Generator<'a> {
    seed: u64,
    namespace: &'a str,
    objects: Vec<Valid>,
}

impl<'a> Generator<'a> {
    pub(super) fn new(seed: u64, namespace: &'a str) -> Result<Self> {
        let objects = serde_saphyr::from_str(OBJECTS).map_err(|error| anyhow!("{error}"))?;
        Ok(Self { seed, namespace, objects })
    }

    /// The request with a number.
    pub(super) fn request(&self, number: u64) -> Hostile {
        let mut random = Random::of(self.seed, number);
        let request = match random.below(16) {
            0..=1 => self.path(&mut random),
            2..=4 => self.query(&mut random),
            5..=7 => self.object(&mut random),
            8 => self.text(JSON, "application/json", &mut random),
            9..=10 => self.text(YAML, "application/yaml", &mut random),
            11..=13 => self.patch(&mut random),
            14 => self.headers(&mut random),
            _ => {
                let text = self.line(RAW, &mut random).replace("\\r\\n", "\r\n");
                return Hostile::Raw(spoil(&text, &mut random));
            }
        };
        Hostile::Valid(request)
    }

    /// A line of a corpus.
    fn line(&self, corpus: &str, random: &mut Random) -> String {
        let lines: Vec<&str> = corpus.lines().filter(|line| !line.is_empty()).collect();
        random.pick(&lines).replace("$ns", self.namespace)
    }

    fn path(&self, random: &mut Random) -> Request {
        let path = spoil(&self.line(PATHS, random), random);
        let mut method = *random.pick(&METHODS);
        let within = format!("/{}/", self.namespace);
        if method == "DELETE" && !path.windows(within.len()).any(|part| part == within.as_bytes()) {
            method = "GET"; // never delete other clients' objects, or the campaign's namespace
        }
        request(method, target(&path))
    }

    fn query(&self, random: &mut Random) -> Request {
        let path = self.line(PATHS, random);
        let query = if random.once_in(4) {
            self.line(QUERIES, random).into_bytes()
        } else {
            spoil(&self.line(QUERIES, random), random)
        };
        request("GET", format!("{path}?{}&timeoutSeconds=1", target_part(&query)))
    }

    fn object(&self, random: &mut Random) -> Request {
        let (path, mut object) = self.proper_object(random);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        disturb(&mut object, random);
        let mut request = if random.once_in(3) {
            request("PUT", format!("{path}/{name}"))
        } else {
            request("POST", path)
        };
        request.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        request.body = Some(object.to_string().into_bytes());
        request
    }

    fn text(&self, corpus: &str, media_type: &str, random: &mut Random) -> Request {
        let mut request = request("POST", self.proper_object(random).0);
        let text = self.line(corpus, random).replace("\\n", "\n");
        request.headers.push(("Content-Type".to_owned(), media_type.to_owned()));
        request.body =
            Some(if random.once_in(4) { text.into_bytes() } else { spoil(&text, random) });
        request
    }

    fn patch(&self, random: &mut Random) -> Request {
        let (path, mut object) = self.proper_object(random);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut request = request("PATCH", format!("{path}/{name}"));
        request.headers.push(("Content-Type".to_owned(), (*random.pick(&PATCH_TYPES)).to_owned()));
        let body = match random.below(4) {
            0 => self.line(PATCHES, random).into_bytes(),
            1 => spoil(&self.line(PATCHES, random), random),
            2 => {
                disturb(&mut object, random);
                object.to_string().into_bytes()
            }
            _ => {
                let op = *random.pick(&["add", "remove", "replace", "move", "copy", "test"]);
                let (path, from) = (self.line(POINTERS, random), self.line(POINTERS, random));
                let value = hostile_value(random);
                let op = json!({"op": op, "path": path, "from": from, "value": value});
                json!([op]).to_string().into_bytes()
            }
        };
        request.body = Some(body);
        request
    }

    fn headers(&self, random: &mut Random) -> Request {
        let method = METHODS[random.below(3)];
        let mut request = request(method, self.line(PATHS, random));
        for _ in 0..1 + random.below(3) {
            let line = self.line(HEADERS, random);
            let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
            // HTTP restricts the bytes of a header's value; the raw requests break that rule.
            let value: String = String::from_utf8_lossy(&spoil(value, random))
                .chars()
                .filter(|c| c.is_ascii_graphic() || *c == ' ')
                .take(8_000)
                .collect();
            request.headers.push((name.to_owned(), value.trim().to_owned()));
        }
        if request.method != "GET" {
            request.body = Some(b"{}".to_vec());
        }
        request
    }

    /// A collection and a valid object for it.
    fn proper_object(&self, random: &mut Random) -> (String, Value) {
        let Valid { collection, mut object } = random.pick(&self.objects).clone();
        let name = format!("o{}", random.below(20));
        object["metadata"] = json!({"name": name, "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": []});
        (collection.replace("$ns", self.namespace), object)
    }
}

/// A valid object.
#[derive(Clone, Deserialize)]
struct Valid {
    collection: String,
    object: Value,
}

fn request(method: &str, target: impl Into<String>) -> Request {
    let headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    Request { method: method.to_owned(), target: target.into(), headers, body: None }
}

/// Bytes as a valid HTTP request target; invalid bytes are escaped.
fn target(bytes: &[u8]) -> String {
    let text = target_part(bytes);
    if text.starts_with('/') { text } else { format!("/{text}") }
}

fn target_part(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes.iter().take(12_000) {
        if byte.is_ascii_graphic() && *byte != b'#' {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_follows_from_seed_and_number() {
        let words = |seed, number| match Generator::new(seed, "t").unwrap().request(number) {
            Hostile::Valid(request) => format!("{request:?}"),
            Hostile::Raw(bytes) => format!("{bytes:?}"),
        };
        for number in 0..500 {
            assert_eq!(words(7, number), words(7, number));
        }
        let distinct: std::collections::BTreeSet<String> = (0..500).map(|n| words(7, n)).collect();
        assert!(distinct.len() > 450, "{}", distinct.len());
    }
}
