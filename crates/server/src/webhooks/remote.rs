//! A server of a kubeconfig: its address, its CA, and the credentials for it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::response::Parts;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use pintle_admission::ImageReviewer;
use pintle_registry::webhook::{CallError, ResponseFuture};
use pintle_value::{Value, yaml};

use super::response::{self, Outcome};
use super::retry;
use super::user::{self, User, refuse, text};
use crate::backends::{self, Backend, Connections, Dialer, Dialers, Failure, Response};
use crate::trust::{self, DeprecatedServers};

/// The largest response.
const ANSWER_BYTES_MAX: usize = 3 << 20;

/// The kubeconfig member with the CA file.
const AUTHORITY: &str = "certificate-authority";

/// A server of a kubeconfig.
pub(crate) struct Remote {
    uri: Uri,
    /// `host:port`
    authority: String,
    /// The name that the server's certificate must have.
    name: String,
    /// The PEM of the trusted CAs, empty for the system's; `None` disables verification.
    trusted: Option<Vec<u8>>,
    dialer: Dialer,
    deprecated: Arc<DeprecatedServers>,
    user: User,
    connections: Arc<Connections>,
}

impl Remote {
    /// Reads the server and the user of a kubeconfig's current context.
    ///
    /// # Errors
    /// The file cannot be read, or its content is invalid or not supported.
    pub(crate) fn read(path: &Path, dialers: &Dialers) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|why| why.to_string())?;
        let file = yaml::parse(&bytes).map_err(|why| why.to_string())?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        Self::of(&file, folder, dialers)
    }

    fn of(file: &Value, folder: &Path, dialers: &Dialers) -> Result<Self, String> {
        let (kind, version) = (text(file, "kind"), text(file, "apiVersion"));
        if !matches!((kind, version), ("Config" | "", "v1" | "")) {
            return Err(format!("no kind {kind:?} is registered for version {version:?}"));
        }
        let context = named(file, "contexts", "context", text(file, "current-context"))?;
        let cluster = named(file, "clusters", "cluster", text(&context, "cluster"))?;
        let user = match text(&context, "user") {
            "" => Value::object(),
            name => named(file, "users", "user", name)?,
        };
        refuse(&cluster, &["proxy-url"])?;
        let server = text(&cluster, "server");
        let uri: Uri = server.parse().map_err(|_| format!("server {server:?} is no URL"))?;
        if uri.scheme_str() != Some("https") {
            return Err(format!("server {server:?} must begin with https://"));
        }
        let host = uri.host().ok_or_else(|| format!("server {server:?} names no host"))?;
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(443));
        let name = match text(&cluster, "tls-server-name") {
            "" => host.trim_start_matches('[').trim_end_matches(']'),
            name => name,
        };
        let trusts_anyone = cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool);
        let trusted = match user::data(&cluster, AUTHORITY, folder)? {
            _ if trusts_anyone == Some(true) => None,
            Some(pem) if !trust::has_certificate(pem.as_bytes()) => {
                return Err(format!("{AUTHORITY}: there is no certificate in it"));
            }
            pem => Some(pem.unwrap_or_default().into_bytes()),
        };
        let remote = Self {
            authority,
            name: name.to_owned(),
            trusted,
            dialer: dialers.control_plane.clone(),
            deprecated: dialers.deprecated.clone(),
            user: User::read(&user, folder)?,
            connections: Arc::default(),
            uri,
        };
        remote.backend().map(|_| remote)
    }

    fn backend(&self) -> Result<Backend, String> {
        Ok(Backend {
            authority: self.authority.clone(),
            name: Some(self.name.clone()),
            tls: Some(self.user.tls(self.trusted.as_deref())?),
            addresses: None,
            dialer: self.dialer.clone(),
        })
    }

    /// Posts JSON, with a timeout, and returns the response.
    pub(crate) async fn post(&self, body: Bytes, timeout: Duration) -> Result<Vec<u8>, CallError> {
        let answer = tokio::time::timeout(timeout, self.last_answer(&body)).await;
        match answer.unwrap_or_else(|_| Err(self.silent("context deadline exceeded")))? {
            Outcome::Review(review) => Ok(review),
            Outcome::Refusal(refusal) | Outcome::RetryAfter(_, refusal) => Err(refusal),
            Outcome::Elsewhere(_) => Err(self.silent("redirects are not followed")),
        }
    }

    /// Gets a path, and returns the response while its body is still arriving. A request that
    /// fails is not repeated.
    pub(crate) async fn get(&self, path: &str) -> Result<Response, String> {
        let prefix = self.uri.path().trim_end_matches('/');
        let host = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::get(format!("{prefix}{path}"))
            .header(HOST, host)
            .header(USER_AGENT, concat!("pintle/", env!("CARGO_PKG_VERSION")));
        let request = match self.user.authorization()? {
            Some(credential) => request.header(AUTHORIZATION, credential),
            None => request,
        };
        let request = request.body(Full::new(Bytes::new())).map_err(|why| why.to_string())?;
        self.backend()?.ask(request).await.map_err(|why| why.to_string())
    }

    /// Calls, and retries as long as responses have `Retry-After`, with at most
    /// [`retry::ANSWERS_MAX`] requests.
    async fn last_answer(&self, body: &Bytes) -> Result<Outcome, CallError> {
        for _ in 1..retry::ANSWERS_MAX {
            match self.exchange(body).await? {
                Outcome::RetryAfter(pause, _) => tokio::time::sleep(pause).await,
                answer => return Ok(answer),
            }
        }
        self.exchange(body).await
    }

    /// Posts JSON, with a timeout, to a server whose response only acknowledges the request.
    pub(crate) async fn deliver(&self, body: Bytes, timeout: Duration) -> Result<(), CallError> {
        let answer = tokio::time::timeout(timeout, self.ask(&body)).await;
        let answer = answer.unwrap_or_else(|_| Err(self.silent("context deadline exceeded")));
        let (head, body) = answer?;
        if head.status.is_success() {
            return Ok(());
        }
        match response::read(&head, &body, &self.uri) {
            Ok(Outcome::Refusal(refusal) | Outcome::RetryAfter(_, refusal)) => Err(refusal),
            Ok(_) => Err(self.silent("redirects are not followed")),
            Err(why) => Err(self.silent(&why)),
        }
    }

    fn silent(&self, why: &str) -> CallError {
        CallError::no_response(format!("Post {:?}: {why}", self.uri.to_string()))
    }

    /// The error of a request without a response. As upstream, only a connection that the server
    /// reset is a reason to ask again (`DefaultShouldRetry`).
    fn failed(&self, failure: &Failure) -> CallError {
        let is_transient = matches!(failure, Failure::Reset);
        CallError { is_transient, ..self.silent(&failure.to_string()) }
    }

    async fn exchange(&self, body: &Bytes) -> Result<Outcome, CallError> {
        let (head, body) = self.ask(body).await?;
        response::read(&head, &body, &self.uri).map_err(|why| self.silent(&why))
    }

    async fn ask(&self, body: &Bytes) -> Result<(Parts, Bytes), CallError> {
        let silent = |why: String| self.silent(&why);
        let request = self.request(body).map_err(silent)?;
        let answer = self.connections.ask(&self.backend().map_err(silent)?, request).await;
        let host = self.uri.host().unwrap_or_default();
        self.deprecated.webhooks.add(backends::deprecations(&answer), host);
        let (head, body) = answer.map_err(|failure| self.failed(&failure))?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        Ok((head, body.map_err(|why| silent(why.to_string()))?.to_bytes()))
    }

    fn request(&self, body: &Bytes) -> Result<Request<Full<Bytes>>, String> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::post(path)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver");
        let request = match self.user.authorization()? {
            Some(credential) => request.header(AUTHORIZATION, credential),
            None => request,
        };
        request.body(Full::new(body.clone())).map_err(|why| why.to_string())
    }
}

impl ImageReviewer for Remote {
    fn review(
        &self,
        body: Vec<u8>,
        first_pause: Duration,
        timeout: Duration,
    ) -> ResponseFuture<'_> {
        let body = Bytes::from(body);
        Box::pin(async move {
            let ask = || self.post(body.clone(), timeout);
            let answer = tokio::time::timeout(timeout, retry::with_backoff(first_pause, ask)).await;
            answer.unwrap_or_else(|_| Err(self.silent("context deadline exceeded")))
        })
    }
}

/// An entry of a list of a kubeconfig.
fn named(file: &Value, list: &str, member: &str, name: &str) -> Result<Value, String> {
    let entries = file.get(list).and_then(Value::as_array).unwrap_or_default();
    let entry = entries.iter().find(|entry| text(entry, "name") == name);
    let found = entry.and_then(|entry| entry.get(member)).cloned();
    found.ok_or_else(|| format!("there is no {member} {name:?}"))
}
