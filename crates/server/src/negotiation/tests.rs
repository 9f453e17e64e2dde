use http::HeaderValue;
use pintle_meta::Reason;

use super::*;

fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
    pairs.iter().map(|(k, v)| (k.clone(), HeaderValue::from_str(v).unwrap())).collect()
}

const OBJECTS: Forms = Forms::Objects { tables: true };

fn check(forms: Forms, accept: &str, expected: Result<(Encoding, Form), &str>) {
    let headers = headers(&[(ACCEPT, accept)]);
    let found =
        Preferences::new(&headers, &Query::default()).answer(forms, Encodings::WITHOUT_PROTOBUF);
    let found = found.map(|n| (n.encoding, n.form)).map_err(|status| status.message);
    assert_eq!(found, expected.map_err(str::to_owned), "{accept}");
}

#[test]
fn response_encodings_are_negotiated() {
    use Encoding::{Json, Yaml};
    let object = |encoding| Ok((encoding, Form::Object));
    let refused = Err("only the following media types are accepted: application/json, \
                       application/yaml, application/vnd.kubernetes.protobuf");
    // MT-01, MT-03, MT-07
    check(OBJECTS, "", object(Json));
    check(OBJECTS, "*/*", object(Json));
    check(OBJECTS, "application/*", object(Json));
    check(OBJECTS, "application/yaml", object(Yaml));
    check(OBJECTS, "application/json;q=0.1, application/yaml", object(Yaml));
    check(OBJECTS, "application/json;charset=utf-8", object(Json));
    check(OBJECTS, "application/json;stream=watch", object(Json));
    // Go clients ask for Protobuf first
    check(OBJECTS, "application/vnd.kubernetes.protobuf,application/json", object(Json));
    check(OBJECTS, "application/vnd.kubernetes.protobuf, */*", object(Json));
    // MT-05
    check(OBJECTS, "text/csv", refused);
    check(OBJECTS, "application/vnd.kubernetes.protobuf", refused);
    check(OBJECTS, "application/json;stream=other", refused);
}

#[test]
fn tables_metadata_and_discovery_are_negotiated() {
    use Encoding::{Json, Yaml};
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    // TBL-01, TBL-02, TBL-08
    check(OBJECTS, table, Ok((Json, Form::Table(MetaVersion::V1))));
    check(OBJECTS, &table.replace("v1", "v1beta1"), Ok((Json, Form::Table(MetaVersion::V1Beta1))));
    check(OBJECTS, &table.replace("json", "yaml"), Ok((Yaml, Form::Table(MetaVersion::V1))));
    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                   application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    check(OBJECTS, kubectl, Ok((Json, Form::Table(MetaVersion::V1))));
    check(Forms::Objects { tables: false }, kubectl, Ok((Json, Form::Object)));
    check(Forms::Plain, kubectl, Ok((Json, Form::Object)));
    let future = "application/json;as=Table;v=v2;g=meta.k8s.io, application/json";
    check(OBJECTS, future, Ok((Json, Form::Object)));
    // OAS-13
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    check(OBJECTS, metadata, Ok((Json, Form::PartialObjectMetadataList(MetaVersion::V1))));
    // DISC-02, DISC-04, DISC-06
    let discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    check(Forms::Discovery, discovery, Ok((Json, Form::GroupDiscovery)));
    check(
        Forms::Discovery,
        &format!("{discovery};profile=nopeer"),
        Ok((Json, Form::GroupDiscovery)),
    );
    let fallback = format!("{},application/json", discovery.replace("v2", "v2beta1"));
    check(Forms::Discovery, &fallback, Ok((Json, Form::Object)));
}

#[test]
fn a_watch_in_yaml_is_not_acceptable() {
    let headers = headers(&[(ACCEPT, "application/yaml")]);
    let refused =
        Preferences::new(&headers, &Query::default()).watch(OBJECTS, Encodings::ALL).unwrap_err();
    assert_eq!((refused.code, refused.reason), (406, Some(Reason::NotAcceptable)));
}

#[test]
fn protobuf_is_negotiated_for_objects_and_metadata_v1() {
    // MT-03, MT-08, MT-13, TBL-02, OAS-13
    let check = |accept: &str, encodings, expected: Option<(Encoding, Form)>| {
        let headers = headers(&[(ACCEPT, accept)]);
        let found = Preferences::new(&headers, &Query::default()).answer(OBJECTS, encodings);
        assert_eq!(found.ok().map(|n| (n.encoding, n.form)), expected, "{accept}");
    };
    let object = |encoding| Some((encoding, Form::Object));
    let go = "application/vnd.kubernetes.protobuf,application/json";
    check(go, Encodings::ALL, object(Encoding::Protobuf));
    check(go, Encodings::WITHOUT_PROTOBUF, object(Encoding::Json));
    check("application/vnd.kubernetes.protobuf", Encodings::WITHOUT_PROTOBUF, None);
    check("*/*", Encodings::ALL, object(Encoding::Json));
    let form = |kind: &str, version: &str| {
        format!("application/vnd.kubernetes.protobuf;as={kind};v={version};g=meta.k8s.io")
    };
    check(&form("Table", "v1"), Encodings::ALL, None);
    let metadata = Form::PartialObjectMetadata(MetaVersion::V1);
    let found = Some((Encoding::Protobuf, metadata));
    check(&form("PartialObjectMetadata", "v1"), Encodings::ALL, found);
    check(&form("PartialObjectMetadata", "v1beta1"), Encodings::ALL, None);
}

