//! The volume sources and their rules.

use std::net::SocketAddr;

use pintle_meta::{field::Error, names, validation};
use pintle_value::Map;

use super::{Source, claim, files};
use crate::{
    field::{Errors, Field},
    formats::within,
    rules::{
        Rule::{self, At, Choice, Do, Each, Formatted, Named, OneOf, Required, Within},
        Rules, check, required,
    },
};

/// Every source, in the order in which upstream looks for them.
pub(super) const SOURCES: &[Source] = &[
    source("emptyDir", &[Do(empty_dir)]),
    source("hostPath", HOST_PATH),
    source("gitRepo", &[Required("repository"), Do(repository_directory)]),
    Source {
        names: ["gcePersistentDisk", "persistentDisk"],
        ..source("gcePersistentDisk", GCE_DISK)
    },
    source("awsElasticBlockStore", AWS_DISK),
    source("secret", &[Required("secretName"), MODE, Each("items", files::KEY_TO_PATH)]),
    source("nfs", NFS),
    source("iscsi", ISCSI),
    source("glusterfs", GLUSTERFS),
    source("flocker", FLOCKER),
    source("persistentVolumeClaim", &[Required("claimName")]),
    source("rbd", RBD),
    source("cinder", &[Required("volumeID"), At("secretRef", &[Required("name")])]),
    Source { names: ["cephFS", "cephfs"], ..source("cephfs", CEPHFS) },
    source("quobyte", QUOBYTE),
    Source { names: ["downwarAPI", "downwardAPI"], ..source("downwardAPI", DOWNWARD_API) },
    source("fc", FIBRE_CHANNEL),
    source("flexVolume", FLEX),
    source("configMap", &[Required("name"), MODE, Each("items", files::KEY_TO_PATH)]),
    source("azureFile", &[Required("secretName"), Required("shareName")]),
    source("vsphereVolume", &[Required("volumePath")]),
    source("photonPersistentDisk", &[Required("pdID")]),
    source("portworxVolume", &[Required("volumeID")]),
    source("azureDisk", AZURE_DISK),
    source("storageos", STORAGE_OS),
    source("projected", &[MODE]),
    source("scaleIO", SCALE_IO),
    source("csi", CSI),
    source("ephemeral", &[Do(ephemeral)]),
    source("image", &[]),
];

/// The rules of an image that are checked after its reference; only pods must have a reference.
pub(super) const IMAGE: Rules = &[Choice("pullPolicy", &["Always", "IfNotPresent", "Never"])];

pub(super) const fn source(member: &'static str, rules: Rules) -> Source {
    Source { member, names: [member, member], rules }
}

const MODE: Rule = Do(|source, errors| files::check_mode(source, "defaultMode", errors));

pub(super) const HOST_PATH: Rules = &[Do(host_path)];
pub(super) const GCE_DISK: Rules = &[Required("pdName"), Do(partition)];
pub(super) const AWS_DISK: Rules = &[Required("volumeID"), Do(partition)];
pub(super) const NFS: Rules = &[Required("server"), Required("path"), Do(absolute_path)];
pub(super) const GLUSTERFS: Rules = &[Required("endpoints"), Required("path")];
pub(super) const RBD: Rules = &[Required("monitors"), Required("image")];
pub(super) const CEPHFS: Rules = &[Required("monitors")];
pub(super) const QUOBYTE: Rules = &[Do(quobyte_registry), Required("volume")];
pub(super) const FLOCKER: Rules = &[Do(flocker)];
pub(super) const FLEX: Rules = &[Required("driver"), Do(flex_options)];
pub(super) const SCALE_IO: Rules =
    &[Required("gateway"), Required("system"), Required("volumeName")];
const DOWNWARD_API: Rules = &[MODE, Do(files::downward_files)];
pub(super) const FIBRE_CHANNEL: Rules = &[Do(fibre_channel)];
const CSI: Rules = &[Do(driver_name), Do(publish_secret)];
pub(super) const STORAGE_OS: Rules = &[
    Named("volumeName", names::dns1123_label),
    Formatted("volumeNamespace", names::dns1123_label),
    At("secretRef", &[Required("name")]),
];
pub(super) const AZURE_DISK: Rules = &[
    Required("diskName"),
    Required("diskURI"),
    OneOf("cachingMode", &["None", "ReadOnly", "ReadWrite"]),
    OneOf("kind", &["Dedicated", "Managed", "Shared"]),
    Do(disk_address),
];
const ISCSI: Rules = &[
    Required("targetPortal"),
    Do(|source, errors| check_target(&source.get("iqn"), FORMS, errors)),
    Within("lun", 0, 255),
    Do(chap_secret),
    Do(|source, errors| check_initiator(source, FORMS, errors)),
];

