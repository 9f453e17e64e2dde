use pintle_registry::request::{DeleteOptions, Encoding, Propagation};

use super::*;

fn failure<T>(result: Result<T, Status>) -> (u16, String) {
    result
        .map(|_| ())
        .map_or_else(|status| (status.code, status.message), |()| (200, String::new()))
}

fn check_write(write: Write, query: &str, code: u16, message: &str) {
    let found = failure(write_options(&Query::parse(query), write, &Warnings::default()));
    assert_eq!(found, (code, message.to_owned()), "{query}");
}

#[test]
fn write_options_are_validated() {
    let merge = Write::Patch(PatchType::Merge);
    let apply = Write::Patch(PatchType::Apply(Encoding::Yaml));
    check_write(Write::Create, "", 200, "");
    // DRY-02, DRY-03
    check_write(Write::Create, "dryRun=All", 200, "");
    check_write(Write::Create, "dryRun", 200, "");
    check_write(
        Write::Create,
        "dryRun=foo",
        422,
        r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["foo"]: supported values: "All""#,
    );
    // FV-11
    check_write(
        Write::Update,
        "fieldValidation=foo",
        422,
        r#"UpdateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "foo": supported values: "", "Ignore", "Strict", "Warn""#,
    );
    check_write(
        merge,
        &format!("fieldManager={}", "x".repeat(129)),
        422,
        r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes"#,
    );
    check_write(
        merge,
        "fieldManager=a%0Ab",
        422,
        r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\nb": invalid character U+000A (at position 1)"#,
    );
    // SSA-04, SSA-47
    check_write(
        apply,
        "",
        422,
        r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch"#,
    );
    check_write(apply, "fieldManager=m&force=true", 200, "");
    check_write(
        merge,
        "force=true",
        422,
        r#"PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch"#,
    );
}

#[test]
fn only_the_value_all_makes_a_dry_run() {
    let dry = |query| {
        let warnings = Warnings::default();
        let options = write_options(&Query::parse(query), Write::Create, &warnings).unwrap();
        (options.dry_run, warnings.take().len())
    };
    assert_eq!(
        [dry(""), dry("dryRun"), dry("dryRun="), dry("dryRun=All"), dry("dryRun=All&dryRun=All")],
        [(false, 0), (false, 1), (false, 1), (true, 0), (true, 0)]
    );
    check_write(
        Write::Create,
        "dryRun=All&dryRun=",
        422,
        r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["All",""]: supported values: "All""#,
    );
}

#[test]
fn list_options_are_parsed() {
    let query = "limit=5&continue=c&labelSelector=a%3Db&fieldSelector=x%3Dy&resourceVersion=7\
                 &resourceVersionMatch=Exact&allowWatchBookmarks=true&sendInitialEvents=false";
    let options = list_options(&Query::parse(query)).unwrap();
    assert_eq!((options.limit, options.continue_token.as_str()), (5, "c"));
    assert_eq!((options.label_selector.as_str(), options.field_selector.as_str()), ("a=b", "x=y"));
    assert_eq!((options.resource_version.as_str(), options.version_match.as_str()), ("7", "Exact"));
    assert_eq!((options.bookmarks, options.send_initial_events), (true, Some(false)));
    assert_eq!(list_options(&Query::parse("limit=-1")).unwrap().limit, 0);
    let invalid = |text| format!("strconv.ParseInt: parsing {text}: invalid syntax");
    for (query, text) in [("limit=x", "\"x\""), ("limit=", "\"\""), ("limit=1.5", "\"1.5\"")] {
        assert_eq!(failure(list_options(&Query::parse(query))), (400, invalid(text)));
    }
    let query = Query::parse("limit=99999999999999999999");
    let message = "strconv.ParseInt: parsing \"99999999999999999999\": value out of range";
    assert_eq!(failure(list_options(&query)), (400, message.to_owned()));
}

