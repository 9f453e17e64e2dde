//! The embedded store with encryption: the content of its files, which providers can open it, and
//! how it is converted from one configuration to another.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its values has nothing to say")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pintle_encryption::{Configuration, Error as EncryptionError, Kms, Providers};
use pintle_store::{
    At, Change, Durability, Error, Expect, Group, Key, Options, Revision, Store, Template,
    Transformer, Write,
};
use tempfile::TempDir;

/// No file of an encrypted store may contain this.
const SECRET: &str = "the-launch-code-is-0000";

const ONE: &str = "aesgcm: {keys: [{name: one, secret: $1}]}";
const ONE_FALSE: &str = "aesgcm: {keys: [{name: one, secret: $2}]}";
const TWO: &str = "secretbox: {keys: [{name: two, secret: $2}]}";
const THREE: &str = "aescbc: {keys: [{name: three, secret: $1}]}";
const PLAIN: &str = "identity: {}";

/// A transformer that encrypts secrets with these providers.
fn transformer(providers: &[&str]) -> Arc<dyn Transformer> {
    let mut text = "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n\
                    resources:\n- resources: [secrets]\n  providers:\n"
        .to_owned();
    for provider in providers {
        let key = |byte| BASE64_STANDARD.encode([byte; 32]);
        let provider = provider.replace("$1", &key(1)).replace("$2", &key(2));
        text.push_str(&format!("  - {provider}\n"));
    }
    let configuration = Configuration::read(text.as_bytes(), false).unwrap();
    let no_plugins =
        |_: &Kms| Err(EncryptionError::KeyService("there are no plugins here".to_owned()));
    Arc::new(Providers::new(&configuration, &no_plugins).unwrap())
}

fn open(dir: &TempDir, providers: &[&str]) -> Result<Arc<dyn Store>, Error> {
    let transformer = (!providers.is_empty()).then(|| transformer(providers));
    let options = Options {
        dir: dir.path().join("store"),
        durability: Durability::System,
        history_bytes_max: u64::MAX,
        transformer,
    };
    pintle_store::open(&options)?.read()
}

fn key(item: &str) -> Key {
    Key { collection: "secrets".into(), item: item.into() }
}

async fn write(store: &dyn Store, item: &str, expect: Expect, change: Change) -> Revision {
    let write = Write { key: key(item), expect, change, note: None };
    let group = Group { first: write, rest: Vec::new(), unchanged: Vec::new() };
    store.commit(group).await.unwrap()[0].revision
}

fn value(number: usize) -> Template {
    Template::whole(format!("{{\"data\":\"{SECRET}-{number}\"}}").into_bytes())
}

/// Fills a store with objects, some of which are changed or deleted.
async fn fill(dir: &TempDir, providers: &[&str]) {
    let store = open(dir, providers).unwrap();
    for number in 0..100 {
        let item = format!("ns/{number}");
        let created = write(&*store, &item, Expect::Absent, Change::Put(value(number))).await;
        match number % 3 {
            0 => drop(
                write(&*store, &item, Expect::At(created), Change::Delete(value(number))).await,
            ),
            1 => drop(write(&*store, &item, Expect::At(created), Change::Put(value(number))).await),
            _ => {}
        }
    }
    store.close().await;
}

/// The values in the store, by item.
async fn content(store: &dyn Store) -> BTreeMap<String, Vec<u8>> {
    let records = store.list("secrets", "", At::Head).await.unwrap();
    records.iter().map(|record| (record.key.item.to_string(), record.value().to_vec())).collect()
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir.join("store")).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// The files that contain a text.
fn found(dir: &TempDir, text: &str) -> Vec<String> {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    files(dir.path()).into_iter().filter(|(_, bytes)| has(bytes)).map(|(name, _)| name).collect()
}

/// upstream: `TestSecretsShouldBeTransformed` and `TestEncryptAll` of
/// `test/integration/controlplane/transformation`, on the embedded store.
#[tokio::test]
async fn a_plain_store_is_encrypted_when_it_is_opened() {
    for providers in [&[ONE][..], &[TWO, PLAIN], &[THREE, ONE, PLAIN]] {
        let dir = tempfile::tempdir().unwrap();
        fill(&dir, &[]).await;
        assert_eq!(found(&dir, SECRET), ["store.redb"]);
        let before = content(&*open(&dir, &[]).unwrap()).await;
        let with_identity = [providers, &[PLAIN]].concat();
        let store = open(&dir, &with_identity).unwrap();
        assert_eq!(content(&*store).await, before);
        assert_eq!(found(&dir, SECRET), [""; 0], "{providers:?}");
        write(&*store, "ns/new", Expect::Absent, Change::Put(value(1000))).await;
        drop(store);
        assert_eq!(found(&dir, SECRET), [""; 0], "{providers:?}");
        assert_eq!(files(dir.path())["format"], b"pintle-store 6\n");
        let store = open(&dir, providers).unwrap();
        assert_eq!(content(&*store).await.len(), before.len() + 1);
    }
}

