//! Data directories that no server can start with, and texts that the error contains.

use std::fs;
use std::path::Path;

/// Spoils the data directory of a server that was stopped.
type Spoil = fn(&Path);

pub(crate) const ROWS: &[(&str, Spoil, &[&str])] = &[
    (
        "a file in its place",
        |directory| {
            fs::remove_dir_all(directory).expect("removed");
            fs::write(directory, "").expect("written");
        },
        &["--data-dir: {dir} is a file, not a directory"],
    ),
    (
        "another program's files in place of the store",
        |directory| {
            fs::remove_dir_all(directory.join("store")).expect("removed");
            fs::create_dir(directory.join("store")).expect("a directory");
            fs::write(directory.join("store/member"), "").expect("written");
        },
        &[
            "--data-dir: {dir}/store is not a store: it contains member",
            "choose an empty directory",
        ],
    ),
    (
        "an empty format file",
        |directory| fs::write(directory.join("store/format"), "").expect("written"),
        &["cannot open the store in {dir}/store", "`format` is damaged", "put back a copy"],
    ),
    (
        "the format of a later version",
        |directory| {
            fs::write(directory.join("store/format"), "pintle-store 9\n").expect("written");
        },
        &["--data-dir: {dir}/store has storage format 9; this version reads formats 1 to 6"],
    ),
    (
        "what an interrupted restore left",
        |directory| fs::create_dir(directory.join("store.restoring")).expect("a directory"),
        &[
            "--data-dir: {dir}/store.restoring is what an interrupted restore left; run `pintle snapshot restore`",
        ],
    ),
    (
        "no database",
        |directory| fs::remove_file(directory.join("store/store.redb")).expect("removed"),
        &["cannot open the store in {dir}/store", "is missing", "put back a copy"],
    ),
    (
        "damaged pages",
        |directory| {
            let file = directory.join("store/store.redb");
            let mut bytes = fs::read(&file).expect("read");
            bytes.chunks_mut(4096).skip(1).for_each(|page| page[..100].fill(0xa5));
            fs::write(file, bytes).expect("written");
        },
        &["cannot open the store in {dir}/store", "put back a copy"],
    ),
    (
        "a CA key that is none",
        |directory| fs::write(directory.join("pki/ca.key"), "nonsense").expect("written"),
        &["{dir}/pki/ca.key: this is not a private key in PEM; put back"],
    ),
    (
        "the CA key of another",
        |directory| {
            let (key, other) = (directory.join("pki/ca.key"), directory.join("pki/admin.key"));
            fs::copy(other, key).expect("copied");
        },
        &["{dir}/pki/ca.key: this key is not that of the CA in {dir}/pki/ca.crt; put back"],
    ),
    (
        "a CA certificate that is none",
        |directory| fs::write(directory.join("pki/ca.crt"), "nonsense").expect("written"),
        &["{dir}/pki/ca.crt: this is not a CA certificate in PEM; put back"],
    ),
    (
        "half a CA",
        |directory| fs::remove_file(directory.join("pki/ca.key")).expect("removed"),
        &["{dir}/pki/ca.crt: ca.crt and ca.key belong together"],
    ),
    (
        "a signing key that is none",
        |directory| fs::write(directory.join("pki/sa.key"), "nonsense").expect("written"),
        &["{dir}/pki/sa.key: "],
    ),
];
