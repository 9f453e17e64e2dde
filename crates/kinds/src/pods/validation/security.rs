//! Security contexts of pods and containers.

mod os;
mod sysctls;
mod windows;

use pintle_value::Value;

use super::{Options, Spec, volumes::local_path};
use crate::{
    field::{Errors, Field},
    rules::{
        Rule::{At, Do, OneOf, Within},
        Rules, check,
    },
};

pub(super) use os::check_os;
pub(super) use windows::check_host_process;

/// The highest ID of a user or group.
const ID_MAX: i64 = i32::MAX as i64;

/// Checks a pod's `securityContext` and the namespaces that it shares with the host.
pub(super) fn check_pod(spec: &Spec<'_>, errors: &mut Errors) {
    let Some(context) = spec.field.find("securityContext") else { return };
    check(&context, IDS, errors);
    let share = spec.field.get("shareProcessNamespace");
    if share.is_true() && spec.field.get("hostPID").is_true() {
        // As in upstream, the path is in the security context.
        let share = context.get("shareProcessNamespace");
        let words = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(share.invalid_as(true, words));
    }
    sysctls::check_sysctls(spec, &context, errors);
    check(&context, POD_CONTEXT, errors);
    // SELinuxMount is off, so only a pod whose stored form has a policy already may have
    // `MountOption`.
    let policy = context.get("seLinuxChangePolicy");
    let is_new = !spec.options.any_selinux_policy;
    let allowed: &[&str] = if is_new { &["Recursive"] } else { &["MountOption", "Recursive"] };
    if policy.is_set() && !allowed.contains(&policy.text()) {
        errors.push(policy.not_supported(allowed));
    }
}

const IDS: Rules = &[
    Within("fsGroup", 0, ID_MAX),
    Within("runAsUser", 0, ID_MAX),
    Within("runAsGroup", 0, ID_MAX),
    Do(|context, errors| {
        for group in context.items("supplementalGroups") {
            if group.int().is_some_and(|id| !(0..=ID_MAX).contains(&id)) {
                errors.push(group.invalid(crate::formats::within(0, ID_MAX)));
            }
        }
    }),
];

const POD_CONTEXT: Rules = &[
    OneOf("fsGroupChangePolicy", &["Always", "OnRootMismatch"]),
    SECCOMP,
    WINDOWS,
    APP_ARMOR,
    OneOf("supplementalGroupsPolicy", &["Merge", "Strict"]),
];

const SECCOMP: crate::rules::Rule = At("seccompProfile", &[Do(seccomp_profile)]);
const APP_ARMOR: crate::rules::Rule = At("appArmorProfile", &[Do(app_armor_profile)]);
const WINDOWS: crate::rules::Rule = At("windowsOptions", windows::OPTIONS);

/// Checks a container's `securityContext`.
pub(super) fn check_container(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    let Some(context) = container.find("securityContext") else { return };
    check(
        &context,
        &[
            Within("runAsUser", 0, ID_MAX),
            Within("runAsGroup", 0, ID_MAX),
            OneOf("procMount", &["Default", "Unmasked"]),
        ],
        errors,
    );
    let mount = context.get("procMount");
    if mount.text() == "Unmasked" && !spec.has_own_users() {
        errors.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    check(&context, &[SECCOMP, Do(privileges), WINDOWS, APP_ARMOR], errors);
}

/// Checks that a container that is privileged or adds `CAP_SYS_ADMIN` does not forbid privilege
/// escalation.
fn privileges(context: &Field<'_>, errors: &mut Errors) {
    if !context.get("allowPrivilegeEscalation").is_false() {
        return;
    }
    if context.get("privileged").is_true() {
        let words = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(context.invalid(words));
    }
    let capabilities = context.get("capabilities");
    let added = capabilities.items("add").filter(|added| added.text() == "CAP_SYS_ADMIN");
    let words =
        "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
    errors.extend(added.map(|_| context.invalid(words)));
}

const PROFILE_TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];

fn seccomp_profile(profile: &Field<'_>, errors: &mut Errors) {
    let (kind, file) = (profile.get("type"), profile.get("localhostProfile"));
    if kind.is_empty() {
        errors.push(kind.required("type is required when seccompProfile is set"));
    } else if !PROFILE_TYPES.contains(&kind.text()) {
        errors.push(kind.not_supported(PROFILE_TYPES));
    }
    match (kind.text() == "Localhost", file.is_set()) {
        (true, true) => local_path(&file, errors),
        (true, false) => {
            errors.push(file.required("must be set when seccomp type is Localhost"));
        }
        (false, true) => {
            let words = "can only be set when seccomp type is Localhost";
            errors.push(file.of(profile.value()).invalid(words));
        }
        (false, false) => {}
    }
}

/// The longest name of an AppArmor profile.
pub(crate) const PROFILE_LENGTH_MAX: usize = 4095;

/// Checks an AppArmor profile.
pub(crate) fn app_armor_profile(profile: &Field<'_>, errors: &mut Errors) {
    const NEEDED: &str = "must be set when AppArmor type is Localhost";
    let (kind, name) = (profile.get("type"), profile.get("localhostProfile"));
    match kind.text() {
        "Localhost" if !name.is_set() => errors.push(name.required(NEEDED)),
        "Localhost" => {
            if name.text().trim() != name.text() {
                errors.push(name.invalid("must not be padded with whitespace"));
            } else if name.is_empty() {
                errors.push(name.required(NEEDED));
            }
            if name.text().len() > PROFILE_LENGTH_MAX {
                errors.push(pintle_meta::field::Error::too_long(&name.path(), PROFILE_LENGTH_MAX));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if name.is_set() {
                errors.push(name.invalid("can only be set when AppArmor type is Localhost"));
            }
        }
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        _ => errors.push(kind.not_supported(PROFILE_TYPES)),
    }
}

/// Checks that a pod with its own user namespace shares no other namespaces with the host, and uses
/// no block devices.
pub(super) fn check_host_users(spec: &Spec<'_>, errors: &mut Errors) {
    if !spec.has_own_users() {
        return;
    }
    // The second names are those in upstream's paths.
    for (member, name) in
        [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    {
        let shared = spec.field.get(member);
        if shared.is_true() {
            errors.push(shared.called(name).forbidden("when `hostUsers` is false"));
        }
    }
    if spec.options.devices_with_own_users {
        return;
    }
    for container in spec.all_containers() {
        let devices = container.get("volumeDevices");
        if !devices.is_empty() {
            errors.push(devices.forbidden("when `hostUsers` is false"));
        }
    }
}

/// Whether a pod sets kernel parameters of namespaces that it shares with the host.
pub(super) fn sets_host_parameters(spec: &Value) -> bool {
    let field = Field::root(spec);
    let spec = Spec::of(&field, Options::default());
    let mut errors = Errors::new();
    let context = spec.field.get("securityContext");
    for parameter in context.items("sysctls") {
        sysctls::check_shared(&spec, &parameter.get("name"), &mut errors);
    }
    !errors.is_empty()
}
