//! A server that a kubeconfig names, asked by POST: where it is, whom to believe, who this server says it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::response::Parts;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use pintle_admission::ImageReviewer;
use pintle_registry::webhook::{Answer, Unanswered};
use pintle_value::{Value, yaml};

use super::answer::{self, Said};
use super::retry;
use crate::backends::{Backend, Connections, Failure, Way};
use crate::pki::Credentials;
use crate::trust::{self, Identity};

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 3 << 20;

/// The member of a cluster that names the file of its authorities.
const AUTHORITY: &str = "certificate-authority";

/// The server.
pub(crate) struct Remote {
    uri: Uri,
    backend: Backend,
    credential: Credential,
    connections: Arc<Connections>,
}

/// What is said in `Authorization`.
enum Credential {
    None,
    Header(HeaderValue),
    /// A file with a token, which somebody keeps fresh.
    TokenFile(PathBuf),
}

impl Remote {
    /// The server and the user of a kubeconfig's current context.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn read(path: &Path, way: Way) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|why| why.to_string())?;
        let file = yaml::parse(&bytes).map_err(|why| why.to_string())?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        Self::of(&file, folder, way)
    }

    fn of(file: &Value, folder: &Path, way: Way) -> Result<Self, String> {
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
        refuse(&user, &["exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra"])?;
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
        let (name, tls) = (Some(name.to_owned()), Some(Arc::new(tls(&cluster, &user, folder)?)));
        Ok(Self {
            backend: Backend { authority, name, tls, addresses: None, way },
            credential: credential(&user, folder)?,
            connections: Arc::default(),
            uri,
        })
    }

    /// Posts JSON, within a time, and gives the answer.
    pub(crate) async fn post(
        &self,
        body: Bytes,
        patience: Duration,
    ) -> Result<Vec<u8>, Unanswered> {
        let answer = tokio::time::timeout(patience, self.last_answer(&body)).await;
        let answer = answer.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        match answer {
            Ok(Said::Review(review)) => Ok(review),
            Ok(Said::Refusal(refusal) | Said::RetryAfter(_, refusal)) => Err(refusal),
            Ok(Said::Elsewhere(_)) => Err(self.silent("redirects are not followed")),
            Err(why) => Err(self.silent(&why)),
        }
    }

    /// Asks, and asks again as long as the answer says when.
    async fn last_answer(&self, body: &Bytes) -> Result<Said, String> {
        for _ in 1..retry::ANSWERS_MAX {
            match self.exchange(body).await? {
                Said::RetryAfter(pause, _) => tokio::time::sleep(pause).await,
                answer => return Ok(answer),
            }
        }
        self.exchange(body).await
    }

    /// Posts JSON, within a time, to a server whose answer says no more than that it arrived.
    pub(crate) async fn deliver(&self, body: Bytes, patience: Duration) -> Result<(), Unanswered> {
        let answer = tokio::time::timeout(patience, self.ask(&body)).await;
        let answer = answer.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        let (head, body) = answer.map_err(|why| self.silent(&why))?;
        if head.status.is_success() {
            return Ok(());
        }
        match answer::read(&head, &body, &self.uri) {
            Ok(Said::Refusal(refusal) | Said::RetryAfter(_, refusal)) => Err(refusal),
            Ok(_) => Err(self.silent("redirects are not followed")),
            Err(why) => Err(self.silent(&why)),
        }
    }

    fn silent(&self, why: &str) -> Unanswered {
        Unanswered::silent(format!("Post {:?}: {why}", self.uri.to_string()))
    }

    async fn exchange(&self, body: &Bytes) -> Result<Said, String> {
        let (head, body) = self.ask(body).await?;
        answer::read(&head, &body, &self.uri)
    }

    async fn ask(&self, body: &Bytes) -> Result<(Parts, Bytes), String> {
        let mut answer = self.connections.ask(&self.backend, self.request(body)?).await;
        if matches!(answer, Err(Failure::Exchange(_))) {
            // A connection that its server has left meanwhile says nothing of the server: once more.
            answer = self.connections.ask(&self.backend, self.request(body)?).await;
        }
        let (head, body) = answer.map_err(|why| why.to_string())?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        Ok((head, body.map_err(|why| why.to_string())?.to_bytes()))
    }

    fn request(&self, body: &Bytes) -> Result<Request<Full<Bytes>>, String> {
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::post(path)
            .header(HOST, host)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver");
        let request = match self.credential.header()? {
            Some(credential) => request.header(AUTHORIZATION, credential),
            None => request,
        };
        request.body(Full::new(body.clone())).map_err(|why| why.to_string())
    }
}

