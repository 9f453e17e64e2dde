//! Admission webhooks whose connections break.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use pintle_server::{Config, Running, Server};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::client::{create, read, send};

/// A webhook that allows everything, or closes the connection of each request.
#[derive(Default)]
struct Webhook {
    is_broken: AtomicBool,
    asked: AtomicUsize,
    connections: AtomicUsize,
}

impl Webhook {
    /// Returns the webhook, and its configuration for ConfigMaps.
    async fn start() -> (Arc<Self>, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let webhook = Arc::new(Self::default());
        tokio::spawn(webhook.clone().serve(listener, TlsAcceptor::from(Arc::new(config))));
        let ca_bundle = STANDARD.encode(certificate.pem());
        let configuration = format!(
            r#"{{"metadata":{{"name":"w"}},"webhooks":[{{"name":"w.example.com",
                "clientConfig":{{"url":"https://localhost:{port}/","caBundle":"{ca_bundle}"}},
                "rules":[{{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],
                    "resources":["configmaps"]}}],
                "objectSelector":{{"matchLabels":{{"of":"test"}}}},
                "sideEffects":"None","admissionReviewVersions":["v1"]}}]}}"#
        );
        (webhook, configuration)
    }

    async fn serve(self: Arc<Self>, listener: TcpListener, acceptor: TlsAcceptor) {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            self.connections.fetch_add(1, Ordering::SeqCst);
            let webhook = self.clone();
            let service = service_fn(move |request| {
                let webhook = webhook.clone();
                async move { webhook.answer(request).await }
            });
            let http = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move { drop(http.await) }); // a failed answer closes the connection
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
        let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(io::Error::other("broken"));
        }
        let body = String::from_utf8_lossy(&body);
        let uid = body.split(r#""uid":""#).nth(1).and_then(|rest| rest.split('"').next());
        let review = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",
                "response":{{"uid":"{}","allowed":true}}}}"#,
            uid.unwrap()
        );
        Ok(Response::new(Full::from(review)))
    }

    /// The numbers of requests and connections so far.
    fn counts(&self) -> (usize, usize) {
        (self.asked.load(Ordering::SeqCst), self.connections.load(Ordering::SeqCst))
    }
}

/// Creates a ConfigMap and returns the code and the body of the response.
async fn create_config_map(server: &Running, name: &str) -> (u16, String) {
    let object = format!(r#"{{"metadata":{{"name":"{name}","labels":{{"of":"test"}}}}}}"#);
    let path = "/api/v1/namespaces/default/configmaps";
    read(send(server, Request::post(path).body(Full::from(object)).unwrap()).await).await
}

/// The webhook may have acted on the request.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_a_webhook_received_is_not_repeated() {
    let (webhook, configuration) = Webhook::start().await;
    let server = Server::start(Config::ephemeral()).await.unwrap();
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    create(&server, path, &configuration).await;
    let set_broken = |is_broken| webhook.is_broken.store(is_broken, Ordering::SeqCst);

    set_broken(true);
    let (code, text) = create_config_map(&server, "a").await;
    assert_eq!((code, webhook.counts()), (500, (1, 1)), "a new connection: {text}");
    assert!(text.contains("failed to call webhook: Post"), "{text}");
    assert!(text.contains("EOF"), "{text}");

    set_broken(false);
    for (name, asked) in [("b", 2), ("c", 3)] {
        let (code, text) = create_config_map(&server, name).await;
        assert_eq!((code, webhook.counts()), (201, (asked, 2)), "{text}");
    }
    set_broken(true);
    let (code, text) = create_config_map(&server, "d").await;
    assert_eq!((code, webhook.counts()), (500, (4, 2)), "a connection that was idle: {text}");
    server.shutdown().await;
}
