//! Dry-run support of webhooks, and bytes in their responses.

use pintle_value::{Value, json};

use super::Webhook;
use super::review::bytes;

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
    for (text, expected) in [
        (r#""W10=""#, Some("[]")),
        (r#""""#, Some("")),
        ("[91, 93]", Some("[]")),
        ("[]", Some("")),
        ("null", Some("")),
        (r#""W10""#, None),
        ("[256]", None),
        (r#"["a"]"#, None),
        ("{}", None),
    ] {
        let read = bytes(&json::parse(text.as_bytes()).unwrap());
        assert_eq!(read.ok().as_deref(), expected.map(str::as_bytes), "{text}");
    }
}
