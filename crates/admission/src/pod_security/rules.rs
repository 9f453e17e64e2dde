//! The rules of the checks of the Pod Security Standards, with upstream's texts.

use std::collections::BTreeSet;

use pintle_meta::object;
use pintle_meta::quote::quote;
use pintle_value::{Map, Str, Value};

use super::offenders::{
    Offenders, Values, containers, containers_that, counted, given, is_true, name, named, quoted,
    setters_that,
};
use crate::pods::items;

/// A violation by a pod or a pod template.
pub(super) struct Violation {
    /// A short reason without details of the pod.
    pub(super) reason: &'static str,
    /// The details.
    pub(super) detail: String,
}

fn violation(reason: &'static str, detail: String) -> Option<Violation> {
    Some(Violation { reason, detail })
}

/// Whether a pod has its own user namespace.
pub(super) fn has_own_users(pod: &Value) -> bool {
    pod.at(&["spec", "hostUsers"]).and_then(Value::as_bool) == Some(false)
}

/// True for a Windows pod, which cannot satisfy some checks.
pub(super) fn is_for_windows(pod: &Value) -> bool {
    pod.str_at(&["spec", "os", "name"]) == Some("windows")
}

/// A pod's forbidden annotations as `key="value"`.
fn annotations<'a>(pod: &'a Value, is_bad: impl Fn(&str, &str) -> bool + 'a) -> Vec<String> {
    let all = object::annotations(pod).into_iter().flat_map(Map::iter);
    let texts = all.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
    let bad = texts.filter(|(key, value)| is_bad(key, value));
    bad.map(|(key, value)| format!("{key}={}", quote(value))).collect()
}

pub(super) fn app_armor(pod: &Value) -> Option<Violation> {
    let found = setters_that(pod, |at, values| {
        let profile = given(at, &["securityContext", "appArmorProfile"]);
        profile.is_some_and(|profile| is_bad_type(profile, values))
    });
    let annotations = annotations(pod, |key, value| {
        key.starts_with("container.apparmor.security.beta.kubernetes.io/")
            && !(value.is_empty() || value == "runtime/default" || value.starts_with("localhost/"))
    });
    let mut offenders: Vec<String> = found.iter().map(Offenders::to_string).collect();
    if !annotations.is_empty() {
        offenders.push(counted("annotation", annotations.len()));
    }
    if offenders.is_empty() {
        return None;
    }
    let types = found.iter().flat_map(|found| &found.values).map(Str::as_str);
    let values: Vec<&str> = types.chain(annotations.iter().map(String::as_str)).collect();
    let reason = match values.len() {
        1 => "forbidden AppArmor profile",
        _ => "forbidden AppArmor profiles",
    };
    let offenders = offenders.join(" and ");
    violation(
        reason,
        format!("{offenders} must not set AppArmor profile type to {}", quoted(values)),
    )
}

/// Whether the type of a profile is neither `RuntimeDefault` nor `Localhost`; adds it to `values`.
fn is_bad_type(profile: &Value, values: &mut Values) -> bool {
    let kind = profile.str_at(&["type"]).unwrap_or_default();
    let bad = !["RuntimeDefault", "Localhost"].contains(&kind);
    if bad {
        values.insert(kind.into());
    }
    bad
}

/// Whether a container adds capabilities that are not allowed; adds their names to `values`.
fn adds_beyond(allowed: &[&str], container: &Value, values: &mut Values) -> bool {
    let added = items(container, &["securityContext", "capabilities", "add"]).iter();
    let bad = added.filter_map(Value::as_str).filter(|added| !allowed.contains(added));
    bad.map(|added| values.insert(added.into())).count() > 0
}

pub(super) fn capabilities_beyond_default(pod: &Value) -> Option<Violation> {
    #[rustfmt::skip]
    const DEFAULT: &[&str] = &[
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    ];
    let offenders =
        containers_that(pod, |container, values| adds_beyond(DEFAULT, container, values))?;
    let values = offenders.values();
    let detail =
        format!("{offenders} must not include {values} in securityContext.capabilities.add");
    violation("non-default capabilities", detail)
}

pub(super) fn capabilities_not_dropped(pod: &Value) -> Option<Violation> {
    let keeps = containers_that(pod, |container, _| {
        let dropped = items(container, &["securityContext", "capabilities", "drop"]);
        !dropped.iter().any(|dropped| dropped.as_str() == Some("ALL"))
    });
    let adds = containers_that(pod, |container, values| {
        adds_beyond(&["NET_BIND_SERVICE"], container, values)
    });
    let keeps = keeps.map(|offenders| {
        format!("{offenders} must set securityContext.capabilities.drop=[\"ALL\"]")
    });
    let adds = adds.map(|offenders| {
        let values = offenders.values();
        format!("{offenders} must not include {values} in securityContext.capabilities.add")
    });
    let details: Vec<String> = keeps.into_iter().chain(adds).collect();
    let found = !details.is_empty();
    found.then(|| details.join("; ")).and_then(|d| violation("unrestricted capabilities", d))
}

