use pintle_value::{Path, Value, json};

use super::*;

fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn texts(errors: &[Error]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Checks the errors of an object with a name, a namespace and the given metadata.
fn check(metadata: &str, expected: &[&str]) {
    let mut object = Value::object();
    let members = crate::object::metadata_mut(&mut object);
    members.insert("name", "n");
    members.insert("namespace", "ns");
    for (key, value) in parse(metadata).as_object().expect("metadata is an object").iter() {
        members.insert(key.clone(), value.clone());
    }
    let rule = crate::names::subdomain_rule;
    let errors = object_meta(&object, true, &rule, &Path::new("metadata"));
    assert_eq!(texts(&errors), expected, "{metadata}");
}

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
                         must start and end with an alphanumeric character (e.g. 'MyName',  or \
                         'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                     or '-', and must start and end with an alphanumeric character (e.g. \
                     'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                         characters, '-' or '.', and must start and end with an alphanumeric \
                         character (e.g. 'example.com', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

#[test]
fn names_and_namespaces_are_checked() {
    check("{}", &[]);
    check(r#"{"name":""}"#, &["metadata.name: Required value: name or generateName is required"]);
    check(
        r#"{"name":"A","generateName":"B"}"#,
        &[
            &format!("metadata.generateName: Invalid value: \"B\": {SUBDOMAIN}"),
            &format!("metadata.name: Invalid value: \"A\": {SUBDOMAIN}"),
        ],
    );
    check(r#"{"generateName":"a-"}"#, &[]);
    check(r#"{"namespace":""}"#, &["metadata.namespace: Required value"]);
    check(r#"{"namespace":"A"}"#, &[&format!("metadata.namespace: Invalid value: \"A\": {LABEL}")]);
    let cluster = parse(r#"{"metadata":{"name":"a","namespace":"b"}}"#);
    let rule = crate::names::path_segment_rule;
    let errors = object_meta(&cluster, false, &rule, &Path::new("metadata"));
    assert_eq!(texts(&errors), ["metadata.namespace: Forbidden: not allowed on this type"]);
}

#[test]
fn labels_and_annotations_are_checked() {
    check(
        r#"{"generation":-1}"#,
        &["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
    );
    check(
        r#"{"labels":{"a b":"c","d":"-"}}"#,
        &[
            &format!("metadata.labels: Invalid value: \"a b\": {NAME_PART}"),
            "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or consist \
             of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ],
    );
    check(r#"{"annotations":{"UPPER.com/x":"any \u0000 text"}}"#, &[]);
    check(
        r#"{"annotations":{"A B":""}}"#,
        &[&format!("metadata.annotations: Invalid value: \"A B\": {NAME_PART}")],
    );
    // META-09
    let long = |bytes: usize| format!(r#"{{"annotations":{{"a":"{}"}}}}"#, "x".repeat(bytes));
    check(&long(256 * 1024 - 1), &[]);
    check(
        &long(256 * 1024),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

/// Errors that show all references are bounded in number and size.
#[test]
fn many_controllers_are_refused_in_little_time_and_memory() {
    let owner =
        |uid: usize| format!(r#"{{"uid":"{uid}","name":"{}","controller":true}}"#, "n".repeat(50));
    let owners: Vec<String> = (0..40_000).map(owner).collect();
    let owners = json::parse(format!("[{}]", owners.join(",")).as_bytes()).unwrap();
    let errors = super::owner_references(owners.as_array().unwrap(), &Path::new("owners"));
    assert!(errors.is_full());
    let bytes: usize = errors.iter().map(|error| error.to_string().len()).sum();
    assert!(bytes < 10_000_000, "{bytes}");
}

#[test]
fn owners_are_checked() {
    check(r#"{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}"#, &[]);
    check(
        r#"{"ownerReferences":[{"apiVersion":"a/b/c","kind":"","name":"","uid":""}]}"#,
        &[
            "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ],
    );
    check(
        r#"{"ownerReferences":[{"blockOwnerDeletion":true,"controller":false,"uid":"u","name":"n",
            "kind":"Event","apiVersion":"v1"}]}"#,
        &["metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\
           \"name\":\"n\",\"uid\":\"u\",\"controller\":false,\"blockOwnerDeletion\":true}: \
           /v1, Kind=Event is disallowed from being an owner"],
    );
    check(
        r#"{"ownerReferences":[
            {"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true},
            {"apiVersion":"v1","kind":"B","name":"b","uid":"2","controller":true}]}"#,
        &["metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"A\",\
           \"name\":\"a\",\"uid\":\"1\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"B\",\
           \"name\":\"b\",\"uid\":\"2\",\"controller\":true}]: Only one reference can have \
           Controller set to true. Found \"true\" in references for A/a and B/b"],
    );
}

#[test]
fn finalizers_and_managed_fields_are_checked() {
    check(r#"{"finalizers":["orphan","example.com/x"]}"#, &[]);
    check(
        r#"{"finalizers":["a b"]}"#,
        &[&format!("metadata.finalizers: Invalid value: \"a b\": {NAME_PART}")],
    );
    check(
        r#"{"finalizers":["foregroundDeletion","orphan"]}"#,
        &["metadata.finalizers: Invalid value: [\"foregroundDeletion\",\"orphan\"]: finalizer \
           orphan and foregroundDeletion cannot be both set"],
    );
    check(
        r#"{"managedFields":[{"operation":"Apply","fieldsType":"FieldsV1","manager":"m"}]}"#,
        &[],
    );
    check(
        r#"{"managedFields":[{"operation":"x","fieldsType":"y","manager":"a\u0007"}]}"#,
        &[
            "metadata.managedFields[0].operation: Invalid value: \"x\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"y\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"a\\a\": invalid character U+0007 \
             (at position 1)",
        ],
    );
    let long = ["m".repeat(129), "s".repeat(257)];
    check(
        &format!(
            r#"{{"managedFields":[{{"operation":"Update","manager":"{}","subresource":"{}"}}]}}"#,
            long[0], long[1]
        ),
        &[
            "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
            "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
        ],
    );
}

#[test]
fn updates_of_immutable_metadata_are_rejected() {
    let old = r#"{"name":"n","namespace":"s","uid":"u","resourceVersion":"1","generation":2,
                  "creationTimestamp":"2020-01-01T00:00:00Z"}"#;
    let deleted = r#"{"name":"n","resourceVersion":"1","finalizers":["a"],
                      "deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":0}"#;
    for (old, new, expected) in [
        (old, old, &[][..]),
        (
            old,
            r#"{"generation":1}"#,
            &[
                r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#,
                "metadata.generation: Invalid value: 1: must not be decremented",
                r#"metadata.name: Invalid value: "": field is immutable"#,
                r#"metadata.namespace: Invalid value: "": field is immutable"#,
                r#"metadata.uid: Invalid value: "": field is immutable"#,
                "metadata.creationTimestamp: Invalid value: null: field is immutable",
            ],
        ),
        (
            deleted,
            r#"{"name":"n","resourceVersion":"1","finalizers":["b","a","b","\u0001"],
                "deletionTimestamp":"2020-01-02T00:00:00Z","deletionGracePeriodSeconds":5}"#,
            // DEL-12
            &[
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
                 being deleted, found new finalizers []string{\"\\x01\", \"b\"}",
                "metadata.deletionTimestamp: Invalid value: \"2020-01-02T00:00:00Z\": field is \
                 immutable",
                "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
            ],
        ),
        (
            r#"{"name":"n","resourceVersion":"1"}"#,
            r#"{"name":"n","resourceVersion":"1","finalizers":["a"]}"#,
            &[],
        ),
    ] {
        let [old, new] = [old, new].map(|m| parse(&format!(r#"{{"metadata":{m}}}"#)));
        let errors = object_meta_update(&new, &old, &[], &Path::new("metadata"));
        assert_eq!(texts(&errors), expected, "{new:?}");
    }
}

#[test]
fn an_update_repeats_the_errors_of_its_object() {
    let stored = parse(r#"{"metadata":{"name":"n","namespace":"s","resourceVersion":"1"}}"#);
    let path = Path::new("metadata");
    for (member, wrong) in [
        ("labels", r#"{"a b":""}"#),
        ("annotations", r#"{"a b":""}"#),
        ("ownerReferences", r#"[{"apiVersion":"v1","kind":"Pod","name":"p"}]"#),
        ("managedFields", r#"[{"operation":"Apply","manager":"\u0007"}]"#),
    ] {
        let mut new = stored.clone();
        crate::object::metadata_mut(&mut new).insert(member, parse(wrong));
        let found = object_meta(&new, true, &crate::names::subdomain_rule, &path);
        assert_eq!(found.len(), 1, "{member}");
        assert_eq!(object_meta_update(&new, &stored, &found, &path), found, "{member}");
    }
}

#[test]
fn label_selectors_are_checked() {
    let check = |selector: &str, expected: &[&str]| {
        let errors = label_selector(&parse(selector), &Path::new("spec").field("selector"));
        assert_eq!(texts(&errors), expected, "{selector}");
    };
    check(r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"Exists"}]}"#, &[]);
    check(
        r#"{"matchLabels":{"a b":""},"matchExpressions":[{"key":"a","operator":"In"},
            {"key":"a","operator":"Exists","values":["x"]},{"key":"","operator":"Gt"}]}"#,
        &[
            &format!("spec.selector.matchLabels: Invalid value: \"a b\": {NAME_PART}"),
            "spec.selector.matchExpressions[0].values: Required value: must be specified when \
             `operator` is 'In' or 'NotIn'",
            "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when \
             `operator` is 'Exists' or 'DoesNotExist'",
            "spec.selector.matchExpressions[2].operator: Invalid value: \"Gt\": not a valid \
             selector operator",
            "spec.selector.matchExpressions[2].key: Invalid value: \"\": name part must be non-empty",
            &format!("spec.selector.matchExpressions[2].key: Invalid value: \"\": {NAME_PART}"),
        ],
    );
}

/// META-15
#[test]
fn conditions_are_checked() {
    let check = |list: &str, expected: &[&str]| {
        let list = parse(list);
        let errors = conditions(list.as_array().unwrap(), &Path::new("conditions"));
        assert_eq!(texts(&errors), expected);
    };
    let good = r#"{"type":"Ready","status":"True","reason":"Because","lastTransitionTime":"t"}"#;
    check(&format!("[{good}]"), &[]);
    check(&format!("[{good},{good}]"), &[r#"conditions[1].type: Duplicate value: "Ready""#]);
    check(
        r#"[{"type":"Ready","status":"x","reason":"-","observedGeneration":-1}]"#,
        &[
            r#"conditions[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown""#,
            "conditions[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
            "conditions[0].lastTransitionTime: Required value",
            "conditions[0].reason: Invalid value: \"-\": a condition reason must start with \
             alphabetic character, optionally followed by a string of alphanumeric characters or \
             '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or \
             'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for \
             validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
        ],
    );
}
