//! Sends requests in which everything is as large as possible: none may cost the server much, or
//! delay others.
//!
//! The server's OpenAPI documents say what can be large: every list, map and text of every kind,
//! and several lists of one object together, to find quadratic work. Each object is created,
//! updated, patched and applied. Before that come other large parts of requests: patches with many
//! operations, selectors, headers, documents in YAML and Protobuf, and objects with two large parts
//! that once made a request expensive.
//!
//! Never run this against a server that is in use.

mod axes;
mod fill;
mod meter;
mod products;

use std::collections::BTreeSet;
use std::fmt;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Target;
use crate::http::Request;
use crate::request;
use crate::schemas::{Form, Kind, LargeField, Schemas, Step, kinds};
use fill::{Filler, Filling};
use meter::{Answer, Bystander, Meter, get};

/// Base objects, for kinds whose objects need more than the minimum that the sweep makes.
const BASES: &str = include_str!("../corpus/bases.yaml");
/// The number of the slowest requests that are shown.
const SLOWEST: usize = 40;
/// The part of a request's size that a stored object has: etcd's limit of values is about half of
/// the limit of requests.
const STORED_SHARE: usize = 2;
/// Groups whose objects affect all requests, so no filled object of them is stored.
const NEVER_STORED: [&str; 2] = ["admissionregistration.k8s.io", "apiregistration.k8s.io"];
/// Texts that parsers of names, paths, patterns, addresses, quantities or expressions may scan more
/// than once.
const PIECES: [&str; 6] = ["a", "1", "a.", "(", "a,", "{[("];

/// The size of the requests, and the bounds.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The size of a request's body.
    pub body_bytes: usize,
    /// The most processor time that a request may cost.
    pub processor_max: Duration,
    /// The longest that `/livez` may take meanwhile.
    pub livez_max: Duration,
    /// Fills a field of a type wherever the type occurs, not only at its first occurrence; fills
    /// texts with every piece.
    pub everywhere: bool,
    /// Fills one field in so many; 1 for all.
    pub one_in: usize,
    /// Only requests with one of these words in their name.
    pub only: Vec<String>,
}

/// The requests that were sent, and those that broke a bound.
#[derive(Debug, Default)]
pub struct Summary {
    /// The number of measured requests.
    pub requests: usize,
    /// The most expensive requests, with their names and status codes.
    pub slowest: Vec<(Duration, String, u16)>,
    /// The longest time that `/livez` took, and the request at that time.
    pub livez: (Duration, String),
    /// The broken bounds.
    pub failures: Vec<String>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (processor, name, status) in &self.slowest {
            writeln!(f, "{:6} ms  {status}  {name}", processor.as_millis())?;
        }
        let (longest, during) = &self.livez;
        writeln!(f, "/livez took at most {} ms, during {during}", longest.as_millis())?;
        for failure in &self.failures {
            writeln!(f, "TOO MUCH: {failure}")?;
        }
        write!(f, "{} large requests, {} too much", self.requests, self.failures.len())
    }
}

/// Sends all requests; calls `each` for every response.
pub fn run(
    target: &Target,
    campaign: &Campaign,
    each: &mut dyn FnMut(&str, u16, Duration),
) -> Result<Summary> {
    let bystander = Bystander::new();
    thread::scope(|scope| {
        scope.spawn(|| bystander.watch(target));
        let namespace = format!("sweep-{:x}", std::process::id());
        let mut sweep = Sweep {
            campaign,
            namespace,
            target,
            meter: Meter::new(target),
            bystander: &bystander,
            summary: Summary::default(),
            each,
            large_fields: 0,
            objects: 0,
        };
        let done = sweep.all();
        sweep.summary.livez = bystander.finish()?;
        done?;
        let (longest, during) = &sweep.summary.livez;
        if *longest > campaign.livez_max {
            let failure = format!("{} ms for /livez during {during}", longest.as_millis());
            sweep.summary.failures.push(failure);
        }
        Ok(sweep.summary)
    })
}

struct Sweep<'a> {
    campaign: &'a Campaign,
    namespace: String,
    target: &'a Target,
    meter: Meter<'a>,
    bystander: &'a Bystander,
    summary: Summary,
    each: &'a mut dyn FnMut(&str, u16, Duration),
    /// The number of large fields so far.
    large_fields: usize,
    /// The number of created objects; each gets a number.
    objects: usize,
}

#[derive(Deserialize)]
struct Base {
    kind: String,
    object: Value,
}

/// A stored object that is updated.
struct Subject {
    path: String,
    object: Value,
}

