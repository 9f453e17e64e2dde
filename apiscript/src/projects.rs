//! Other projects' objects: creates their definitions and sample objects, and checks that broken
//! copies are refused. A project without definitions has samples of built-in kinds.
//!
//! Only the paths of these files are in this repository (`apiscript/projects.yaml`). A definition's
//! schema and a few simple rules determine the broken copies (`breaking`), independently of how a
//! server validates; the schemas of built-in kinds are those that the server publishes (`own`). The
//! reader of the remarks decides whether a sample or the server is wrong.

mod breaking;
mod documents;
mod own;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Target;
use crate::http::{Connection, Request};
use crate::request;
use documents::Document;

/// How long a definition may take to be established or to be deleted.
const TIMEOUT: Duration = Duration::from_secs(120);
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The paths of a project's definitions and samples.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Its repository, `owner/name`; the checkout's folder is named by the last part.
    pub repository: String,
    /// The commit for the figures in docs/conformance.md.
    pub commit: String,
    /// Files and folders of definitions.
    #[serde(default)]
    pub definitions: Vec<String>,
    /// Files and folders that are searched for samples.
    pub samples: Vec<String>,
    /// Files and folders of objects that the project itself calls invalid.
    #[serde(default)]
    pub invalid: Vec<String>,
}

/// The result of a project.
#[derive(Debug, Default)]
pub struct Outcome {
    repository: String,
    definitions: usize,
    established: usize,
    samples: usize,
    accepted: usize,
    broken: usize,
    refused: usize,
    /// The unexpected results, a line each.
    pub remarks: Vec<String>,
}

impl Outcome {
    /// Whether every definition is served and every broken object was refused. Samples may be
    /// refused, because some are wrong.
    pub fn is_good(&self) -> bool {
        self.established == self.definitions && self.refused == self.broken
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            repository, definitions, established, samples, accepted, broken, refused, ..
        } = self;
        write!(
            f,
            "| {repository} | {established} of {definitions} | {accepted} of {samples} | {refused} of {broken} |"
        )
    }
}

/// Reads the list of projects.
pub fn load(file: &Path) -> Result<Vec<Project>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| file.display().to_string())
}

/// Runs one project, whose checkout is below `checkouts`.
pub fn run(project: &Project, checkouts: &Path, target: &Target) -> Result<Outcome> {
    let name = project.repository.rsplit('/').next().unwrap_or_default();
    let root = checkouts.join(name);
    let definitions = documents::read(&root, &project.definitions)?;
    let mut session = Session {
        target,
        connection: target.connect(false)?,
        kinds: BTreeMap::new(),
        versions: BTreeMap::new(),
        namespace: format!("projects-{name}"),
        outcome: Outcome { repository: project.repository.clone(), ..Outcome::default() },
    };
    session.enter()?;
    let names = session.define(&definitions)?;
    let samples = documents::read(&root, &project.samples)?;
    if project.definitions.is_empty() {
        session.prepare(&samples)?;
    }
    for sample in samples {
        match project.definitions.is_empty() {
            true => session.try_builtin(&sample)?,
            false => session.try_sample(&sample)?,
        }
    }
    for sample in documents::read(&root, &project.invalid)? {
        session.try_invalid(&sample)?;
    }
    session.leave(&names)?;
    Ok(session.outcome)
}

/// How objects of a kind and version are created and compared.
struct Kind {
    /// The path of the collection.
    path: String,
    schema: Value,
    /// It has a status subresource, so a create drops the status.
    has_status: bool,
    /// A built-in kind: the server omits empty values, and adds to lists.
    is_own: bool,
}

struct Session<'a> {
    target: &'a Target,
    connection: Connection,
    /// By `apiVersion` and `kind`.
    kinds: BTreeMap<(String, String), Kind>,
    /// The server's built-in kinds by version: the resources, and the OpenAPI document.
    versions: BTreeMap<String, Option<(Value, Value)>>,
    namespace: String,
    outcome: Outcome,
}

