//! The configuration of the plugins that call webhooks (upstream: `WebhookAdmissionConfiguration`).

use std::path::PathBuf;

use pintle_meta::field::Error;
use pintle_value::{Path, Value};

use crate::strict::{self, MemberType};

/// Returns the kubeconfig that a configuration names.
///
/// # Errors
/// Describes the invalid part in upstream's words.
pub(crate) fn kubeconfig(configuration: &Value) -> Result<Option<PathBuf>, String> {
    const FILE: &str = "kubeConfigFile";
    const MANIFESTS: &str = "staticManifestsDir";
    strict::check(configuration, &[(FILE, MemberType::Text), (MANIFESTS, MemberType::Text)])?;
    let text = |name: &str| configuration.str_at(&[name]).unwrap_or_default();
    if !text(MANIFESTS).is_empty() {
        let why = "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled";
        return Err(Error::forbidden(&Path::new(MANIFESTS), why).to_string());
    }
    let path = text(FILE);
    if !path.is_empty() && !path.starts_with('/') {
        let why = "must be an absolute file path";
        return Err(Error::invalid(&Path::new(FILE), &path.into(), why).to_string());
    }
    Ok(Some(path).filter(|path| !path.is_empty()).map(PathBuf::from))
}
