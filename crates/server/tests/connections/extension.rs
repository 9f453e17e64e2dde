//! An extension API server for `a.io/v1` that counts its connections and records the deletions of
//! its things.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderValue, LOCATION, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::kubelet::{accept_any, subject};
use super::parts::Parts;
use super::site::{Body, breaking, text};

/// An extension API server for `a.io/v1`, at the service `default/s`.
pub(crate) struct Extension {
    pub(crate) port: u16,
    /// The self-signed serving certificate.
    pub(crate) certificate_pem: String,
    state: Arc<State>,
}

/// The objects of the extension API server, the deletions of its things, and how it responds.
#[derive(Default)]
struct State {
    /// The status code of all responses; 0 for the proper ones.
    code: AtomicU16,
    connections: AtomicUsize,
    /// The names of the things in the namespace `doomed`.
    things: Mutex<Vec<String>>,
    /// For each deletion of the things, the user and the options.
    deletions: Mutex<Vec<String>>,
    parts: Parts,
    /// True if it serves only OpenAPI 2.0.
    has_v2_only: AtomicBool,
}

impl Extension {
    pub(crate) async fn start() -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["s.default.svc".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let chain = vec![certificate.der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(accept_any(&chain[0]))
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), state.clone()));
        Self { port, certificate_pem: certificate.pem(), state }
    }

    /// Makes the extension respond properly, or with 500 to everything.
    pub(crate) fn set_available(&self, is_available: bool) {
        self.set_answer(if is_available { 200 } else { 500 });
    }

    /// Makes the extension respond with a code to everything, or properly for 200.
    pub(crate) fn set_answer(&self, code: u16) {
        self.state.code.store(if code == 200 { 0 } else { code }, Ordering::SeqCst);
    }

    /// Makes the extension serve only OpenAPI 2.0.
    pub(crate) fn serve_openapi_v2_only(&self) {
        self.state.has_v2_only.store(true, Ordering::SeqCst);
    }

    /// The objects under `/apis/a.io/v1/parts`.
    pub(crate) fn parts(&self) -> Parts {
        self.state.parts.clone()
    }

    /// The number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Creates a thing in the namespace `doomed`.
    pub(crate) fn create_thing(&self, name: &str) {
        self.state.things.lock().push(name.to_owned());
    }

    pub(crate) fn things(&self) -> Vec<String> {
        self.state.things.lock().clone()
    }

    pub(crate) fn deletions(&self) -> Vec<String> {
        self.state.deletions.lock().clone()
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        let (acceptor, state) = (acceptor.clone(), state.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let shown = stream.get_ref().1.peer_certificates().map(|chain| subject(&chain[0]));
            let shown: Arc<str> = shown.unwrap_or_default().into();
            let service = service_fn(move |request| {
                let (shown, state) = (shown.clone(), state.clone());
                async move {
                    let answer = match state.code.load(Ordering::SeqCst) {
                        0 => answer(request, &shown, &state).await,
                        code => text(StatusCode::from_u16(code).unwrap(), "not today"),
                    };
                    Ok::<_, Infallible>(answer)
                }
            });
            let http = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ = http.with_upgrades().await; // errors are expected: some responses fail on purpose
        });
    }
}

const RESOURCES: &str = r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"a.io/v1",
    "resources":[{"name":"things","singularName":"thing","namespaced":true,"kind":"Thing","verbs":["delete","deletecollection","get","list"]},
    {"name":"parts","singularName":"part","namespaced":true,"kind":"Part","verbs":["create","delete","get","list","patch","watch"]}]}"#;

const OPENAPI_V2: &str = r##"{"swagger":"2.0","info":{"title":"a","version":"1"},"paths":{
    "/apis/a.io/v1/things":{"get":{"operationId":"listThings","responses":{"200":{"description":"OK",
     "schema":{"$ref":"#/definitions/io.a.v1.ThingList"}}}}},
    "/apis/b.io/v1/others":{"get":{"responses":{"200":{"description":"OK"}}}}},
    "definitions":{"io.a.v1.ThingList":{"type":"object","properties":{
      "metadata":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}}},
     "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta":{"type":"object","description":"of old"}}}"##;
