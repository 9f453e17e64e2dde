//! Members that pods may not have on one of the operating systems.

use crate::{
    field::{Errors, Field},
    pods::validation::Spec,
};

const LINUX_WORDS: &str = "windows options cannot be set for a linux pod";
const WINDOWS_WORDS: &str = "cannot be set for a windows pod";

/// Members that a Windows pod may not have, by their path in the spec.
const NOT_OF_WINDOWS_PODS: &[&[&str]] = &[
    &["securityContext", "appArmorProfile"],
    &["securityContext", "seLinuxOptions"],
    &["hostUsers"],
    &["hostPID"],
    &["hostIPC"],
    &["securityContext", "seccompProfile"],
    &["securityContext", "fsGroup"],
    &["securityContext", "fsGroupChangePolicy"],
    &["securityContext", "sysctls"],
    &["shareProcessNamespace"],
    &["securityContext", "runAsUser"],
    &["securityContext", "runAsGroup"],
    &["securityContext", "supplementalGroups"],
    &["securityContext", "supplementalGroupsPolicy"],
    &["securityContext", "seLinuxChangePolicy"],
];

/// Members that the security context of a Windows container may not have.
const NOT_OF_WINDOWS_CONTAINERS: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Members that are plain booleans, for which `false` is the same as absent.
const PLAIN: &[&str] = &["hostPID", "hostIPC"];

/// Checks `os`, and the members that an OS forbids.
pub(in crate::pods::validation) fn check_os(spec: &Spec<'_>, errors: &mut Errors) {
    let Some(os) = spec.field.find("os") else { return };
    let name = os.get("name");
    match name.text() {
        "linux" => check_linux(spec, errors),
        "windows" => check_windows(spec, errors),
        "" => errors.push(name.required("")),
        _ => errors.push(os.of(name.value()).not_supported(&["linux", "windows"])),
    }
}

fn check_linux(spec: &Spec<'_>, errors: &mut Errors) {
    let mut refuse = |holder: &Field<'_>| {
        let options = holder.at(&["securityContext", "windowsOptions"]);
        if options.is_set() {
            errors.push(options.forbidden(LINUX_WORDS));
        }
    };
    refuse(spec.field);
    spec.all_containers().for_each(|container| refuse(&container));
}

fn check_windows(spec: &Spec<'_>, errors: &mut Errors) {
    let is_there = |field: &Field<'_>, member: &str| match member {
        "sysctls" => !field.is_empty(),
        _ if PLAIN.contains(&member) => field.is_true(),
        _ => field.is_set(),
    };
    for members in NOT_OF_WINDOWS_PODS {
        let field = spec.field.at(members);
        if is_there(&field, members.last().copied().unwrap_or_default()) {
            errors.push(field.forbidden(WINDOWS_WORDS));
        }
    }
    for container in spec.all_containers() {
        let context = container.get("securityContext");
        for field in NOT_OF_WINDOWS_CONTAINERS.iter().map(|member| context.get(member)) {
            if field.is_set() {
                errors.push(field.forbidden(WINDOWS_WORDS));
            }
        }
    }
}
