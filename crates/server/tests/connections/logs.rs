//! Logs (SUB-05, WS-06).

use http::Method;
use http_body_util::BodyExt;
use pintle_server::KubeletClient;
use tungstenite::Message;

use super::client::{PODS, get, request, send, server, websocket};
use super::kubelet::Kubelet;

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_requested_with_the_servers_certificate_and_errors_are_relayed() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    let at = format!("https://127.0.0.1:{}/containerLogs/default/p", kubelet.port);
    let who = "O=system:masters, CN=kube-apiserver-kubelet-client";
    for (query, code, expected) in [
        ("container=c", 200, format!("{who} reads /containerLogs/default/p/c\n")),
        (
            "container=c&tailLines=3&follow=true&timestamps=false&pretty=true",
            200,
            format!("{who} reads /containerLogs/default/p/c?follow=true&tailLines=3\n"),
        ),
        ("container=refuses&limitBytes=500", 500, "Internal error occurred: not today".to_owned()),
        ("container=refuses&limitBytes=400", 400, "not today".to_owned()),
        (
            "container=refuses&limitBytes=404",
            404,
            "the server could not find the requested resource ( pods/log p)".to_owned(),
        ),
        // Of a long refusal, the beginning is relayed.
        ("container=rants", 400, format!("\"{}\"", "no".repeat(25_000))),
        ("container=redirects", 500, format!(r#"Get \"{at}/redirects\": redirects forbidden"#)),
    ] {
        let (answered, text) = get(&server, &format!("{PODS}/p/log?{query}")).await;
        assert_eq!(answered, code, "{query}: {text}");
        let is_so = if code == 200 { text == expected } else { text.contains(&expected) };
        assert!(is_so, "{query}: {text}");
    }
    let answer = send(&server, request(Method::GET, &format!("{PODS}/p/log?container=c"))).await;
    assert_eq!(answer.headers()["content-type"], "text/plain");
    kubelet.connections.are(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelets_certificate_is_verified_if_an_authority_is_configured() {
    let (kubelet, other) = (Kubelet::start(false).await, Kubelet::start(false).await);
    let directory = tempfile::tempdir().unwrap();
    let authority = directory.path().join("ca.crt");
    for (pem, secure) in [(&kubelet.certificate_pem, 200), (&other.certificate_pem, 500)] {
        std::fs::write(&authority, pem).unwrap();
        let server = server(&kubelet, |config| {
            let certificate_authority = Some(authority.clone());
            config.kubelets = KubeletClient { certificate_authority, ..KubeletClient::default() };
        })
        .await;
        let path = format!("{PODS}/p/log?container=c");
        let (code, text) = get(&server, &path).await;
        assert_eq!(code, secure, "{text}");
        let why =
            "tls: failed to verify certificate: x509: certificate signed by unknown authority";
        assert_eq!(text.contains(why), secure == 500, "{text}");
        // A client can ask to skip the verification.
        let path = format!("{path}&insecureSkipTLSVerifyBackend=true");
        assert_eq!(get(&server, &path).await.0, 200);
        let (_, metrics) = get(&server, "/metrics").await;
        for line in [
            r#"kube_apiserver_pod_logs_insecure_backend_total{usage="enforce_tls"} 1"#,
            r#"kube_apiserver_pod_logs_insecure_backend_total{usage="skip_tls_allowed"} 1"#,
            &format!("kube_apiserver_pod_logs_backend_tls_failure_total {}", secure / 500),
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_an_unreachable_kubelet_is_an_internal_error() {
    let kubelet = Kubelet { port: 1, ..Kubelet::start(false).await };
    let server = server(&kubelet, |_| {}).await;
    let (code, text) = get(&server, &format!("{PODS}/p/log?container=c")).await;
    let why = r#"Get \"https://127.0.0.1:1/containerLogs/default/p/c\": dial tcp 127.0.0.1:1: connect: connection refused"#;
    assert!(code == 500 && text.contains(why), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_followed_log_ends_when_the_client_or_the_server_closes() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    let follow = || async {
        let path = format!("{PODS}/p/log?container=waits&follow=true");
        let mut log = send(&server, request(Method::GET, &path)).await.into_body();
        let first = log.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "first\n");
        log
    };
    // The client closes.
    let log = follow().await;
    kubelet.connections.are(1).await;
    drop(log);
    kubelet.connections.are(0).await;
    // The server stops, without waiting for logs.
    let mut log = follow().await;
    server.shutdown().await;
    assert!(log.frame().await.is_none(), "the log ends without an error");
    kubelet.connections.are(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_sent_over_web_sockets() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |_| {}).await;
    let work = move || {
        let path = format!("{PODS}/p/log?container=waits");
        for (subprotocols, messages) in [
            (&[][..], Ok([Message::binary(""), Message::binary("first\n")])),
            (&["x", "binary.k8s.io"], Ok([Message::binary(""), Message::binary("first\n")])),
            (&["base64.binary.k8s.io"], Ok([Message::text(""), Message::text("Zmlyc3QK")])),
            (&["v4.channel.k8s.io"], Err(403)),
        ] {
            let opened = websocket(&server, &path, subprotocols);
            let read = opened.map(|mut socket| [(); 2].map(|()| socket.read().unwrap()));
            assert_eq!(read, messages, "{subprotocols:?}");
        }
        let missing = websocket(&server, &format!("{PODS}/nobody/log"), &[]);
        assert_eq!(missing.err(), Some(404));
    };
    tokio::task::spawn_blocking(work).await.unwrap();
    kubelet.connections.are(0).await;
}
