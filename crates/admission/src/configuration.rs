//! The configuration of plugins: the file of `--admission-control-config-file` (upstream:
//! `AdmissionConfiguration`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use pintle_value::Value;

use crate::event_rate::EventLimit;
use crate::image_policy::ImagePolicy;
use crate::pod_security;
use crate::quota::LimitedResource;
use crate::strict::{self, Format, MemberType};
use crate::webhooks;

/// The configurations of plugins that have one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// The defaults and exemptions of PodSecurity.
    pub pod_security: pod_security::Configuration,
    /// The resources that ResourceQuota refuses in namespaces without a quota for them.
    pub limited_resources: Vec<LimitedResource>,
    /// The limits of EventRateLimit.
    pub event_limits: Vec<EventLimit>,
    /// The webhook of ImagePolicyWebhook, if it is configured.
    pub image_policy: Option<ImagePolicy>,
    /// The kubeconfigs with the credentials for webhooks, by the name of the plugin that calls
    /// them.
    pub webhook_kubeconfigs: BTreeMap<String, PathBuf>,
}

/// The accepted versions of the file.
const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];

const FORMAT: Format = &[
    ("plugins", MemberType::Objects),
    ("plugins[].name", MemberType::Text),
    ("plugins[].path", MemberType::Text),
    ("plugins[].configuration", MemberType::Other),
];

/// The plugins whose configuration has an effect here, each with its kind and versions.
const KINDS: [(&str, &str, &[&str]); 6] = [
    (
        "PodSecurity",
        "PodSecurityConfiguration",
        &[
            "pod-security.admission.config.k8s.io/v1",
            "pod-security.admission.config.k8s.io/v1beta1",
            "pod-security.admission.config.k8s.io/v1alpha1",
        ],
    ),
    (
        "ResourceQuota",
        "ResourceQuotaConfiguration",
        &["apiserver.config.k8s.io/v1", "resourcequota.admission.k8s.io/v1beta1"],
    ),
    ("EventRateLimit", "Configuration", &["eventratelimit.admission.k8s.io/v1alpha1"]),
    // Upstream's format has neither a kind nor a version.
    ("ImagePolicyWebhook", "", &[""]),
    ("MutatingAdmissionWebhook", "WebhookAdmissionConfiguration", WEBHOOK),
    ("ValidatingAdmissionWebhook", "WebhookAdmissionConfiguration", WEBHOOK),
];

const WEBHOOK: &[&str] = &["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1"];

