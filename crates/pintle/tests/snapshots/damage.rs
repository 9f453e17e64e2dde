//! Damaged and incomplete snapshots, directories that a restore refuses, and sources that a save
//! refuses.

use std::fs;
use std::path::Path;

use super::made;
use super::program::{done, inspected, refusal, snapshot};

/// The entries of a directory.
fn entries(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// SNAP-03: a bit of every thousandth byte is flipped, or the file is cut there. Neither is
/// restored.
#[test]
fn a_damaged_snapshot_is_refused_by_name_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let parent = directory.path().join("parent");
    fs::create_dir(&parent).unwrap();
    let [whole, damaged] = ["whole", "damaged"].map(|name| directory.path().join(name));
    let bytes = made::write(&whole, 60);
    let new = parent.join("deep/new");
    let restore = || snapshot(&["restore", "--data-dir", new.to_str().unwrap()], &[&damaged]);
    for at in (0..bytes.len()).step_by(1000) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        for content in [&flipped[..], &bytes[..at]] {
            fs::write(&damaged, content).unwrap();
            let why = refusal(&restore());
            let begin = format!("pintle: cannot restore {}: ", damaged.display());
            assert!(why.starts_with(&begin), "byte {at}: {why}");
            assert!(!new.exists(), "byte {at}: {why}");
            let why = refusal(&snapshot(&["inspect"], &[&damaged]));
            assert!(why.contains("damaged: "), "{why}");
        }
    }
    fs::write(&damaged, "apiVersion: v1\nkind: ConfigMap, which is no snapshot\n").unwrap();
    assert!(refusal(&restore()).ends_with("this is no snapshot of Pintle\n"));
    fs::copy(&whole, &damaged).unwrap();
    assert!(done(&restore()).contains("60 objects of revision 70; the server continues after"));
    assert_eq!(entries(&new), ["store"]);
    assert!(
        refusal(&restore()).contains("new is not empty: it has store; restore to a new directory")
    );
}

#[test]
fn what_is_no_source_is_refused_and_harms_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let [file, empty] = ["file", "empty"].map(|name| directory.path().join(name));
    made::write(&file, 5);
    fs::create_dir(&empty).unwrap();
    let missing = directory.path().join("missing");
    let here = |path: &Path| path.to_str().unwrap().to_owned();
    for (words, why) in [
        (["--data-dir", &here(&empty)], "has no store"),
        (["--data-dir", &here(&missing)], "has no store"),
        (["--kubeconfig", &here(&missing)], "No such file or directory"),
        (["--kubeconfig", &here(&file)], "file: "),
        (["--etcd-servers", "http://127.0.0.1:1"], "no etcd endpoint can be reached"),
    ] {
        let refused = refusal(&snapshot(&["save", words[0], words[1]], &[&file]));
        assert!(refused.contains(why), "{words:?}: {refused}");
        assert_eq!(inspected(&file)["objects"], 5, "{words:?}");
    }
    assert_eq!(entries(&empty), Vec::<String>::new());
    assert!(!missing.exists());
    let refused = snapshot(&["save"], &[&file]);
    assert_eq!(refused.status.code(), Some(2), "a source is needed");
}
