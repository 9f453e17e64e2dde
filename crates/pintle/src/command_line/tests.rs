use std::fs;

use anyhow::anyhow;

use super::*;

/// Reads `pintle serve` with a file and further flags. In an error, the file's path is `FILE`.
fn read(text: &str, flags: &[&str]) -> Result<CommandLine, String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("f.yaml");
    fs::write(&path, text).expect("written");
    let path = path.to_str().expect("UTF-8");
    let line = [&["pintle", "serve", "--config", path], flags].concat();
    Pintle::read(line).map_err(|error| format!("{error:#}").replace(path, "FILE"))
}

fn value(flag_values: &FlagValues, name: &str) -> String {
    let found = flag_values.iter().find(|(flag, _)| flag == name);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

#[test]
fn a_file_sets_flags_of_every_type_and_the_command_line_replaces_them() {
    const FILE: &str = "\
secure-port: 0
ephemeral: true
unsafe-no-fsync: false
anonymous-auth: no  # YAML 1.1
watch-history: 10m
emulated-version: '1.35'
runtime-config: [api/beta=true, 'batch/v1=false']
authorization-mode: [Node, RBAC]
enable-admission-plugins: AlwaysPullImages
tls-curve-preferences: [29, 23]
audit-log-batch-throttle-qps: 0.5
v: 4
";
    let CommandLine { flag_values, .. } =
        read(FILE, &["--watch-history=1h", "--authorization-mode=ABAC"]).expect("it is valid");
    for (name, expected) in [
        ("secure-port", "0"),
        ("ephemeral", "true"),
        ("unsafe-no-fsync", "false"),
        ("anonymous-auth", "false"),
        ("watch-history", "1h"),
        ("emulated-version", "1.35"),
        ("runtime-config", "api/beta=true,batch/v1=false"),
        ("authorization-mode", "ABAC"),
        ("enable-admission-plugins", "AlwaysPullImages"),
        ("tls-curve-preferences", "29,23"),
        ("audit-log-batch-throttle-qps", "0.5"),
        ("v", "4"),
        ("max-requests-inflight", "400"),
    ] {
        assert_eq!(value(&flag_values, name), expected, "{name}");
    }
}

#[test]
fn a_flag_that_another_needs_may_be_in_the_file() {
    let read = read("tls-private-key-file: a.key\n", &["--tls-cert-file=a.crt"]);
    assert_eq!(value(&read.expect("it is valid").flag_values, "tls-private-key-file"), "a.key");
}

#[test]
fn an_error_names_the_file_the_line_and_the_key() {
    for (text, expected) in [
        ("", None),
        ("# nothing\n", None),
        ("v: 1\nsecure-prt: 1\n", Some("line 2: secure-prt: unknown key; the keys are the flags")),
        ("config: a\n", Some("line 1: config: unknown key")),
        ("help: true\n", Some("line 1: help: unknown key")),
        ("--v: 1\n", Some("line 1: --v: unknown key")),
        ("v: 1\nv: 2\n", Some("line 2: key \"v\" already set in map")),
        ("v: 1\nb: [\n", Some("line 2: ")),
        ("- v\n", Some("line 1: the file must be a map")),
        ("v: 1\n---\nv: 2\n", Some("more than one document")),
        ("\nv: '1'\n", Some("line 2: v: must be a number")),
        ("secure-port: [1]\n", Some("line 1: secure-port: must be a number, not a list")),
        ("secure-port: {a: 1}\n", Some("line 1: secure-port: must be a number, not a map")),
        ("ephemeral: 1\n", Some("line 1: ephemeral: must be true or false")),
        ("anonymous-auth: 'false'\n", Some("line 1: anonymous-auth: must be true or false")),
        ("data-dir:\n", Some("line 1: data-dir: must be a string: it has no value")),
        ("data-dir: [a, b]\n", Some("line 1: data-dir: must be a string, not a list")),
        ("emulated-version: 1.30\n", Some("line 1: emulated-version: must be a string: write")),
        ("authorization-mode: [RBAC, 1]\n", Some("line 1: authorization-mode: must be a string")),
        ("authorization-mode: [[RBAC]]\n", Some("must be a string, not a list")),
        (
            "v: 1\nrequest-timeout: soon\n",
            Some("line 2: invalid value 'soon' for '--request-timeout"),
        ),
        ("secure-port: 70000\n", Some("line 1: invalid value '70000' for '--secure-port")),
        ("v: 1\ntls-cert-file: a\n", Some("tls-private-key-file")),
    ] {
        match (read(text, &[]), expected) {
            (Ok(_), None) => {}
            (Err(why), Some(part)) => {
                assert!(why.contains(part), "{text:?}: {why}");
                let is_located = why.starts_with("--config: FILE: ");
                assert!(is_located || part == "tls-private-key-file", "{text:?}: {why}");
            }
            (found, _) => panic!("{text:?}: {:?}", found.map(|read| read.flag_values)),
        }
    }
}

#[test]
fn a_later_error_about_a_flag_of_the_file_is_located() {
    let CommandLine { file, .. } = read("v: 1\nruntime-config: foo/v1\n", &[]).expect("it parses");
    let file = file.expect("there is a file");
    let located = |text: &str| format!("{:#}", file.locate(anyhow!(text.to_owned())));
    assert!(located("--runtime-config: unknown").contains("line 2: --runtime-config: unknown"));
    for text in ["--secure-port: taken", "cannot listen", "--runtime-config-x: a"] {
        assert_eq!(located(text), text);
    }
}

#[test]
fn flags_are_listed_with_their_values() {
    let CommandLine { flag_values, .. } =
        Pintle::read(["pintle", "serve", "--ephemeral", "--controllers=*,-namespace-controller"])
            .unwrap();
    let value = |name: &str| {
        let found = flag_values.iter().find(|(flag, _)| flag == name);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(value("ephemeral"), Some("true"));
    assert_eq!(value("unsafe-no-fsync"), Some("false"));
    assert_eq!(value("controllers"), Some("*,-namespace-controller"));
    assert_eq!(value("secure-port"), Some("6443"));
    assert_eq!(value("kubeconfig"), Some(""));
    assert_eq!(value("v"), Some("0"));
    assert!(Pintle::read(["pintle", "serve", "--nonsense"]).is_err());
}

#[test]
fn flags_are_sound() {
    Pintle::command().debug_assert();
}