impl Configuration {
    /// Reads an `AdmissionConfiguration`; `open` reads the file that a plugin's `path` names. Also
    /// returns the names of the plugins whose configurations have no effect here.
    ///
    /// # Errors
    /// Describes the first invalid part.
    pub fn read(
        file: &Value,
        open: &dyn Fn(&str) -> Result<Value, String>,
    ) -> Result<(Self, Vec<String>), String> {
        let text = |value: &Value, member| value.str_at(&[member]).unwrap_or_default().to_owned();
        let version = text(file, "apiVersion");
        if text(file, "kind") != "AdmissionConfiguration" || !VERSIONS.contains(&version.as_str()) {
            return Err(format!(
                "no kind {:?} is registered for version {version:?}",
                text(file, "kind")
            ));
        }
        strict::check(file, FORMAT)?;
        let mut configuration = Self::default();
        let mut unused = Vec::new();
        let plugins = file.get("plugins").and_then(Value::as_array).unwrap_or_default();
        for plugin in plugins {
            let (name, path) = (text(plugin, "name"), text(plugin, "path"));
            let configured = match (plugin.get("configuration"), path.as_str()) {
                (Some(inline), _) if !inline.is_null() => inline.clone(),
                (_, "") => continue,
                (_, path) => open(path)?,
            };
            let Some((_, kind, versions)) = KINDS.iter().find(|(known, ..)| *known == name) else {
                unused.push(name);
                continue;
            };
            let (own_kind, version) = (text(&configured, "kind"), text(&configured, "apiVersion"));
            let is_old = *kind == "ResourceQuotaConfiguration" && own_kind == "Configuration";
            if (own_kind != *kind && !is_old) || !versions.contains(&version.as_str()) {
                return Err(format!(
                    "couldn't init admission plugin {name:?}: no kind {own_kind:?} is registered for \
                     version {version:?}"
                ));
            }
            let with_name = |why| format!("couldn't init admission plugin {name:?}: {why}");
            match name.as_str() {
                "PodSecurity" => {
                    let pod_security =
                        pod_security::Configuration::read(&configured).map_err(with_name)?;
                    configuration.pod_security = pod_security;
                }
                "ResourceQuota" => {
                    configuration.limited_resources =
                        LimitedResource::all(&configured).map_err(with_name)?
                }
                "EventRateLimit" => {
                    configuration.event_limits = EventLimit::all(&configured).map_err(with_name)?;
                }
                "ImagePolicyWebhook" => {
                    configuration.image_policy =
                        Some(ImagePolicy::read(&configured).map_err(with_name)?);
                }
                webhooks::MUTATING | webhooks::VALIDATING => {
                    let kubeconfig = webhooks::kubeconfig(&configured).map_err(with_name)?;
                    configuration.webhook_kubeconfigs.extend(kubeconfig.map(|path| (name, path)));
                }
                _ => unused.push(name),
            }
        }
        Ok((configuration, unused))
    }
}

#[cfg(test)]
mod tests {
    use pintle_value::yaml;

    use super::*;

    fn read(text: &str) -> Result<(Configuration, Vec<String>), String> {
        let open = |path: &str| match path {
            "quota.yaml" => Ok(yaml::parse(
                b"kind: ResourceQuotaConfiguration\napiVersion: apiserver.config.k8s.io/v1\n\
                  limitedResources: [{resource: pods, matchContains: [pods]}]",
            )
            .unwrap()),
            other => Err(format!("open {other}: no such file or directory")),
        };
        Configuration::read(&yaml::parse(text.as_bytes()).unwrap(), &open)
    }

    fn file(plugins: &str) -> String {
        format!(
            "kind: AdmissionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nplugins: {plugins}"
        )
    }

    #[test]
    fn inline_configurations_and_files_are_read() {
        assert_eq!(read(&file("[]")), Ok((Configuration::default(), Vec::new())));
        let (found, unused) = read(&file(
            "[{name: ResourceQuota, path: quota.yaml}, {name: PodNodeSelector, configuration: {}}, \
             {name: PodSecurity, configuration: {kind: PodSecurityConfiguration, \
             apiVersion: pod-security.admission.config.k8s.io/v1, \
             defaults: {enforce: baseline, warn: restricted, warn-version: v1.30}}}]",
        ))
        .unwrap();
        assert_eq!(found.limited_resources.len(), 1);
        assert_ne!(found.pod_security, pod_security::Configuration::default());
        assert_eq!(unused, ["PodNodeSelector"]);
    }

