//! The rules for PodSecurityPolicies, in upstream's order and words. Some paths lack the `spec`
//! prefix, as in upstream (`ValidatePodSecurityPolicy` of v1.24).

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::{field::Error, names};
use pintle_value::{Path, Value};

use crate::{
    field::{Errors, Field},
    groups::storage::csi_driver_name,
    pods::local_path,
    rules::{
        Rule::{At, Do, Each, Supported},
        Rules, check,
    },
};

pub(super) fn errors(policy: &Value) -> Errors {
    let mut errors = Errors::new();
    let policy = Field::root(policy);
    check_annotations(&policy.at(&["metadata", "annotations"]), &mut errors);
    check(&policy.get("spec"), SPEC, &mut errors);
    errors
}

const SPEC: Rules = &[
    Do(|spec, errors| {
        let user = spec.get("runAsUser");
        check(&user, &[Supported("rule", USER_RULES), RANGES], errors);
    }),
    At("runAsGroup", &[Do(check_group)]),
    Do(|spec, errors| check(&spec.get("seLinux"), &[Supported("rule", SE_LINUX_RULES)], errors)),
    Do(|spec, errors| check(&spec.get("supplementalGroups"), GROUPS, errors)),
    Do(|spec, errors| check(&spec.get("fsGroup"), GROUPS, errors)),
    Do(|spec, errors| {
        let wrong = spec.items("volumes").filter(|volume| !VOLUMES.contains(&volume.text()));
        errors.extend(wrong.map(|volume| {
            Error::not_supported(&spec.get("volumes").path(), volume.value(), VOLUMES)
        }));
    }),
    Do(check_capabilities),
    Do(|spec, errors| {
        let default = spec.get("defaultAllowPrivilegeEscalation");
        if default.is_true() && !spec.get("allowPrivilegeEscalation").is_true() {
            let words = "Cannot set DefaultAllowPrivilegeEscalation to true without also setting \
                         AllowPrivilegeEscalation to true";
            errors.push(default.invalid(words));
        }
    }),
    Do(|spec, errors| {
        const TYPES: &[&str] = &["Default", "Unmasked"];
        let types = spec.items("allowedProcMountTypes");
        errors.extend(
            types.filter(|one| !TYPES.contains(&one.text())).map(|one| one.not_supported(TYPES)),
        );
    }),
    Do(check_host_paths),
    Do(|spec, errors| {
        let list = spec.get("allowedFlexVolumes");
        for (i, volume) in spec.items("allowedFlexVolumes").enumerate() {
            if volume.str("driver").is_empty() {
                let path = list.path().field("allowedFlexVolumes").index(i).field("driver");
                errors.push(Error::required(&path, "must specify a driver"));
            }
        }
    }),
    Do(|spec, errors| {
        let list = spec.get("allowedCSIDrivers").path().field("allowedCSIDriver");
        for (i, driver) in spec.items("allowedCSIDrivers").enumerate() {
            let mut wrong = Errors::new();
            csi_driver_name(&driver.get("name"), &mut wrong);
            let path = list.index(i).field("name").as_str().to_owned();
            errors.extend(wrong.into_iter().map(|error| Error { field: path.clone(), ..error }));
        }
    }),
    Do(|spec, errors| check_sysctls(spec, "allowedUnsafeSysctls", errors)),
    Do(|spec, errors| check_sysctls(spec, "forbiddenSysctls", errors)),
    Do(check_overlap),
    At("runtimeClass", &[Do(check_runtime_class)]),
];

const USER_RULES: &[&str] = &["MustRunAs", "MustRunAsNonRoot", "RunAsAny"];
const SE_LINUX_RULES: &[&str] = &["MustRunAs", "RunAsAny"];
const GROUPS: Rules = &[Supported("rule", &["MayRunAs", "MustRunAs", "RunAsAny"]), RANGES];
const RANGES: crate::rules::Rule = Each("ranges", &[Do(check_range)]);

const VOLUMES: &[&str] = &[
    "*",
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephFS",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
];

