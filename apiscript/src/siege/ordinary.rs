//! An ordinary user, who sends requests during the siege and measures the response times.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::Target;
use crate::http::{Connection, Request};
use crate::request;

/// The lifetime of the campaign's tokens.
const TOKEN_SECONDS: u64 = 6 * 3600;
/// The number of large objects in the campaign's namespace, and their size, which is more than
/// socket buffers hold.
const OBJECTS: usize = 12;
const OBJECT_BYTES: usize = 900 * 1000;
/// The pause between two requests of one client, so that the user stays an ordinary one.
const PAUSE: Duration = Duration::from_millis(20);

/// The namespace of a campaign, and the accounts in it.
pub(super) struct Fixture {
    namespace: String,
    /// The token of the ordinary user, who may read and write config maps in the namespace.
    resident: String,
    /// The token of a hostile user with the same rights.
    pub(super) insider: String,
    /// The token of a user without any rights of its own.
    pub(super) nobody: String,
}

/// The request that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// A get over a persistent connection.
    Get,
    /// A write over a persistent connection.
    Write,
    /// A get over a new connection each time.
    NewConnection,
    /// `/livez` over a new connection, without credentials.
    Livez,
}

/// The responses to one kind of request.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    question: Question,
    took: Vec<Duration>,
    /// The first error, and the number of errors.
    wrong: Option<(String, usize)>,
}

impl Fixture {
    /// Creates the namespace, three accounts, the rights of two of them, and the objects.
    pub(super) fn create(target: &Target) -> Result<Self> {
        let namespace = format!("siege-{:x}", std::process::id());
        post(target, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}}))?;
        let core = format!("/api/v1/namespaces/{namespace}");
        let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
        for name in ["resident", "insider", "nobody"] {
            post(target, &format!("{core}/serviceaccounts"), &json!({"metadata": {"name": name}}))?;
        }
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
        let role = json!({"metadata": {"name": "maps"}, "rules": rules});
        post(target, &format!("{rbac}/roles"), &role)?;
        let subject =
            |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
        let subjects = json!([subject("resident"), subject("insider")]);
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"});
        let binding = json!({"metadata": {"name": "maps"}, "subjects": subjects, "roleRef": role});
        post(target, &format!("{rbac}/rolebindings"), &binding)?;
        let small = json!({"metadata": {"name": "small"}, "data": {"k": "v"}});
        post(target, &format!("{core}/configmaps"), &small)?;
        for number in 0..OBJECTS {
            let data = json!({"k": "x".repeat(OBJECT_BYTES)});
            let large = json!({"metadata": {"name": format!("large-{number}")}, "data": data});
            post(target, &format!("{core}/configmaps"), &large)?;
        }
        let token = |name: &str| -> Result<String> {
            let request = json!({"spec": {"expirationSeconds": TOKEN_SECONDS}});
            let path = format!("{core}/serviceaccounts/{name}/token");
            let made = post(target, &path, &request)?;
            let token = made["status"]["token"].as_str().context("a token request has no token")?;
            Ok(token.to_owned())
        };
        Ok(Self {
            resident: token("resident")?,
            insider: token("insider")?,
            nobody: token("nobody")?,
            namespace,
        })
    }

    /// The path of the config maps.
    pub(super) fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// Deletes the namespace.
    pub(super) fn delete(&self, target: &Target) -> Result<()> {
        let delete = request::delete(target, &format!("/api/v1/namespaces/{}", self.namespace));
        target.connect(false)?.exchange(&delete)?;
        Ok(())
    }
}

fn post(target: &Target, path: &str, object: &Value) -> Result<Value> {
    let answer = target.connect(false)?.exchange(&request::create(target, path, object))?;
    if answer.head.status != 201 {
        bail!("POST {path}: {}", String::from_utf8_lossy(&answer.body));
    }
    Ok(serde_json::from_slice(&answer.body)?)
}

impl Question {
    pub(super) const ALL: [Self; 4] = [Self::Get, Self::Write, Self::NewConnection, Self::Livez];

    /// Sends requests until `stop`, at least one.
    pub(super) fn ask(self, target: &Target, fixture: &Fixture, stop: &AtomicBool) -> Answers {
        let mut answers = Answers { question: self, took: Vec::new(), wrong: None };
        let mut idle = None;
        loop {
            let began = Instant::now();
            let result = self.ask_once(target, fixture, &mut idle, answers.took.len());
            answers.took.push(began.elapsed());
            if let Err(error) = result {
                idle = None;
                let (_, times) = answers.wrong.get_or_insert_with(|| (format!("{error:#}"), 0));
                *times += 1;
            }
            if stop.load(Ordering::Relaxed) {
                return answers;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn ask_once(
        self,
        target: &Target,
        fixture: &Fixture,
        idle: &mut Option<Connection>,
        number: usize,
    ) -> Result<()> {
        let mut connection = match idle.take() {
            Some(connection) => connection,
            None => target.connect(true)?,
        };
        let object = format!("{}/small", fixture.collection());
        let mut request = match self {
            Self::Get | Self::NewConnection => get(&object),
            Self::Livez => get("/livez"),
            Self::Write => {
                let patch = json!({"data": {"number": number.to_string()}}).to_string();
                let mut request = get(&object);
                request.method = "PATCH".to_owned();
                let patch_type = "application/merge-patch+json".to_owned();
                request.headers.push(("Content-Type".to_owned(), patch_type));
                request.body = Some(patch.into_bytes());
                request
            }
        };
        if self != Self::Livez {
            let token = format!("Bearer {}", fixture.resident);
            request.headers.push(("Authorization".to_owned(), token));
        }
        let answer = connection.exchange(&request)?;
        if answer.head.status != 200 {
            bail!("{}: {}", answer.head.status, String::from_utf8_lossy(&answer.body));
        }
        if matches!(self, Self::Get | Self::Write) && connection.is_idle() {
            *idle = Some(connection);
        }
        Ok(())
    }
}

fn get(path: &str) -> Request {
    Request { method: "GET".to_owned(), target: path.to_owned(), ..Request::default() }
}

impl Answers {
    /// Why the responses are not good enough: one is wrong, one took longer than `slowest`, or more
    /// than one in ten took longer than `usual`.
    pub(super) fn complaint(&self, slowest: Duration, usual: Duration) -> Option<String> {
        if let Some((first, times)) = &self.wrong {
            let count = self.took.len();
            return Some(format!("{:?}: {times} of {count} went wrong: {first}", self.question));
        }
        if self.slowest() > slowest {
            return Some(format!("{:?}: one took {:.1?}", self.question, self.slowest()));
        }
        let usually = self.quantile(90);
        (usually > usual).then(|| format!("{:?}: one in ten took {usually:.1?}", self.question))
    }

    fn slowest(&self) -> Duration {
        self.quantile(100)
    }

    fn quantile(&self, per_cent: usize) -> Duration {
        let mut took = self.took.clone();
        took.sort_unstable();
        let index = (took.len() * per_cent / 100).min(took.len().saturating_sub(1));
        took.get(index).copied().unwrap_or_default()
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (usually, slowest) = (self.quantile(90), self.slowest());
        write!(f, "{:?} {} × {usually:.0?}/{slowest:.0?}", self.question, self.took.len())
    }
}
