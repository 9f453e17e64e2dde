//! The certificates that the server would use.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::SystemTime;

use pintle_server::{CertificateProblem, Config, inspect_certificates};

use super::Finding;

const CHECK: &str = "certificates";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let directory = config.certificate_directory();
    let problems = inspect_certificates(config, SystemTime::now());
    let mut findings: Vec<Finding> = problems.into_iter().map(finding).collect();
    findings.extend(readable_keys(&directory));
    if findings.is_empty() {
        let message = match directory.is_dir() {
            true => "valid",
            false => "do not exist; the server generates them",
        };
        findings.push(Finding::ok(CHECK, directory.display(), message));
    }
    findings
}

fn finding(CertificateProblem { path, reason, is_fatal }: CertificateProblem) -> Finding {
    let subject = match path.as_os_str().is_empty() {
        true => "flags".to_owned(),
        false => path.display().to_string(),
    };
    match is_fatal {
        true => Finding::error(CHECK, subject, reason, ""),
        false => Finding::warning(
            CHECK,
            subject,
            reason,
            "the server renews its own certificates at its next start",
        ),
    }
}

/// Keys that other users may read.
fn readable_keys(directory: &Path) -> Vec<Finding> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut keys: Vec<_> = entries.map(|entry| entry.path()).collect();
    keys.retain(|path| path.extension().is_some_and(|extension| extension == "key"));
    keys.sort();
    let finding = |path: &std::path::PathBuf| {
        let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
        let subject = &path.display();
        let message = format!("other users may read this key (mode {mode:03o})");
        let advice = format!("chmod 600 {subject}");
        (mode & 0o077 != 0).then(|| Finding::warning(CHECK, subject, message, advice))
    };
    keys.iter().filter_map(finding).collect()
}
