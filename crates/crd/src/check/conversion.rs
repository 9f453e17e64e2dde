//! Validation of `spec.conversion`: the strategy and the webhook.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_cel::Url;
use pintle_meta::field::{Error, Errors};
use pintle_meta::names::dns1035_label;
use pintle_value::{Path, Value, order::Ordered};

use crate::definition::Crd;

const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];

pub(super) fn validate(conversion: Option<&Value>, old: Option<Crd<'_>>, path: &Path) -> Errors {
    let mut errors = Errors::new();
    let Some(conversion) = conversion else { return errors };
    let strategy = conversion.str_at(&["strategy"]).unwrap_or_default();
    let at = path.field("strategy");
    if strategy.is_empty() {
        errors.push(Error::required(&at, ""));
    } else if !matches!(strategy, "None" | "Webhook") {
        errors.push(Error::not_supported(&at, &strategy.into(), &["None", "Webhook"]));
    }
    let webhook = conversion.get("webhook").filter(|webhook| !webhook.is_null());
    let config = webhook.and_then(|w| w.get("clientConfig")).filter(|config| !config.is_null());
    let versions = webhook.and_then(|w| w.get("conversionReviewVersions"));
    let versions = versions.and_then(Value::as_array).unwrap_or_default();
    let at = path.field("webhookClientConfig");
    let at_versions = path.field("conversionReviewVersions");
    if strategy != "Webhook" {
        let words = "should not be set when strategy is not set to Webhook";
        errors.extend(config.map(|_| Error::forbidden(&at, words)));
        if !versions.is_empty() {
            errors.push(Error::forbidden(&at_versions, words));
        }
        return errors;
    }
    match config {
        None => errors.push(Error::required(&at, "required when strategy is set to Webhook")),
        Some(config) => check_config(config, old, &at, &mut errors),
    }
    check_review_versions(versions, &at_versions, &mut errors);
    errors
}

fn check_config(config: &Value, old: Option<Crd<'_>>, path: &Path, errors: &mut Errors) {
    let url = config.get("url").filter(|url| !url.is_null());
    let service = config.get("service").filter(|service| !service.is_null());
    match (url, service) {
        (Some(url), None) => {
            check_webhook_url(url.as_str().unwrap_or_default(), &path.field("url"), errors);
        }
        (None, Some(service)) => check_service(service, &path.field("service"), errors),
        _ => errors.push(Error::required(path, "exactly one of url or service is required")),
    }
    // A definition that was not established, or whose bundle was invalid before, may still be
    // updated.
    let must_hold = old.is_some_and(|old| old.has("Established") && is_bundle(bundle_of(old)));
    let bundle = config.str_at(&["caBundle"]).unwrap_or_default();
    if must_hold && !is_bundle(bundle) {
        let words = "unable to load root certificates: unable to parse bytes as PEM block";
        errors.push(Error::invalid(&path.field("caBundle"), &bundle.into(), words));
    }
}

/// The CA bundle of a definition's webhook, in base64.
pub(crate) fn bundle_of<'a>(crd: Crd<'a>) -> &'a str {
    let ca_bundle = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
    crd.0.str_at(&ca_bundle).unwrap_or_default()
}

/// Whether base64 text contains a PEM certificate; an empty text is valid, too.
pub(crate) fn is_bundle(text: &str) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    text.is_empty()
        || STANDARD
            .decode(text)
            .is_ok_and(|pem| pem.windows(BEGIN.len()).any(|window| window == BEGIN))
}

/// Checks the URL of a webhook. As in upstream, an error shows only the wrong part.
pub fn check_webhook_url(text: &str, path: &Path, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(why) => {
            let words = format!("url must be a valid URL: {why}{FORM}");
            return errors.push(Error::required(path, words));
        }
    };
    let mut invalid = |shown: &str, words: &str| {
        errors.push(Error::invalid(path, &shown.into(), words));
    };
    if url.scheme() != "https" {
        invalid(url.scheme(), &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host().is_empty() {
        invalid("", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = url.user() {
        invalid(&user, "user information is not permitted in the URL");
    }
    for (part, words) in [
        (url.fragment(), "fragments are not permitted in the URL"),
        (url.written_query(), "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            invalid(part, words);
        }
    }
}

fn check_service(service: &Value, path: &Path, errors: &mut Errors) {
    let text = |key: &str| service.str_at(&[key]).unwrap_or_default();
    for (key, words) in
        [("name", "service name is required"), ("namespace", "service namespace is required")]
    {
        if text(key).is_empty() {
            errors.push(Error::required(&path.field(key), words));
        }
    }
    let port = service.get("port").and_then(Value::as_int).unwrap_or(443);
    if !(1..=65_535).contains(&port) {
        let words = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(Error::invalid(&path.field("port"), &Value::Int(port), words));
    }
    let at = path.field("path");
    let given = text("path");
    if given.is_empty() || given == "/" {
        return;
    }
    if !given.starts_with('/') {
        errors.push(Error::invalid(&at, &given.into(), "must start with a '/'"));
    }
    if given.contains("//") {
        errors.push(Error::invalid(&at, &given.into(), "segment[0] may not be empty"));
    }
}

fn check_review_versions(versions: &[Value], path: &Path, errors: &mut Errors) {
    if versions.is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (i, version) in versions.iter().enumerate() {
        if !seen.insert(Ordered(version)) {
            errors.push(Error::invalid(&path.index(i), version, "duplicate version"));
            continue;
        }
        let wrong = dns1035_label(version.as_str().unwrap_or_default()).into_iter();
        errors.extend(wrong.map(|words| Error::invalid(&path.index(i), version, words)));
    }
    let is_known = |version: &Value| version.as_str().is_some_and(|v| REVIEW_VERSIONS.contains(&v));
    if !versions.iter().any(is_known) {
        let words = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(Error::invalid(path, &Value::Array(versions.to_vec()), words));
    }
}