fn check_range(range: &Field<'_>, errors: &mut Errors) {
    let (min, max) = (range.get("min"), range.get("max"));
    let number = |field: &Field<'_>| field.int().unwrap_or(0);
    let (least, most) = (number(&min), number(&max));
    if least < 0 {
        errors.push(min.invalid_as(least, "min cannot be negative"));
    }
    if most < 0 {
        errors.push(max.invalid_as(most, "max cannot be negative"));
    }
    if least > most {
        errors.push(min.invalid_as(least, "min cannot be greater than max"));
    }
}

fn check_group(group: &Field<'_>, errors: &mut Errors) {
    let (rule, ranges) = (group.get("rule"), group.get("ranges"));
    match rule.text() {
        "RunAsAny" if !ranges.is_empty() => errors.push(ranges.invalid("Ranges must be empty")),
        "RunAsAny" => {}
        "MustRunAs" | "MayRunAs" => {
            if ranges.is_empty() {
                errors.push(ranges.invalid("must provide at least one range"));
            }
            check(group, &[RANGES], errors);
        }
        _ => errors.push(rule.not_supported(&["MustRunAs", "RunAsAny", "MayRunAs"])),
    }
}

fn check_capabilities(spec: &Field<'_>, errors: &mut Errors) {
    let dropped: BTreeSet<&str> =
        spec.items("requiredDropCapabilities").map(|one| one.text()).collect();
    if !dropped.is_empty() && spec.items("allowedCapabilities").any(|one| one.text() == "*") {
        let words = "must be empty when all capabilities are allowed by a wildcard";
        let value = spec.get("requiredDropCapabilities");
        errors.push(Error::invalid(&Path::new("requiredDropCapabilities"), value.value(), words));
    }
    for member in ["defaultAddCapabilities", "allowedCapabilities"] {
        for capability in spec.items(member).filter(|one| dropped.contains(one.text())) {
            let words = format!("capability is listed in {member} and requiredDropCapabilities");
            errors.push(Error::invalid(&Path::new(member), capability.value(), words));
        }
    }
}

fn check_host_paths(spec: &Field<'_>, errors: &mut Errors) {
    for allowed in spec.items("allowedHostPaths") {
        let prefix = allowed.str("pathPrefix");
        if prefix.is_empty() {
            errors.push(allowed.required("is required"));
            break;
        }
        if prefix.split('/').any(|step| step == "..") {
            errors.push(allowed.invalid_as(prefix, "must not contain '..'"));
        }
    }
}

fn check_sysctls(spec: &Field<'_>, member: &str, errors: &mut Errors) {
    let mut covers_all = false;
    for sysctl in spec.items(member) {
        let text = sysctl.text();
        if text.is_empty() {
            errors.push(sysctl.invalid("empty sysctl not allowed"));
        } else if !is_sysctl_pattern(text) {
            errors.push(sysctl.invalid(SYSCTL_PATTERN));
        } else {
            covers_all |= text.starts_with('*');
        }
    }
    if covers_all && spec.items(member).len() > 1 {
        let list = spec.get(member);
        let words = "if '*' is present, must not specify other sysctls";
        errors.push(list.get("items").forbidden(words));
    }
}

const SYSCTL_PATTERN: &str = "must have at most 253 characters and match regex \
    ([a-z0-9]([-_a-z0-9]*[a-z0-9])?\\.)*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]";

/// The longest sysctl. Longer ones are refused, so those that overlap with them are not sought.
const SYSCTL_LENGTH_MAX: usize = 253;

/// True for the name of a kernel parameter, or a prefix of one with a star.
fn is_sysctl_pattern(text: &str) -> bool {
    let ends = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(b);
    let is_segment =
        |bytes: &[u8]| ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(inner);
    let mut segments = text.split('.').map(str::as_bytes);
    let Some(last) = segments.next_back() else { return false };
    let is_last = match last.split_last() {
        Some((b'*', [])) => true,
        Some((b'*', start)) => ends(start.first()) && start.iter().all(inner),
        _ => is_segment(last),
    };
    text.len() <= SYSCTL_LENGTH_MAX && is_last && segments.all(is_segment)
}

