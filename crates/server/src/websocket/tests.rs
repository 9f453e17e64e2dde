use super::*;

#[test]
fn the_accept_key_equals_the_example_of_the_rfc() {
    // RFC 6455, 1.3
    assert_eq!(accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

fn headers(rows: &[(&'static str, &'static str)]) -> HeaderMap {
    let rows = rows.iter().map(|(name, value)| {
        (http::header::HeaderName::from_static(name), HeaderValue::from_static(value))
    });
    rows.collect()
}

#[test]
fn requests_for_websockets_are_recognised() {
    for (connection, upgrade, expected) in [
        ("Upgrade", "websocket", true),
        ("keep-alive, upgrade", "WebSocket", true),
        ("keep-alive", "websocket", false),
        ("Upgrade", "SPDY/3.1", false),
        ("upgrades", "websocket", false),
    ] {
        let headers = headers(&[("connection", connection), ("upgrade", upgrade)]);
        assert_eq!(is_asked_for(&headers), expected, "{connection}; {upgrade}");
    }
}

#[test]
fn bearer_tokens_are_read_from_subprotocols() {
    const TOKEN: &str = "base64url.bearer.authorization.k8s.io.dG9rZW4";
    for (protocols, expected) in [
        ("base64url.bearer.authorization.k8s.io.dG9rZW4, mine", Ok(Some("token"))),
        ("mine,base64url.bearer.authorization.k8s.io.dG9rZW4", Ok(Some("token"))),
        ("mine", Ok(None)),
        ("base64url.bearer.authorization.k8s.io., mine", Ok(None)),
        (TOKEN, Err(Error::Token)),
        ("base64url.bearer.authorization.k8s.io.dG9rZW4=, mine", Err(Error::Token)),
        ("base64url.bearer.authorization.k8s.io._w, mine", Err(Error::Token)),
        (
            "base64url.bearer.authorization.k8s.io.YQ, base64url.bearer.authorization.k8s.io.YQ, b",
            Err(Error::Token),
        ),
    ] {
        let mut headers = headers(&[("connection", "Upgrade"), ("upgrade", "websocket")]);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocols));
        let expected = expected.map(|token| token.map(str::to_owned));
        assert_eq!(bearer_token(&headers), expected, "{protocols}");
    }
}
