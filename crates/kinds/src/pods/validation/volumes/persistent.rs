//! The sources of PersistentVolumes: those of pods, except that secret references can name another
//! namespace.

use pintle_meta::names;

use super::{Source, files, sources, sources::source};
use crate::{
    field::{Errors, Field},
    rules::{
        Rule::{At, Do, Named, Required, Within},
        Rules, check, required,
    },
};

/// Every source, in the order in which upstream looks for them.
const SOURCES: &[Source] = &[
    source("hostPath", sources::HOST_PATH),
    Source {
        names: ["gcePersistentDisk", "persistentDisk"],
        ..source("gcePersistentDisk", sources::GCE_DISK)
    },
    source("awsElasticBlockStore", sources::AWS_DISK),
    source("glusterfs", GLUSTERFS),
    source("flocker", sources::FLOCKER),
    source("nfs", sources::NFS),
    source("rbd", sources::RBD),
    source("quobyte", sources::QUOBYTE),
    Source { names: ["cephFS", "cephfs"], ..source("cephfs", sources::CEPHFS) },
    source("iscsi", ISCSI),
    source("cinder", &[Required("volumeID"), At("secretRef", SECRET)]),
    source("fc", sources::FIBRE_CHANNEL),
    source("flexVolume", sources::FLEX),
    source("azureFile", AZURE_FILE),
    source("vsphereVolume", &[Required("volumePath")]),
    source("photonPersistentDisk", &[Required("pdID")]),
    source("portworxVolume", &[Required("volumeID")]),
    source("azureDisk", sources::AZURE_DISK),
    source("scaleIO", sources::SCALE_IO),
    source("local", &[Do(local_path)]),
    source("storageos", STORAGE_OS),
    source("csi", CSI),
];

const SECRET: Rules = &[Required("name"), Required("namespace")];
const GLUSTERFS: Rules = &[Required("endpoints"), Required("path"), Do(endpoints_namespace)];
const STORAGE_OS: Rules =
    &[Do(|source, errors| check(source, sources::STORAGE_OS, errors)), Do(secret_namespace)];
const AZURE_FILE: Rules = &[
    Required("secretName"),
    Required("shareName"),
    Do(|source, errors| {
        if let Some(namespace) = source.find("secretNamespace") {
            required(&namespace, "", errors);
        }
    }),
];
const ISCSI: Rules = &[
    Required("targetPortal"),
    Do(|source, errors| sources::check_target(&source.get("iqn"), FORMS, errors)),
    Within("lun", 0, 255),
    Do(sources::chap_secret),
    At("secretRef", &[Required("name")]),
    Do(|source, errors| sources::check_initiator(source, FORMS, errors)),
];
const CSI: Rules = &[
    Do(sources::driver_name),
    Required("volumeHandle"),
    At("controllerPublishSecretRef", NAMED_SECRET),
    At("controllerExpandSecretRef", NAMED_SECRET),
    At("nodePublishSecretRef", NAMED_SECRET),
    At("nodeExpandSecretRef", NAMED_SECRET),
];
const NAMED_SECRET: Rules =
    &[Named("name", names::dns1123_subdomain), Named("namespace", names::dns1123_label)];

/// Upstream's message is shorter than for pods.
const FORMS: &str = "must be valid format";

/// Checks the sources of the PersistentVolume `name`, of which there must be exactly one.
pub(crate) fn check_persistent_sources(spec: &Field<'_>, name: &str, errors: &mut Errors) {
    let mut is_found = false;
    for source in SOURCES {
        let Some(field) = spec.find(source.member) else { continue };
        // Upstream accepts `flexVolume` in addition to another source.
        if is_found && source.member != "flexVolume" {
            let words = "may not specify more than 1 volume type";
            errors.push(field.called(source.names[0]).forbidden(words));
            continue;
        }
        is_found = true;
        let field = field.called(source.names[1]);
        check(&field, source.rules, errors);
        match source.member {
            "iscsi" => {
                let portal = field.get("targetPortal");
                let portal = portal.called("targetportal");
                let wrong = sources::wrong_initiator_length(name, &field);
                errors.extend(wrong.map(|words| portal.invalid(words)));
            }
            "local" if !spec.has("nodeAffinity") => {
                let words = "Local volume requires node affinity";
                errors.push(spec.get("nodeAffinity").required(words));
            }
            _ => {}
        }
    }
    if !is_found {
        errors.push(spec.required("must specify a volume type"));
    }
}

fn local_path(source: &Field<'_>, errors: &mut Errors) {
    let path = source.get("path");
    required(&path, "", errors);
    files::no_backsteps(&path, errors);
}

fn endpoints_namespace(source: &Field<'_>, errors: &mut Errors) {
    let Some(namespace) = source.find("endpointsNamespace") else { return };
    if namespace.is_empty() {
        let words = "if the endpointnamespace is set, it must be a valid namespace name";
        errors.push(namespace.invalid(words));
    } else {
        namespace.all_invalid(names::dns1123_label(namespace.text()), errors);
    }
}

fn secret_namespace(source: &Field<'_>, errors: &mut Errors) {
    check(source, &[At("secretRef", &[Required("namespace")])], errors);
}