impl ImageReviewer for Remote {
    fn review(&self, body: Vec<u8>, first_pause: Duration, timeout: Duration) -> Answer<'_> {
        let body = Bytes::from(body);
        Box::pin(async move {
            let ask = || self.post(body.clone(), timeout);
            let answer = tokio::time::timeout(timeout, retry::with_backoff(first_pause, ask)).await;
            answer.unwrap_or_else(|_| Err(self.silent("context deadline exceeded")))
        })
    }
}

impl Credential {
    fn header(&self) -> Result<Option<HeaderValue>, String> {
        match self {
            Self::None => Ok(None),
            Self::Header(header) => Ok(Some(header.clone())),
            Self::TokenFile(path) => {
                let token = fs::read_to_string(path);
                let token = token.map_err(|why| format!("{}: {why}", path.display()))?;
                secret("Bearer", token.trim()).map(Some)
            }
        }
    }
}

/// An entry of a list of a kubeconfig.
fn named(file: &Value, list: &str, member: &str, name: &str) -> Result<Value, String> {
    let entries = file.get(list).and_then(Value::as_array).unwrap_or_default();
    let entry = entries.iter().find(|entry| text(entry, "name") == name);
    let found = entry.and_then(|entry| entry.get(member)).cloned();
    found.ok_or_else(|| format!("there is no {member} {name:?}"))
}

/// What is not understood must not be left out: it is about whom the server believes or who it is.
fn refuse(value: &Value, members: &[&str]) -> Result<(), String> {
    match members.iter().find(|member| value.get(member).is_some()) {
        Some(member) => Err(format!("{member} is not supported")),
        None => Ok(()),
    }
}

fn tls(cluster: &Value, user: &Value, folder: &Path) -> Result<rustls::ClientConfig, String> {
    let certificate = data(user, "client-certificate", folder)?;
    let key = data(user, "client-key", folder)?;
    let identity = match (certificate, key) {
        (Some(certificate_pem), Some(key_pem)) => {
            let identity = Identity::read(&Credentials { certificate_pem, key_pem });
            Some(identity.map_err(|why| format!("client-certificate and client-key: {why}"))?)
        }
        (None, None) => None,
        _ => return Err("client-certificate and client-key belong together".to_owned()),
    };
    if cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool) == Some(true) {
        return trust::anyone(identity.as_ref());
    }
    let authority = match data(cluster, AUTHORITY, folder)? {
        Some(pem) if !trust::has_certificate(pem.as_bytes()) => {
            return Err(format!("{AUTHORITY}: there is no certificate in it"));
        }
        authority => authority.unwrap_or_default(),
    };
    trust::bundle(authority.as_bytes(), identity.as_ref())
}

/// PEM that stands in the kubeconfig (`NAME-data`), or in a file that it names.
fn data(value: &Value, name: &str, folder: &Path) -> Result<Option<String>, String> {
    let inline = text(value, &format!("{name}-data"));
    if !inline.is_empty() {
        let bytes = STANDARD.decode(inline).map_err(|why| format!("{name}-data: {why}"))?;
        return String::from_utf8(bytes).map(Some).map_err(|why| format!("{name}-data: {why}"));
    }
    match text(value, name) {
        "" => Ok(None),
        path => {
            let read = fs::read_to_string(folder.join(path));
            read.map(Some).map_err(|why| format!("{name} {path}: {why}"))
        }
    }
}

fn credential(user: &Value, folder: &Path) -> Result<Credential, String> {
    let (token, file) = (text(user, "token"), text(user, "tokenFile"));
    let (name, password) = (text(user, "username"), text(user, "password"));
    if !file.is_empty() {
        let credential = Credential::TokenFile(folder.join(file));
        return credential.header().map(|_| credential);
    }
    if !token.is_empty() {
        return secret("Bearer", token).map(Credential::Header);
    }
    if !name.is_empty() {
        let pair = STANDARD.encode(format!("{name}:{password}"));
        return secret("Basic", &pair).map(Credential::Header);
    }
    Ok(Credential::None)
}

fn secret(scheme: &str, text: &str) -> Result<HeaderValue, String> {
    let header = HeaderValue::from_str(&format!("{scheme} {text}"));
    let mut header = header.map_err(|_| "the token cannot stand in a header".to_owned())?;
    header.set_sensitive(true);
    Ok(header)
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.str_at(&[member]).unwrap_or_default()
}
