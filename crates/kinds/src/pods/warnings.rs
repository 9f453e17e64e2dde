//! Warnings about pods and templates that are accepted.

mod overlaps;
mod ports;

use std::collections::BTreeSet;

use pintle_meta::{names, quantity::Quantity};
use pintle_value::{Path, Value};

use super::validation::{APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD, have_profiles};
use crate::{
    checks::{Seen, WARNINGS_MAX},
    field::Field,
    formats::odd_ip,
};

/// The most pairs of files or ports that are compared: their number grows with the square of the
/// number of files and ports.
const PAIRS_MAX: usize = 100_000;

/// Warns of a new pod.
pub(crate) fn warn_of_pod(pod: &Value) -> Vec<String> {
    let field = Field::root(pod);
    let mut warnings = warn_of_name(
        pod,
        "this is used in the Pod's hostname, which can result in surprising behavior",
    );
    warnings.extend(warnings_of(&field, false));
    warnings
}

/// Warns of a template.
pub(crate) fn warn_of_template(template: &Field<'_>) -> Vec<String> {
    warnings_of(template, true)
}

/// Warns of the spec of a claim.
pub(crate) fn warn_of_claim(spec: &Field<'_>) -> Vec<String> {
    let mut warnings = Warnings::new();
    for list in ["requests", "limits"] {
        let path = ["resources", list];
        warnings.add_fraction(&spec.at(&path).entry("storage"));
    }
    warnings.texts
}

/// Returns warnings about deprecated sources of a PersistentVolume.
pub(crate) fn warn_of_sources(spec: &Field<'_>) -> Vec<String> {
    let mut warnings = Warnings::new();
    // Upstream does not warn of these three here.
    let has_warning = |member: &str| !matches!(member, "gitRepo" | "flocker" | "quobyte");
    for (member, name, words) in OLD_VOLUMES.iter().filter(|(member, ..)| has_warning(member)) {
        if spec.has(member) {
            warnings.add(&spec.get(name).path(), words);
        }
    }
    warnings.texts
}

/// Warns of a NodeSelector.
pub(crate) fn warn_of_node_selector(selector: &Field<'_>) -> Vec<String> {
    let mut warnings = Warnings::new();
    for term in selector.items("nodeSelectorTerms") {
        warn_of_node_term(&term, false, &mut warnings);
    }
    warnings.texts
}

/// Warns of a name that becomes part of other names but is not a DNS label.
pub(crate) fn warn_of_name(object: &Value, words: &str) -> Vec<String> {
    let wrong = names::dns1123_label(pintle_meta::object::name(object));
    if wrong.is_empty() {
        return Vec::new();
    }
    let wrong = wrong.join(" ");
    vec![format!("metadata.name: {words}; a DNS label is recommended: [{wrong}]")]
}

/// Warnings, in upstream's order, and the budgets of the search for them.
struct Warnings {
    texts: Vec<String>,
    pairs_left: usize,
}

impl Warnings {
    const fn new() -> Self {
        Self { texts: Vec::new(), pairs_left: PAIRS_MAX }
    }

    const fn is_full(&self) -> bool {
        self.texts.len() >= WARNINGS_MAX
    }

    /// Adds a warning, unless there are too many.
    fn push(&mut self, text: impl FnOnce() -> String) {
        if !self.is_full() {
            self.texts.push(text());
        }
    }

    fn add(&mut self, path: &Path, words: &str) {
        self.push(|| [path.as_str(), ": ", words].concat());
    }

    /// How many of `count` others an item may still be compared with.
    fn pairs(&mut self, count: usize) -> usize {
        let compared = if self.is_full() { 0 } else { count.min(self.pairs_left) };
        self.pairs_left -= compared;
        compared
    }

    /// Warns of an amount of bytes that is not whole.
    fn add_fraction(&mut self, amount: &Field<'_>) {
        let is_fraction = |amount: Quantity| !amount.is_whole();
        if !amount.is_empty() && amount.text().parse().is_ok_and(is_fraction) {
            let words =
                format!("fractional byte value {:?} is invalid, must be an integer", amount.text());
            self.add(&amount.path(), &words);
        }
    }
}

/// Annotations that do nothing any more.
const OLD_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
];

