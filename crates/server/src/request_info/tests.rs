use super::*;

fn info(request: &str) -> RequestInfo {
    let (method, url) = request.split_once(' ').unwrap();
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    RequestInfo::parse(&method, path, &Query::parse(query)).unwrap()
}

/// `expected` is verb, group, version, namespace, resource, name and subresource; `-` stands for an
/// empty part.
fn check(request: &str, expected: &str) {
    let info = info(request);
    let r = info.resource.expect("the path names a resource");
    let parts = [&r.group, &r.version, &r.namespace, &r.resource, &r.name, &r.subresource]
        .map(|part| if part.is_empty() { "-" } else { part.as_str() });
    assert_eq!(format!("{} {}", info.verb.as_str(), parts.join(" ")), expected, "{request}");
}

fn check_path(request: &str, verb: &str) {
    let info = info(request);
    assert_eq!((info.verb.as_str(), info.resource), (verb, None), "{request}");
}

#[test]
fn resource_paths_are_parsed() {
    // PATH-01 … PATH-06
    check("GET /api/v1/nodes", "list - v1 - nodes - -");
    check("GET /api/v1/namespaces/default", "get - v1 default namespaces default -");
    check("GET /api/v1/namespaces", "list - v1 - namespaces - -");
    check("GET /api/v1/configmaps", "list - v1 - configmaps - -");
    check("GET /api/v1/namespaces/t/configmaps", "list - v1 t configmaps - -");
    check("GET /api/v1/namespaces/t/configmaps/x", "get - v1 t configmaps x -");
    check("GET /api/v1/namespaces/t/pods/p/status", "get - v1 t pods p status");
    check("GET /api/v1/nodes/n/status", "get - v1 - nodes n status");
    check(
        "GET /apis/apps/v1/namespaces/t/deployments/d/scale",
        "get apps v1 t deployments d scale",
    );
    check("PUT /api/v1/namespaces/t/finalize", "update - v1 t namespaces t finalize");
    check("PUT /api/v1/namespaces/t/status", "update - v1 t namespaces t status");
    // PATH-07: a collection has no subresource
    check("GET /api/v1/namespaces/t/pods/status", "get - v1 t pods status -");
}

#[test]
fn methods_become_verbs() {
    // VERB-03, VERB-07
    check("GET /api/v1/pods?watch", "watch - v1 - pods - -");
    check("GET /api/v1/pods?watch=1", "watch - v1 - pods - -");
    check("GET /api/v1/pods?watch=true", "watch - v1 - pods - -");
    check("GET /api/v1/pods?watch=nonsense", "watch - v1 - pods - -");
    check("GET /api/v1/pods?watch=0", "list - v1 - pods - -");
    check("GET /api/v1/pods?watch=False", "list - v1 - pods - -");
    check("HEAD /api/v1/pods", "list - v1 - pods - -");
    check("GET /api/v1/namespaces/t/pods/p?watch=1", "get - v1 t pods p -");
    check("POST /api/v1/namespaces/t/pods", "create - v1 t pods - -");
    check("PUT /api/v1/namespaces/t/pods/p", "update - v1 t pods p -");
    check("PATCH /api/v1/namespaces/t/pods/p", "patch - v1 t pods p -");
    check("DELETE /api/v1/namespaces/t/pods/p", "delete - v1 t pods p -");
    check("DELETE /api/v1/namespaces/t/pods", "deletecollection - v1 t pods - -");
    check("OPTIONS /api/v1/namespaces/t/pods", " - v1 t pods - -");
}

#[test]
fn a_selector_of_metadata_name_sets_the_name() {
    check("GET /api/v1/namespaces/t/pods?fieldSelector=metadata.name%3Dp", "list - v1 t pods p -");
    check(
        "GET /api/v1/namespaces/t/pods?watch=1&fieldSelector=a%3Db,metadata.name%3D%3Dp",
        "watch - v1 t pods p -",
    );
    check("GET /api/v1/pods?fieldSelector=metadata.name!%3Dp", "list - v1 - pods - -");
    check("GET /api/v1/pods?fieldSelector=metadata.name%3D..", "list - v1 - pods - -");
    check("GET /api/v1/pods?fieldSelector=metadata.name%3Dp%5C,a", "list - v1 - pods p,a -");
    check("GET /api/v1/pods?fieldSelector=metadata.name%3Dp%3Da", "list - v1 - pods - -");
    check("GET /api/v1/pods?fieldSelector=%20metadata.name%3Dp", "list - v1 - pods - -");
    assert!(!info("GET /api/v1/pods?fieldSelector=metadata.name%3Dp").resource.unwrap().named);
}

#[test]
fn the_deprecated_watch_prefix_makes_a_watch() {
    // OAS-12
    check("GET /api/v1/watch/namespaces/t/pods", "watch - v1 t pods - -");
    check("GET /api/v1/watch/namespaces/t/pods/p", "watch - v1 t pods p -");
    check("GET /apis/apps/v1/watch/deployments", "watch apps v1 - deployments - -");
}

#[test]
fn the_path_after_proxy_is_the_subpath() {
    for (path, expected) in [
        ("/api/v1/namespaces/t/pods/p/proxy", ""),
        ("/api/v1/namespaces/t/pods/p/proxy/", "/"),
        ("/api/v1/namespaces/t/pods/p/proxy/a/b", "/a/b"),
        ("/api/v1/namespaces/t/pods/p/proxy/a/", "/a/"),
        ("/api/v1/namespaces/t/pods/p/proxy/a%2F%2Fb", "/a//b"),
        ("/api/v1/namespaces/t/pods/p/proxy/proxy/a", "/proxy/a"),
        ("/api/v1/namespaces/proxyx/pods/p/proxy/a", "/a"),
        ("/api/v1/namespaces/proxy/services/proxy/proxy/a", "/a"),
        ("/api/v1/nodes/proxy/proxy/a", "/a"),
    ] {
        let info = info(&format!("GET {path}")).resource.expect("the path names a resource");
        assert_eq!(info.subpath, expected, "{path}");
        assert_eq!(info.subresource, "proxy", "{path}");
    }
}

#[test]
fn other_paths_name_no_resource() {
    for path in ["/", "/api", "/api/v1", "/api/v1/", "/apis", "/apis/apps", "/apis/apps/v1"] {
        check_path(&format!("GET {path}"), "get");
    }
    check_path("POST /healthz", "post");
    check_path("BREW /healthz", "brew");
    check_path("GET /apix/v1/pods", "get");
    check_path("GET /api/v1/watch", "get");
}

#[test]
fn paths_are_percent_decoded() {
    check("GET /api/v1/namespaces/t/configmaps/a%2Eb", "get - v1 t configmaps a.b -");
    check("GET /api/v1/nodes/n%2Fstatus", "get - v1 - nodes n status");
    let invalid = RequestInfo::parse(&Method::GET, "/api/v1/pods%", &Query::default());
    assert_eq!(invalid, Err(InvalidPath));
}
