//! Dry-run support of webhooks, and the types in their responses.

use pintle_meta::status::Details;
use pintle_value::{Value, json};

use super::Webhook;
use super::answer::{self, bytes};
use super::review::denial;

/// DRY-07, DRY-08, DRY-09. Validation allows only the first two values; older objects can have the
/// others.
#[test]
fn webhooks_with_side_effects_refuse_dry_runs() {
    let refusal = "admission webhook \"a.example.com\" does not support dry run";
    for (effects, expected) in [
        ("None", Ok(())),
        ("NoneOnDryRun", Ok(())),
        ("Some", Err((400, refusal))),
        ("Unknown", Err((400, refusal))),
        ("", Err((400, refusal))),
    ] {
        let webhook = Value::from([("name", "a.example.com"), ("sideEffects", effects)]);
        let configuration = Value::from([("webhooks", vec![webhook])]);
        let outcome = Webhook::all(&configuration)[0].supports_dry_run();
        let outcome = outcome.as_ref().map_err(|status| (status.code, status.message.as_str()));
        assert_eq!(outcome.copied(), expected, "{effects}");
    }
}

#[test]
fn bytes_are_read_from_base64_or_numbers() {
    const UINT8: &str = "json: cannot unmarshal number 256 into Go struct field \
                         AdmissionResponse.response.patch of type uint8";
    const BYTES: &str = "json: cannot unmarshal object into Go struct field \
                         AdmissionResponse.response.patch of type []uint8";
    for (text, expected) in [
        (r#""W10=""#, Ok("[]")),
        (r#""""#, Ok("")),
        ("[91, 93]", Ok("[]")),
        ("[]", Ok("")),
        ("null", Ok("")),
        (r#""W10""#, Err("illegal base64 data at input byte 0")),
        ("[256]", Err(UINT8)),
        ("{}", Err(BYTES)),
    ] {
        let review = format!(r#"{{"response":{{"patch":{text}}}}}"#);
        let review = answer::decode(review.as_bytes(), "v1");
        let read = review.map(|review| bytes(review.at(&["response", "patch"]).unwrap()));
        let expected = expected.map(|text| text.as_bytes().to_vec());
        assert_eq!(read, expected.map_err(str::to_owned), "{text}");
    }
}

/// The text of each error comes from v1.36.3.
#[test]
fn wrong_kinds_and_types_are_refused() {
    const WITHOUT_KIND: &str =
        "couldn't get version/kind; json parse error: json: cannot unmarshal";
    let mismatch = |what| format!("json: cannot unmarshal {what}");
    let top = r#"Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let scheme = r#"in scheme "pkg/runtime/scheme.go:111""#;
    for (answer, expected) in [
        ("hello", format!("{WITHOUT_KIND} string into {top}")),
        ("[]", format!("{WITHOUT_KIND} array into {top}")),
        (
            r#"{"apiVersion":1}"#,
            format!("{WITHOUT_KIND} number into Go struct field .apiVersion of type string"),
        ),
        (
            r#"{"resp"#,
            "couldn't get version/kind; json parse error: unexpected end of JSON input".to_owned(),
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod"}"#,
            format!(r#"no kind "Pod" is registered for version "v1" {scheme}"#),
        ),
        (
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#,
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
                .into(),
        ),
        (
            "response: x",
            mismatch(
                "string into Go struct field AdmissionReview.response of type v1.AdmissionResponse",
            ),
        ),
        (
            r#"{"response":{"allowed":"yes"}}"#,
            mismatch("string into Go struct field AdmissionResponse.response.allowed of type bool"),
        ),
        (
            r#"{"response":{"status":{"code":1.5}}}"#,
            mismatch("number 1.5 into Go struct field Status.response.status.code of type int32"),
        ),
        (
            r#"{"response":{"status":{"details":{"causes":[{"reason":1}]}}}}"#,
            mismatch(
                "number into Go struct field StatusCause.response.status.details.causes.reason of type \
                 v1.CauseType",
            ),
        ),
        (
            r#"{"response":{"warnings":["a",1]}}"#,
            mismatch(
                "number into Go struct field AdmissionResponse.response.warnings of type string",
            ),
        ),
        (
            r#"{"response":{"auditAnnotations":["x"]}}"#,
            mismatch(
                "array into Go struct field AdmissionResponse.response.auditAnnotations of type \
                 map[string]string",
            ),
        ),
    ] {
        assert_eq!(answer::decode(answer.as_bytes(), "v1"), Err(expected), "{answer}");
    }
    for answer in ["null", "{}", r#"{"response":{"allowed":null,"warnings":[null]}}"#] {
        assert!(answer::decode(answer.as_bytes(), "v1").is_ok(), "{answer}");
    }
}

#[test]
fn a_denial_has_the_details_of_the_response() {
    let result = r#"{"message":"m","code":409,"reason":"Conflict","details":{"name":"a","group":"g",
        "kind":"k","uid":"u","causes":[{"reason":"r","message":"m","field":"f"}],
        "retryAfterSeconds":7}}"#;
    let status = denial("a.example.com", &json::parse(result.as_bytes()).unwrap());
    let details = status.details.as_deref().expect("details");
    let Details { name, group, kind, uid, causes, retry_after_seconds } = details;
    assert_eq!([name, group, kind, uid], ["a", "g", "k", "u"]);
    assert_eq!((causes[0].reason.as_str(), causes[0].field.as_str()), ("r", "f"));
    assert_eq!(*retry_after_seconds, Some(7));
    assert_eq!(denial("a.example.com", &Value::Null).details, None);
}
