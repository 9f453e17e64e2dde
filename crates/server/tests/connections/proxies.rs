//! Proxies of pods, services and nodes (SUB-07).

use std::io;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use pintle_server::{Config, ProxiedAddresses, Running};

use super::client::{PODS, breaks_off, create, get, read, request, send, server};
use super::kubelet::Kubelet;
use super::site::Site;
use super::streams::echo;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn anywhere(config: &mut Config) {
    config.proxied_addresses = ProxiedAddresses::Any;
}

/// Starts a server with the pod `web`, whose address and port are those of the site.
async fn with_site(kubelet: &Kubelet, site: &Site, change: impl FnOnce(&mut Config)) -> Running {
    let server = server(kubelet, change).await;
    let pod = format!(
        r#"{{"metadata":{{"name":"web"}},"spec":{{"nodeName":"n","containers":[
            {{"name":"c","image":"i","ports":[{{"containerPort":{}}}]}}]}}}}"#,
        site.port
    );
    create(&server, PODS, &pod).await;
    let status = r#"{"status":{"podIP":"127.0.0.1","podIPs":[{"ip":"127.0.0.1"}]}}"#;
    let status = Request::patch(format!("{PODS}/web/status"))
        .header("content-type", "application/merge-patch+json")
        .body(Full::from(status))
        .unwrap();
    assert_eq!(send(&server, status).await.status(), 200);
    server
}

