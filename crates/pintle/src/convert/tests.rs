use super::*;

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}]}}"#;

fn convert(output: Output) -> Convert {
    Convert { filenames: vec!["-".into()], output, validate: Validate::Strict }
}

/// What becomes of the bytes; of a failure, its text.
fn made(bytes: &[u8], output: Output) -> Result<Vec<u8>, String> {
    let convert = convert(output);
    let mut out = Vec::new();
    let made = convert.objects(bytes).and_then(|objects| output.write(&objects, &mut out));
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
    check(two, Output::Protobuf, Err("Protobuf holds one object, and there are 2"));
}

#[test]
fn what_is_wrong_is_said() {
    let custom = "kind: X\napiVersion: y/v1\n";
    let no_message = "y/v1 X: only built-in kinds have a Protobuf encoding";
    check(custom, Output::Yaml, Ok("apiVersion: y/v1\nkind: X\n"));
    check(custom, Output::Protobuf, Err(no_message));
    check("a: b", Output::Json, Err("document 1: it does not say its kind"));
    check("[]", Output::Json, Err("document 1: it is no object"));
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
    let convert = Convert { filenames: vec![dir.path().into()], ..convert(Output::Yaml) };
    let names: Vec<_> =
        convert.paths().unwrap().iter().map(|p| p.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["a.json", "b.yaml"]);
    let empty = tempfile::tempdir().unwrap();
    let convert = Convert { filenames: vec![empty.path().into()], ..convert };
    assert!(convert.paths().is_err());
}
