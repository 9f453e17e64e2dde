//! Configurations of admission plugins, and errors in each. A kube-apiserver v1.36.3 was started
//! with each content, and refused the same ones.

use super::rows::Content::{self, Text};
use super::rows::{ROW, Row};

/// An AdmissionConfiguration with one plugin and its configuration.
macro_rules! plugin {
    ($name:literal, $configuration:literal) => {
        Text(concat!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: ",
            $name,
            ", configuration: {",
            $configuration,
            "}}]\n"
        ))
    };
}

/// An AdmissionConfiguration with these plugins.
macro_rules! plugins {
    ($plugins:literal) => {
        Text(concat!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n",
            $plugins,
            "\n"
        ))
    };
}

const PLUGINS: &[(Content, &[&str])] = &[
    (plugins!("plugins: []\nplugin: []"), &["unknown field \"plugin\""]),
    (plugins!("plugins: [{name: PodSecurity, file: a}]"), &["unknown field \"plugins[0].file\""]),
    (plugins!("plugins: s3cr3t"), &["plugins"]),
    (plugins!("plugins: [{name: PodSecurity, path: absent}]"), &["absent", "No such file"]),
    (plugins!("plugins: [{name: PodSecurity, path: absent, configuration: {a: b}}]"), &["no kind"]),
    (
        Text("apiVersion: apiserver.config.k8s.io/v2\nkind: AdmissionConfiguration\nplugins: []\n"),
        &[
            "no kind \"AdmissionConfiguration\" is registered for version \"apiserver.config.k8s.io/v2\"",
        ],
    ),
    (
        plugin!("PodSecurity", "apiVersion: pod-security.admission.config.k8s.io/v1, kind: Other"),
        &["PodSecurity", "no kind \"Other\""],
    ),
    (
        plugin!(
            "PodSecurity",
            "apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, \
             default: {}"
        ),
        &["PodSecurity", "unknown field \"default\""],
    ),
    (
        plugin!(
            "PodSecurity",
            "apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, \
             defaults: {enforce: baseline, enforce-version: other}"
        ),
        &["defaults.enforce-version: Invalid value: \"other\": must be \"latest\" or \"v1.x\""],
    ),
    (
        plugin!(
            "PodSecurity",
            "apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, \
             exemptions: {namespaces: [a, A_B, a], runtimeClasses: [_], usernames: ['']}"
        ),
        &[
            "exemptions.namespaces[1]: Invalid value: \"A_B\"",
            "exemptions.namespaces[2]: Duplicate value: \"a\"",
            "exemptions.runtimeClasses[0]: Invalid value: \"_\"",
            "exemptions.usernames[0]: Invalid value: \"\": username must not be empty",
        ],
    ),
    (
        plugin!("MutatingAdmissionWebhook", "apiVersion: apiserver.config.k8s.io/v1, kind: Other"),
        &["MutatingAdmissionWebhook", "no kind \"Other\""],
    ),
    (
        plugin!(
            "ValidatingAdmissionWebhook",
            "apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfig: a"
        ),
        &["ValidatingAdmissionWebhook", "unknown field \"kubeConfig\""],
    ),
    (
        plugin!(
            "ValidatingAdmissionWebhook",
            "apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, \
             kubeConfigFile: absent"
        ),
        &["kubeConfigFile: Invalid value: \"absent\": must be an absolute file path"],
    ),
    (
        plugin!("ResourceQuota", "apiVersion: apiserver.config.k8s.io/v1, kind: Other"),
        &["ResourceQuota", "no kind \"Other\""],
    ),
    (
        plugin!(
            "ResourceQuota",
            "apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, \
             limitedResources: [{resource: pods, other: 1}]"
        ),
        &["unknown field \"limitedResources[0].other\""],
    ),
    (
        plugin!(
            "ResourceQuota",
            "apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, \
             limitedResources: [{resource: '', matchContains: [a]}]"
        ),
        &["limitedResources[0].resource: Required value"],
    ),
];

const EVENT_RATES: &[(Content, &[&str])] = &[
    (
        plugin!(
            "EventRateLimit",
            "apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Other"
        ),
        &["EventRateLimit", "no kind \"Other\""],
    ),
    (
        plugin!(
            "EventRateLimit",
            "apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration"
        ),
        &["limits: Invalid value: null: must not be empty"],
    ),
    (
        plugin!(
            "EventRateLimit",
            "apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, \
             limits: [{type: Namespace, qps: 0, burst: -1, cacheSize: -1}]"
        ),
        &[
            "limits[0].burst: Invalid value: -1: must be positive",
            "limits[0].qps: Invalid value: 0: must be positive",
            "limits[0].cacheSize: Invalid value: -1",
        ],
    ),
];

const IMAGE_POLICIES: &[(Content, &[&str])] = &[
    (plugin!("ImagePolicyWebhook", "imagePolicies: {}"), &["imagePolicy.kubeConfigFile"]),
    (
        plugin!("ImagePolicyWebhook", "imagePolicy: {kubeConfigFile: '{outer}', other: 1}"),
        &["unknown field \"other\""],
    ),
    (
        plugin!("ImagePolicyWebhook", "imagePolicy: {kubeConfigFile: '{outer}', allowTTL: -5}"),
        &["valid value is between 1s and 30m0s, got -5s"],
    ),
    (
        plugin!(
            "ImagePolicyWebhook",
            "imagePolicy: {kubeConfigFile: '{outer}', retryBackoff: 999999999}"
        ),
        &["valid value is between 1ns and 5m0s"],
    ),
    (
        plugin!("ImagePolicyWebhook", "imagePolicy: {kubeConfigFile: '{outer}'}"),
        &["ImagePolicyWebhook", "outer: No such file"],
    ),
];

const NO_KIND: &str = "no kind \"\" is registered for version \"\"";

pub(crate) const ROWS: &[Row] = &[
    Row {
        flags: "--admission-control-config-file={file}",
        good: Some(plugin!("Other", "a: b")), // a plugin that is off, or unknown, is not read
        empty: Some(NO_KIND),
        wrong: PLUGINS,
        ..ROW
    },
    Row {
        flags: "--admission-control-config-file={file} --enable-admission-plugins=EventRateLimit",
        good: Some(plugin!(
            "EventRateLimit",
            "apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, \
             limits: [{type: Server, qps: 1, burst: 1}]"
        )),
        empty: Some(NO_KIND),
        wrong: EVENT_RATES,
        ..ROW
    },
    Row {
        flags: "--admission-control-config-file={file} --enable-admission-plugins=ImagePolicyWebhook",
        empty: Some(NO_KIND),
        wrong: IMAGE_POLICIES,
        ..ROW
    },
];
