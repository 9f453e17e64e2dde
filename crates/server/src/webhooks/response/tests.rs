use http::Response;

use super::*;

fn outcome(code: u16, content_type: &str, body: &'static str) -> Outcome {
    let answer = Response::builder().status(code).header(CONTENT_TYPE, content_type);
    let (head, ()) = answer.body(()).unwrap().into_parts();
    let uri = Uri::from_static("https://127.0.0.1:9443/convert");
    read(&head, &Bytes::from_static(body.as_bytes()), &uri).unwrap()
}

#[test]
fn error_responses_have_upstreams_messages() {
    let check = |(code, content_type, body): (u16, &str, &'static str), expected: &str| {
        // An empty response with a success code is an error.
        let reported = if (200..207).contains(&code) { 503 } else { code };
        let is_transient = matches!(reported, 429 | 500 | 502 | 504);
        let expected = CallError { why: expected.to_owned(), code: reported, is_transient };
        assert_eq!(outcome(code, content_type, body), Outcome::Refusal(expected), "{code}");
    };
    let (text, json) = ("text/plain; charset=utf-8", "application/json");
    check((400, text, "no"), "the server rejected our request for an unknown reason");
    check((401, text, "no"), "the server has asked for the client to provide credentials");
    check((403, text, "not you\n"), "not you");
    check((403, json, "{}"), "unknown");
    check((404, text, "404 page not found\n"), "the server could not find the requested resource");
    check((405, text, "no"), "the server does not allow this method on the requested resource");
    let unsupported =
        "the server was unable to respond with a content type that the client supports";
    check((406, text, ""), unsupported);
    check((406, json, "{}"), unsupported);
    check((406, text, "only XML"), "only XML");
    check((409, text, "no"), "the server reported a conflict");
    check((415, text, "only XML"), "only XML");
    check((418, text, "no"), &nothing_more(418));
    check((422, text, "no"), "the server rejected our request due to an error in our request");
    check(
        (429, text, "no"),
        "the server has received too many requests and has asked us to try again later",
    );
    check((500, text, "a \"b\"\n"), &prevented(r#""a \"b\"""#));
    check((500, json, "{}"), &prevented(r#""unknown""#));
    check((502, "text/html", "<p>\tno"), &prevented(r#""<p>\tno""#));
    check((503, text, "no"), "the server is currently unable to handle the request");
    check(
        (504, text, "no"),
        "the server was unable to return a response in the time allotted, but may still be \
         processing the request",
    );
    check((302, text, "no"), &nothing_more(302));
    check((207, text, "no"), &nothing_more(207));
    check(
        (200, json, ""),
        "0-length response with status code: 200 and content type: application/json",
    );
}

#[test]
fn the_message_of_a_status_is_used() {
    let check = |body: &'static str, expected: &str| {
        let found = outcome(400, "application/json", body);
        let expected = CallError { why: expected.to_owned(), code: 400, is_transient: false };
        assert_eq!(found, Outcome::Refusal(expected), "{body}");
    };
    check(
        r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no such"}"#,
        "no such",
    );
    check(r#"{"kind": "Status", "status": "Failure", "message": "no such"}"#, "no such");
    let unknown = "the server rejected our request for an unknown reason";
    check(
        r#"{"kind": "Status", "apiVersion": "v2", "status": "Failure", "message": "no"}"#,
        unknown,
    );
    check(
        r#"{"kind": "Status", "apiVersion": "v1", "status": "Success", "message": "no"}"#,
        unknown,
    );
    check(r#"{"status": "Failure", "message": "no"}"#, unknown);
}

#[test]
fn a_long_error_text_is_truncated() {
    let long: &'static str = "é".repeat(TEXT_BYTES_MAX).leak();
    let Outcome::Refusal(refusal) = outcome(403, "text/plain", long) else { panic!("no refusal") };
    assert_eq!(refusal.why.len(), TEXT_BYTES_MAX);
}

fn nothing_more(code: u16) -> String {
    format!("the server responded with the status code {code} but did not return more information")
}

fn prevented(quoted: &str) -> String {
    format!("an error on the server ({quoted}) has prevented the request from succeeding")
}

/// A webhook cannot make the server send requests to other servers and read their responses in the
/// log.
#[test]
fn cve_2020_8561_redirects_are_followed_to_the_same_server_only() {
    let to = |code: u16, location: &'static str| {
        let answer = Response::builder().status(code).header(LOCATION, location);
        let (head, ()) = answer.body(()).unwrap().into_parts();
        read(&head, &Bytes::new(), &Uri::from_static("https://127.0.0.1:9443/convert"))
    };
    for (location, path) in [
        ("/other", "/other"),
        ("https://127.0.0.1:9443/other?a=b", "/other?a=b"),
        // The scheme is not changed, and a location without a scheme is only a path.
        ("http://127.0.0.1:9443/plain", "/plain"),
        ("//169.254.169.254/latest", "//169.254.169.254/latest"),
    ] {
        let path = Outcome::Elsewhere(PathAndQuery::from_static(path));
        assert_eq!(to(307, location), Ok(path), "{location}");
    }
    for location in [
        "https://169.254.169.254/latest",
        "https://127.0.0.1/other",
        "https://127.0.0.1:9444/other",
        "https://127.0.0.1:9443@evil.example/",
        "https://evil@127.0.0.1:9443/",
        "https://localhost:9443/",
        "",
    ] {
        assert!(to(308, location).is_err(), "{location}");
    }
    for code in [301, 302, 303] {
        assert!(matches!(to(code, "https://evil.example/"), Ok(Outcome::Refusal(_))), "{code}");
    }
}