pub(super) fn host_namespaces(pod: &Value) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let set = fields.filter(|field| is_true(pod, &["spec", field]));
    let set: Vec<String> = set.map(|field| format!("{field}=true")).collect();
    if set.is_empty() { None } else { violation("host namespaces", set.join(", ")) }
}

pub(super) fn host_path_volumes(pod: &Value) -> Option<Violation> {
    let volumes = items(pod, &["spec", "volumes"]).iter();
    let of_host = volumes.filter(|volume| given(volume, &["hostPath"]).is_some());
    let names: Vec<&str> = of_host.map(name).collect();
    if names.is_empty() { None } else { violation("hostPath volumes", named("volume", &names)) }
}

pub(super) fn host_ports(pod: &Value) -> Option<Violation> {
    let offenders = containers_that(pod, |container, values| {
        let ports = items(container, &["ports"]).iter();
        let ports = ports.filter_map(|port| port.get("hostPort")?.as_int());
        let bad = ports.filter(|port| *port != 0);
        bad.map(|port| values.insert(port.to_string().into())).count() > 0
    })?;
    let ports: Vec<&str> = offenders.values.iter().map(Str::as_str).collect();
    let use_ = use_of(&offenders);
    let what = counted("hostPort", ports.len());
    violation("hostPort", format!("{offenders} {use_} {what} {}", ports.join(", ")))
}

fn use_of(offenders: &Offenders<'_>) -> &'static str {
    if offenders.containers.len() == 1 { "uses" } else { "use" }
}

pub(super) fn probed_hosts(pod: &Value) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let mut offenders = containers_that(pod, |container, values| {
        let handlers = HANDLERS.into_iter().filter_map(|path| container.at(path));
        let asks = handlers.flat_map(|handler| [handler.get("httpGet"), handler.get("tcpSocket")]);
        let hosts = asks.filter_map(|ask| ask?.str_at(&["host"]));
        let hosts = hosts.filter(|host| !host.is_empty());
        hosts.map(|host| values.insert(host.into())).count() > 0
    })?;
    offenders.containers.sort_unstable();
    let use_ = use_of(&offenders);
    let what = counted("probe or lifecycle host", offenders.values.len());
    violation(
        "probe or lifecycle host",
        format!("{offenders} {use_} {what} {}", offenders.values()),
    )
}

pub(super) fn privileged(pod: &Value) -> Option<Violation> {
    let offenders = containers_that(pod, |c, _| is_true(c, &["securityContext", "privileged"]))?;
    violation("privileged", format!("{offenders} must not set securityContext.privileged=true"))
}

pub(super) fn proc_mount(pod: &Value) -> Option<Violation> {
    let offenders = containers_that(pod, |container, values| {
        let mount = container.str_at(&["securityContext", "procMount"]);
        let bad = mount.filter(|mount| *mount != "Default");
        bad.map(|mount| values.insert(mount.into())).is_some()
    })?;
    let values = offenders.values();
    violation(
        "procMount",
        format!("{offenders} must not set securityContext.procMount to {values}"),
    )
}

/// The SELinux types that are allowed; later versions of the check allow more of the list.
const SE_LINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Allows the first `TYPES` of [`SE_LINUX_TYPES`].
pub(super) fn se_linux<const TYPES: usize>(pod: &Value) -> Option<Violation> {
    let (mut sets_user, mut sets_role) = (false, false);
    let offenders = setters_that(pod, |at, values| {
        let Some(options) = given(at, &["securityContext", "seLinuxOptions"]) else { return false };
        let text = |member| options.str_at(&[member]).unwrap_or_default();
        let (kind, user, role) = (text("type"), !text("user").is_empty(), !text("role").is_empty());
        let bad = !SE_LINUX_TYPES[..TYPES].contains(&kind);
        if bad {
            values.insert(kind.into());
        }
        sets_user |= user;
        sets_role |= role;
        bad || user || role
    })?;
    let mut what = Vec::new();
    if !offenders.values.is_empty() {
        what.push(format!("{} {}", counted("type", offenders.values.len()), offenders.values()));
    }
    what.extend(sets_user.then(|| "user may not be set".to_owned()));
    what.extend(sets_role.then(|| "role may not be set".to_owned()));
    let what = what.join("; ");
    let detail = format!("{offenders} set forbidden securityContext.seLinuxOptions: {what}");
    violation("seLinuxOptions", detail)
}

pub(super) fn seccomp_annotations(pod: &Value) -> Option<Violation> {
    const PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let found = annotations(pod, |key, value| {
        let of_pod = key == "seccomp.security.alpha.kubernetes.io/pod";
        let container = key.strip_prefix(PREFIX);
        let of_container = container.is_some_and(|it| containers(pod).any(|c| name(c) == it));
        let allowed = ["runtime/default", "docker/default"].contains(&value);
        (of_pod || of_container) && !allowed && !value.starts_with("localhost/")
    });
    if found.is_empty() {
        return None;
    }
    let what = counted("annotation", found.len());
    violation("seccompProfile", format!("forbidden {what} {}", found.join(", ")))
}