#[test]
fn timeouts_are_parsed() {
    let watch = |query| watch_timeout(&Query::parse(query)).unwrap();
    assert_eq!(watch("timeoutSeconds=2"), Some(Duration::from_secs(2)));
    assert_eq!([watch(""), watch("timeoutSeconds=0")], [None; 2]);
    assert_eq!(watch("timeoutSeconds=-5"), Some(Duration::ZERO));
    // Go converts seconds to nanoseconds with overflow: these give a negative number, and zero.
    assert_eq!(watch("timeoutSeconds=9223372036854775807"), Some(Duration::ZERO));
    assert_eq!(watch("timeoutSeconds=-9223372036854775808"), None);
    let request = |query| request_timeout(&Query::parse(query));
    assert_eq!(request("timeout=1m30s").unwrap(), Some(Duration::from_secs(90)));
    assert_eq!(request("timeout=0s").unwrap(), None);
    // ST-23
    let message = "invalid timeout specified in the request URL - time: invalid duration \"abc\"";
    assert_eq!(failure(request("timeout=abc")), (400, message.to_owned()));
}

#[test]
fn include_object_is_parsed() {
    let read = |query| table_options(&Query::parse(query));
    assert_eq!(read("").unwrap(), IncludeObject::Metadata);
    assert_eq!(read("includeObject=None").unwrap(), IncludeObject::None);
    assert_eq!(read("includeObject=Object").unwrap(), IncludeObject::Object);
    let message = "Unable to convert to Table as requested: includeObject: Invalid value: \"x\": \
                   must be 'Metadata', 'Object', 'None', or empty";
    assert_eq!(failure(read("includeObject=x")), (400, message.to_owned()));
}

fn delete(query: &str, body: &str) -> Result<DeleteOptions, Status> {
    delete_options(&Query::parse(query), body.as_bytes(), Encoding::Json, &Warnings::default())
}

#[test]
fn delete_options_are_parsed_from_the_query() {
    let query =
        "gracePeriodSeconds=5&uid=u&resourceVersion=7&propagationPolicy=Foreground&dryRun=All";
    let options = delete(query, "").unwrap();
    assert_eq!((options.grace_period_seconds, options.dry_run), (Some(5), true));
    assert_eq!(options.uid.as_deref(), Some("u"));
    assert_eq!(options.resource_version.as_deref(), Some("7"));
    assert_eq!(options.propagation, Some(Propagation::Foreground));
    assert_eq!(delete("orphanDependents=false", "").unwrap().orphan_dependents, Some(false));
}

#[test]
fn delete_options_in_a_body_replace_those_of_the_query() {
    // STRAT-04
    let options = delete("gracePeriodSeconds=5&dryRun=All", r#"{"propagationPolicy":"Orphan"}"#);
    let options = options.unwrap();
    assert_eq!((options.grace_period_seconds, options.dry_run), (None, false));
    assert_eq!(options.propagation, Some(Propagation::Orphan));
    let body = r#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"dryRun":["All"],
                   "preconditions":{"uid":"u","resourceVersion":"7"},"orphanDependents":null}"#;
    let options = delete("", body).unwrap();
    assert_eq!((options.grace_period_seconds, options.dry_run), (Some(0), true));
    assert_eq!(
        (options.uid.as_deref(), options.resource_version.as_deref()),
        (Some("u"), Some("7"))
    );
    assert_eq!(options.orphan_dependents, None);
    let yaml = delete_options(
        &Query::default(),
        b"gracePeriodSeconds: 3\n",
        Encoding::Yaml,
        &Warnings::default(),
    );
    assert_eq!(yaml.unwrap().grace_period_seconds, Some(3));
    let message = b"k8s\0\x12\x02\x08\x03"; // field 1: 3
    let message =
        delete_options(&Query::default(), message, Encoding::Protobuf, &Warnings::default());
    assert_eq!(message.unwrap().grace_period_seconds, Some(3));
}

fn check_delete(query: &str, body: &str, code: u16, message: &str) {
    assert_eq!(failure(delete(query, body)), (code, message.to_owned()), "{query} {body}");
}

#[test]
fn invalid_delete_options_are_refused() {
    check_delete(
        "propagationPolicy=x",
        "",
        422,
        r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil""#,
    );
    check_delete(
        "propagationPolicy=Orphan&orphanDependents=true",
        "",
        422,
        r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#,
    );
    check_delete(
        "",
        r#"{"gracePeriodSeconds":"x"}"#,
        400,
        "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
    );
    check_delete(
        "",
        "[]",
        400,
        "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type \
         struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
         Kind string \"json:\\\"kind,omitempty\\\"\" }",
    );
    check_delete(
        "",
        r#"{"kind":"Pod","apiVersion":"v1"}"#,
        400,
        r#"no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#,
    );
}