#[tokio::test]
async fn a_store_that_is_always_encrypted_contains_no_plain_values() {
    let dir = tempfile::tempdir().unwrap();
    fill(&dir, &[ONE]).await;
    assert_eq!(found(&dir, SECRET), [""; 0]);
    let store = open(&dir, &[ONE]).unwrap();
    assert_eq!(content(&*store).await.len(), 66);
    assert_eq!(found(&dir, "k8s:enc:aesgcm:v1:one:"), ["store.redb"]);
}

#[tokio::test]
async fn opening_without_the_key_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fill(&dir, &[ONE]).await;
    let before = content(&*open(&dir, &[ONE]).unwrap()).await;
    // redb records in its file that it was opened and closed.
    let others = || {
        let mut files = files(dir.path());
        files.remove("store.redb");
        files
    };
    let others_before = others();
    for (providers, why) in [
        (&[][..], "no encryption is configured"),
        (&[PLAIN], "no matching prefix found"),
        (&[TWO], "no matching prefix found"),
        (&[THREE, PLAIN], "no matching prefix found"),
        (&[ONE_FALSE], "cipher: message authentication failed"),
        (&[TWO, ONE_FALSE], "cipher: message authentication failed"),
    ] {
        let Err(Error::Failed { reason }) = open(&dir, providers) else {
            panic!("opened by {providers:?}");
        };
        assert!(reason.contains(why), "{providers:?}: {reason}");
        assert!(reason.contains("--encryption-provider-config"), "{reason}");
        assert!(!reason.contains(SECRET), "{reason}");
        assert_eq!(others(), others_before, "{providers:?}");
        assert_eq!(found(&dir, SECRET), [""; 0], "{providers:?}");
        let after = content(&*open(&dir, &[ONE]).unwrap()).await;
        assert_eq!(after, before, "{providers:?}");
    }
}

/// upstream: `TestKMSv2ProviderKeyIDStaleness` and the rotation steps of its documentation. Here
/// the old key is no longer needed after one start.
#[tokio::test]
async fn a_new_key_replaces_the_old_one_at_a_start() {
    let dir = tempfile::tempdir().unwrap();
    fill(&dir, &[ONE]).await;
    let before = content(&*open(&dir, &[ONE]).unwrap()).await;
    for (both, one, prefix, old) in [
        ([TWO, ONE], TWO, "k8s:enc:secretbox:v1:two:", "k8s:enc:aesgcm:"),
        ([THREE, TWO], THREE, "k8s:enc:aescbc:v1:three:", "k8s:enc:secretbox:"),
        ([ONE, THREE], ONE, "k8s:enc:aesgcm:v1:one:", "k8s:enc:aescbc:"),
    ] {
        assert_eq!(content(&*open(&dir, &both).unwrap()).await, before);
        assert_eq!(found(&dir, prefix), ["store.redb"]);
        assert_eq!(found(&dir, old), [""; 0]);
        assert_eq!(content(&*open(&dir, &[one]).unwrap()).await, before);
    }
}

#[tokio::test]
async fn encryption_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    fill(&dir, &[ONE]).await;
    let before = content(&*open(&dir, &[PLAIN, ONE]).unwrap()).await;
    assert_eq!(found(&dir, "k8s:enc:"), [""; 0]);
    let store = open(&dir, &[]).unwrap();
    assert_eq!(content(&*store).await, before);
    write(&*store, "ns/new", Expect::Absent, Change::Put(value(1000))).await;
    drop(store);
    // The values that were written unencrypted are encrypted again.
    drop(open(&dir, &[ONE, PLAIN]).unwrap());
    assert_eq!(found(&dir, SECRET), [""; 0]);
}

#[tokio::test]
async fn leftovers_of_an_interrupted_conversion_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    fill(&dir, &[]).await;
    let half = dir.path().join("store/store.redb.new");
    for (left, providers) in
        [(&b""[..], &[][..]), (b"half", &[]), (b"half", &[ONE, PLAIN]), (b"", &[ONE])]
    {
        fs::write(&half, left).unwrap();
        assert_eq!(content(&*open(&dir, providers).unwrap()).await.len(), 66);
        assert!(!half.exists(), "{providers:?}");
    }
}