/// A GET with an `Upgrade` header.
fn upgrade(path: &str) -> Request<Full<Bytes>> {
    let mut request = request(Method::GET, path);
    request.headers_mut().insert("connection", "Upgrade".parse().unwrap());
    request.headers_mut().insert("upgrade", "any".parse().unwrap());
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_proxied_to_pods_without_credentials() {
    let (kubelet, site) = (Kubelet::start(false).await, Site::start().await);
    let server = with_site(&kubelet, &site, anywhere).await;
    let proxy = format!("{PODS}/web/proxy");
    let asked = Request::builder()
        .method(Method::PUT)
        .uri(format!("{proxy}/a%20b//c/../d/?x=1;y&path=/other"))
        .header("authorization", "Basic secret")
        .header("x-remote-user", "root")
        .header("impersonate-user", "kubernetes-admin")
        .header("impersonate-group", "system:masters")
        .header("connection", "x-hop, close")
        .header("x-hop", "one")
        .header("cookie", "a=b")
        .header("x-forwarded-for", "192.0.2.1")
        .body(Full::from(vec![b'x'; 5 << 20]))
        .unwrap();
    let expected = format!(
        "PUT /a%20b/d/?x=1;y&path=/other\ncontent-length: 5242880\ncookie: a=b\nhost: localhost\n\
         x-forwarded-for: 192.0.2.1, 127.0.0.1\nx-forwarded-uri: {proxy}/a%20b/d/a%20b/d/\n5242880"
    );
    let (code, text) = read(send(&server, asked).await).await;
    // If the URL does not end with the backend's path, `x-forwarded-uri` is the URL's path and the
    // backend's path joined, as in upstream.
    let text = text.replace(&format!("{proxy}/a%20b//c/../d"), &format!("{proxy}/a%20b/d"));
    assert_eq!((code, text.replace("/a b/", "/a%20b/")), (201, expected));
    for method in [Method::POST, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        let (code, text) = read(send(&server, request(method.clone(), &proxy)).await).await;
        assert!(code == 201 && text.starts_with(&format!("{method} /\n")), "{text}");
    }
    let refused = send(&server, request(Method::TRACE, &proxy)).await;
    assert_eq!(refused.status(), 405);
    let moved = send(&server, request(Method::GET, &format!("{proxy}?x=y"))).await;
    let to = moved.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!((moved.status().as_u16(), to), (301, format!("{proxy}/?x=y")));
    let head = send(&server, request(Method::HEAD, &format!("{proxy}/"))).await;
    assert_eq!(head.status(), 201);
    assert_ne!(head.headers()["content-length"], "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_and_links_are_rewritten_to_go_through_the_proxy() {
    let (kubelet, site) = (Kubelet::start(false).await, Site::start().await);
    let server = with_site(&kubelet, &site, anywhere).await;
    let proxy = format!("{PODS}/web/proxy");
    let own = format!("http://127.0.0.1:{}/x", site.port);
    for (to, expected) in [
        ("/x/", format!("{proxy}/x/")),
        (own.as_str(), format!("{proxy}/x")),
        ("http://elsewhere/x", "http://elsewhere/x".to_owned()),
    ] {
        let path = format!("{proxy}/redirects?{to}");
        let answer = send(&server, request(Method::GET, &path)).await;
        assert_eq!(answer.headers()["location"], expected);
        assert_eq!(read(answer).await, (302, "moved".to_owned()));
    }
    let (code, text) = get(&server, &format!("{proxy}/redirects?/%zz")).await;
    assert!(code == 500 && text.contains("error trying to parse Location header"), "{text}");
    let page = send(&server, request(Method::GET, &format!("{proxy}/page"))).await;
    assert!(!page.headers().contains_key("access-control-allow-origin"));
    let expected = format!(r#"<a href="{proxy}/x">x</a><a href=rel>y</a>"#);
    assert_eq!(page.headers()["content-length"], expected.len().to_string());
    assert_eq!(read(page).await, (200, expected));
    // A HEAD response has no content-length, because rewriting changes the length of the page.
    let head = send(&server, request(Method::HEAD, &format!("{proxy}/page"))).await;
    assert!(head.status() == 200 && !head.headers().contains_key("content-length"));
    let nothing = send(&server, request(Method::GET, &format!("{proxy}/nothing"))).await;
    assert!(nothing.status() == 204 && !nothing.headers().contains_key("content-length"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_and_failing_backends_are_reported() {
    let (kubelet, site) = (Kubelet::start(false).await, Site::start().await);
    let server = with_site(&kubelet, &site, anywhere).await;
    for (path, expected) in [
        (
            "web:1/proxy/",
            "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused",
        ),
        (
            "web:70000/proxy/",
            "error trying to reach service: dial tcp: address 70000: invalid port",
        ),
        (&format!("https:web:{}/proxy/", site.port), "error trying to reach service: "),
    ] {
        let (code, text) = get(&server, &format!("{PODS}/{path}")).await;
        assert!(code == 503 && text.contains(expected), "{path}: {text}");
        assert!(text.contains(r#""reason":"ServiceUnavailable""#), "{text}");
    }
    let (code, text) = read(send(&server, upgrade(&format!("{PODS}/web:1/proxy/"))).await).await;
    assert!(code == 500 && text.contains("error dialing backend: dial tcp"), "{text}");
    assert!(breaks_off(&server, &format!("{PODS}/web/proxy/breaks")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_proxy_reaches_endpoints_and_a_node_proxy_the_kubelet() {
    let (kubelet, site) = (Kubelet::start(false).await, Site::start().await);
    let server = with_site(&kubelet, &site, anywhere).await;
    let service = r#"{"metadata":{"name":"web"},"spec":{"ports":[{"name":"http","port":80}]}}"#;
    create(&server, SERVICES, service).await;
    // An EndpointSlice cannot have loopback addresses, so the service has no endpoints here.
    let (code, text) = get(&server, &format!("{SERVICES}/web:80/proxy/")).await;
    assert!(code == 404 && text.contains(r#"services \"web\" not found"#), "{text}");
    let own = "/containerLogs/default/p/c?follow=true";
    let (code, text) = get(&server, &format!("/api/v1/nodes/n/proxy{own}")).await;
    let expected = format!("O=system:masters, CN=kube-apiserver-kubelet-client reads {own}\n");
    assert_eq!((code, text), (200, expected));
    // On other ports of a node the server sends no client certificate.
    let path = format!("/api/v1/nodes/n:{}/proxy/x", site.port);
    let (code, text) = get(&server, &path).await;
    assert!(code == 201 && text.starts_with("GET /x\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrades_are_proxied_without_their_query() {
    let (kubelet, site) = (Kubelet::start(false).await, Site::start().await);
    let server = with_site(&kubelet, &site, anywhere).await;
    let answer = send(&server, upgrade(&format!("{PODS}/web/proxy/switches?x=y"))).await;
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.headers()["x-seen"], "/switches");
    assert_eq!(echo(answer, b"any bytes").await, b"any bytes");
}

/// A backend that responds to an upgrade with a redirect must not make this server connect
/// elsewhere with its rights.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_8559_redirects_of_upgrades_are_not_followed() {
    let (kubelet, site) = (Kubelet::start(false).await, Site::start().await);
    let server = with_site(&kubelet, &site, anywhere).await;
    let victim = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    victim.set_nonblocking(true).unwrap();
    let to = victim.local_addr().unwrap();
    let path = format!("{PODS}/web/proxy/redirects?http://{to}/");
    let (code, text) = read(send(&server, upgrade(&path)).await).await;
    let why = "invalid upgrade response: status code 302";
    assert!(code == 500 && text.contains(why), "{text}");
    assert_eq!(victim.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// A client that can write the addresses of nodes and pods must not reach the server's own network
/// through it.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_3294_loopback_addresses_are_not_proxied() {
    let (kubelet, site) = (Kubelet::start(false).await, Site::start().await);
    let server = with_site(&kubelet, &site, |_| {}).await;
    for path in [
        format!("{PODS}/web/proxy/"),
        format!("{PODS}/web/proxy"),
        format!("{PODS}/https:web:{}/proxy/", kubelet.port),
        "/api/v1/nodes/n/proxy/".to_owned(),
        format!("/api/v1/nodes/n:{}/proxy/", site.port),
    ] {
        for request in [request(Method::GET, &path), upgrade(&path)] {
            let (code, text) = read(send(&server, request).await).await;
            assert!(code == 400 && text.contains("address not allowed"), "{path}: {code} {text}");
        }
    }
    kubelet.connections.are(0).await;
}