impl Sweep<'_> {
    fn all(&mut self) -> Result<()> {
        let namespaces = "/api/v1/namespaces";
        let namespace = json!({"metadata": {"name": self.namespace}});
        self.meter.send(&json_request("POST", namespaces, &namespace))?;
        let bytes = self.campaign.body_bytes;
        let axes = axes::all(&self.namespace, bytes);
        for (name, requests) in axes.into_iter().chain(products::all(&self.namespace, bytes)?) {
            if !self.is_wanted(&name) {
                continue;
            }
            for request in requests {
                self.measure(&name, &request)?;
            }
        }
        let bases = BASES.replace("$ns", &self.namespace);
        let bases: Vec<Base> = serde_saphyr::from_str(&bases)?;
        let index = self.document("/openapi/v3")?;
        let documents = index["paths"].as_object().context("the index of documents")?;
        let mut seen = BTreeSet::new();
        for document in documents.values() {
            let url = document["serverRelativeURL"].as_str().context("an address")?;
            let mut document = self.document(url)?;
            let kinds = kinds(&document, &self.namespace)?;
            let schemas = Schemas::new(&mut document);
            for kind in kinds {
                let seen = (!self.campaign.everywhere).then_some(&mut seen);
                let base = bases.iter().find(|base| base.kind == kind.kind);
                self.kind(&schemas, &kind, base.map(|base| &base.object), seen)?;
            }
        }
        self.meter
            .send(&request::delete(self.target, &format!("{namespaces}/{}", self.namespace)))?;
        Ok(())
    }

    fn document(&mut self, path: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&self.meter.send(&get(path))?.body)?)
    }

    fn kind(
        &mut self,
        schemas: &Schemas,
        kind: &Kind,
        base: Option<&Value>,
        seen: Option<&mut BTreeSet<String>>,
    ) -> Result<()> {
        let filler = Filler { schemas };
        let mut object = filler.made("", &kind.schema, 1, 0);
        if let Some(Value::Object(base)) = base {
            object.as_object_mut().context("a kind is an object")?.extend(base.clone());
        }
        object["apiVersion"] = json!(kind.api_version);
        object["kind"] = json!(kind.kind);
        let mut subject: Option<Subject> = None;
        let mut is_refused = !kind.is_stored;
        for field in schemas.large_fields(kind, seen) {
            let name = format!("{} {} {}", kind.api_version, kind.kind, field.name());
            self.large_fields += 1;
            if !self.is_wanted(&name)
                || !self.large_fields.is_multiple_of(self.campaign.one_in.max(1))
            {
                continue;
            }
            for filling in self.fillings(&field) {
                let name = format!("{name} {filling:?}");
                let large = |bytes, first| filler.large(&field, filling, bytes, first);
                let mut whole = object.clone();
                whole["metadata"]["name"] = json!("large");
                filler.put(
                    &mut whole,
                    &kind.schema,
                    &field.path,
                    large(self.campaign.body_bytes, 0),
                );
                let create = format!("{}?dryRun=All", kind.collection);
                self.measure(&format!("{name} create"), &json_request("POST", &create, &whole))?;
                if subject.is_none() && !is_refused {
                    subject = self.create(kind, &object)?;
                    is_refused = subject.is_none();
                }
                if let Some(there) = subject.take() {
                    subject = self.update(kind, &filler, &field, filling, &name, there)?;
                }
            }
        }
        if let Some(subject) = subject {
            self.delete(&subject)?;
        }
        Ok(())
    }

    fn is_wanted(&self, name: &str) -> bool {
        let only = &self.campaign.only;
        only.is_empty() || only.iter().any(|word| name.contains(word.as_str()))
    }

    fn fillings(&self, field: &LargeField) -> Vec<Filling> {
        match field.form {
            Form::Text if self.campaign.everywhere => {
                PIECES.iter().map(|piece| Filling::Repeated(piece)).collect()
            }
            // Each text is filled with one piece. The field's name selects it, so that every piece
            // is used somewhere.
            Form::Text => {
                let first = field.name().len() % PIECES.len();
                vec![Filling::Repeated(PIECES[first])]
            }
            Form::Lists => vec![Filling::Equal, Filling::Distinct],
            Form::List | Form::Map => vec![Filling::Bare, Filling::Equal, Filling::Distinct],
        }
    }

    /// Creates an object of a kind, for updates; `None` if the server does not accept the object.
    fn create(&mut self, kind: &Kind, object: &Value) -> Result<Option<Subject>> {
        self.objects += 1;
        let unique = format!("sweep{:x}x{}", std::process::id(), self.objects);
        // The name of a CustomResourceDefinition follows from its other names.
        let text = object.to_string().replace("$plural", &unique);
        let mut object: Value = serde_json::from_str(&text)?;
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = json!(unique);
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let response = self.meter.send(&json_request("POST", &kind.collection, &object))?;
        if response.head.status != 201 {
            let text = String::from_utf8_lossy(&response.body);
            (self.each)(&format!("{} {text}", kind.kind), response.head.status, Duration::ZERO);
            return Ok(None);
        }
        let object = serde_json::from_slice(&response.body)?;
        Ok(Some(Subject { path: format!("{}/{name}", kind.collection), object }))
    }

    /// Fills a field of a stored object by a PUT, and again by a PUT with items of which half are
    /// the same; then by a strategic merge patch, a merge patch and an apply, as dry runs. Returns
    /// the object if it has not changed, and otherwise deletes it.
    fn update(
        &mut self,
        kind: &Kind,
        filler: &Filler<'_>,
        field: &LargeField,
        filling: Filling,
        name: &str,
        mut subject: Subject,
    ) -> Result<Option<Subject>> {
        let in_status = matches!(field.path.first(), Some(Step::Field(field)) if field == "status");
        let never = NEVER_STORED.iter().any(|group| kind.api_version.starts_with(group));
        let path = format!(
            "{}{}",
            subject.path,
            if in_status && kind.has_status { "/status" } else { "" }
        );
        let query = if never { "?dryRun=All" } else { "" };
        let bytes = self.campaign.body_bytes / STORED_SHARE;
        let large = |first| filler.large(field, filling, bytes, first);
        let count = large(0).as_array().map_or(0, Vec::len);
        let mut changed = false;
        for first in [0, count / 2] {
            let mut whole = subject.object.clone();
            filler.put(&mut whole, &kind.schema, &field.path, large(first));
            let request = json_request("PUT", &format!("{path}{query}"), &whole);
            let answer = self.measure(&format!("{name} put"), &request)?;
            if answer.status == 200 && !never {
                let stored: Value = serde_json::from_slice(&answer.body)?;
                let version = &stored["metadata"]["resourceVersion"];
                subject.object["metadata"]["resourceVersion"] = version.clone();
                changed = true;
            }
        }
        let mut patch = json!({"apiVersion": kind.api_version, "kind": kind.kind});
        patch["metadata"]["name"] = subject.object["metadata"]["name"].clone();
        filler.put(&mut patch, &kind.schema, &field.path, large(count / 4));
        for (verb, media, query) in [
            ("strategic merge patch", "application/strategic-merge-patch+json", "dryRun=All"),
            ("merge patch", "application/merge-patch+json", "dryRun=All"),
            ("apply", "application/apply-patch+yaml", "fieldManager=a&force=true&dryRun=All"),
        ] {
            let mut request = json_request("PATCH", &format!("{path}?{query}"), &patch);
            request.headers.push(("Content-Type".to_owned(), media.to_owned()));
            self.measure(&format!("{name} {verb}"), &request)?;
        }
        if !changed {
            return Ok(Some(subject));
        }
        let mut table = get(&subject.path);
        let media = "application/json;as=Table;v=v1;g=meta.k8s.io";
        table.headers = vec![("Accept".to_owned(), media.to_owned())];
        self.measure(&format!("{name} table"), &table)?;
        self.delete(&subject)?;
        Ok(None)
    }

    fn delete(&mut self, subject: &Subject) -> Result<()> {
        let mut free =
            json_request("PATCH", &subject.path, &json!({"metadata": {"finalizers": null}}));
        let media = "application/merge-patch+json".to_owned();
        free.headers.push(("Content-Type".to_owned(), media));
        self.meter.send(&free)?;
        self.meter.send(&request::delete(self.target, &subject.path))?;
        Ok(())
    }

    /// Sends a request and records its cost.
    fn measure(&mut self, name: &str, request: &Request) -> Result<Answer> {
        self.bystander.note(name);
        let answer = self.meter.measure(request).with_context(|| name.to_owned())?;
        let status = answer.status;
        (self.each)(name, status, answer.processor);
        let summary = &mut self.summary;
        summary.requests += 1;
        if answer.processor > self.campaign.processor_max {
            summary.failures.push(format!("{} ms for {name}", answer.processor.as_millis()));
        }
        let position = summary.slowest.partition_point(|(time, ..)| *time >= answer.processor);
        if position < SLOWEST {
            summary.slowest.insert(position, (answer.processor, name.to_owned(), status));
            summary.slowest.truncate(SLOWEST);
        }
        Ok(answer)
    }
}

fn json_request(method: &str, path: &str, body: &Value) -> Request {
    let media = |name: &str| (name.to_owned(), "application/json".to_owned());
    let mut headers = vec![media("Accept")];
    if method != "PATCH" {
        headers.push(media("Content-Type"));
    }
    let body = Some(body.to_string().into_bytes());
    Request { method: method.to_owned(), target: path.to_owned(), headers, body }
}
