//! Compares with the messages that gnostic's own parser produces (`testdata/openapi/*.pb`).

use super::*;

fn check(made: Result<Vec<u8>, Error>, expected: &[u8]) {
    let made = made.expect("a document");
    let at = made.iter().zip(expected).position(|(a, b)| a != b);
    let near = |bytes: &[u8]| {
        let from = at.unwrap_or(0).saturating_sub(60);
        String::from_utf8_lossy(&bytes[from..bytes.len().min(from + 120)]).into_owned()
    };
    assert_eq!((made.len(), at), (expected.len(), None), "{:?}\n{:?}", near(&made), near(expected));
}

#[test]
fn documents_match_gnostic() {
    // OAS-01, OAS-02
    check(
        v2_message(include_bytes!("../../../testdata/openapi/v2.json")),
        include_bytes!("../../../testdata/openapi/v2.pb"),
    );
    check(
        v3_message(include_bytes!("../../../testdata/openapi/v3.json")),
        include_bytes!("../../../testdata/openapi/v3.pb"),
    );
}

#[test]
fn arbitrary_json_does_not_panic() {
    for (text, is_json) in [("", false), ("[", false), ("[]", true), ("null", true)] {
        assert_eq!(v2_message(text.as_bytes()).is_ok(), is_json, "{text}");
    }
    for text in [
        r#"{"paths":1,"info":[],"definitions":{"a":[{}]},"parameters":{"x":{"in":"nowhere"}}}"#,
        r#"{"components":{"schemas":{"a":{"items":[1,"b"],"default":{},"type":7}}}}"#,
    ] {
        assert!(v2_message(text.as_bytes()).is_ok() && v3_message(text.as_bytes()).is_ok());
    }
}
