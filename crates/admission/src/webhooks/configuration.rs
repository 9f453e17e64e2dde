//! The configuration of the plugins that call webhooks (upstream: `WebhookAdmissionConfiguration`).

use std::path::PathBuf;

use pintle_meta::field::Error;
use pintle_value::{Map, Path, Value};

/// The kubeconfig that a configuration names.
///
/// # Errors
/// What is wrong with it, in upstream's words.
pub(crate) fn kubeconfig(configuration: &Value) -> Result<Option<PathBuf>, String> {
    const FILE: &str = "kubeConfigFile";
    const MANIFESTS: &str = "staticManifestsDir";
    const MEMBERS: [&str; 4] = ["apiVersion", "kind", FILE, MANIFESTS];
    let mut members = configuration.as_object().into_iter().flat_map(Map::iter);
    if let Some((unknown, _)) = members.find(|(name, _)| !MEMBERS.contains(&name.as_str())) {
        return Err(format!("strict decoding error: unknown field {unknown:?}"));
    }
    let text = |name: &str| match configuration.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(value) => value.as_str().ok_or_else(|| format!("{name}: must be a string")),
    };
    if !text(MANIFESTS)?.is_empty() {
        let why = "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled";
        return Err(Error::forbidden(&Path::new(MANIFESTS), why).to_string());
    }
    let path = text(FILE)?;
    if !path.is_empty() && !path.starts_with('/') {
        let why = "must be an absolute file path";
        return Err(Error::invalid(&Path::new(FILE), &path.into(), why).to_string());
    }
    Ok(Some(path).filter(|path| !path.is_empty()).map(PathBuf::from))
}
