//! Ways out of the server that lead through a proxy (`--egress-selector-config-file`).

use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use pintle_server::{Egress, ProxiedAddresses, Transport};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener};

use super::client::{PODS, get, read, request, send, server};
use super::kubelet::Kubelet;
use super::streams::{echo, spdy};

/// What a proxy was asked for.
type Asked = Arc<Mutex<Vec<String>>>;

/// Connects to what a client asks for, or refuses where it is told to.
async fn tunnel(stream: impl AsyncRead + AsyncWrite + Unpin, asked: Asked, refuses: bool) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let to = line.split(' ').nth(1).unwrap().to_owned();
    asked.lock().push(line.trim_end().to_owned());
    while stream.read_line(&mut line).await.unwrap() > 2 {}
    if refuses {
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
        return;
    }
    let mut backend = TcpStream::connect(to).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut backend).await; // until either leaves
}

async fn proxy(refuses: bool) -> (Egress, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let asked = Asked::default();
    let known = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(tunnel(stream, known.clone(), refuses));
        }
    });
    (Egress::HttpConnect(Transport::Tcp(at, None)), asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelets_are_reached_through_a_proxy() {
    let kubelet = Kubelet::start(false).await;
    let (egress, asked) = proxy(false).await;
    let server = server(&kubelet, |config| {
        config.egress.cluster = egress;
        config.proxied_addresses = ProxiedAddresses::Any;
    })
    .await;
    let (code, text) = get(&server, &format!("{PODS}/p/log?container=c")).await;
    assert!(code == 200 && text.contains("reads /containerLogs/default/p/c"), "{text}");
    let answer = send(&server, spdy("exec?container=echoes&command=sh&stdout=true")).await;
    assert_eq!(echo(answer, b"any bytes").await, b"any bytes");
    let path = "/api/v1/nodes/n/proxy/containerLogs/default/p/c";
    assert_eq!(read(send(&server, request(Method::GET, path)).await).await.0, 200);
    let expected = format!("CONNECT 127.0.0.1:{} HTTP/1.1", kubelet.port);
    assert_eq!(*asked.lock(), vec![expected; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_may_be_at_a_unix_socket() {
    let kubelet = Kubelet::start(false).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let (listener, asked) = (UnixListener::bind(&path).unwrap(), Asked::default());
    let known = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(tunnel(stream, known.clone(), false));
        }
    });
    let server = server(&kubelet, |config| {
        config.egress.cluster = Egress::HttpConnect(Transport::Unix(path));
    })
    .await;
    assert_eq!(get(&server, &format!("{PODS}/p/log?container=c")).await.0, 200);
    assert_eq!(asked.lock().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_proxy_refuses_is_told() {
    let kubelet = Kubelet::start(false).await;
    let (egress, _) = proxy(true).await;
    let server = server(&kubelet, |config| config.egress.cluster = egress).await;
    let (code, text) = get(&server, &format!("{PODS}/p/log?container=c")).await;
    let why = format!("while dialing 127.0.0.1:{}, code 403: 403 Forbidden", kubelet.port);
    assert!(code == 500 && text.contains(&why), "{text}");
}