/// The forbidden sysctls, each with its index in the list.
struct Forbidden<'a> {
    /// Those with a star, by what precedes it.
    patterns: BTreeMap<&'a str, Vec<usize>>,
    /// All, by what precedes a star.
    starts: BTreeMap<&'a str, Vec<usize>>,
    /// Those without a star.
    names: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Forbidden<'a> {
    fn of(spec: &'a Field<'a>) -> Self {
        let mut all =
            Self { patterns: BTreeMap::new(), starts: BTreeMap::new(), names: BTreeMap::new() };
        for (i, sysctl) in spec.items("forbiddenSysctls").enumerate() {
            let (text, start) = (sysctl.text(), sysctl.text().strip_suffix('*'));
            let own = if start.is_some() { &mut all.patterns } else { &mut all.names };
            own.entry(start.unwrap_or(text)).or_default().push(i);
            all.starts.entry(start.unwrap_or(text)).or_default().push(i);
        }
        all
    }

    /// The indexes of those that overlap with an allowed sysctl, and whether they are shorter.
    fn overlaps(&self, allowed: &str) -> Vec<(usize, bool)> {
        let start = allowed.strip_suffix('*');
        let (start, is_pattern) = (start.unwrap_or(allowed), start.is_some());
        let lengths = 0..=start.len().min(SYSCTL_LENGTH_MAX);
        let above = lengths.filter_map(|length| self.patterns.get(start.get(..length)?));
        let mut found: Vec<_> = above.flatten().map(|i| (*i, true)).collect();
        if is_pattern {
            let below =
                self.starts.range(start..).take_while(|(other, _)| other.starts_with(start));
            // Patterns with the same start are among those above, too.
            let known = self.patterns.get(start).map_or(&[][..], Vec::as_slice);
            let is_new = |i: &&usize| known.binary_search(i).is_err();
            found.extend(below.flat_map(|(_, all)| all).filter(is_new).map(|i| (*i, false)));
        } else {
            found.extend(self.names.get(start).into_iter().flatten().map(|i| (*i, true)));
        }
        found.sort_unstable();
        found
    }
}

/// Checks that no sysctl is both allowed and forbidden. The error is about the longer one of two
/// that overlap.
fn check_overlap(spec: &Field<'_>, errors: &mut Errors) {
    let forbidden: Vec<Field<'_>> = spec.items("forbiddenSysctls").collect();
    let known = Forbidden::of(spec);
    for allowed in spec.items("allowedUnsafeSysctls") {
        if errors.is_full() {
            break;
        }
        let overlaps = known.overlaps(allowed.text());
        errors.extend(overlaps.into_iter().map(|(i, is_shorter)| {
            let (field, other) = match is_shorter {
                true => (&allowed, &forbidden[i]),
                false => (&forbidden[i], &allowed),
            };
            field.invalid(format!("sysctl overlaps with {}", other.text()))
        }));
    }
}

