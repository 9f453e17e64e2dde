//! An HTTP client with the administrator's certificate, and a server with a pod on a node of the
//! tests' kubelet.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use pintle_server::{Config, Plugins, Running, Server};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tungstenite::client::client_with_config;
use tungstenite::{ClientRequestBuilder, Error, HandshakeError, WebSocket};

use super::kubelet::Kubelet;

/// The deadline of each wait. Only a test that fails waits for so long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) type Socket = WebSocket<StreamOwned<ClientConnection, std::net::TcpStream>>;

/// Starts a server with the pod `p` on the node `n`.
pub(crate) async fn server(kubelet: &Kubelet, change: impl FnOnce(&mut Config)) -> Running {
    let mut config = Config::ephemeral();
    config.admission_plugins = Plugins::parse([], ["ServiceAccount"]).unwrap();
    change(&mut config);
    let server = Server::start(config).await.unwrap();
    let features = if kubelet.takes_websockets { r#""ExtendWebSocketsToKubelet""# } else { "" };
    let node = format!(
        r#"{{"metadata":{{"name":"n"}},"status":{{"declaredFeatures":[{features}],
            "addresses":[{{"type":"InternalIP","address":"127.0.0.1"}}],
            "daemonEndpoints":{{"kubeletEndpoint":{{"Port":{}}}}}}}}}"#,
        kubelet.port
    );
    create(&server, "/api/v1/nodes", &node).await;
    let containers = ["c", "refuses", "rants", "redirects", "waits", "echoes", "floods"]
        .map(container)
        .join(",");
    let pod = format!(
        r#"{{"metadata":{{"name":"p"}},"spec":{{"nodeName":"n","containers":[{containers}]}}}}"#
    );
    create(&server, PODS, &pod).await;
    server
}

fn container(name: &str) -> String {
    format!(r#"{{"name":"{name}","image":"i"}}"#)
}

pub(crate) async fn create(server: &Running, path: &str, object: &str) {
    let request = Request::post(path).body(Full::from(object.to_owned())).unwrap();
    let (code, text) = read(send(server, request).await).await;
    assert_eq!(code, 201, "{text}");
}

fn trust(server: &Running) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).unwrap()).unwrap();
    let chain = CertificateDer::pem_slice_iter(server.admin().certificate_pem.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(server.admin().key_pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain.collect::<Result<_, _>>().unwrap(), key);
    Arc::new(config.unwrap())
}

fn address(server: &Running) -> &str {
    server.url().trim_start_matches("https://")
}

/// Sends a request over a new connection.
pub(crate) async fn send(server: &Running, request: Request<Full<Bytes>>) -> Response<Incoming> {
    Connection::open(server).await.send(request).await
}

/// True if the response is cut off. If its body fails before the head is sent, there is no response
/// at all.
pub(crate) async fn breaks_off(server: &Running, path: &str) -> bool {
    let mut connection = Connection::open(server).await;
    let Ok(answer) = connection.try_send(request(Method::GET, path)).await else { return true };
    assert_eq!(answer.status(), 200);
    tokio::time::timeout(TIMEOUT, answer.into_body().collect()).await.unwrap().is_err()
}

/// A connection for successive requests.
pub(crate) struct Connection(http1::SendRequest<Full<Bytes>>);

impl Connection {
    pub(crate) async fn open(server: &Running) -> Self {
        let stream = TcpStream::connect(address(server)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(trust(server)).connect(name, stream).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        Self(sender)
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.try_send(request).await.unwrap()
    }

    async fn try_send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        let (mut head, body) = request.into_parts();
        head.headers.insert("host", "localhost".parse().unwrap());
        self.0.ready().await.unwrap();
        self.0.send_request(Request::from_parts(head, body)).await
    }
}

/// The status code and body of a response.
pub(crate) async fn read(response: Response<Incoming>) -> (u16, String) {
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

/// A request without a body.
pub(crate) fn request(method: Method, path: &str) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri(path).body(Full::default()).unwrap()
}

/// Sends a GET.
pub(crate) async fn get(server: &Running, path: &str) -> (u16, String) {
    read(send(server, request(Method::GET, path)).await).await
}

/// Opens a WebSocket. The error is the status code of a refusal. Blocks.
pub(crate) fn websocket(
    server: &Running,
    path: &str,
    subprotocols: &[&str],
) -> Result<Socket, u16> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(trust(server), name).unwrap();
    let socket = std::net::TcpStream::connect(address(server)).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let stream = StreamOwned::new(connection, socket);
    let mut request = ClientRequestBuilder::new(format!("wss://localhost{path}").parse().unwrap());
    for subprotocol in subprotocols {
        request = request.with_sub_protocol(*subprotocol);
    }
    match client_with_config(request, stream, None) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(Error::Http(answer))) => Err(answer.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}
