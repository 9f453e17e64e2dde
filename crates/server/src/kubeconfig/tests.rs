use super::*;

/// What versions before this one wrote, and what kubectl makes of it (`config set-context --current`).
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
fn only_what_this_program_wrote_is_its_own() {
    let pem = || "x".to_owned();
    let user = Credentials { certificate_pem: pem(), key_pem: pem() };
    let own = kubeconfig("https://127.0.0.1:6443", "x", &user);
    assert_eq!(own, OLDER, "a file of another version is recognised by its content");
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
fn what_is_not_ours_stays_and_is_named() {
    let file = std::env::temp_dir().join(format!("pintle-kubeconfig-{}", std::process::id()));
    check_place(&file).expect("there is nothing yet");
    fs::write(&file, b"my notes").expect("a file");
    let refused = check_place(&file).expect_err("somebody else's").to_string();
    assert!(refused.contains(&file.display().to_string()), "{refused}");
    assert!(refused.starts_with("--kubeconfig: "), "{refused}");
    fs::write(&file, b"\xff\xfe").expect("a file");
    check_place(&file).expect_err("no text");
    fs::write(&file, OLDER).expect("a file");
    check_place(&file).expect("an older version's");
    fs::remove_file(&file).expect("removed");
}
