use super::check::Verdict;
use super::*;

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}]}}"#;

fn convert(output: Output) -> Convert {
    Convert {
        filenames: vec!["-".into()],
        output,
        validate: Validate::Strict,
        output_version: Vec::new(),
        to: None,
        recursive: false,
        check: Vec::new(),
        check_server: false,
        release: "v1.36".to_owned(),
        kubeconfig: None,
        context: None,
    }
}

/// Converts bytes to an encoding; returns the text of an error.
fn made(bytes: &[u8], output: Output) -> Result<Vec<u8>, String> {
    let convert = convert(output);
    let mut out = Vec::new();
    let made = convert.objects(bytes).and_then(|objects| {
        let plain = |object| Object { text: None, ..object };
        let objects: Vec<_> = objects.into_iter().map(plain).collect();
        output.write(&objects, &mut out)
    });
    made.map(|()| out).map_err(|error| format!("{error:#}"))
}

fn check(input: &str, output: Output, expected: Result<&str, &str>) {
    let made = made(input.as_bytes(), output).map(|out| String::from_utf8_lossy(&out).into_owned());
    assert_eq!(made.as_deref().map_err(String::as_str), expected, "{input}");
}

#[test]
fn every_encoding_becomes_every_other() {
    let yaml = made(POD.as_bytes(), Output::Yaml).unwrap();
    let text = String::from_utf8(yaml.clone()).unwrap();
    assert!(text.starts_with("apiVersion: v1\nkind: Pod\n"), "{text}");
    let message = made(&yaml, Output::Protobuf).unwrap();
    assert!(message.starts_with(b"k8s\0"));
    assert_eq!(made(&message, Output::Protobuf).unwrap(), message);
    assert_eq!(made(&message, Output::Json), made(POD.as_bytes(), Output::Json));
    assert_eq!(made(&message, Output::Yaml), Ok(yaml));
}

#[test]
fn several_objects_are_documents_or_a_list() {
    let two =
        "kind: ConfigMap\napiVersion: v1\ndata: {a: b}\n---\n---\nkind: X\napiVersion: y/v1\n";
    check(
        two,
        Output::Yaml,
        Ok(
            "apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata: {}\n---\napiVersion: y/v1\nkind: X\n",
        ),
    );
    let list = made(two.as_bytes(), Output::Json).unwrap();
    let list = json::parse(&list).unwrap();
    assert_eq!(list.str_at(&["kind"]), Some("List"));
    assert_eq!(list.get("items").and_then(Value::as_array).map(<[_]>::len), Some(2));
    check(two, Output::Protobuf, Err("Protobuf output holds one object, and the input has 2"));
}