impl Session<'_> {
    fn enter(&mut self) -> Result<()> {
        let namespace = json!({"metadata": {"name": self.namespace}});
        let (status, answer) = self.post("/api/v1/namespaces", &namespace)?;
        if status != 201 && status != 409 {
            bail!("the namespace can't be made: {answer}");
        }
        Ok(())
    }

    /// Creates all definitions first, because their number is part of the test. Returns the names
    /// of those that were created.
    fn define(&mut self, documents: &[Document]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for document in documents {
            if text(&document.tree, "/kind") != "CustomResourceDefinition" {
                continue;
            }
            let name = text(&document.tree, "/metadata/name").to_owned();
            let (status, answer) = self.post(DEFINITIONS, &document.tree)?;
            match status {
                201 => names.push(name),
                409 => continue, // the same definition in another file
                _ => self.remark(format!("{name}: {}", text(&answer, "/message"))),
            }
            self.outcome.definitions += 1;
        }
        for name in &names {
            if let Some(definition) = self.established(name)? {
                self.outcome.established += 1;
                self.learn(name, &definition)?;
            }
        }
        Ok(names)
    }

    fn established(&mut self, name: &str) -> Result<Option<Value>> {
        let deadline = Instant::now() + TIMEOUT;
        let path = format!("{DEFINITIONS}/{name}");
        loop {
            let (_, definition) = self.ask("GET", &path, None)?;
            let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
            let is = |condition: &Value| {
                condition["type"] == "Established" && condition["status"] == "True"
            };
            if conditions.is_some_and(|conditions| conditions.iter().any(is)) {
                return Ok(Some(definition));
            }
            if Instant::now() > deadline {
                self.remark(format!("{name} is not established: {}", definition["status"]));
                return Ok(None);
            }
        }
    }

    /// Records the kinds of a definition. Its conversion webhook does not run here, so the webhook
    /// is removed from the definition.
    fn learn(&mut self, name: &str, definition: &Value) -> Result<()> {
        if text(definition, "/spec/conversion/strategy") == "Webhook" {
            let alone = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
            let (status, answer) =
                self.ask("PATCH", &format!("{DEFINITIONS}/{name}"), Some(&alone))?;
            if status != 200 {
                bail!("{name}: {answer}");
            }
        }
        let spec = &definition["spec"];
        for version in spec["versions"].as_array().into_iter().flatten() {
            if version["served"] != true {
                continue;
            }
            let api_version = format!("{}/{}", text(spec, "/group"), text(version, "/name"));
            let plural = text(spec, "/names/plural");
            let path = match spec["scope"] == "Namespaced" {
                true => format!("/apis/{api_version}/namespaces/{}/{plural}", self.namespace),
                false => format!("/apis/{api_version}/{plural}"),
            };
            let kind = Kind {
                path,
                schema: version["schema"]["openAPIV3Schema"].clone(),
                has_status: version.pointer("/subresources/status").is_some(),
                is_own: false,
            };
            self.kinds.insert((api_version, text(spec, "/names/kind").to_owned()), kind);
        }
        Ok(())
    }

    /// Creates the service accounts of the sample pods: without them the pods are refused.
    fn prepare(&mut self, samples: &[Document]) -> Result<()> {
        let named = samples.iter().map(|sample| text(&sample.tree, "/spec/serviceAccountName"));
        let path = format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace);
        for name in named.chain(["default"]).filter(|name| !name.is_empty()) {
            self.post(&path, &json!({"metadata": {"name": name}}))?;
        }
        Ok(())
    }

    /// Like [`Self::try_sample`], for an object of a built-in kind.
    fn try_builtin(&mut self, document: &Document) -> Result<()> {
        let version = text(&document.tree, "/apiVersion").to_owned();
        let kind = text(&document.tree, "/kind").to_owned();
        if !self.versions.contains_key(&version) {
            let known = self.version(&version)?;
            self.versions.insert(version.clone(), known);
        }
        let Some(Some((resources, schemas))) = self.versions.get(&version) else { return Ok(()) };
        let Some((plural, is_namespaced)) = own::resource(resources, &kind) else { return Ok(()) };
        let Some(schema) = own::schema(schemas, &version, &kind, &document.tree) else {
            return Ok(());
        };
        let root = if version.contains('/') { "/apis" } else { "/api" };
        let path = match is_namespaced {
            true => format!("{root}/{version}/namespaces/{}/{plural}", self.namespace),
            false => format!("{root}/{version}/{plural}"),
        };
        let has_status = own::has_status(resources, plural);
        self.kinds.insert((version, kind), Kind { path, schema, has_status, is_own: true });
        self.try_sample(document)
    }

    /// The resources and the OpenAPI document of a version, if the server serves it.
    fn version(&mut self, version: &str) -> Result<Option<(Value, Value)>> {
        let path = if version.contains('/') { "apis" } else { "api" };
        let path = format!("{path}/{version}");
        if version.is_empty() || version.contains(['{', '$', ' ']) {
            return Ok(None);
        }
        let (status, resources) = self.ask("GET", &format!("/{path}"), None)?;
        if status != 200 {
            return Ok(None);
        }
        let (_, document) = self.ask("GET", &format!("/openapi/v3/{path}"), None)?;
        Ok(Some((resources, document)))
    }

    /// Creates an object if its kind is known, and checks that no field is lost and that broken
    /// copies are refused.
    fn try_sample(&mut self, document: &Document) -> Result<()> {
        let Some((about, kind, object)) = self.understand(document) else { return Ok(()) };
        let (path, has_status, is_own) = (kind.path.clone(), kind.has_status, kind.is_own);
        let broken = breaking::broken(&kind.schema, &object, has_status);

        self.outcome.samples += 1;
        let (status, answer) = self.post(&format!("{path}?fieldValidation=Strict"), &object)?;
        if status != 201 {
            self.remark(format!("{about}: {status} {}", text(&answer, "/message")));
            return Ok(());
        }
        self.outcome.accepted += 1;
        if let Some(lost) = breaking::lost(&object, &answer, has_status, is_own) {
            self.remark(format!("{about}: {lost} was not kept"));
        }
        let name = text(&answer, "/metadata/name").to_owned();
        // It is removed before, because the broken copies may use the same node port.
        self.remove(&format!("{path}/{name}"))?;
        self.refuse(&path, &about, broken, is_own)
    }

    fn try_invalid(&mut self, document: &Document) -> Result<()> {
        let Some((about, kind, object)) = self.understand(document) else { return Ok(()) };
        let path = kind.path.clone();
        self.refuse(&path, &about, vec![("invalid by its project".to_owned(), object)], false)
    }

    /// An object's name for messages, its kind, and the object in a form that can be created.
    fn understand(&self, document: &Document) -> Option<(String, &Kind, Value)> {
        let id = (text(&document.tree, "/apiVersion"), text(&document.tree, "/kind"));
        let kind = self.kinds.get(&(id.0.to_owned(), id.1.to_owned()))?;
        let mut object = document.tree.clone();
        let name = text(&object, "/metadata/name").to_owned();
        let metadata = object["metadata"].as_object_mut()?;
        metadata.remove("namespace");
        // Many samples are templates in which only the name is missing.
        if name.contains(['$', '{', '('])
            || (name.is_empty() && !metadata.contains_key("generateName"))
        {
            metadata.insert("name".to_owned(), json!("sample"));
        }
        Some((format!("{}: {} {name}", document.source, id.1), kind, object))
    }

    fn refuse(
        &mut self,
        path: &str,
        about: &str,
        broken: Vec<(String, Value)>,
        is_own: bool,
    ) -> Result<()> {
        for (what, mut object) in broken {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.insert("name".to_owned(), json!("broken"));
            }
            self.outcome.broken += 1;
            let path = format!("{path}?fieldValidation=Strict&dryRun=All");
            match self.post(&path, &object)? {
                (400 | 422, answer) if is_own && !own::is_named(&what, &answer) => {
                    let message = text(&answer, "/message");
                    self.remark(format!("{about}: {what}: not named: {message}"));
                }
                (400 | 422, _) => self.outcome.refused += 1,
                (status, _) => self.remark(format!("{about}: {what}: {status}")),
            }
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<()> {
        self.ask("PATCH", path, Some(&json!({"metadata": {"finalizers": null}})))?;
        self.connection.exchange(&request::delete(self.target, path))?;
        Ok(())
    }

    fn leave(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            let delete = request::delete(self.target, &format!("{DEFINITIONS}/{name}"));
            self.connection.exchange(&delete)?;
        }
        let deadline = Instant::now() + TIMEOUT;
        for name in names {
            while self.ask("GET", &format!("{DEFINITIONS}/{name}"), None)?.0 != 404 {
                if Instant::now() > deadline {
                    bail!("{name} does not go");
                }
            }
        }
        Ok(())
    }

    fn remark(&mut self, line: String) {
        self.outcome.remarks.push(line);
    }

    fn post(&mut self, path: &str, object: &Value) -> Result<(u16, Value)> {
        self.exchange(&request::create(self.target, path, object))
    }

    /// Any request but a create; a body is a merge patch.
    fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let mut request = request::create(self.target, path, body.unwrap_or(&Value::Null));
        method.clone_into(&mut request.method);
        match body {
            None => request.body = None,
            Some(_) => {
                request.headers.retain(|(name, _)| name != "Content-Type");
                let patch = request::media_type("merge-patch").to_owned();
                request.headers.push(("Content-Type".to_owned(), patch));
            }
        }
        self.exchange(&request)
    }

    fn exchange(&mut self, request: &Request) -> Result<(u16, Value)> {
        if !self.connection.is_idle() {
            self.connection = self.target.connect(false)?;
        }
        let response = self.connection.exchange(request)?;
        let body = serde_json::from_slice(&response.body).with_context(|| {
            format!("the answer to {} {} is no JSON", request.method, request.target)
        })?;
        Ok((response.head.status, body))
    }
}

fn text<'a>(tree: &'a Value, pointer: &str) -> &'a str {
    tree.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
