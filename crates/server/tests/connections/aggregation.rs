//! Requests to an extension API server: proxying, discovery, OpenAPI, upgrades (AGG-02, ST-13).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, UPGRADE};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use pintle_server::{Config, Running, Server};

use super::client::{TIMEOUT, breaks_off, create, get, read, request, send};
use super::egress::proxy_to;
use super::extension::Extension;
use super::streams::echo;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

/// Starts a server with an APIService that delegates `a.io/v1` to the extension.
pub(crate) async fn server(extension: &Extension) -> Running {
    let server = Server::start(Config::ephemeral()).await.unwrap();
    let service =
        r#"{"metadata":{"name":"s"},"spec":{"type":"ExternalName","externalName":"127.0.0.1"}}"#;
    create(
        &server,
        "/api/v1/namespaces/default/services",
        &service.replace("127.0.0.1", "localhost"),
    )
    .await;
    register(&server, extension, extension.port).await;
    server
}

/// Creates the APIService of `a.io/v1`, for a port of the service `default/s`.
async fn register(server: &Running, extension: &Extension, port: u16) {
    let bundle = STANDARD.encode(&extension.certificate_pem);
    let api_service = format!(
        r#"{{"metadata":{{"name":"v1.a.io"}},"spec":{{"group":"a.io","version":"v1","caBundle":"{bundle}",
            "groupPriorityMinimum":2000,"versionPriority":15,
            "service":{{"namespace":"default","name":"s","port":{}}}}}}}"#,
        port
    );
    create(server, API_SERVICES, &api_service).await;
}

/// Sends a GET until the response contains `expected`.
pub(crate) async fn see(server: &Running, path: &str, accept: &str, expected: &str) -> String {
    let mut last = String::new();
    let seen = async {
        loop {
            let mut request = request(Method::GET, path);
            request.headers_mut().insert(ACCEPT, accept.parse().unwrap());
            last = read(send(server, request).await).await.1;
            if last.contains(expected) {
                return;
            }
        }
    };
    let seen = tokio::time::timeout(TIMEOUT, seen).await;
    assert!(seen.is_ok(), "{expected} is not in {last}");
    last
}

