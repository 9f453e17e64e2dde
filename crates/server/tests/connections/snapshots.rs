//! Snapshots of a running server: who may take one, how many there are at once, clients that do not
//! read theirs, and the snapshots that the server takes at intervals.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use pintle_server::{Config, Running, Server, SnapshotSchedule};
use pintle_snapshot::Summary;

use super::client::{TIMEOUT, create, get, read, request, send};

const PATH: &str = "/pintle/v1/snapshot";

async fn server(change: impl FnOnce(&mut Config)) -> Running {
    let mut config = Config::ephemeral();
    change(&mut config);
    Server::start(config).await.unwrap()
}

/// The response to a user with these groups who requests a snapshot.
async fn answer_to(
    server: &Running,
    user: &str,
    groups: &[&str],
) -> http::Response<hyper::body::Incoming> {
    let mut request = request(Method::GET, PATH);
    let headers = request.headers_mut();
    headers.insert("impersonate-user", user.parse().unwrap());
    for group in groups {
        headers.append("impersonate-group", group.parse().unwrap());
    }
    send(server, request).await
}

/// Gives a user of the same name a role with one rule.
async fn grant(server: &Running, user: &str, name: &str, rule: &str) {
    let role = format!(r#"{{"metadata":{{"name":"{name}"}},"rules":[{rule}]}}"#);
    create(server, "/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await;
    let binding = format!(
        r#"{{"metadata":{{"name":"{name}-{user}"}},
            "roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"{name}"}},
            "subjects":[{{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"{user}"}}]}}"#
    );
    create(server, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
}

/// SNAP-05.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_read_everything_may_take_a_snapshot() {
    let server = server(|_| {}).await;
    let paths = r#"{"nonResourceURLs":["*"],"verbs":["get"]}"#;
    let objects = r#"{"apiGroups":["*"],"resources":["*"],"verbs":["list"]}"#;
    let some = r#"{"apiGroups":["","apps"],"resources":["*"],"verbs":["*"]}"#;
    grant(&server, "scraper", "a", paths).await;
    grant(&server, "reader", "b", objects).await;
    grant(&server, "partly", "c", &format!("{paths},{some}")).await;
    grant(&server, "backup", "d", &format!("{paths},{objects}")).await;
    for (user, groups, code) in [
        ("jane", &[][..], 403),
        ("scraper", &[], 403),
        ("reader", &[], 403),
        ("partly", &[], 403),
        ("backup", &[], 200),
        ("jane", &["system:masters"], 200),
    ] {
        let response = answer_to(&server, user, groups).await;
        assert_eq!(response.status(), code, "{user} {groups:?}");
        if code == 200 {
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let summary = Summary::read(&*body).unwrap();
            assert!(summary.collections["rbac.authorization.k8s.io/clusterroles"].objects > 4);
            assert_eq!(summary.header.source, "memory");
        }
    }
    let (_, refusal) = read(answer_to(&server, "scraper", &[]).await).await;
    assert!(
        refusal.contains(r#"cannot list resource \"*\" in API group \"*\" at the cluster scope"#),
        "{refusal}"
    );
    for method in [Method::POST, Method::HEAD, Method::DELETE] {
        let (code, _) = read(send(&server, request(method.clone(), PATH)).await).await;
        assert_eq!(code, 405, "{method}");
    }
}

/// Fills the store with more than the buffers between both ends hold.
async fn fill(server: &Running) {
    let text = "x".repeat(1 << 20);
    for number in 0..24 {
        let object = format!(r#"{{"metadata":{{"name":"c{number}"}},"data":{{"k":"{text}"}}}}"#);
        create(server, "/api/v1/namespaces/default/configmaps", &object).await;
    }
}

/// Waits until `/metrics` has a line.
async fn until(server: &Running, line: &str) {
    let seen = async {
        while !get(server, "/metrics").await.1.lines().any(|one| one == line) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, seen).await.unwrap_or_else(|_| panic!("no {line}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_is_cut_off() {
    let server = server(|config| config.connections.write_stall = Duration::from_millis(200)).await;
    fill(&server).await;
    let stalled = send(&server, request(Method::GET, PATH)).await;
    assert_eq!(stalled.status(), 200);
    until(&server, r#"pintle_snapshot_failures_total{trigger="request"} 1"#).await;
    assert!(stalled.into_body().collect().await.is_err(), "the response breaks off");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_so_many_snapshots_at_once_and_no_more() {
    let server = server(|_| {}).await;
    fill(&server).await;
    let first = send(&server, request(Method::GET, PATH)).await;
    let second = send(&server, request(Method::GET, PATH)).await;
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    let third = send(&server, request(Method::GET, PATH)).await;
    assert_eq!(third.status(), 429);
    assert!(third.headers().contains_key("retry-after"));
    drop(first);
    until(&server, r#"pintle_snapshot_failures_total{trigger="request"} 1"#).await;
    let fourth = send(&server, request(Method::GET, PATH)).await;
    assert_eq!(fourth.status(), 200);
    let body = second.into_body().collect().await.unwrap().to_bytes();
    assert!(Summary::read(&*body).unwrap().collections["configmaps"].objects >= 24);
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_taken_at_intervals_and_the_oldest_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("snapshots");
    let interval = Duration::from_millis(100);
    let schedule = SnapshotSchedule { folder: folder.clone(), interval, keep: 2 };
    let server = server(|config| config.snapshots = Some(schedule)).await;
    let mut seen = BTreeSet::new();
    let names = || -> BTreeSet<_> {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_string_lossy().ends_with(".snapshot")).collect()
    };
    let taken = async {
        while seen.len() < 4 {
            seen.extend(names());
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, taken).await.unwrap();
    let (_, metrics) = get(&server, "/metrics").await;
    assert!(metrics.contains(r#"pintle_snapshot_failures_total{trigger="schedule"} 0"#));
    assert!(metrics.contains(r#"pintle_snapshot_last_size_bytes{trigger="schedule"} "#));
    server.shutdown().await;
    let left = names();
    assert!((2..=3).contains(&left.len()), "{left:?}");
    let newest = File::open(folder.join(left.last().unwrap())).unwrap();
    assert_eq!(Summary::read(newest).unwrap().header.source, "memory");
}
