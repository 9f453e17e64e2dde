use super::*;

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn only_matching_responses_are_accepted() {
    let ok = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",
        "response":{"uid":"u","result":{"status":"Success"},"convertedObjects":[{}]}}"#;
    assert_eq!(read_answer(value(ok), "v1", "u").map(|objects| objects.len()), Ok(1));
    for (answer, why) in [
        (
            "{}",
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got , Kind=",
        ),
        (
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}"#,
            "no response provided",
        ),
        (&ok.replace(r#""u""#, r#""v""#), r#"expected response.uid="u", got "v""#),
        (&ok.replace("Success", "Failure"), "response.result.status was 'Failure', not 'Success'"),
        (&ok.replace(r#""Success""#, r#""Failed","message":"no""#), "no"),
    ] {
        assert_eq!(read_answer(value(answer), "v1", "u"), Err(why.to_owned()), "{answer}");
    }
}

#[test]
fn a_webhook_only_changes_labels_and_annotations() {
    let original = value(
        r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n","uid":"u","labels":{"a":"b"},
            "resourceVersion":"7"}}"#,
    );
    let check = |converted: &str| match keep_metadata(&original, value(converted), "g/v2") {
        Ok(object) => Ok(json::to_string(object.get("metadata").expect("metadata"))),
        Err(Fault::Type(why) | Fault::Object(why) | Fault::Metadata(why)) => Err(why),
    };
    for (converted, expected) in [
        (
            r#"{"apiVersion":"g/v2","kind":"K","metadata":{"name":"n","uid":"u","labels":{"c":"d"},"resourceVersion":"9"}}"#,
            Ok(r#"{"labels":{"c":"d"},"name":"n","resourceVersion":"7","uid":"u"}"#),
        ),
        (
            r#"{"apiVersion":"g/v1","kind":"K"}"#,
            Err("invalid groupVersion (expected g/v2, received g/v1)"),
        ),
        (r#"{"apiVersion":"g/v2","kind":"L"}"#, Err("invalid kind (expected K, received L)")),
        (
            r#"{"apiVersion":"g/v2","kind":"K","metadata":{"name":"m"}}"#,
            Err("must have the same name: n != m"),
        ),
        (
            r#"{"apiVersion":"g/v2","kind":"K","metadata":{"name":"n","uid":"x"}}"#,
            Err("must have the same UID: u != x"),
        ),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(check(converted), expected, "{converted}");
    }
}