/// Waits until the APIService has a condition with this reason, and returns it.
pub(crate) async fn wait_for_reason(server: &Running, reason: &str) -> String {
    let reason = format!(r#""reason":"{reason}""#);
    see(server, &format!("{API_SERVICES}/v1.a.io"), "application/json", &reason).await
}

/// Changes the APIService, so that the server checks the extension again.
pub(crate) async fn check_again(server: &Running, priority: u8) {
    let changed = format!(r#"{{"spec":{{"versionPriority":{priority}}}}}"#);
    let changed = Request::patch(format!("{API_SERVICES}/v1.a.io"))
        .header("content-type", "application/merge-patch+json")
        .body(Full::from(changed))
        .unwrap();
    assert_eq!(send(server, changed).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_proxied_with_the_users_identity() {
    let extension = Extension::start().await;
    let server = server(&extension).await;
    wait_for_reason(&server, "Passed").await;
    let asked = Request::builder()
        .method(Method::PUT)
        .uri("/apis/a.io/v1/echo?b=2&a=x%20y&a=1")
        .header(AUTHORIZATION, "Basic secret")
        .header("x-remote-user", "root")
        .header("x-remote-extra-scopes", "all")
        .header("connection", "x-hop, close")
        .header("x-hop", "one")
        .header("audit-id", "an-id")
        .header("x-forwarded-for", "192.0.2.1")
        .body(Full::from(vec![b'x'; 5 << 20]))
        .unwrap();
    let answer = send(&server, asked).await;
    assert_eq!(answer.headers()["audit-id"], "an-id");
    let (code, text) = read(answer).await;
    let at = format!("localhost:{}", extension.port);
    let expected = format!(
        "CN=front-proxy-client\nPUT /apis/a.io/v1/echo?a=x+y&a=1&b=2\naudit-id: an-id\n\
         content-length: 5242880\nhost: {at}\nx-forwarded-for: 192.0.2.1, 127.0.0.1\n\
         x-forwarded-host: {at}\nx-forwarded-proto: https\nx-forwarded-uri: /apis/a.io/v1/echo\n\
         x-remote-group: system:masters\nx-remote-group: system:authenticated\n\
         x-remote-user: kubernetes-admin\n5242880"
    );
    let is_extra = |line: &&str| line.starts_with("x-remote-extra-");
    let (extra, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(is_extra);
    assert_eq!((code, rest.join("\n")), (201, expected));
    let [credential] = extra[..] else { panic!("{extra:?}") };
    let key = "x-remote-extra-authentication.kubernetes.io%2fcredential-id: X509SHA256=";
    assert!(credential.starts_with(key), "{credential}");
    let answer = send(&server, request(Method::HEAD, "/apis/a.io/v1")).await;
    assert_eq!(answer.status(), 200);
    assert_ne!(answer.headers()["content-length"], "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_streamed() {
    let extension = Extension::start().await;
    let server = server(&extension).await;
    wait_for_reason(&server, "Passed").await;
    let path = "/apis/a.io/v1/things?watch=true";
    let mut watch = send(&server, request(Method::GET, path)).await.into_body();
    let first = tokio::time::timeout(TIMEOUT, watch.frame()).await.unwrap().unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), Bytes::from("first\n"));
    assert!(breaks_off(&server, "/apis/a.io/v1/breaks").await);
    // A watch ends when the server stops.
    server.shutdown().await;
    let rest = tokio::time::timeout(TIMEOUT, watch.collect()).await.unwrap();
    assert_eq!(rest.unwrap().to_bytes(), Bytes::new());
}

/// An extension must not redirect clients, and their credentials, to another server.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_3172_redirects_of_extensions_do_not_reach_clients() {
    let extension = Extension::start().await;
    let server = server(&extension).await;
    wait_for_reason(&server, "Passed").await;
    let answer = send(&server, request(Method::GET, "/apis/a.io/v1/redirects")).await;
    assert!(!answer.headers().contains_key("location"));
    let why = "the backend attempted to redirect this request, which is not permitted";
    assert_eq!(read(answer).await, (502, why.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_shows_the_resources_of_an_extension_and_whether_it_is_available() {
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let extension = Extension::start().await;
    let server = server(&extension).await;
    let current = r#"{"metadata":{"name":"a.io"},"versions":[{"version":"v1","resources":[{"resource":"things","responseKind":{"group":"","version":"","kind":"Thing"},"scope":"Namespaced","singularResource":"thing","verbs":["delete","deletecollection","get","list"]},{"resource":"parts","responseKind":{"group":"","version":"","kind":"Part"},"scope":"Namespaced","singularResource":"part","verbs":["create","delete","get","list","patch","watch"]}],"freshness":"Current"}]}"#;
    see(&server, "/apis", AGGREGATED, current).await;
    let group = r#"{"name":"a.io","versions":[{"groupVersion":"a.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"a.io/v1","version":"v1"}}"#;
    see(&server, "/apis", "application/json", group).await;
    see(&server, "/apis/a.io", "application/json", r#""groupVersion":"a.io/v1""#).await;
    extension.set_available(false);
    check_again(&server, 16).await;
    let status = wait_for_reason(&server, "FailedDiscoveryCheck").await;
    assert!(status.contains("/apis/a.io/v1: bad status from https://localhost:"), "{status}");
    let stale = r#""versions":[{"version":"v1","freshness":"Stale"}]"#;
    see(&server, "/apis", AGGREGATED, stale).await;
    let answer = get(&server, "/apis/a.io/v1/echo").await;
    assert_eq!(answer, (503, "service unavailable\n".to_owned())); // ST-13
    let lapse = r#"aggregator_unavailable_apiservice_total{name="v1.a.io",reason="FailedDiscoveryCheck"} 1"#;
    see(&server, "/metrics", "text/plain", lapse).await; // the metric is updated after the condition
    extension.set_available(true);
    wait_for_reason(&server, "Passed").await;
    see(&server, "/apis", AGGREGATED, current).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_deleted_after_its_objects_in_extensions() {
    const NAMESPACE: &str = "/api/v1/namespaces/doomed";
    let extension = Extension::start().await;
    let server = server(&extension).await;
    create(&server, "/api/v1/namespaces", r#"{"metadata":{"name":"doomed"}}"#).await;
    extension.create_thing("a");
    wait_for_reason(&server, "Passed").await;
    extension.set_available(false);
    check_again(&server, 16).await;
    wait_for_reason(&server, "FailedDiscoveryCheck").await;
    see(
        &server,
        "/apis",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "Stale",
    )
    .await;
    assert_eq!(send(&server, request(Method::DELETE, NAMESPACE)).await.status(), 200);
    let why = "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server \
               APIs: a.io/v1: stale GroupVersion discovery: a.io/v1";
    see(&server, NAMESPACE, "application/json", why).await;
    assert_eq!(extension.things(), ["a"]);
    extension.set_available(true);
    see(&server, NAMESPACE, "application/json", "NotFound").await;
    assert!(extension.things().is_empty());
    let deletion = "system:serviceaccount:kube-system:namespace-controller,system:serviceaccounts,\
                    system:serviceaccounts:kube-system,system:authenticated \
                    {\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Background\"}";
    assert_eq!(extension.deletions(), [deletion]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_to_extensions_are_reused() {
    let extension = Extension::start().await;
    let server = server(&extension).await;
    wait_for_reason(&server, "Passed").await;
    let reused = async {
        loop {
            let before = extension.connections();
            let (code, _) = get(&server, "/apis/a.io/v1/echo").await;
            assert_eq!(code, 201);
            if extension.connections() == before {
                return;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, reused).await.unwrap();
    // A connection whose response was not read to its end is not reused.
    drop(send(&server, request(Method::GET, "/apis/a.io/v1/things?watch=true")).await);
    let (code, text) = get(&server, "/apis/a.io/v1/echo").await;
    assert!(code == 201 && text.ends_with("\n0"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_has_the_documents_of_extensions_for_their_versions() {
    let extension = Extension::start().await;
    let server = server(&extension).await;
    let listed = r#""apis/a.io":{"serverRelativeURL":"/openapi/v3/apis/a.io?hash=AB"}"#;
    let index = see(&server, "/openapi/v3", "application/json", listed).await;
    assert!(index.contains(r#""/openapi/v3/apis/a.io/v1?hash=CD""#), "{index}");
    // The quote ends the hash: the hashes of this server's own documents are longer and may begin
    // with EF.
    assert!(!index.contains(r#"hash=EF""#), "documents of other paths are not merged");
    let (code, group) = get(&server, "/openapi/v3/apis/a.io?hash=AB").await;
    assert!(code == 200 && group.contains("/apis/a.io/"), "{code} {group}");
    let document = see(&server, "/openapi/v2", "application/json", "listThings").await;
    assert!(!document.contains("/apis/b.io/"), "paths of other groups are removed");
    // A definition with the name of a different one is renamed.
    let definition = r##""io.a.v1.ThingList":{"properties":{"metadata":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta_v2"}},"type":"object"}"##;
    assert!(document.contains(definition));
    let mut message = request(Method::GET, "/openapi/v2");
    let accept = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    message.headers_mut().insert(ACCEPT, accept.parse().unwrap());
    assert_eq!(send(&server, message).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_connection_to_an_extension_is_proxied() {
    let extension = Extension::start().await;
    let server = server(&extension).await;
    wait_for_reason(&server, "Passed").await;
    let asked = |path: &str| {
        let mut asked = request(Method::GET, path);
        asked.headers_mut().insert(CONNECTION, "upgrade".parse().unwrap());
        asked.headers_mut().insert(UPGRADE, "echo".parse().unwrap());
        asked.headers_mut().insert("x-remote-user", "root".parse().unwrap());
        asked
    };
    let answer = send(&server, asked("/apis/a.io/v1/upgrade")).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["upgrade"]),
        (101, &"echo".parse().unwrap())
    );
    assert_eq!(answer.headers()["x-who"], "kubernetes-admin");
    assert_eq!(echo(answer, b"there and back").await, b"there and back");
    // A refused upgrade leaves no connection to the extension (CVE-2018-1002105).
    let refused = send(&server, asked("/apis/a.io/v1/nothing")).await;
    assert_eq!(refused.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_v2_of_an_extension_without_v3_is_converted() {
    const PATH: &str = "/openapi/v3/apis/a.io/v1";
    let extension = Extension::start().await;
    extension.serve_openapi_v2_only();
    let server = server(&extension).await;
    let index = see(&server, "/openapi/v3", "application/json", PATH).await;
    let (_, hash) = index.split_once(&format!("{PATH}?hash=")).unwrap();
    let (hash, _) = hash.split_once('"').unwrap();
    let (code, document) = get(&server, &format!("{PATH}?hash={hash}")).await;
    let list = r##""io.a.v1.ThingList":{"properties":{"metadata":{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}},"type":"object"}"##;
    assert!(code == 200 && document.contains(list), "{document}");
    assert!(document.contains(r#""openapi":"3.0.0""#) && document.contains("listThings"));
    let mut message = request(Method::GET, PATH);
    let accept = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
    message.headers_mut().insert(ACCEPT, accept.parse().unwrap());
    assert_eq!(send(&server, message).await.status(), 200);
}

fn slice(family: &str, endpoints: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{}","labels":{{"kubernetes.io/service-name":"s"}}}},"addressType":"{family}",
            "ports":[{{"name":"other","port":1}},{{"name":"https","port":8443}}],"endpoints":[{endpoints}]}}"#,
        family.to_lowercase()
    )
}

/// `--enable-aggregator-routing`: requests go to a ready endpoint instead of the cluster IP.
#[tokio::test(flavor = "multi_thread")]
async fn aggregator_routing_connects_to_ready_endpoints() {
    const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let extension = Extension::start().await;
    let (egress, asked) = proxy_to(format!("127.0.0.1:{}", extension.port)).await;
    let mut config = Config::ephemeral();
    config.egress.cluster = egress;
    config.extensions.by_endpoints = true;
    let server = Server::start(config).await.unwrap();
    let service = r#"{"metadata":{"name":"s"},"spec":{"ports":[{"name":"https","port":443}]}}"#;
    create(&server, "/api/v1/namespaces/default/services", service).await;
    register(&server, &extension, 443).await;
    wait_for_reason(&server, "EndpointsNotFound").await;
    assert_eq!(get(&server, "/apis/a.io/v1/echo").await.0, 503);
    let ready = r#"{"addresses":["2001:db8::1"]}"#;
    create(&server, SLICES, &slice("IPv6", ready)).await;
    wait_for_reason(&server, "Passed").await;
    let asked_last = || asked.lock().last().cloned();
    assert_eq!(asked_last().unwrap(), "CONNECT [2001:db8::1]:8443 HTTP/1.1");
    // Endpoints of the service's IP family are preferred, and only ready ones are used.
    let endpoints = r#"{"addresses":["10.1.2.3"],"conditions":{"ready":false}},
        {"addresses":["10.1.2.4"],"conditions":{"ready":true}}"#;
    create(&server, SLICES, &slice("IPv4", endpoints)).await;
    let moved = async {
        while asked_last().unwrap() != "CONNECT 10.1.2.4:8443 HTTP/1.1" {
            assert_eq!(get(&server, "/apis/a.io/v1/echo").await.0, 201);
        }
    };
    tokio::time::timeout(TIMEOUT, moved).await.unwrap();
    assert!(!asked.lock().iter().any(|line| line.contains("10.1.2.3")));
    for name in ["ipv4", "ipv6"] {
        let deleted = send(&server, request(Method::DELETE, &format!("{SLICES}/{name}"))).await;
        assert_eq!(deleted.status(), 200);
    }
    wait_for_reason(&server, "EndpointsNotFound").await;
    assert_eq!(get(&server, "/apis/a.io/v1/echo").await, (503, "service unavailable\n".to_owned()));
}

/// An APIService for the service `default/kubernetes` is connected to this server itself.
#[tokio::test(flavor = "multi_thread")]
async fn an_apiservice_for_the_servers_own_service_reaches_the_server() {
    let server = Server::start(Config::ephemeral()).await.unwrap();
    let bundle = STANDARD.encode(server.ca_pem());
    let api_service = format!(
        r#"{{"metadata":{{"name":"v1.a.io"}},"spec":{{"group":"a.io","version":"v1","caBundle":"{bundle}",
            "groupPriorityMinimum":2000,"versionPriority":15,
            "service":{{"namespace":"default","name":"kubernetes","port":443}}}}}}"#
    );
    create(&server, API_SERVICES, &api_service).await;
    // This server responds, and does not serve `a.io/v1`.
    let status = wait_for_reason(&server, "FailedDiscoveryCheck").await;
    let at = server.url().rsplit_once(':').unwrap().1;
    let expected = format!(":{at}/apis/a.io/v1: bad status from ");
    assert!(status.contains(&expected), "{status}");
}