/// Volume sources that are deprecated or no longer work.
const OLD_VOLUMES: &[(&str, &str, &str)] = &[
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Node labels that were renamed.
const OLD_LABELS: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#),
    ("beta.kubernetes.io/os", r#"deprecated since v1.14; use "kubernetes.io/os" instead"#),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#,
    ),
    (
        "beta.kubernetes.io/instance-type",
        r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#,
    ),
];

/// The replacement of a deprecated node label.
pub(crate) fn old_label(label: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, _)| *old == label).map(|(_, words)| *words)
}

/// `owner` is a pod or a template.
fn warnings_of(owner: &Field<'_>, is_template: bool) -> Vec<String> {
    let mut warnings = Warnings::new();
    let spec = owner.get("spec");
    let annotations = owner.at(&["metadata", "annotations"]);
    warn_of_labels(&spec, &mut warnings);
    for (key, words) in OLD_ANNOTATIONS {
        if annotations.has(key) {
            warnings.add(&annotations.path().key(key), words);
        }
    }
    warn_of_volumes(&spec, &mut warnings);
    overlaps::warn_of_overlaps(&spec, &mut warnings);
    warn_of_duplicates(&spec, "hostAliases", "ip", &mut warnings);
    warn_of_duplicates(&spec, "imagePullSecrets", "name", &mut warnings);
    for secret in spec.items("imagePullSecrets") {
        if secret.str("name").is_empty() {
            warnings.add(&secret.get("name").path(), r#"invalid empty name """#);
        }
    }
    let overhead = spec.get("overhead");
    warnings.add_fraction(&overhead.entry("memory"));
    warnings.add_fraction(&overhead.entry("ephemeral-storage"));
    if annotations.has(SECCOMP_POD) && !spec.at(&["securityContext", "seccompProfile"]).is_set() {
        warn_of_seccomp(&annotations, SECCOMP_POD, &mut warnings);
    }
    let containers: Vec<Field<'_>> = LISTS.iter().flat_map(|list| spec.items(list)).collect();
    let have_profiles = have_profiles(&annotations);
    for container in &containers {
        if have_profiles {
            warn_of_profiles(&spec, &annotations, container, is_template, &mut warnings);
        }
        warn_of_amounts(container, &mut warnings);
        warn_of_variables(container, &mut warnings);
    }
    ports::warn_of_ports(&containers, &mut warnings);
    let grace = spec.get("terminationGracePeriodSeconds");
    if grace.int().is_some_and(|seconds| seconds < 0) {
        let words = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.add(&grace.path(), words);
    }
    warn_of_terms(&spec, &mut warnings);
    warn_of_addresses(&spec, &mut warnings);
    warnings.texts
}

/// The lists of containers in the order in which upstream visits them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

fn warn_of_labels(spec: &Field<'_>, warnings: &mut Warnings) {
    let selector = spec.get("nodeSelector");
    for (key, field) in selector.pairs() {
        if let Some(words) = old_label(key) {
            warnings.add(&field.path(), words);
        }
    }
    let nodes = spec.at(&["affinity", "nodeAffinity"]);
    let required = nodes.get("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.items("nodeSelectorTerms") {
        warn_of_node_term(&term, false, warnings);
    }
    for term in nodes.items("preferredDuringSchedulingIgnoredDuringExecution") {
        warn_of_node_term(&term.get("preference"), true, warnings);
    }
    for constraint in spec.items("topologySpreadConstraints") {
        let key = constraint.get("topologyKey");
        if let Some(words) = old_label(key.text()) {
            warnings.add(&key.path(), &format!("{} is {words}", key.text()));
        }
        warn_of_selector(&constraint, warnings);
    }
}

/// Required terms were validated; preferred ones may have values that no label can have.
fn warn_of_node_term(term: &Field<'_>, with_values: bool, warnings: &mut Warnings) {
    for requirement in term.items("matchExpressions") {
        let key = requirement.get("key");
        if let Some(words) = old_label(key.text()) {
            warnings.add(&key.path(), &format!("{} is {words}", key.text()));
        }
        for value in requirement.items("values").filter(|_| with_values) {
            for words in names::label_value(value.text()) {
                let words = format!("{} is invalid, {words}", value.text());
                warnings.add(&value.path(), &words);
            }
        }
    }
}

fn warn_of_terms(spec: &Field<'_>, warnings: &mut Warnings) {
    for side in ["podAffinity", "podAntiAffinity"] {
        let path = ["affinity", side];
        let pods = spec.at(&path);
        for term in pods.items("requiredDuringSchedulingIgnoredDuringExecution") {
            warn_of_selector(&term, warnings);
        }
        for term in pods.items("preferredDuringSchedulingIgnoredDuringExecution") {
            warn_of_selector(&term.get("podAffinityTerm"), warnings);
        }
    }
}

/// Warns of valid addresses that are not in canonical form.
fn warn_of_addresses(spec: &Field<'_>, warnings: &mut Warnings) {
    let dns = spec.get("dnsConfig");
    let aliases: Vec<Field<'_>> = spec.items("hostAliases").collect();
    let addresses = dns.items("nameservers").chain(aliases.iter().map(|alias| alias.get("ip")));
    for address in addresses {
        if let Some(words) = odd_ip(address.text()) {
            warnings.add(&address.path(), &words);
        }
    }
}

fn warn_of_selector(term: &Field<'_>, warnings: &mut Warnings) {
    let selector = term.get("labelSelector");
    if !selector.is_set() {
        warnings.add(&selector.path(), "a null labelSelector results in matching no pod");
    }
}

fn warn_of_volumes(spec: &Field<'_>, warnings: &mut Warnings) {
    for volume in spec.items("volumes") {
        for (_, name, words) in volume.present(OLD_VOLUMES, |(member, ..)| member) {
            warnings.add(&volume.get(name).path(), words);
        }
        let claim = volume.at(&["ephemeral", "volumeClaimTemplate", "spec"]);
        if claim.is_set() {
            warn_of_claim(&claim).into_iter().for_each(|text| warnings.push(|| text));
        }
    }
}

fn warn_of_duplicates(spec: &Field<'_>, list: &str, member: &str, warnings: &mut Warnings) {
    let mut seen = BTreeSet::new();
    for item in spec.items(list) {
        if !seen.insert(item.str(member)) {
            let words = format!("duplicate {member} {:?}", item.str(member));
            warnings.add(&item.get(member).path(), &words);
        }
    }
}

fn warn_of_seccomp(annotations: &Field<'_>, key: &str, warnings: &mut Warnings) {
    let words = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;
    warnings.add(&annotations.path().key(key), words);
}

fn warn_of_profiles(
    spec: &Field<'_>,
    annotations: &Field<'_>,
    container: &Field<'_>,
    is_template: bool,
    warnings: &mut Warnings,
) {
    let name = container.str("name");
    let context = container.get("securityContext");
    let key = format!("{SECCOMP_CONTAINER}{name}");
    if annotations.has(&key) && !context.has("seccompProfile") {
        warn_of_seccomp(annotations, &key, warnings);
    }
    let key = format!("{APP_ARMOR}{name}");
    let of_pod = spec.at(&["securityContext", "appArmorProfile"]);
    if is_template && annotations.has(&key) && !of_pod.is_set() && !context.has("appArmorProfile") {
        let words = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;
        warnings.add(&annotations.path().key(&key), words);
    }
}

fn warn_of_amounts(container: &Field<'_>, warnings: &mut Warnings) {
    let resources = container.get("resources");
    let lists = ["limits", "requests"].map(|list| resources.get(list));
    for resource in ["memory", "ephemeral-storage"] {
        for amounts in &lists {
            warnings.add_fraction(&amounts.entry(resource));
        }
    }
}

/// Warns of a variable that hides an earlier one: it may extend the earlier value, but not replace
/// it.
fn warn_of_variables(container: &Field<'_>, warnings: &mut Warnings) {
    let mut seen = Seen::default();
    for variable in container.items("env") {
        let name = variable.str("name");
        if seen.insert(name) {
            continue;
        }
        let former = format!("$({name})");
        let value = variable.str("value");
        if variable.has("valueFrom") || value == former || !value.contains(&former) {
            let words = format!(
                "hides previous definition of {name:?}, which may be dropped when using apply"
            );
            warnings.add(&variable.path(), &words);
        }
    }
}
