//! Exec, attach and port-forward (SUB-06, WS-01, WS-09).

use std::time::Instant;

use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use pintle_server::Running;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tungstenite::Message;

use super::client::{
    Connection, PODS, Socket, TIMEOUT, get, read, request, send, server, websocket,
};
use super::kubelet::Kubelet;

const V5: &str = "v5.channel.k8s.io";

/// A request for an upgrade to SPDY.
pub(crate) fn spdy(path: &str) -> Request<Full<Bytes>> {
    let mut request = request(Method::POST, &format!("{PODS}/p/{path}"));
    for (name, value) in [
        ("connection", "Upgrade"),
        ("upgrade", "SPDY/3.1"),
        ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ("impersonate-user", "kubernetes-admin"),
        ("impersonate-group", "system:masters"),
        ("x-remote-user", "somebody"),
    ] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    request
}

/// Sends bytes through an upgraded connection and returns as many bytes of the response.
pub(crate) async fn echo(answer: Response<Incoming>, text: &[u8]) -> Vec<u8> {
    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    stream.write_all(text).await.unwrap();
    stream.flush().await.unwrap();
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).await.unwrap();
    back
}

#[tokio::test(flavor = "multi_thread")]
async fn spdy_is_passed_through_without_credentials() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    let answer = send(&server, spdy("exec?container=echoes&command=sh&stdout=true")).await;
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.headers()["upgrade"], "SPDY/3.1");
    assert_eq!(answer.headers()["x-stream-protocol-version"], "v4.channel.k8s.io");
    let mut seen: Vec<_> = answer.headers()["x-seen"].to_str().unwrap().split(' ').collect();
    seen.sort_unstable();
    let expected =
        ["connection", "host", "upgrade", "x-forwarded-for", "x-stream-protocol-version"];
    assert_eq!(seen, expected);
    let long = vec![b'x'; 1 << 20];
    assert_eq!(echo(answer, &long).await, long);
    kubelet.connections.are(0).await;
    // WebSockets with older subprotocols are passed through, too.
    let mut older = request(Method::GET, &format!("{PODS}/p/attach?container=echoes"));
    for (name, value) in [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "v4.channel.k8s.io"),
    ] {
        older.headers_mut().insert(name, value.parse().unwrap());
    }
    let answer = send(&server, older).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["upgrade"]),
        (101, &"websocket".parse().unwrap())
    );
    assert_eq!(echo(answer, b"any frames").await, b"any frames");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_an_upgrade_are_refused() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    for (path, code, message) in [
        ("exec?container=c&command=sh", 400, "Upgrade request required"),
        ("attach?container=c&dryRun=All", 400, "dryRun is not supported"),
        ("portforward?ports=80,x", 400, "cannot convert to []int32: strconv.ParseUint: parsing"),
        ("portforward?ports=80&ports=70000", 400, "value out of range"),
    ] {
        let (answered, text) = get(&server, &format!("{PODS}/p/{path}")).await;
        assert!(answered == code && text.contains(message), "{path}: {answered} {text}");
    }
    let redirected = read(send(&server, spdy("exec?container=redirects&command=sh")).await).await;
    assert!(redirected.1.contains("invalid upgrade response: status code 302"), "{redirected:?}");
    let nowhere = Kubelet { port: 1, ..kubelet };
    let server = super::client::server(&nowhere, |_| {}).await;
    let (code, text) = read(send(&server, spdy("portforward")).await).await;
    let why = "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused";
    assert!(code == 500 && text.contains(why), "{text}");
}

/// After a refused upgrade, a client must not send requests to the kubelet with the server's
/// rights.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2018_1002105_a_refused_upgrade_leaves_no_connection_to_the_kubelet() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    let mut connection = Connection::open(&server).await;
    let refused = connection.send(spdy("exec?container=refuses&command=403")).await;
    assert_eq!(read(refused).await, (403, "not today".to_owned()));
    kubelet.connections.are(0).await;
    let path = "/containerLogs/default/p/c";
    let (code, text) = read(connection.send(request(Method::GET, path)).await).await;
    assert!(code == 404 && !text.contains("reads"), "the response must be this server's: {text}");
}

/// Opens a WebSocket to run a command. Blocks.
fn run(server: &Running, query: &str) -> Result<Socket, u16> {
    websocket(server, &format!("{PODS}/p/exec?{query}"), &[V5, "v4.channel.k8s.io"])
}