fn check_runtime_class(class: &Field<'_>, errors: &mut Errors) {
    let list = class.get("allowedRuntimeClassNames");
    let mut allowed = BTreeSet::new();
    for name in class.items("allowedRuntimeClassNames") {
        if name.text() != "*" {
            name.all_invalid(names::dns1123_subdomain(name.text()), errors);
        }
        if !allowed.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
    if let Some(default) = class.find("defaultRuntimeClassName") {
        default.all_invalid(names::dns1123_subdomain(default.text()), errors);
        if !allowed.contains(default.text()) && !allowed.contains("*") {
            errors.push(list.required(&format!("default {:?} must be allowed", default.text())));
        }
    }
    if allowed.contains("*") && class.items("allowedRuntimeClassNames").len() > 1 {
        let words = "if '*' is present, must not specify other RuntimeClass names";
        errors.push(list.invalid(words));
    }
}

/// Checks the annotations that preceded the fields; they contain names of profiles.
fn check_annotations(annotations: &Field<'_>, errors: &mut Errors) {
    const APP_ARMOR: [(&str, bool); 2] = [
        ("apparmor.security.beta.kubernetes.io/defaultProfileName", false),
        ("apparmor.security.beta.kubernetes.io/allowedProfileNames", true),
    ];
    const SECCOMP: [(&str, bool); 2] = [
        ("seccomp.security.alpha.kubernetes.io/defaultProfileName", false),
        ("seccomp.security.alpha.kubernetes.io/allowedProfileNames", true),
    ];
    for row in APP_ARMOR {
        let known = ["", "runtime/default", "unconfined"];
        let names = profiles(annotations, row);
        // Each error shows the whole annotation, so those that would be dropped are not made.
        errors.extend(names.filter(|n| !known.contains(n) && !n.starts_with("localhost/")).map(
            |name| {
                let words = format!("invalid AppArmor profile name: {name:?}");
                annotations.entry(row.0).invalid(words)
            },
        ));
    }
    for row in SECCOMP {
        let known = ["runtime/default", "docker/default", "unconfined"];
        let names = profiles(annotations, row);
        let is_known = |name: &&str| known.contains(name) || (row.1 && *name == "*");
        for name in names.filter(|name| !is_known(name)) {
            let entry = annotations.entry(row.0);
            match name.strip_prefix("localhost/") {
                Some(file) => local_path(&entry.of(&Value::from(file)), errors),
                None => errors.push(entry.invalid_as(name, "must be a valid seccomp profile")),
            }
        }
    }
}

/// The profiles in an annotation: one, or a comma-separated list.
fn profiles<'a>(
    annotations: &Field<'a>,
    (annotation, is_list): (&str, bool),
) -> impl Iterator<Item = &'a str> {
    let text = annotations.value().str_at(&[annotation]).unwrap_or_default();
    let names = if is_list { text.split(',').collect() } else { vec![text] };
    names.into_iter().filter(move |_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    #[test]
    fn overlapping_sysctls() {
        for (allowed, forbidden, expected) in [
            ("a", "a", "spec.allowedUnsafeSysctls[0] a"),
            ("a", "ab", ""),
            ("ab", "a", ""),
            ("a*", "a*", "spec.allowedUnsafeSysctls[0] a*"),
            ("ab*", "a*", "spec.allowedUnsafeSysctls[0] a*"),
            ("a*", "ab*", "spec.forbiddenSysctls[0] a*"),
            ("a*", "ab", "spec.forbiddenSysctls[0] a*"),
            ("a*", "a", "spec.forbiddenSysctls[0] a*"),
            ("ab", "a*", "spec.allowedUnsafeSysctls[0] a*"),
            ("a", "a*", "spec.allowedUnsafeSysctls[0] a*"),
            ("a", "*", "spec.allowedUnsafeSysctls[0] *"),
            ("a*", "b*", ""),
            (
                "ab*",
                "ab,b,a*,abc",
                "spec.forbiddenSysctls[0] ab*; spec.allowedUnsafeSysctls[0] a*; \
                 spec.forbiddenSysctls[3] ab*",
            ),
        ] {
            let list = |texts: &str| format!("[\"{}\"]", texts.replace(',', "\",\""));
            let (allowed, forbidden) = (list(allowed), list(forbidden));
            let text = format!(
                r#"{{"spec":{{"allowedUnsafeSysctls":{allowed},"forbiddenSysctls":{forbidden}}}}}"#
            );
            let policy = json::parse(text.as_bytes()).expect("JSON");
            let policy = Field::root(&policy);
            let mut errors = Errors::new();
            check_overlap(&policy.get("spec"), &mut errors);
            let shown = |error: &Error| {
                let other = error.detail.strip_prefix("sysctl overlaps with ").unwrap_or_default();
                format!("{} {other}", error.field)
            };
            let found: Vec<String> = errors.iter().map(shown).collect();
            assert_eq!(found.join("; "), expected, "{text}");
        }
    }
}