fn check_pretty(agent: &str, query: &str, expected: bool) {
    let headers = headers(&[(USER_AGENT, agent)]);
    let negotiated =
        Preferences::new(&headers, &Query::parse(query)).answer(OBJECTS, Encodings::ALL).unwrap();
    assert_eq!(negotiated.pretty, expected, "{agent} {query}");
}

#[test]
fn browsers_and_curl_get_indented_json() {
    // OAS-10
    check_pretty("curl/8.0", "", true);
    check_pretty("Wget/1.2", "", true);
    check_pretty("Mozilla/5.0 (X11)", "", true);
    check_pretty("kubectl/v1.36", "", false);
    check_pretty("kubectl/v1.36", "pretty=true", true);
    check_pretty("curl/8.0", "pretty=false", false);
    check_pretty("curl/8.0", "pretty=", true);
}

fn check_body(content_type: &str, expected: Result<Encoding, u16>) {
    let headers = headers(&[(CONTENT_TYPE, content_type)]);
    let found = Preferences::new(&headers, &Query::default()).body(Encodings::ALL);
    assert_eq!(found.map_err(|status| status.code), expected, "{content_type}");
}

#[test]
fn request_bodies_need_a_known_content_type() {
    // MT-02, MT-14
    let silent = HeaderMap::new();
    let silent = Preferences::new(&silent, &Query::default());
    assert_eq!(silent.body(Encodings::ALL), Ok(Encoding::Json));
    check_body("application/json", Ok(Encoding::Json));
    check_body("application/json; charset=utf-8", Ok(Encoding::Json));
    check_body("application/yaml", Ok(Encoding::Yaml));
    check_body("application/vnd.kubernetes.protobuf", Ok(Encoding::Protobuf));
    check_body("text/plain", Err(415));
    check_body("nonsense", Err(415));
    let refused = |content_type, encodings| {
        let headers = headers(&[(CONTENT_TYPE, content_type)]);
        Preferences::new(&headers, &Query::default()).body(encodings).unwrap_err().message
    };
    let text = "the body of the request was in an unknown format - accepted media types include: \
                application/json, application/yaml, application/vnd.kubernetes.protobuf";
    assert_eq!(refused("text/plain", Encodings::ALL), text);
    // MT-13
    assert_eq!(refused("application/vnd.kubernetes.protobuf", Encodings::WITHOUT_PROTOBUF), text);
}

#[test]
fn patches_need_a_known_content_type() {
    // UPD-05, UPD-06
    for (media_type, expected) in PATCHES {
        let headers = headers(&[(CONTENT_TYPE, &format!("{media_type}; charset=utf-8"))]);
        let preferences = Preferences::new(&headers, &Query::default());
        assert_eq!(preferences.with_cbor(true).patch(true), Ok(expected));
    }
    let headers = headers(&[(CONTENT_TYPE, "application/json")]);
    let preferences = Preferences::new(&headers, &Query::default());
    assert_eq!(preferences.patch(true).unwrap_err().message, "415: Unsupported Media Type");
    assert_eq!(
        preferences.patch(false).unwrap_err().message,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
}

#[test]
fn cbor_needs_its_feature_gate() {
    // CBOR-01
    let check = |accept: &str, gate, encodings, expected: Option<Encoding>| {
        let headers = headers(&[(ACCEPT, accept), (CONTENT_TYPE, "application/cbor")]);
        let preferences = Preferences::new(&headers, &Query::default());
        let preferences = preferences.with_cbor(gate);
        let found = preferences.answer(OBJECTS, encodings).ok().map(|found| found.encoding);
        assert_eq!(found, expected, "{accept} {gate}");
        assert_eq!(preferences.body(encodings).is_ok(), gate);
    };
    for encodings in [Encodings::ALL, Encodings::WITHOUT_PROTOBUF] {
        check("application/cbor", false, encodings, None);
        check("application/cbor", true, encodings, Some(Encoding::Cbor));
        check("application/cbor, application/json", false, encodings, Some(Encoding::Json));
        check("*/*", true, encodings, Some(Encoding::Json));
    }
    let headers = headers(&[(ACCEPT, "application/yaml")]);
    let preferences = Preferences::new(&headers, &Query::default());
    let refused = preferences.with_cbor(true).watch(OBJECTS, Encodings::ALL).unwrap_err();
    assert!(
        refused.message.ends_with(";stream=watch, application/cbor-seq"),
        "{}",
        refused.message
    );
}