const OPENAPI_V3: &str = r#"{"paths":{"apis/a.io":{"serverRelativeURL":"/openapi/v3/apis/a.io?hash=AB"},
    "apis/a.io/v1":{"serverRelativeURL":"/openapi/v3/apis/a.io/v1?hash=CD"},
    "version":{"serverRelativeURL":"/openapi/v3/version?hash=EF"}}}"#;

async fn answer(request: Request<Incoming>, shown: &str, state: &State) -> Response<Body> {
    match request.uri().path() {
        "/apis/a.io/v1" => json(RESOURCES),
        "/openapi/v2" => json(OPENAPI_V2),
        path if path.starts_with("/openapi/v3") && state.has_v2_only.load(Ordering::SeqCst) => {
            text(StatusCode::NOT_FOUND, "404 page not found")
        }
        "/openapi/v3" => json(OPENAPI_V3),
        "/openapi/v3/apis/a.io" => json(r#"{"openapi":"3.0.0","paths":{"/apis/a.io/":{}}}"#),
        "/apis/a.io/v1/namespaces/doomed/things" => state.content(request).await,
        "/apis/a.io/v1/redirects" => {
            let mut answer = text(StatusCode::FOUND, "");
            let elsewhere = HeaderValue::from_static("https://127.0.0.1:1/");
            answer.headers_mut().insert(LOCATION, elsewhere);
            answer
        }
        "/apis/a.io/v1/breaks" => breaking(),
        "/apis/a.io/v1/things" => {
            let first = stream::iter([Ok(Frame::data(Bytes::from("first\n")))]);
            let body = futures_util::StreamExt::chain(first, stream::pending());
            Response::new(BodyExt::boxed(StreamBody::new(Box::pin(body))))
        }
        "/apis/a.io/v1/upgrade" => switch(request),
        "/apis/a.io/v1/echo" => echo(request, shown).await,
        path if path.contains("/parts") => state.parts.answer(request).await,
        _ => text(StatusCode::NOT_FOUND, "404 page not found"),
    }
}

impl State {
    /// Lists the things, or deletes them.
    async fn content(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        if head.method == Method::DELETE {
            let options = body.collect().await.unwrap().to_bytes();
            let options = String::from_utf8(options.to_vec()).unwrap();
            let mut who = vec![head.headers["x-remote-user"].to_str().unwrap()];
            let groups = head.headers.get_all("x-remote-group").iter();
            who.extend(groups.map(|group| group.to_str().unwrap()));
            self.deletions.lock().push(format!("{} {options}", who.join(",")));
            self.things.lock().clear();
        }
        let things = self.things.lock();
        let thing = |name: &String| format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        let things: Vec<String> = things.iter().map(thing).collect();
        json(&format!(r#"{{"kind":"ThingList","metadata":{{}},"items":[{}]}}"#, things.join(",")))
    }
}

/// Switches protocols and sends back all bytes.
fn switch(mut request: Request<Incoming>) -> Response<Body> {
    let who = request.headers()["x-remote-user"].clone();
    tokio::spawn(async move {
        let stream = TokioIo::new(hyper::upgrade::on(&mut request).await.unwrap());
        let (mut from, mut to) = tokio::io::split(stream);
        let _ = tokio::io::copy(&mut from, &mut to).await; // until the client closes
    });
    let mut answer = text(StatusCode::SWITCHING_PROTOCOLS, "");
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answer.headers_mut().insert(UPGRADE, HeaderValue::from_static("echo"));
    answer.headers_mut().insert("x-who", who);
    answer
}

/// Responds with the client's subject, the request's method, URI and headers, and the length of its
/// body.
async fn echo(request: Request<Incoming>, shown: &str) -> Response<Body> {
    let (head, body) = request.into_parts();
    let length = body.collect().await.unwrap().to_bytes().len();
    let mut request = format!("{shown}\n{} {}\n", head.method, head.uri);
    let mut headers: Vec<_> = head.headers.iter().filter(|(name, _)| **name != ACCEPT).collect();
    headers.sort_by_key(|(name, _)| name.as_str());
    for (name, value) in headers {
        request.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
    }
    text(StatusCode::CREATED, &format!("{request}{length}"))
}

fn json(text: &str) -> Response<Body> {
    json_answer(StatusCode::OK, text)
}

pub(crate) fn json_answer(code: StatusCode, body: &str) -> Response<Body> {
    let mut answer = text(code, body);
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}
