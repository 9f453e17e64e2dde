//! The Pod Security Standards as rows, one for each check, and their evaluation.

use std::fmt;

use pintle_value::Value;

use super::policy::{Level, Policy, Version};
use super::rules::{self as r, Violation};

/// Checks a pod, or a template with metadata and spec.
type Rule = fn(&Value) -> Option<Violation>;

struct Check {
    /// Upstream's name.
    id: &'static str,
    level: Level,
    /// Its revisions, oldest first.
    revisions: &'static [Revision],
    /// The check of the lower level that this one replaces.
    instead_of: &'static str,
}

/// A check as of a minor release.
struct Revision {
    since: i64,
    rule: Rule,
    unless: fn(&Value) -> bool,
}

const fn since(since: i64, rule: Rule) -> Revision {
    Revision { since, rule, unless: |_| false }
}

impl Revision {
    /// Exempts some pods.
    const fn unless(self, unless: fn(&Value) -> bool) -> Self {
        Self { unless, ..self }
    }
}

const fn baseline(id: &'static str, revisions: &'static [Revision]) -> Check {
    Check { id, level: Level::Baseline, revisions, instead_of: "" }
}

const fn restricted(id: &'static str, revisions: &'static [Revision]) -> Check {
    Check { id, level: Level::Restricted, revisions, instead_of: "" }
}

impl Check {
    const fn instead_of(self, instead_of: &'static str) -> Self {
        Self { instead_of, ..self }
    }

    /// Returns the revision that holds in a version; `None` if the check is newer.
    fn at(&self, version: Version) -> Option<&Revision> {
        self.revisions.iter().rfind(|revision| Version::Minor(revision.since) <= version)
    }
}

/// All checks in the order of upstream's messages: by level, then by name.
#[rustfmt::skip]
const CHECKS: &[Check] = &[
    baseline("appArmorProfile", &[since(0, r::app_armor)]),
    baseline("capabilities_baseline", &[since(0, r::capabilities_beyond_default)]),
    baseline("hostNamespaces", &[since(0, r::host_namespaces)]),
    baseline("hostPathVolumes", &[since(0, r::host_path_volumes)]),
    baseline("hostPorts", &[since(0, r::host_ports)]),
    baseline("hostProbesAndHostLifecycle", &[since(34, r::probed_hosts)]),
    baseline("privileged", &[since(0, r::privileged)]),
    baseline("procMount", &[
        since(0, r::proc_mount),
        since(35, r::proc_mount).unless(r::has_own_users),
    ]),
    baseline("seLinuxOptions", &[since(0, r::se_linux::<4>), since(31, r::se_linux::<5>)]),
    baseline("seccompProfile_baseline", &[
        since(0, r::seccomp_annotations),
        since(19, r::seccomp_fields),
    ]),
    baseline("sysctls", &[
        since(0, r::sysctls::<5>),
        since(27, r::sysctls::<6>),
        since(29, r::sysctls::<10>),
        since(32, r::sysctls::<12>),
    ]),
    baseline("windowsHostProcess", &[since(0, r::windows_host_process)]),
    restricted("allowPrivilegeEscalation", &[
        since(8, r::privilege_escalation),
        since(25, r::privilege_escalation).unless(r::is_for_windows),
    ]),
    restricted("capabilities_restricted", &[
        since(22, r::capabilities_not_dropped),
        since(25, r::capabilities_not_dropped).unless(r::is_for_windows),
    ]).instead_of("capabilities_baseline"),
    restricted("procMount_restricted", &[since(35, r::proc_mount)]).instead_of("procMount"),
    restricted("restrictedVolumes", &[since(0, r::restricted_volumes)]).instead_of("hostPathVolumes"),
    restricted("runAsNonRoot", &[
        since(0, r::run_as_root),
        since(35, r::run_as_root).unless(r::has_own_users),
    ]),
    restricted("runAsUser", &[
        since(23, r::run_as_user),
        since(35, r::run_as_user).unless(r::has_own_users),
    ]),
    restricted("seccompProfile_restricted", &[
        since(19, r::seccomp_unset),
        since(25, r::seccomp_unset).unless(r::is_for_windows),
    ]).instead_of("seccompProfile_baseline"),
];

/// The violations of a policy by a pod or template.
pub(super) fn violations(policy: Policy, pod: &Value) -> Violations {
    let made = || {
        let checks = CHECKS.iter().filter(|check| check.level <= policy.level);
        checks.filter_map(|check| Some((check, check.at(policy.version)?)))
    };
    let is_replaced = |id: &str| made().any(|(other, _)| other.instead_of == id);
    let revisions = made().filter(|(check, _)| !is_replaced(check.id));
    let concerned = revisions.filter(|(_, revision)| !(revision.unless)(pod));
    Violations(concerned.filter_map(|(_, revision)| (revision.rule)(pod)).collect())
}

/// The violations by a pod. Displayed with details.
pub(super) struct Violations(Vec<Violation>);

impl Violations {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Joins the reasons, without the details.
    pub(super) fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|violation| violation.reason).collect();
        reasons.join(", ")
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Violation { reason, detail }) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            write!(f, "{reason} ({detail})")?;
        }
        Ok(())
    }
}
