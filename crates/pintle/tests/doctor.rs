//! `pintle doctor` finds problems in the files and resources of a server, and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use serde_json::Value;

/// A server on a data directory, killed at the end.
struct Server(Child);

impl Server {
    fn start(directory: &Path) -> Self {
        Self::start_with(directory, &[])
    }

    fn start_with(directory: &Path, flags: &[&str]) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_pintle"))
            .args(["serve", "--secure-port=0", "--data-dir=data"])
            .args(flags)
            .current_dir(directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut ready = String::new();
        let output = server.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut ready).expect("text");
        assert!(ready.starts_with("pintle ready"), "{ready:?}");
        Self(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The exit code, and the findings as JSON.
fn doctor(directory: &Path, flags: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .args(["doctor", "--output=json", "--data-dir=data", "--secure-port=0"])
        .args(flags)
        .current_dir(directory)
        .output()
        .expect("the program runs");
    let tree: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code(), tree["findings"].as_array().expect("a list").clone())
}

/// The files below a directory with their contents and times.
fn state(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(state(&path));
        } else {
            let time = entry.metadata().and_then(|file| file.modified()).expect("a time");
            files.insert(path.clone(), (fs::read(path).expect("read"), time));
        }
    }
    files
}

/// Changes the data directory of a stopped server.
type Spoil = fn(&Path);