const SECCOMP: &[&str] = &["securityContext", "seccompProfile"];

pub(super) fn seccomp_fields(pod: &Value) -> Option<Violation> {
    let offenders = setters_that(pod, |at, values| {
        given(at, SECCOMP).is_some_and(|profile| is_bad_type(profile, values))
    })?;
    let values = offenders.values();
    let detail =
        format!("{offenders} must not set securityContext.seccompProfile.type to {values}");
    violation("seccompProfile", detail)
}

pub(super) fn seccomp_unset(pod: &Value) -> Option<Violation> {
    if let Some(violation) = seccomp_fields(pod) {
        return Some(violation);
    }
    if pod.get("spec").is_some_and(|spec| given(spec, SECCOMP).is_some()) {
        return None;
    }
    let offenders = containers_that(pod, |container, _| given(container, SECCOMP).is_none())?;
    let detail = format!(
        "pod or {offenders} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\""
    );
    violation("seccompProfile", detail)
}

/// The sysctls that are safe; later versions of the check allow more of the list.
#[rustfmt::skip]
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
];

/// Allows the first `SAFE` of [`SYSCTLS`].
pub(super) fn sysctls<const SAFE: usize>(pod: &Value) -> Option<Violation> {
    let set = items(pod, &["spec", "securityContext", "sysctls"]).iter().map(name);
    let bad: Vec<&str> = set.filter(|name| !SYSCTLS[..SAFE].contains(name)).collect();
    if bad.is_empty() { None } else { violation("forbidden sysctls", bad.join(", ")) }
}

pub(super) fn windows_host_process(pod: &Value) -> Option<Violation> {
    let path = ["securityContext", "windowsOptions", "hostProcess"];
    let offenders = setters_that(pod, |at, _| is_true(at, &path))?;
    let detail =
        format!("{offenders} must not set securityContext.windowsOptions.hostProcess=true");
    violation("hostProcess", detail)
}

pub(super) fn privilege_escalation(pod: &Value) -> Option<Violation> {
    let path = ["securityContext", "allowPrivilegeEscalation"];
    let forbids = |at: &Value| at.at(&path).and_then(Value::as_bool) == Some(false);
    let offenders = containers_that(pod, |container, _| !forbids(container))?;
    let detail = format!("{offenders} must set securityContext.allowPrivilegeEscalation=false");
    violation("allowPrivilegeEscalation != false", detail)
}

pub(super) fn restricted_volumes(pod: &Value) -> Option<Violation> {
    #[rustfmt::skip]
    const ALLOWED: &[&str] = &[
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim",
        "projected", "secret",
    ];
    let has_none =
        |volume: &&Value| ALLOWED.iter().all(|source| given(volume, &[source]).is_none());
    let bad: Vec<_> = items(pod, &["spec", "volumes"]).iter().filter(has_none).collect();
    if bad.is_empty() {
        return None;
    }
    let names: Vec<&str> = bad.iter().map(|volume| name(volume)).collect();
    let sources: BTreeSet<&str> = bad.iter().map(|volume| source(volume)).collect();
    let what = counted("restricted volume type", sources.len());
    let use_ = if names.len() == 1 { "uses" } else { "use" };
    let offenders = named("volume", &names);
    violation("restricted volume types", format!("{offenders} {use_} {what} {}", quoted(sources)))
}

/// Returns the source of a volume: the first member that is not its name.
fn source(volume: &Value) -> &str {
    let members = volume.as_object().into_iter().flat_map(Map::iter);
    let mut sources = members.filter(|(key, value)| *key != "name" && !value.is_null());
    sources.next().map_or("unknown", |(key, _)| key.as_str())
}

pub(super) fn run_as_root(pod: &Value) -> Option<Violation> {
    let path = ["securityContext", "runAsNonRoot"];
    let non_root = |at: &Value| at.at(&path).and_then(Value::as_bool);
    if let Some(offenders) = setters_that(pod, |at, _| non_root(at) == Some(false)) {
        let detail = format!("{offenders} must not set securityContext.runAsNonRoot=false");
        return violation("runAsNonRoot != true", detail);
    }
    if pod.get("spec").and_then(non_root) == Some(true) {
        return None;
    }
    let offenders = containers_that(pod, |container, _| non_root(container).is_none())?;
    let detail = format!("pod or {offenders} must set securityContext.runAsNonRoot=true");
    violation("runAsNonRoot != true", detail)
}

pub(super) fn run_as_user(pod: &Value) -> Option<Violation> {
    let path = ["securityContext", "runAsUser"];
    let offenders = setters_that(pod, |at, _| at.at(&path).and_then(Value::as_int) == Some(0))?;
    violation("runAsUser=0", format!("{offenders} must not set runAsUser=0"))
}
