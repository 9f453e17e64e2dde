//! Kernel parameters.

use std::collections::BTreeSet;

use crate::{
    field::{Errors, Field},
    pods::validation::Spec,
};

const LENGTH_MAX: usize = 253;

/// Checks `sysctls`.
pub(super) fn check_sysctls(spec: &Spec<'_>, context: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for parameter in context.items("sysctls") {
        let name = parameter.get("name");
        let is_new = seen.insert(parameter.str("name"));
        if name.is_empty() {
            errors.push(name.required(""));
        } else if !is_name(name.text()) {
            let words = format!(
                "must have at most {LENGTH_MAX} characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            errors.push(name.invalid(words));
        } else if !is_new {
            errors.push(name.duplicate());
        }
        if !spec.options.any_host_parameters {
            check_shared(spec, &name, errors);
        }
    }
}

fn is_name(name: &str) -> bool {
    let ends = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let is_segment = |segment: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
        let bytes = segment.as_bytes();
        ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(|b| inner(*b))
    };
    name.len() <= LENGTH_MAX && name.split(['.', '/']).all(is_segment)
}

/// The parameters that belong to the IPC namespace; all below `fs.mqueue` do too.
const IPC: &[&str] = &[
    "kernel.msg",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shm",
    "kernel.shm_rmid_forced",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
];

/// Forbids kernel parameters of a namespace that the pod shares with the host.
pub(super) fn check_shared(spec: &Spec<'_>, name: &Field<'_>, errors: &mut Errors) {
    let plain = normal(name.text());
    let plain = plain.split('*').next().unwrap_or_default();
    let is_ipc = IPC.contains(&plain) || plain.starts_with("fs.mqueue.");
    let is_net = plain.starts_with("net.");
    for (host, is_shared) in [("hostNetwork", is_net), ("hostIPC", is_ipc)] {
        if is_shared && spec.field.get(host).is_true() {
            let words = format!("may not be specified when '{host}' is true");
            errors.push(name.invalid_as(name.text(), words));
        }
    }
}

/// Returns the name with dots between its segments: if its first separator is a slash, swaps dots
/// and slashes.
fn normal(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(i) if name.as_bytes()[i] == b'/' => name
            .chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                c => c,
            })
            .collect(),
        _ => name.to_owned(),
    }
}
