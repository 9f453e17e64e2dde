//! Clients that do not read for a while: a log in a pager, a stopped terminal.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use pintle_server::{Config, Running};
use tokio::io::AsyncReadExt;

use super::client::{PODS, create, get, request, send, server};
use super::kubelet::Kubelet;
use super::streams::spdy;

/// More bytes than the buffers between both ends hold.
const MUCH: usize = 16 << 20;

/// The write timeout of watches and ordinary responses.
const SHORT: Duration = Duration::from_millis(200);

fn short_write_stall(config: &mut Config) {
    config.connections.write_stall = SHORT;
}

/// Opens a watch, does not read it, and waits until the server cuts it off.
async fn a_stalled_watch_is_cut_off(server: &Running) {
    let path = "/api/v1/namespaces/default/configmaps";
    let _watch = send(server, request(Method::GET, &format!("{path}?watch=true"))).await;
    let is_open = |line: &str| {
        line.starts_with("apiserver_longrunning_requests{")
            && line.contains(r#"resource="configmaps""#)
            && !line.ends_with(" 0")
    };
    let text = "x".repeat(1 << 20);
    let mut number = 0;
    while get(server, "/metrics").await.1.lines().any(is_open) {
        let object = format!(r#"{{"metadata":{{"name":"c{number}"}},"data":{{"k":"{text}"}}}}"#);
        create(server, path, &object).await;
        number += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_and_sessions_wait_for_clients_and_watches_do_not() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, short_write_stall).await;
    let log = request(Method::GET, &format!("{PODS}/p/log?container=floods&follow=true"));
    let mut log = send(&server, log).await.into_body();
    let answer = send(&server, spdy("exec?container=floods&command=yes&stdout=true")).await;
    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    a_stalled_watch_is_cut_off(&server).await;
    let mut taken = 0;
    while taken < MUCH {
        taken += log.frame().await.unwrap().unwrap().into_data().unwrap().len();
    }
    stream.read_exact(&mut vec![0; MUCH]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_paused_too_long_is_closed() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |config| {
        short_write_stall(config);
        config.connections.session_stall = SHORT;
    })
    .await;
    let log = request(Method::GET, &format!("{PODS}/p/log?container=floods&follow=true"));
    let _log = send(&server, log).await;
    kubelet.connections.are(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_does_not_wait_for_paused_sessions() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, short_write_stall).await;
    let log = request(Method::GET, &format!("{PODS}/p/log?container=floods&follow=true"));
    let _log = send(&server, log).await;
    // Shutdown waits up to a minute for other requests.
    let stopped = tokio::time::timeout(Duration::from_secs(30), server.shutdown()).await;
    assert!(stopped.is_ok());
    kubelet.connections.are(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_sessions_is_limited() {
    let kubelet = Kubelet::start(false).await;
    let server = server(&kubelet, |config| config.connections.sessions_max = 2).await;
    let follow = || {
        let path = format!("{PODS}/p/log?container=waits&follow=true");
        let mut request = request(Method::GET, &path);
        let headers = request.headers_mut();
        headers.insert("impersonate-user", "jane".parse().unwrap());
        request
    };
    create(&server, "/apis/rbac.authorization.k8s.io/v1/clusterroles", ROLE).await;
    create(&server, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING).await;
    let first = send(&server, follow()).await;
    assert_eq!(first.status(), 200);
    let refused = send(&server, follow()).await;
    assert_eq!(refused.status(), 429, "one user can have half of them");
    drop(first);
    kubelet.connections.are(0).await;
    assert_eq!(send(&server, follow()).await.status(), 200);
}

const ROLE: &str = r#"{"metadata":{"name":"logs"},
    "rules":[{"apiGroups":[""],"resources":["pods/log"],"verbs":["get"]}]}"#;
const BINDING: &str = r#"{"metadata":{"name":"logs"},
    "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"logs"},
    "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}"#;