    #[test]
    fn invalid_configurations_are_refused() {
        for (text, expected) in [
            ("{}".to_owned(), "no kind \"\" is registered for version \"\""),
            (file("[{name: ResourceQuota, path: none}]"), "open none: no such file or directory"),
            (
                file("[{name: PodSecurity, configuration: {kind: A, apiVersion: b}}]"),
                "couldn't init admission plugin \"PodSecurity\": no kind \"A\" is registered for version \"b\"",
            ),
            (
                file(
                    "[{name: PodSecurity, configuration: {kind: PodSecurityConfiguration, \
                     apiVersion: pod-security.admission.config.k8s.io/v1, defaults: {enforce: x}}}]",
                ),
                "couldn't init admission plugin \"PodSecurity\": defaults.enforce: Invalid value: \"x\": \
                 must be one of privileged, baseline, restricted",
            ),
            (
                file(
                    "[{name: EventRateLimit, configuration: {kind: Configuration, \
                     apiVersion: eventratelimit.admission.k8s.io/v1alpha1, limits: [\
                     {type: Servr, qps: 0, burst: -1, cacheSize: -3}, \
                     {type: Namespace, qps: 1, burst: 1, cacheSize: -3}]}}]",
                ),
                "couldn't init admission plugin \"EventRateLimit\": [limits[0].type: Unsupported value: \
                 \"Servr\": supported values: \"Server\", \"Namespace\", \"User\", \"SourceAndObject\", \
                 limits[0].burst: Invalid value: -1: must be positive, \
                 limits[0].qps: Invalid value: 0: must be positive, \
                 limits[0].cacheSize: Invalid value: -3: must not be negative, \
                 limits[1].cacheSize: Invalid value: -3: must not be negative]",
            ),
            (
                file(
                    "[{name: EventRateLimit, configuration: {kind: Configuration, \
                     apiVersion: eventratelimit.admission.k8s.io/v1alpha1}}]",
                ),
                "couldn't init admission plugin \"EventRateLimit\": limits: Invalid value: null: must not \
                 be empty",
            ),
            (
                file(
                    "[{name: ValidatingAdmissionWebhook, configuration: {kind: WebhookAdmissionConfiguration, \
                     apiVersion: apiserver.config.k8s.io/v1, kubeConfigFile: a/b}}]",
                ),
                "couldn't init admission plugin \"ValidatingAdmissionWebhook\": kubeConfigFile: Invalid value: \
                 \"a/b\": must be an absolute file path",
            ),
            (
                file(
                    "[{name: MutatingAdmissionWebhook, configuration: {kind: WebhookAdmissionConfiguration, \
                     apiVersion: apiserver.config.k8s.io/v1, kubeConfig: /a/b}}]",
                ),
                "couldn't init admission plugin \"MutatingAdmissionWebhook\": strict decoding error: unknown \
                 field \"kubeConfig\"",
            ),
            (
                file("[{name: X, other: 2, unknown: 3}]\nnope: 1"),
                "strict decoding error: unknown field \"nope\", unknown field \"plugins[0].other\", \
                 unknown field \"plugins[0].unknown\"",
            ),
            (
                file(
                    "[{name: PodSecurity, configuration: {kind: PodSecurityConfiguration, \
                     apiVersion: pod-security.admission.config.k8s.io/v1, \
                     defaults: {enforced: baseline}, exemptions: {users: [a]}}}]",
                ),
                "couldn't init admission plugin \"PodSecurity\": strict decoding error: unknown field \
                 \"defaults.enforced\", unknown field \"exemptions.users\"",
            ),
            (
                file(
                    "[{name: ResourceQuota, configuration: {kind: ResourceQuotaConfiguration, \
                     apiVersion: apiserver.config.k8s.io/v1, \
                     limitedResources: [{resource: pods, matchContains: [a], nope: 1}], unknown: 1}}]",
                ),
                "couldn't init admission plugin \"ResourceQuota\": strict decoding error: unknown field \
                 \"limitedResources[0].nope\", unknown field \"unknown\"",
            ),
            (
                file(
                    "[{name: PodSecurity, configuration: {kind: PodSecurityConfiguration, \
                     apiVersion: pod-security.admission.config.k8s.io/v1, defaults: [enforce]}}]",
                ),
                "couldn't init admission plugin \"PodSecurity\": defaults: must be an object",
            ),
            (
                file(
                    "[{name: ImagePolicyWebhook, configuration: {imagePolicy: \
                     {kubeConfigFile: k, allowTTL: 3000}}}]",
                ),
                "couldn't init admission plugin \"ImagePolicyWebhook\": imagePolicy.allowTTL: valid value \
                 is between 1s and 30m0s, got 50m0s",
            ),
        ] {
            assert_eq!(read(&text).unwrap_err(), expected);
        }
    }
}
