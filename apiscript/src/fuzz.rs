//! Thousands of hostile requests: the server sends a valid response to each and stays alive.
//!
//! A seed and a number determine a request, so any one can be sent again. Requirements for every
//! request that is valid HTTP:
//! - the server sends a response;
//! - it is not 5xx, except 501, 503 and 504, and 500 with a few of upstream's messages;
//! - an error is a `Status` with the code of the status line; a few codes may have a plain text or
//!   no body instead.
//!
//! To bytes that are not HTTP, the server may send any response or none. It must stay alive, which
//! is checked after every `LOOK` requests and at the end.
//!
//! Never run this against a server that is in use.

mod generate;
mod mutate;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::Target;
use crate::http::{Connection, Head, Request, Response};
use crate::request;
use generate::Generator;

/// After how many requests the campaign checks that the server is alive.
const LOOK: u64 = 200;
/// How long the campaign waits for the next part of a response. Of a watch, it only reads the head.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The beginnings of messages with which a kube-apiserver responds 500, though the client is at
/// fault.
const UPSTREAM_500: [&str; 7] = [
    "unable to find api field in struct ",
    "expected a []interface {}, but received a ",
    "unknown patch type: ",
    "merging lists cannot yet be specified in the patch",
    "delete patch type with no merge key defined",
    "map: map[", // … does not contain declared merge key
    "resourceVersion should not be set on objects to be created",
];

/// The requests to send.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The seed of the requests.
    pub seed: u64,
    /// The number of the first request.
    pub first: u64,
    /// The number of requests.
    pub requests: u64,
    /// The number of requests in flight.
    pub jobs: usize,
}

/// The responses, by status code.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The number of responses by status code.
    pub codes: std::collections::BTreeMap<u16, u64>,
    /// The number of raw requests to which the server sent no response, most often because it
    /// closed the connection.
    pub closed: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.codes.values().sum();
        write!(f, "{} hostile requests answered:", total + self.closed)?;
        for (code, count) in &self.codes {
            write!(f, " {count} x {code}")?;
        }
        write!(f, ", {} connections closed", self.closed)
    }
}

/// Sends all requests; an error names the request with the wrong response.
pub fn run(target: &Target, campaign: &Campaign) -> Result<Summary> {
    let namespace = format!("fuzz-{:x}-{:x}", campaign.seed, std::process::id());
    let object = json!({"metadata": {"name": namespace}});
    let create = request::create(target, "/api/v1/namespaces", &object);
    let made = target.connect(false)?.exchange(&create)?;
    if made.head.status != 201 {
        bail!("the namespace can't be made: {}", String::from_utf8_lossy(&made.body));
    }
    let next = AtomicU64::new(campaign.first);
    let result = std::thread::scope(|scope| {
        let hands: Vec<_> = (0..campaign.jobs.max(1))
            .map(|_| scope.spawn(|| send_some(target, campaign, &namespace, &next)))
            .collect();
        let mut summary = Summary::default();
        for hand in hands {
            let part = hand.join().map_err(|_| anyhow!("a sender panicked"))??;
            summary.closed += part.closed;
            for (code, count) in part.codes {
                *summary.codes.entry(code).or_default() += count;
            }
        }
        Ok(summary)
    });
    alive(target).context("after the last request")?;
    let delete = request::delete(target, &format!("/api/v1/namespaces/{namespace}"));
    target.connect(false)?.exchange(&delete)?;
    result
}

fn send_some(
    target: &Target,
    campaign: &Campaign,
    namespace: &str,
    next: &AtomicU64,
) -> Result<Summary> {
    let generator = Generator::new(campaign.seed, namespace)?;
    let mut summary = Summary::default();
    let mut connection: Option<Connection> = None;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= campaign.first + campaign.requests {
            return Ok(summary);
        }
        let hostile = generator.request(number);
        let result = send(target, &hostile, &mut connection);
        let about = || {
            let seed = campaign.seed;
            format!("--seed {seed} --first {number} --requests 1\n{}", hostile.show(target))
        };
        match result.with_context(about)? {
            Some(head) => *summary.codes.entry(head.status).or_default() += 1,
            None => summary.closed += 1,
        }
        if number.is_multiple_of(LOOK) {
            alive(target).with_context(about)?;
        }
    }
}

