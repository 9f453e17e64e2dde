//! `pintle certificates` lists when certificates expire.

use std::fs;
use std::path::Path;
use std::process::Command;

use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

/// Writes a certificate that expires on the last day of a year.
fn write(path: &Path, name: &str, year: i32) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(year, 12, 31);
    let key = KeyPair::generate().expect("a key");
    fs::write(path, params.self_signed(&key).expect("signed").pem()).expect("written");
}

/// The exit code, the lines of the output without the remaining days, and the errors.
fn run(paths: &[&Path]) -> (Option<i32>, Vec<String>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .arg("certificates")
        .args(paths)
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let line = |line: &str| {
        let cells = line.split_whitespace().map(|cell| match cell.strip_suffix('d') {
            Some(days) if days.parse::<u32>().is_ok() => "days",
            _ => cell,
        });
        cells.collect::<Vec<_>>().join(" ")
    };
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    (output.status.code(), text.lines().map(line).collect(), errors)
}

#[test]
fn the_expiry_of_certificates_is_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    write(&file("b.crt"), "b", 2999);
    write(&file("a.crt"), "a", 2998);
    write(&file("old.pem"), "old", 2001);
    let line = |ends: &str, remaining: &str, name: &str, subject: &str| {
        format!("{ends}-12-31T00:00:00Z {remaining} {} CN={subject}", file(name).display())
    };
    let header = "EXPIRES REMAINING FILE SUBJECT".to_owned();
    let (a, b) = (line("2998", "days", "a.crt", "a"), line("2999", "days", "b.crt", "b"));
    let valid = (Some(0), vec![header.clone(), a, b.clone()], String::new());
    assert_eq!(run(&[directory.path()]), valid);
    let expired = vec![header, line("2001", "expired", "old.pem", "old"), b];
    let errors = "pintle: a certificate has expired\n".to_owned();
    assert_eq!(run(&[&file("old.pem"), &file("b.crt")]), (Some(1), expired, errors));
}

#[test]
fn files_that_cannot_be_read_are_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let (missing, empty) = (directory.path().join("none.crt"), directory.path().join("empty"));
    fs::write(&empty, "").expect("written");
    for (path, why) in
        [(&missing, "No such file or directory"), (&empty, "there is no certificate in this file")]
    {
        let (code, lines, errors) = run(&[path]);
        let path = path.to_str().expect("UTF-8");
        let is_reported = errors.contains(path) && errors.contains(why);
        assert!(code == Some(1) && lines.is_empty() && is_reported, "{code:?} {lines:?} {errors}");
    }
}
