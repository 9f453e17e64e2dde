use super::*;

/// A kubeconfig as earlier versions wrote it. In one row a test adds a namespace to it, as
/// `kubectl config set-context --current` does.
const OLDER: &str = "\
apiVersion: v1
kind: Config
clusters:
- name: pintle
  cluster:
    certificate-authority-data: eA==
    server: https://127.0.0.1:6443
contexts:
- name: pintle
  context:
    cluster: pintle
    user: kubernetes-admin
current-context: pintle
preferences: {}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: eA==
    client-key-data: eA==
";

#[test]
fn only_files_that_this_program_wrote_are_its_own() {
    let pem = || "x".to_owned();
    let user = Credentials { certificate_pem: pem(), key_pem: pem() };
    let own = kubeconfig("https://127.0.0.1:6443", "x", &user);
    assert_eq!(own, OLDER, "the output of this version equals that of earlier ones");
    let with = |from: &str, to: &str| OLDER.replacen(from, to, 1);
    for (text, expected) in [
        (own, true),
        (String::new(), true),
        (
            with("    user: kubernetes-admin", "    namespace: shop\n    user: kubernetes-admin"),
            true,
        ),
        (
            with("clusters:\n", "clusters:\n- name: prod\n  cluster: {server: https://prod}\n"),
            false,
        ),
        (with("users:\n", "users:\n- name: me\n  user: {token: x}\n"), false),
        (with("- name: pintle\n  cluster:", "- name: prod\n  cluster:"), false),
        ("apiVersion: v1\nkind: Config\n".to_owned(), false),
        ("apiVersion: v1\nkind: Secret\n".to_owned(), false),
        ("my notes".to_owned(), false),
        ("{".to_owned(), false),
    ] {
        assert_eq!(is_own(&text), expected, "{text}");
    }
}

#[test]
fn a_kubeconfig_of_others_is_not_overwritten() {
    let file = std::env::temp_dir().join(format!("pintle-kubeconfig-{}", std::process::id()));
    check_target(&file).expect("no file exists yet");
    fs::write(&file, b"my notes").expect("a file");
    let refused = check_target(&file).expect_err("a file of another program").to_string();
    assert!(refused.contains(&file.display().to_string()), "{refused}");
    assert!(refused.starts_with("--kubeconfig: "), "{refused}");
    fs::write(&file, b"\xff\xfe").expect("a file");
    check_target(&file).expect_err("not UTF-8");
    fs::write(&file, OLDER).expect("a file");
    check_target(&file).expect("a file of an earlier version");
    fs::remove_file(&file).expect("removed");
}
