//! The resource `parts` of the extension API server: list, watch, patch and delete as upstream's
//! servers do them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::extension::json_answer;
use super::site::Body;

/// The objects of the resource `parts` in `a.io/v1`.
#[derive(Clone, Default)]
pub(crate) struct Parts(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// By namespace and name.
    objects: BTreeMap<(String, String), Value>,
    events: Vec<Value>,
    /// The number of events.
    head: watch::Sender<usize>,
}

impl Parts {
    /// Creates a part in the namespace `default`; returns its uid.
    pub(crate) fn create(&self, name: &str, owners: &Value, finalizers: &Value) -> String {
        let mut state = self.0.lock();
        let uid = format!("uid-of-{name}");
        let part = json!({"apiVersion": "a.io/v1", "kind": "Part", "metadata": {
            "name": name, "namespace": "default", "uid": uid, "ownerReferences": owners,
            "finalizers": finalizers}});
        state.set("ADDED", part);
        uid
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        let key = ("default".to_owned(), name.to_owned());
        self.0.lock().objects.get(&key).cloned()
    }

    /// Removes a part.
    pub(crate) fn remove(&self, part: Value) {
        self.0.lock().set("DELETED", part);
    }

    /// Handles a request below `/apis/a.io/v1`.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let query = head.uri.query().unwrap_or_default();
        let path: Vec<&str> = head.uri.path().split('/').skip(4).collect();
        match path[..] {
            ["parts"] if query.contains("watch=true") => self.watch(query),
            ["parts"] => self.list(""),
            ["namespaces", namespace, "parts"] => self.list(namespace),
            ["namespaces", namespace, "parts", name] => {
                let key = (namespace.to_owned(), name.to_owned());
                let (code, answer) = self.0.lock().answer(&head.method, key, &body);
                json_answer(code, &answer.to_string())
            }
            _ => panic!("{path:?}"),
        }
    }

    fn list(&self, namespace: &str) -> Response<Body> {
        let state = self.0.lock();
        let is_in = |key: &(String, String)| namespace.is_empty() || key.0 == namespace;
        let items: Vec<&Value> =
            state.objects.iter().filter(|(key, _)| is_in(key)).map(|(_, part)| part).collect();
        let version = state.events.len().to_string();
        let list = json!({"metadata": {"resourceVersion": version}, "items": items});
        json_answer(StatusCode::OK, &list.to_string())
    }

    fn watch(&self, query: &str) -> Response<Body> {
        let from = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
        let next: usize = from.unwrap().parse().unwrap();
        let head = self.0.lock().head.subscribe();
        let parts = self.clone();
        let events = stream::unfold((next, head, parts), |(next, mut head, parts)| async move {
            head.wait_for(|head| *head > next).await.ok()?;
            let event = parts.0.lock().events[next].to_string();
            let frame = Ok::<_, io::Error>(Frame::data(Bytes::from(event + "\n")));
            Some((frame, (next + 1, head, parts)))
        });
        Response::new(BodyExt::boxed(StreamBody::new(SyncStream(Mutex::new(Box::pin(events))))))
    }
}

/// Makes a stream `Sync`, as a boxed body must be.
struct SyncStream<S>(Mutex<std::pin::Pin<Box<S>>>);

impl<S: stream::Stream> stream::Stream for SyncStream<S> {
    type Item = S::Item;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<S::Item>> {
        self.0.lock().as_mut().poll_next(context)
    }
}

impl State {
    fn set(&mut self, event: &str, mut part: Value) {
        let version = (self.events.len() + 1).to_string();
        part["metadata"]["resourceVersion"] = version.into();
        let text = |member: &str| part["metadata"][member].as_str().unwrap().to_owned();
        let key = (text("namespace"), text("name"));
        if event == "DELETED" {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key, part.clone());
        }
        self.events.push(json!({"type": event, "object": part}));
        self.head.send_replace(self.events.len());
    }

    fn answer(
        &mut self,
        method: &Method,
        key: (String, String),
        body: &Value,
    ) -> (StatusCode, Value) {
        let Some(mut part) = self.objects.get(&key).cloned() else {
            let details = json!({"name": key.1, "group": "a.io", "kind": "parts"});
            let status = json!({"kind": "Status", "status": "Failure", "reason": "NotFound",
                                "message": "not found", "details": details, "code": 404});
            return (StatusCode::NOT_FOUND, status);
        };
        if method == Method::GET {
            return (StatusCode::OK, part);
        }
        let is_delete = method == Method::DELETE;
        let expected = &body[if is_delete { "preconditions" } else { "metadata" }];
        let matches = |member: &str| expected[member] == part["metadata"][member];
        if !matches("uid") || !matches("resourceVersion") {
            return (StatusCode::CONFLICT, json!({"message": "uid or resourceVersion differs"}));
        }
        let metadata = part["metadata"].as_object_mut().unwrap();
        if is_delete {
            metadata.insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
            let finalizer = match body["propagationPolicy"].as_str() {
                Some("Foreground") => Some("foregroundDeletion"),
                Some("Orphan") => Some("orphan"),
                _ => None,
            };
            if let Some(finalizer) = finalizer {
                metadata["finalizers"].as_array_mut().unwrap().push(finalizer.into());
            }
        } else {
            for member in ["ownerReferences", "finalizers"] {
                match body["metadata"].get(member) {
                    Some(Value::Null) => metadata.insert(member.into(), json!([])),
                    Some(list) => metadata.insert(member.into(), list.clone()),
                    None => None,
                };
            }
        }
        let is_deleted =
            metadata.contains_key("deletionTimestamp") && metadata["finalizers"] == json!([]);
        self.set(if is_deleted { "DELETED" } else { "MODIFIED" }, part.clone());
        (StatusCode::OK, part)
    }
}