#[test]
fn invalid_input_is_an_error() {
    let custom = "kind: X\napiVersion: y/v1\n";
    let no_message = "y/v1 X: only built-in kinds have a Protobuf encoding";
    check(custom, Output::Yaml, Ok("apiVersion: y/v1\nkind: X\n"));
    check(custom, Output::Protobuf, Err(no_message));
    check("a: b", Output::Json, Err("document 1: kind: Required value"));
    check("[]", Output::Json, Err("document 1: must be an object"));
    let odd = "kind: ConfigMap\napiVersion: v1\ndate: {a: b}\n";
    check(odd, Output::Json, Err(r#"document 1: unknown field "date""#));
    let lenient = Convert { validate: Validate::Ignore, ..convert(Output::Json) };
    assert_eq!(lenient.objects(odd.as_bytes()).unwrap().len(), 1);
    assert!(made(b"k8s\0\x12\x7f", Output::Json).unwrap_err().contains("unexpected EOF"));
    assert!(made(b"kind: [", Output::Json).is_err());
}

#[test]
fn directories_are_read_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("b.yaml", "kind: B\napiVersion: v1\n");
    write("a.json", r#"{"kind":"A","apiVersion":"v1"}"#);
    write("notes.txt", "no object");
    fs::create_dir(dir.path().join("aa")).unwrap();
    write("aa/c.yml", "kind: C\napiVersion: v1\n");
    let names = |is_recursive| -> Vec<_> {
        let found = paths(&[dir.path().into()], is_recursive).unwrap();
        found.iter().map(|path| path.file_name().unwrap().to_owned()).collect()
    };
    assert_eq!(names(false), ["a.json", "b.yaml"]);
    assert_eq!(names(true), ["a.json", "c.yml", "b.yaml"]);
    let empty = tempfile::tempdir().unwrap();
    assert!(paths(&[empty.path().into()], true).is_err());
}

/// Converts the objects of a text to their newest versions; returns the output and the reported
/// problems.
fn newest(input: &str) -> (String, Vec<String>) {
    let convert = Convert { to: Some("v1.36".to_owned()), ..convert(Output::Yaml) };
    let versions = convert.versions().unwrap().unwrap();
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    for object in convert.objects(input.as_bytes()).unwrap() {
        let (object, found) = convert.converted(&versions, object).unwrap();
        objects.push(object);
        problems.extend(found);
    }
    let mut out = Vec::new();
    Output::Yaml.write(&objects, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), problems)
}

#[test]
fn objects_mean_the_same_in_their_newest_version() {
    for (old, expected) in [
        // A selector that was taken from the template is written out, and so are defaults that
        // differ.
        (
            "{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: a}, spec: {template: \
             {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  labels:\n    a: b\n  name: a\nspec:\n  \
             progressDeadlineSeconds: 2147483647\n  revisionHistoryLimit: 2147483647\n  selector:\n    \
             matchLabels:\n      a: b\n  strategy:\n    rollingUpdate:\n      maxSurge: 1\n      \
             maxUnavailable: 1\n  template:\n    metadata:\n      labels:\n        a: b\n    spec:\n      \
             containers:\n      - image: i\n        name: c\n        resources: {}\n",
        ),
        (
            "{apiVersion: batch/v1beta1, kind: CronJob, spec: {schedule: s}}",
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {}\nspec:\n  jobTemplate:\n    metadata: {}\n    \
             spec:\n      template:\n        metadata: {}\n        spec:\n          containers: null\n  \
             schedule: s\n",
        ),
        ("{apiVersion: example.com/v1, kind: A}", "{apiVersion: example.com/v1, kind: A}\n"),
    ] {
        assert_eq!(newest(old), (expected.to_owned(), Vec::new()), "{old}");
    }
}

#[test]
fn what_does_not_change_keeps_its_text() {
    let (text, problems) = newest(
        "# first\napiVersion: v1 # still\nkind: ConfigMap\n---\napiVersion: policy/v1beta1\nkind: \
         PodDisruptionBudget\nspec: {selector: {}}\n",
    );
    assert!(text.starts_with("# first\napiVersion: v1 # still\nkind: ConfigMap\n---\n"), "{text}");
    assert!(text.contains("apiVersion: policy/v1\n"), "{text}");
    assert!(text.contains("operator: Exists"), "{text}");
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn a_definition_is_given_the_schemas_that_v1_wants() {
    let definition = |schema: &str| {
        format!(
            "{{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: \
             {{name: as.example.com}}, spec: {{group: example.com, version: v1, scope: Cluster, names: \
             {{plural: as, kind: A}}, validation: {{openAPIV3Schema: {schema}}}}}}}"
        )
    };
    let (text, problems) =
        newest(&definition("{properties: {spec: {properties: {a: {type: string}}}}}"));
    assert_eq!(problems, Vec::<String>::new());
    let made = documents::read(text.as_bytes()).unwrap().remove(0).tree;
    let spec = made.get("spec").unwrap();
    assert_eq!(spec.get("preserveUnknownFields"), None);
    let versions = spec.get("versions").and_then(Value::as_array).unwrap();
    let schema = versions[0].at(&["schema", "openAPIV3Schema"]).unwrap();
    let of = |path: &[&str]| schema.str_at(path).map(str::to_owned);
    assert_eq!(of(&["type"]).as_deref(), Some("object"));
    assert_eq!(of(&["properties", "spec", "type"]).as_deref(), Some("object"));
    assert_eq!(schema.get("x-kubernetes-preserve-unknown-fields"), Some(&Value::Bool(true)));
    // A schema of v1 cannot express alternative types.
    let (_, problems) =
        newest(&definition("{properties: {spec: {oneOf: [{type: string}, {type: boolean}]}}}"));
    let refused = "properties[spec].oneOf[0].type: Forbidden: must be empty to be structural";
    assert!(problems.iter().any(|problems| problems.contains(refused)), "{problems:?}");
}

/// The verdict and the lines of a check of an object.
fn checked(tree: &Value, release: u32) -> (Verdict, String) {
    let mut out = Vec::new();
    let mut check = Check::new(release, &mut out);
    check.document((Path::new("f"), 1), tree).unwrap();
    (check.verdict(), String::from_utf8(out).unwrap())
}

fn tree(text: &str) -> Value {
    documents::read(text.as_bytes()).unwrap().remove(0).tree
}

#[test]
fn a_release_lacks_what_was_removed_before() {
    let old =
        "{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {name: a, namespace: web}}";
    for (old, release, verdict, line) in [
        (old, 21, Verdict::Deprecated, "deprecated in v1.14, removed in v1.22"),
        (old, 22, Verdict::Removed, "removed in v1.22"),
        (old, 13, Verdict::Fine, ""),
    ] {
        let expected = match line {
            "" => String::new(),
            line => format!(
                "f: document 1: extensions/v1beta1 Ingress web/a: {line}; use networking.k8s.io/v1 \
                 Ingress\n"
            ),
        };
        assert_eq!(checked(&tree(old), release), (verdict, expected));
    }
    assert_eq!(release("v1.25").ok(), Some(25));
    assert_eq!(release("1.9.3").ok(), Some(9));
    assert!(release("1.37").is_err() && release("two").is_err());
}

#[test]
fn who_still_writes_an_old_version_is_reported() {
    let new = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, ANNOTATIONS \
               managedFields: [{manager: kubectl, apiVersion: VERSION}, {manager: other, apiVersion: \
               VERSION}, {apiVersion: networking.k8s.io/v1}]}}";
    let applied = "annotations: {kubectl.kubernetes.io/last-applied-configuration: \
                   '{\"apiVersion\":\"extensions/v1beta1\",\"kind\":\"Ingress\"}'},";
    let gone = "removed in v1.22; use networking.k8s.io/v1 Ingress\n";
    for (annotations, version, lines) in [
        ("", "networking.k8s.io/v1", String::new()),
        (
            "",
            "networking.k8s.io/v1beta1",
            format!(
                "f: document 1: networking.k8s.io/v1beta1 Ingress a (fields of \"kubectl\"): {gone}"
            ),
        ),
        (
            applied,
            "extensions/v1beta1",
            format!("f: document 1: extensions/v1beta1 Ingress a (last applied): {gone}"),
        ),
        (
            "annotations: {kubectl.kubernetes.io/last-applied-configuration: '['},",
            "v1",
            String::new(),
        ),
    ] {
        let text = new.replace("ANNOTATIONS", annotations).replace("VERSION", version);
        let expected = if lines.is_empty() { Verdict::Fine } else { Verdict::Removed };
        assert_eq!(checked(&tree(&text), 36), (expected, lines), "{text}");
    }
}