fn empty_dir(source: &Field<'_>, errors: &mut Errors) {
    let limit = source.get("sizeLimit");
    if limit.text().starts_with('-') {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

fn host_path(source: &Field<'_>, errors: &mut Errors) {
    let path = source.get("path");
    if path.is_empty() {
        errors.push(path.required(""));
        return;
    }
    files::no_backsteps(&path, errors);
    let kind = source.get("type");
    if kind.is_set() && !HOST_PATH_TYPES.contains(&kind.text()) {
        errors.push(kind.not_supported(HOST_PATH_TYPES));
    }
}

fn repository_directory(source: &Field<'_>, errors: &mut Errors) {
    files::local_path(&source.get("directory"), errors);
}

/// 0 means no partition, though the message does not mention it.
fn partition(disk: &Field<'_>, errors: &mut Errors) {
    let partition = disk.get("partition");
    if partition.int().is_some_and(|number| !(0..=255).contains(&number)) {
        errors.push(partition.invalid(within(1, 255)));
    }
}

fn absolute_path(source: &Field<'_>, errors: &mut Errors) {
    let path = source.get("path");
    if !path.text().starts_with('/') {
        errors.push(path.invalid_as(path.text(), "must be an absolute path"));
    }
}

fn flocker(source: &Field<'_>, errors: &mut Errors) {
    let (name, uuid) = (source.get("datasetName"), source.get("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.push(source.required("one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let words = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(source.invalid_as("resource", words));
    }
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}

fn quobyte_registry(source: &Field<'_>, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, tenant) = (source.get("registry"), source.get("tenant"));
    if registry.is_empty() {
        errors.push(registry.required(PAIRS));
    } else if tenant.text().len() > 64 {
        errors.push(tenant.required("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        let wrong = registry.text().split(',').filter(|pair| !is_host_and_port(pair));
        errors.extend(wrong.map(|_| registry.invalid(PAIRS)));
    }
}

fn is_host_and_port(pair: &str) -> bool {
    let is_bare = |host: &str| !host.contains([':', '[', ']']);
    pair.parse::<SocketAddr>().is_ok()
        || pair.rsplit_once(':').is_some_and(|(host, port)| is_bare(host) && is_bare(port))
}

fn flex_options(source: &Field<'_>, errors: &mut Errors) {
    let options = source.get("options");
    for (key, option) in options.pairs() {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let words = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(option.invalid_as(key, words));
        }
    }
}

fn fibre_channel(source: &Field<'_>, errors: &mut Errors) {
    let (names, wwids) = (source.get("targetWWNs"), source.get("wwids"));
    if names.is_empty() && wwids.is_empty() {
        errors.push(names.required("must specify either targetWWNs or wwids, but not both"));
    }
    if !names.is_empty() && !wwids.is_empty() {
        let words = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(names.invalid(words));
    }
    if !names.is_empty() {
        let lun = source.get("lun");
        match lun.int() {
            None => errors.push(lun.required("lun is required if targetWWNs is specified")),
            Some(0..=255) => {}
            Some(_) => errors.push(lun.invalid(within(0, 255))),
        }
    }
}

fn disk_address(disk: &Field<'_>, errors: &mut Errors) {
    const MANAGED: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
                           microsoft.compute/disks/{disk-id}";
    const BLOB: &str =
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let Some(kind) = disk.find("kind") else { return };
    let address = disk.get("diskURI");
    let (prefix, form) = match kind.text() {
        "Managed" => ("/subscriptions/", MANAGED),
        _ => ("https://", BLOB),
    };
    if !address.text().starts_with(prefix) {
        errors.push(address.not_supported(&[form]));
    }
}

/// Checks the name of a CSI driver.
pub(crate) fn driver_name(source: &Field<'_>, errors: &mut Errors) {
    const LENGTH_MAX: usize = 63;
    let driver = source.get("driver");
    if driver.is_empty() {
        return errors.push(driver.required(""));
    }
    if driver.text().len() > LENGTH_MAX {
        errors.push(Error::too_long(&driver.path(), LENGTH_MAX));
    }
    driver.all_invalid(names::dns1123_subdomain(&driver.text().to_lowercase()), errors);
}

fn publish_secret(source: &Field<'_>, errors: &mut Errors) {
    if let Some(secret) = source.find("nodePublishSecretRef") {
        let name = secret.get("name");
        required(&name, "", errors);
        if !name.is_empty() {
            // Upstream's path lacks the reference.
            let name = source.get("name").path();
            let text = secret.str("name");
            let wrong = names::dns1123_subdomain(text).into_iter();
            errors.extend(wrong.map(|words| Error::invalid(&name, &text.into(), words)));
        }
    }
}

/// Checks the claim template of an ephemeral volume: labels, annotations and a spec.
fn ephemeral(source: &Field<'_>, errors: &mut Errors) {
    let template = source.get("volumeClaimTemplate");
    if !template.is_set() {
        errors.push(template.required(""));
        return;
    }
    let metadata = template.get("metadata");
    let at = |member| metadata.get(member).path();
    let annotations = Some(metadata.map("annotations"));
    errors.extend(validation::annotations(annotations, &at("annotations")));
    errors.extend(validation::labels(Some(metadata.map("labels")), &at("labels")));
    check_claim_metadata(&metadata, errors);
    check(&template.get("spec"), claim::SPEC, errors);
}

/// The metadata of a claim template may only have labels and annotations.
pub(crate) fn check_claim_metadata(metadata: &Field<'_>, errors: &mut Errors) {
    for member in metadata.value().as_object().into_iter().flat_map(Map::keys) {
        let field = metadata.get(member);
        if !matches!(member.as_str(), "annotations" | "labels") && !field.is_empty() {
            // Upstream lowers the first letter of Go's name, which is `UID`.
            let name = if member == "uid" { "uID" } else { member.as_str() };
            errors.push(field.called(name).forbidden("cannot be set"));
        }
    }
}

const FORMS: &str = "must be valid format starting with iqn, eui, or naa";

/// Checks the name of the target, which is required.
pub(super) fn check_target(name: &Field<'_>, forms: &str, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(name.required(""));
    } else {
        check_form(name, forms, errors);
    }
}

/// Upstream's path has the member's name in lower case.
pub(super) fn check_initiator(source: &Field<'_>, forms: &str, errors: &mut Errors) {
    if let Some(name) = source.find("initiatorName") {
        check_form(&name.called("initiatorname"), forms, errors);
    }
}

/// `forms` is the message for a name of an unknown form.
fn check_form(name: &Field<'_>, forms: &str, errors: &mut Errors) {
    if !has_known_form(name.text()) {
        errors.push(name.invalid(forms));
    } else if !is_qualified(name.text()) {
        errors.push(name.invalid("must be valid format"));
    }
}

pub(super) fn chap_secret(source: &Field<'_>, errors: &mut Errors) {
    let is_required =
        source.get("chapAuthDiscovery").is_true() || source.get("chapAuthSession").is_true();
    let secret = source.get("secretRef");
    if is_required && !secret.is_set() {
        errors.push(secret.required(""));
    }
}

fn has_known_form(name: &str) -> bool {
    ["iqn", "eui", "naa"].iter().any(|form| name.starts_with(form))
}

/// `iqn.2016-04.com.example:storage`, `eui.` and 16 or `naa.` and 32 letters or digits.
fn is_qualified(name: &str) -> bool {
    let is_word = |text: &str, length: usize| {
        let mut rest = text.chars();
        rest.next().is_some()
            && rest.as_str().len() == length
            && rest.all(|c| c.is_ascii_alphanumeric())
    };
    match name.split_at_checked(3) {
        Some(("eui", rest)) => is_word(rest, 16),
        Some(("naa", rest)) => is_word(rest, 32),
        Some(("iqn", rest)) => is_iqn(rest).unwrap_or(false),
        _ => false,
    }
}

/// `.2016-04.com.example:storage`
fn is_iqn(rest: &str) -> Option<bool> {
    let are_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (month, rest) = rest.strip_prefix('.')?.split_at_checked(7)?;
    let (year, month) = month.split_once('-')?;
    let (authority, target) = rest.strip_prefix('.')?.split_once(':')?;
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    let is_dated = year.len() == 4 && are_digits(year) && are_digits(month);
    let has_target = !target.is_empty()
        && !target.contains(|c: char| ",;*&$|".contains(c) || c.is_ascii_whitespace());
    Some(is_dated && !authority.is_empty() && authority.bytes().all(inner) && has_target)
}

/// Returns the error for a volume name and portal that together form an initiator name which is too
/// long.
pub(super) fn wrong_initiator_length(volume: &str, source: &Field<'_>) -> Option<&'static str> {
    const LENGTH_MAX: usize = 64;
    let length = volume.len() + 1 + source.str("targetPortal").len();
    (source.has("initiatorName") && length > LENGTH_MAX).then_some(
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
         iscsi.initiatorName is specified.",
    )
}