/// The channel and the text of the next message.
fn next(socket: &mut Socket) -> (u8, String) {
    let message = socket.read().unwrap().into_data();
    (message[0], String::from_utf8(message[1..].to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn websockets_are_translated_to_spdy_for_remote_commands() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    let work = move || {
        for (code, last) in [
            ("0", r#"{"metadata":{},"status":"Success"}"#),
            (
                "137",
                concat!(
                    r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit "#,
                    r#"code: command terminated with exit code 137","reason":"NonZeroExitCode","details":"#,
                    r#"{"causes":[{"reason":"ExitCode","message":"137"}]}}"#
                ),
            ),
        ] {
            let streams = "stdin=true&stdout=true&stderr=true";
            let mut socket =
                run(&server, &format!("container=c&command={code}&{streams}")).unwrap();
            assert_eq!(next(&mut socket), (1, String::new()), "the greeting");
            socket.send(Message::Ping("are you there".into())).unwrap();
            assert_eq!(socket.read().unwrap(), Message::Pong("are you there".into()));
            socket.send(Message::binary(&b"\0hello"[..])).unwrap();
            assert_eq!(next(&mut socket), (1, "hello".to_owned()));
            socket.send(Message::binary(&[255, 0][..])).unwrap();
            assert_eq!(next(&mut socket), (3, last.to_owned()));
            assert!(socket.read().unwrap().is_close());
        }
        for (container, why) in [
            ("refuses&command=404", "unable to upgrade connection: not today"),
            ("redirects&command=x", "redirect not allowed"),
        ] {
            let mut socket = run(&server, &format!("container={container}")).unwrap();
            assert_eq!(next(&mut socket), (3, String::new()), "the greeting");
            let (channel, text) = next(&mut socket);
            assert!(channel == 3 && text.contains(why), "{text}");
            assert!(text.contains(r#""reason":"InternalError""#), "{text}");
        }
        server
    };
    let server = tokio::task::spawn_blocking(work).await.unwrap();
    kubelet.connections.are(0).await;
    let (_, metrics) = get(&server, "/metrics").await;
    for line in [
        r#"apiserver_stream_translator_requests_total{code="200"} 2"#,
        r#"apiserver_stream_translator_requests_total{code="500"} 2"#,
        r#"apiserver_websocket_streaming_requests_total{proxy_type="translated_at_apiserver",subresource="exec"} 4"#,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn websockets_are_tunnelled_to_spdy_for_port_forwarding() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    let work = move || {
        let path = format!("{PODS}/p/portforward");
        let mut socket = websocket(&server, &path, &["SPDY/3.1+portforward.k8s.io"]).unwrap();
        socket.send(Message::binary(&b"any bytes"[..])).unwrap();
        assert_eq!(socket.read().unwrap(), Message::binary(&b"any bytes"[..]));
    };
    tokio::task::spawn_blocking(work).await.unwrap();
    kubelet.connections.are(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_to_kubelets_close_when_clients_disconnect() {
    const SESSIONS: usize = 100;
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    let open = move || {
        let query = "container=waits&command=0&stdin=true&stdout=true";
        let sockets: Vec<_> = (0..SESSIONS).map(|_| run(&server, query).unwrap()).collect();
        (server, sockets)
    };
    let (server, sockets) = tokio::task::spawn_blocking(open).await.unwrap();
    kubelet.connections.are(SESSIONS).await;
    drop(sockets);
    kubelet.connections.are(0).await;
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_does_not_wait_for_sessions() {
    const SESSIONS: usize = 100;
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    let open = move || {
        let query = "container=waits&command=0&stdin=true&stdout=true";
        let sockets: Vec<_> = (0..SESSIONS).map(|_| run(&server, query).unwrap()).collect();
        (server, sockets)
    };
    let (server, sockets) = tokio::task::spawn_blocking(open).await.unwrap();
    kubelet.connections.are(SESSIONS).await;
    let began = Instant::now();
    server.shutdown().await;
    // Shutdown waits up to a minute for other requests.
    assert!(began.elapsed() < TIMEOUT / 4, "{:?}", began.elapsed());
    kubelet.connections.are(0).await;
    drop(sockets);
}