#[test]
fn releases_of_helm_are_looked_through() {
    let manifest = "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a}\n---\napiVersion: \
                    v1\nkind: List\nitems: [{apiVersion: policy/v1beta1, kind: PodSecurityPolicy}]\n";
    let (verdict, problems) = checked(&helm::tests::installed("deployed", manifest), 36);
    assert_eq!(verdict, Verdict::Removed);
    let line = "f: document 1: Helm release web/shop.v3: batch/v1beta1 CronJob a: removed in v1.25; use \
                batch/v1 CronJob\n";
    assert!(problems.starts_with(line), "{problems}");
    let mut broken = helm::tests::installed("deployed", "");
    broken.object_entry("data").insert("release", "%");
    let (verdict, problems) = checked(&broken, 36);
    assert_eq!(verdict, Verdict::Unread);
    assert!(
        problems.contains("Helm release in web/sh.helm.release.v1.shop.v3 cannot be read"),
        "{problems}"
    );
}

#[test]
fn kubectl_converts_to_the_newest_version() {
    let target = |convert: Convert| convert.for_kubectl().to;
    assert_eq!(target(convert(Output::Yaml)).as_deref(), Some("v1.36"));
    let version = vec!["apps/v1".to_owned()];
    assert_eq!(target(Convert { output_version: version, ..convert(Output::Yaml) }), None);
    assert_eq!(target(Convert { check_server: true, ..convert(Output::Yaml) }), None);
}
