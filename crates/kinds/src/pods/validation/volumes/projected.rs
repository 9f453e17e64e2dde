//! Projected volumes: files from several sources in one directory.

use std::collections::BTreeSet;

use pintle_meta::validation;

use super::files;
use crate::{
    field::{Errors, Field},
    pods::validation::Options,
    rules::{Rule::Do, Rules, check, required},
    signers::{SECONDS_MIN, seconds_max, signer_name, user_annotations},
};

/// The shortest lifetime of a service account token.
const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const KEY_TYPES: &[&str] =
    &["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

/// Checks the sources, whose files must have different paths.
pub(super) fn check_sources(volume: &Field<'_>, options: Options, errors: &mut Errors) {
    let mut files = Files { volume, paths: BTreeSet::new() };
    for source in volume.items("sources") {
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            if let Some(projection) = source.find(kind) {
                count += 1;
                required(&projection.get("name"), "", errors);
                for item in projection.items("items") {
                    check(&item, files::KEY_TO_PATH, errors);
                    files.add(item.str("path"), projection.str("name"), errors);
                }
            }
        }
        if let Some(projection) = source.find("downwardAPI") {
            count += 1;
            for file in projection.items("items") {
                files::check_downward_file(&projection, &file, errors);
                files.add(file.str("path"), file.str("path"), errors);
            }
        }
        if let Some(token) = source.find("serviceAccountToken") {
            count += 1;
            check_token(volume, &token, options, errors);
        }
        if let Some(bundle) = source.find("clusterTrustBundle") {
            count += 1;
            check(&bundle, TRUST_BUNDLE, errors);
            files.add_even_empty(bundle.str("path"), errors);
        }
        if let Some(certificate) = source.find("podCertificate") {
            count += 1;
            check_certificate(&certificate, &mut files, errors);
        }
        if count > 1 {
            let words = "may not specify more than 1 volume type per source";
            errors.push(source.forbidden(words));
        }
    }
}

/// The paths of the volume's files so far.
struct Files<'a> {
    volume: &'a Field<'a>,
    paths: BTreeSet<String>,
}

impl Files<'_> {
    /// `shown` is the value in errors, which is not always the path.
    fn add(&mut self, path: &str, shown: &str, errors: &mut Errors) {
        let is_new = path.is_empty() || self.paths.insert(path.to_owned());
        // Many errors may show the same long value, so those that would be dropped are not made.
        if !is_new && !errors.is_full() {
            errors.push(self.volume.invalid_as(shown, "conflicting duplicate paths"));
        }
    }

    fn add_even_empty(&mut self, path: &str, errors: &mut Errors) {
        if !self.paths.insert(path.to_owned()) {
            errors.push(self.volume.invalid_as(path, "conflicting duplicate paths"));
        }
    }
}

/// Checks a pod certificate, which is projected with its key into one file or two.
fn check_certificate(certificate: &Field<'_>, files: &mut Files<'_>, errors: &mut Errors) {
    let signer = certificate.get("signerName");
    signer_name(&signer, errors);
    user_annotations(&certificate.get("userAnnotations"), errors);
    let key_type = certificate.get("keyType");
    if !KEY_TYPES.contains(&key_type.text()) {
        errors.push(key_type.not_supported(KEY_TYPES));
    }
    let seconds = certificate.get("maxExpirationSeconds");
    let most = seconds_max(signer.text());
    match seconds.int() {
        Some(number) if number < SECONDS_MIN => {
            let words = format!("if provided, maxExpirationSeconds must be >= {SECONDS_MIN}");
            errors.push(seconds.invalid(words));
        }
        Some(number) if number > most => {
            let words = format!("if provided, maxExpirationSeconds must be <= {most}");
            errors.push(seconds.invalid(words));
        }
        _ => {}
    }
    let paths = ["credentialBundlePath", "keyPath", "certificateChainPath"];
    let paths = paths.map(|member| certificate.get(member));
    for path in paths.iter().filter(|path| !path.is_empty()) {
        files::not_reserved(path, errors);
        files.add(path.text(), path.text(), errors);
    }
    if paths.iter().all(Field::is_empty) {
        let words =
            "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(certificate.required(words));
    }
}

/// As in upstream, errors about the token's path have the path of the volume, not that of the
/// source.
fn check_token(volume: &Field<'_>, token: &Field<'_>, options: Options, errors: &mut Errors) {
    let seconds = token.get("expirationSeconds");
    let number = seconds.int().unwrap_or(0);
    if number < TOKEN_SECONDS_MIN {
        errors.push(seconds.invalid_as(number, "may not specify a duration less than 10 minutes"));
    }
    if number > TOKEN_SECONDS_MAX {
        errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
    }
    let token = volume.of(token.value());
    let path = token.get("path");
    if path.is_empty() {
        errors.push(path.required(""));
    } else if !options.any_token_path {
        files::not_reserved(&path, errors);
    }
}

const TRUST_BUNDLE: Rules = &[
    Do(bundle_name),
    Do(|bundle, errors| {
        required(&bundle.get("path"), "", errors);
        files::not_reserved(&bundle.get("path"), errors);
    }),
];

fn bundle_name(bundle: &Field<'_>, errors: &mut Errors) {
    let (name, signer) = (bundle.get("name"), bundle.get("signerName"));
    let selector = bundle.get("labelSelector");
    match (name.is_set(), signer.is_set()) {
        (true, true) => errors.push(bundle.invalid("only one of name and signerName may be used")),
        (false, false) => {
            errors.push(bundle.required("either name or signerName must be specified"));
        }
        (true, false) => {
            required(&name, "must be a valid object name", errors);
            if selector.is_set() {
                let words = "labelSelector must be unset if name is specified";
                errors.push(selector.invalid(words));
            }
        }
        (false, true) => {
            required(&signer, "must be a valid signer name", errors);
            errors.extend(validation::label_selector(selector.value(), &selector.path()));
        }
    }
}