/// A hostile request.
pub(crate) enum Hostile {
    /// A valid HTTP request.
    Valid(Request),
    /// Arbitrary bytes.
    Raw(Vec<u8>),
}

impl Hostile {
    fn show(&self, target: &Target) -> String {
        match self {
            Self::Valid(request) => request::curl(target, request),
            Self::Raw(bytes) => format!("raw bytes {:?}", String::from_utf8_lossy(bytes)),
        }
    }
}

/// Sends a request and checks its response, but not the response to raw bytes; `None` if the server
/// sent none to them.
fn send(
    target: &Target,
    hostile: &Hostile,
    connection: &mut Option<Connection>,
) -> Result<Option<Head>> {
    let reused = connection.take().filter(Connection::is_idle);
    match hostile {
        Hostile::Raw(bytes) => {
            let mut connection = target.connect(false)?;
            connection.set_read_timeout(Some(Duration::from_secs(2)))?;
            Ok(connection.send_bytes(bytes).ok())
        }
        Hostile::Valid(request) => {
            let mut open = match reused {
                Some(open) => open,
                None => target.connect(false)?,
            };
            open.set_read_timeout(Some(TIMEOUT))?;
            let mut request = request.clone();
            request.headers.extend(target.authorization());
            let head = open.start(&request).context("the connection is lost")?;
            if head.status == 200 && is_watch(&request) {
                return Ok(Some(head)); // dropping the connection ends the watch
            }
            let mut body = Vec::new();
            while let Some(piece) = open.next_piece().context("the answer is cut off")? {
                body.extend(piece);
            }
            judge(&request, &Response { head: head.clone(), body })?;
            *connection = Some(open);
            Ok(Some(head))
        }
    }
}

fn is_watch(request: &Request) -> bool {
    request.target.contains("watch")
}

/// Checks that a response is one that a server may send to any request.
fn judge(request: &Request, response: &Response) -> Result<()> {
    let status = response.head.status;
    if status >= 500 && ![501, 503, 504].contains(&status) && !is_upstream_500(response) {
        bail!("answered {status}: {}", String::from_utf8_lossy(&response.body));
    }
    if status < 400 || request.method == "HEAD" {
        return Ok(());
    }
    let media = response.head.get("content-type").unwrap_or_default();
    let is_status = |tree: &Value| tree["kind"] == "Status" && tree["code"] == status;
    let proper = match media.split(';').next().unwrap_or_default() {
        "application/json" => {
            serde_json::from_slice(&response.body).is_ok_and(|tree| is_status(&tree))
        }
        "application/yaml" => {
            let text = String::from_utf8_lossy(&response.body);
            serde_saphyr::from_str(&text).is_ok_and(|tree: Value| is_status(&tree))
        }
        "application/vnd.kubernetes.protobuf" => response.body.starts_with(b"k8s\0"),
        // Responses of the HTTP library itself, and those about OpenAPI documents, have no body.
        "" => {
            response.body.is_empty() && [400, 404, 405, 406, 408, 413, 414, 431].contains(&status)
        }
        "text/plain" => [400, 404, 405, 406, 415].contains(&status),
        _ => false,
    };
    if proper {
        return Ok(());
    }
    bail!("{status} is no Status, but {media:?}: {}", String::from_utf8_lossy(&response.body))
}

fn is_upstream_500(response: &Response) -> bool {
    let tree: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let message = tree["message"].as_str().unwrap_or_default();
    response.head.status == 500 && UPSTREAM_500.iter().any(|words| message.starts_with(words))
}

/// Fails unless the server responds to a simple request.
fn alive(target: &Target) -> Result<()> {
    let mut request =
        Request { method: "GET".to_owned(), target: "/livez".to_owned(), ..Request::default() };
    request.headers.extend(target.authorization());
    let response = target.connect(false)?.exchange(&request).context("the server is dead")?;
    if response.head.status != 200 {
        bail!("the server is ill: {}", String::from_utf8_lossy(&response.body));
    }
    Ok(())
}