/// A change with its name, flags, and the finding: its severity, its check, and a part of its
/// message.
type Row = (&'static str, Spoil, &'static [&'static str], &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("nothing", |_| {}, &[], "ok", "store", "records, revisions"),
    ("nothing, its certificates", |_| {}, &[], "ok", "certificates", "valid"),
    ("nothing, its kubeconfig", |_| {}, &[], "ok", "kubeconfig", "belongs to this server"),
    (
        "an empty format file",
        |data| fs::write(data.join("store/format"), "").expect("written"),
        &[],
        "error",
        "store",
        "`format` is damaged",
    ),
    (
        "no database",
        |data| fs::remove_file(data.join("store/store.redb")).expect("removed"),
        &[],
        "error",
        "store",
        "is missing",
    ),
    (
        "damaged pages",
        |data| {
            let file = data.join("store/store.redb");
            let mut bytes = fs::read(&file).expect("read");
            bytes.chunks_mut(4096).skip(1).for_each(|page| page[..100].fill(0xa5));
            fs::write(file, bytes).expect("written");
        },
        &[],
        "error",
        "store",
        "",
    ),
    (
        "the CA key of another",
        |data| _ = fs::copy(data.join("pki/admin.key"), data.join("pki/ca.key")).expect("copied"),
        &[],
        "error",
        "certificates",
        "this key is not that of the CA",
    ),
    (
        "the serving key of another",
        |data| {
            _ = fs::copy(data.join("pki/admin.key"), data.join("pki/apiserver.key"))
                .expect("copied");
        },
        &[],
        "warning",
        "certificates",
        "its key is another's",
    ),
    (
        "a serving certificate that cannot be read",
        |data| {
            fs::remove_file(data.join("pki/apiserver.crt")).expect("removed");
            fs::create_dir(data.join("pki/apiserver.crt")).expect("made");
        },
        &[],
        "error",
        "certificates",
        "apiserver.crt",
    ),
    (
        "a name that the serving certificate lacks",
        |_| {},
        &["--advertise-address=192.0.2.1"],
        "warning",
        "certificates",
        "does not name 192.0.2.1",
    ),
    (
        "a key that others may read",
        |data| {
            let mode = fs::Permissions::from_mode(0o644);
            fs::set_permissions(data.join("pki/sa.key"), mode).expect("set");
        },
        &[],
        "warning",
        "certificates",
        "mode 644",
    ),
    (
        "a kubeconfig of another server",
        |data| {
            let path = data.join("admin.kubeconfig");
            let text = fs::read_to_string(&path).expect("read");
            let other =
                text.replace("certificate-authority-data: ", "certificate-authority-data: AAAA");
            fs::write(path, other).expect("written");
        },
        &[],
        "error",
        "kubeconfig",
        "trusts another CA",
    ),
    (
        "an address of another machine",
        |_| {},
        &["--bind-address=192.0.2.1"],
        "error",
        "port",
        "is not an address of this machine",
    ),
    (
        "no directory",
        |data| fs::remove_dir_all(data).expect("removed"),
        &[],
        "ok",
        "data",
        "does not exist",
    ),
    (
        "a file in place of the directory",
        |data| {
            fs::remove_dir_all(data).expect("removed");
            fs::write(data, "").expect("written");
        },
        &[],
        "error",
        "data",
        "is a file",
    ),
];

#[test]
fn each_problem_is_found_and_nothing_is_changed() {
    for (what, spoil, flags, severity, check, text) in ROWS {
        let directory = tempfile::tempdir().expect("a directory");
        drop(Server::start(directory.path()));
        spoil(&directory.path().join("data"));
        let before = state(directory.path());
        let (code, findings) = doctor(directory.path(), flags);
        assert_eq!(state(directory.path()), before, "{what}: nothing is changed");
        let is_it = |finding: &&Value| {
            finding["check"] == *check
                && finding["severity"] == *severity
                && finding["message"].as_str().is_some_and(|message| message.contains(text))
        };
        let found = findings.iter().find(is_it);
        let found = found.unwrap_or_else(|| panic!("{what}: {findings:#?}"));
        assert!(found["subject"].as_str().is_some_and(|subject| !subject.is_empty()), "{found}");
        let least = match *severity {
            "error" => 3,
            "warning" => 2,
            _ => 0,
        };
        assert!(code >= Some(least), "{what}: exit code {code:?}: {findings:#?}");
    }
}

#[test]
fn encrypted_records_are_read_with_their_keys() {
    const CONFIGURATION: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: ['*.*']
  providers: [{aesgcm: {keys: [{name: NAME, secret: SECRET}]}}]
";
    let directory = tempfile::tempdir().expect("a directory");
    for (file, name, secret) in [
        ("own", "one", "MDEyMzQ1Njc4OWFiY2RlZg=="),
        ("other", "one", "ZmVkY2JhOTg3NjU0MzIxMA=="),
        ("short", "one", "MDEyMw=="),
    ] {
        let text = CONFIGURATION.replace("NAME", name).replace("SECRET", secret);
        fs::write(directory.path().join(file), text).expect("written");
    }
    drop(Server::start_with(directory.path(), &["--encryption-provider-config=own"]));
    let before = state(directory.path());
    for (flags, severity, text) in [
        (&["--encryption-provider-config=own"][..], "ok", "records, revisions"),
        (&["--encryption-provider-config=other"], "error", "cannot be decrypted"),
        (&["--encryption-provider-config=short"], "error", "secret is not of the expected length"),
        (&[], "error", "no encryption is configured"),
    ] {
        let (_, findings) = doctor(directory.path(), flags);
        let found = findings.iter().find(|finding| finding["check"] == "store").expect("checked");
        assert_eq!(found["severity"], severity, "{flags:?} {found}");
        assert!(found["message"].as_str().is_some_and(|it| it.contains(text)), "{flags:?} {found}");
        assert_eq!(state(directory.path()), before, "{flags:?}: nothing is changed");
    }
}

#[test]
fn a_running_server_is_recognized_and_not_disturbed() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(directory.path());
    let (_, findings) = doctor(directory.path(), &[]);
    let used = format!("in use by process {}", server.0.id());
    let is_reported = |finding: &Value| {
        finding["check"] == "store"
            && finding["message"].as_str().is_some_and(|message| message.contains(&used))
    };
    assert!(findings.iter().any(is_reported), "{findings:#?}");
    assert!(server.0.try_wait().expect("it is ours").is_none(), "the server still runs");
}

#[test]
fn flags_come_from_the_file_too_and_wrong_ones_fail() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |text: &str| {
        fs::write(directory.path().join("f.yaml"), text).expect("written");
        let output = Command::new(env!("CARGO_BIN_EXE_pintle"))
            .args(["doctor", "--config=f.yaml"])
            .current_dir(directory.path())
            .output()
            .expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, text) = run("ephemeral: true\nsecure-port: 0\n");
    assert!(matches!(code, Some(0 | 2)), "{code:?} {text}");
    assert!(text.contains("nothing is stored on disk"), "{text}");
    let (code, text) = run("ephemeral: true\nruntime-config: foo/v1\n");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("f.yaml: line 2: --runtime-config: "), "{text}");
}
