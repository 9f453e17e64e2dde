//! The console at `/console/`, which is served if `--console` is set (CON-01).
//!
//! Its files hold no data and are the same for everybody. A browser asks for them before anybody
//! can log in, so every user who may read [`PUBLIC_PATH`] may read them. The page's requests to the
//! API are authorized like those of any client.

use http::header::{
    CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY,
};
use http::request::Parts;
use http::{Method, StatusCode};
use pintle_auth::Subject;
use pintle_console::File;
use pintle_meta::Status;
use pintle_meta::status::Reason;

use crate::body::Body;
use crate::request_info::RequestInfo;
use crate::respond::{self, Response};

/// The path of the page.
pub(crate) const PATH: &str = "/console/";

/// The path whose readers may read the console's files: under upstream's policy all users, and
/// anonymous clients unless `--anonymous-auth=false`.
const PUBLIC_PATH: &str = "/version";

/// The content security policy: scripts, styles and images come from this server only, and the page
/// connects to this server only. Scripts cannot write HTML into the page (trusted types), and no
/// other page may contain the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// The headers of all files, the policy included.
const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (VARY, "Accept-Encoding"),
];

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The subject of authorization of a path of the console; `None` for other paths.
pub(crate) fn subject(info: &RequestInfo) -> Option<Subject<'static>> {
    name(&info.path).is_some().then_some(Subject::Path(PUBLIC_PATH))
}

/// Serves a path of the console; `None` for other paths.
pub(crate) fn answer(path: &str, head: &Parts) -> Option<Result<Response, Status>> {
    let name = name(path)?;
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return Some(Err(Status::wrong_method()));
    }
    let Some(name) = name else { return Some(Ok(redirect())) };
    let file = pintle_console::file(name).ok_or_else(Status::no_such_path);
    Some(file.and_then(|file| send(file, &head.headers)))
}

/// Refuses a request that a web page of another site makes. Users of the console have client
/// certificates in their browsers, and a browser sends a certificate with the requests of any page
/// (cross-site request forgery). A navigation by a link is not refused.
pub(crate) fn check_origin(head: &Parts) -> Result<(), Status> {
    let is = |name: &HeaderName, values: &[&str]| {
        head.headers.get(name).is_some_and(|value| values.iter().any(|known| value == known))
    };
    let is_link = head.method == Method::GET && is(&FETCH_MODE, &["navigate"]);
    if is(&FETCH_SITE, &["cross-site", "same-site"]) && !is_link {
        let why = "requests of other sites' pages are refused while the console is served; \
                   --cors-allowed-origins names the pages that may use this server";
        return Err(Status::failure(Reason::Forbidden, why));
    }
    Ok(())
}

/// The name of a file of the console; `Some(None)` for the path without its slash, which redirects
/// to the page.
fn name(path: &str) -> Option<Option<&str>> {
    match path.strip_prefix(PATH) {
        None if path == PATH.trim_end_matches('/') => Some(None),
        name => name.map(Some),
    }
}

fn redirect() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(PATH));
    response
}

fn send(file: &'static File, asked: &HeaderMap) -> Result<Response, Status> {
    let etag = HeaderValue::from_static(file.etag);
    let mut response = Response::new(Body::empty());
    if asked.get(IF_NONE_MATCH).is_some_and(|known| known == etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else if respond::takes_gzip(asked) {
        *response.body_mut() = Body::full(file.gzip);
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    } else {
        *response.body_mut() = Body::full(file.content().map_err(Status::internal)?);
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.media_type));
    headers.insert(ETAG, etag);
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    respond::forbid_sniffing(headers);
    Ok(response)
}
