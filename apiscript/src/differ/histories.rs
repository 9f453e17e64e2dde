//! Random writes of several concurrent writers, followed by watches of several kinds.

use serde_json::{Value, json};

use super::mutants::Question;
use crate::http::Request;
use crate::random::Random;
use crate::run::Histories;

/// The number of histories, each a scenario.
pub(super) const WORLDS: u64 = 12;
const WRITERS: usize = 3;
const OBJECTS: usize = 4;
const WRITES: usize = 60;

const COLOURS: &[&str] = &["red", "blue", "green"];
/// Names of watches, their selectors, and their encodings.
const WATCHES: [(&str, &str, &str); 6] = [
    ("all", "", "application/json"),
    ("all in Protobuf", "", "application/vnd.kubernetes.protobuf;stream=watch"),
    ("red", "&labelSelector=colour%3Dred", "application/json"),
    ("not blue", "&labelSelector=colour!%3Dblue", "application/json"),
    ("all but one", "&fieldSelector=metadata.name!%3Dw0-o0", "application/json"),
    ("with bookmarks", "&allowWatchBookmarks=true", METADATA),
];
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// One set of writers and watches.
pub(super) fn histories(seed: u64, world: u64, namespace: &str) -> Histories {
    let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
    let writer = |number: usize| {
        let random = Random::of(seed, world << 8 | number as u64);
        let objects = vec![State::default(); OBJECTS];
        Writer { random, number, collection: &collection, objects }.writes()
    };
    let last = json!({"metadata": {"name": Histories::LAST, "labels": {"colour": "red"}}});
    Histories {
        writers: (0..WRITERS).map(writer).collect(),
        last: request("POST", &collection, "application/json", Some(&last)),
        watches: WATCHES.to_vec(),
        collection,
    }
}

struct Writer<'a> {
    random: Random,
    number: usize,
    collection: &'a str,
    objects: Vec<State>,
}

/// A writer's view of one of its objects.
#[derive(Clone, Copy, Default)]
struct State {
    is_there: bool,
    /// The object has a finalizer.
    is_held: bool,
    /// The object was deleted and waits for its finalizer to be removed.
    is_terminating: bool,
}

/// The verbs for an object that does not exist, and for one that does.
const BEGINNINGS: [&str; 8] =
    ["delete", "apply", "apply", "create", "create", "create", "create", "create"];
const CHANGES: [&str; 10] = [
    "replace",
    "replace",
    "replace",
    "label",
    "label",
    "label",
    "note",
    "note",
    "finalizers",
    "delete",
];

impl Writer<'_> {
    fn writes(mut self) -> Vec<Question> {
        (0..WRITES).map(|count| self.write(count)).collect()
    }

    fn write(&mut self, count: usize) -> Question {
        let object = self.random.below(OBJECTS);
        let state = self.objects[object];
        let verb = *self.random.pick(if state.is_there { &CHANGES[..] } else { &BEGINNINGS[..] });
        let name = format!("w{}-o{object}", self.number);
        let path = format!("{}/{name}", self.collection);
        let colour = *self.random.pick(COLOURS);
        let whole = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"colour": colour}},
            "data": {"count": count.to_string()},
        });
        let patch = |metadata: Value| {
            let media = "application/merge-patch+json";
            request("PATCH", &path, media, Some(&json!({"metadata": metadata})))
        };
        let json = "application/json";
        let request = match verb {
            "create" => request("POST", self.collection, json, Some(&whole)),
            "apply" => {
                let path = format!("{path}?fieldManager=applier&force=true");
                request("PATCH", &path, "application/apply-patch+yaml", Some(&whole))
            }
            "replace" => request("PUT", &path, json, Some(&whole)),
            "label" => patch(json!({"labels": {"colour": colour}})),
            "note" => patch(json!({"annotations": {"count": count.to_string()}})),
            "finalizers" if state.is_held => patch(json!({"finalizers": null})),
            "finalizers" => patch(json!({"finalizers": ["x.io/held"]})),
            _ => request("DELETE", &path, json, None),
        };
        self.objects[object] = state.after(verb);
        let body = request.body.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        (format!("{} {} {body}", request.method, request.target), request)
    }
}

impl State {
    /// The state after a write. A deleted object gets no new finalizer.
    fn after(self, verb: &str) -> Self {
        let State { is_there, is_held, is_terminating } = self;
        match verb {
            "create" | "apply" => Self { is_there: true, ..self },
            // The replacement has no finalizers.
            "replace" if is_terminating => {
                Self { is_there: false, is_held: false, is_terminating: false }
            }
            "replace" => Self { is_held: false, ..self },
            "finalizers" if is_terminating => {
                Self { is_there: false, is_held: false, is_terminating: false }
            }
            "finalizers" => Self { is_held: !is_held, ..self },
            "delete" if is_held => Self { is_terminating: true, ..self },
            "delete" if is_there => Self { is_there: false, ..self },
            _ => self,
        }
    }
}

fn request(method: &str, path: &str, media: &str, body: Option<&Value>) -> Request {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = vec![
        header("Accept", "application/json"),
        header("Content-Type", media),
        header("User-Agent", "apiscript/1"),
    ];
    let body = body.map(|body| body.to_string().into_bytes());
    Request { method: method.to_owned(), target: path.to_owned(), headers, body }
}
