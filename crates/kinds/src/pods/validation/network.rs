//! The pod on the network: its name, name resolution, ports of the host.

use pintle_meta::{field::Error, names};

use super::Spec;
use crate::{
    field::{Errors, Field},
    formats,
};

const NAME_SERVERS_MAX: usize = 3;
const SEARCH_PATHS_MAX: usize = 32;
const SEARCH_LENGTH_MAX: usize = 2048;
const HOSTNAME_LENGTH_MAX: usize = 64;

/// Checks that a pod on the host's network has host ports equal to its container ports. In a
/// template an absent host port is accepted, because the pods get it later.
pub(super) fn check_host_network(spec: &Spec<'_>, errors: &mut Errors) {
    if !spec.field.get("hostNetwork").is_true() {
        return;
    }
    for container in spec.field.items("containers") {
        for port in container.items("ports") {
            let host = port.get("hostPort");
            let number = host.int().unwrap_or(0);
            let is_checked = spec.options.is_pod || number != 0;
            if is_checked && port.get("containerPort").int().unwrap_or(0) != number {
                let words = "must match `containerPort` when `hostNetwork` is true";
                errors.push(host.invalid_as(number, words));
            }
        }
    }
}

/// Checks `dnsConfig`.
pub(super) fn check_dns(spec: &Field<'_>, errors: &mut Errors) {
    let config = spec.get("dnsConfig");
    let servers = config.get("nameservers");
    if spec.str("dnsPolicy") == "None" {
        if !config.is_set() {
            let words = "must provide `dnsConfig` when `dnsPolicy` is None";
            return errors.push(config.required(words));
        }
        if servers.is_empty() {
            let words = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.push(servers.required(words));
        }
    }
    if config.items("nameservers").len() > NAME_SERVERS_MAX {
        let words = format!("must not have more than {NAME_SERVERS_MAX} nameservers");
        errors.push(servers.invalid(words));
    }
    for server in config.items("nameservers") {
        server.all_invalid(formats::ip(server.text()), errors);
    }
    check_searches(&config, errors);
    for option in config.items("options") {
        if option.str("name").is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

fn check_searches(config: &Field<'_>, errors: &mut Errors) {
    let list = config.get("searches");
    let count = config.items("searches").len();
    let length: usize = config.items("searches").map(|search| search.text().len()).sum();
    if count > SEARCH_PATHS_MAX {
        errors
            .push(list.invalid(format!("must not have more than {SEARCH_PATHS_MAX} search paths")));
    }
    if length + count.saturating_sub(1) > SEARCH_LENGTH_MAX {
        let words = format!(
            "must not have more than {SEARCH_LENGTH_MAX} characters (including spaces) in the \
             search list"
        );
        errors.push(list.invalid(words));
    }
    for search in config.items("searches") {
        if search.text() != "." {
            let domain = search.text().strip_suffix('.').unwrap_or(search.text());
            let wrong = formats::subdomain_with_underscores(domain);
            search.all_invalid_as(domain, wrong, errors);
        }
    }
}

/// Checks `hostAliases`.
pub(super) fn check_host_aliases(spec: &Field<'_>, errors: &mut Errors) {
    for alias in spec.items("hostAliases") {
        let ip = alias.get("ip");
        ip.all_invalid(formats::ip(ip.text()), errors);
        for name in alias.items("hostnames") {
            name.all_invalid(names::dns1123_subdomain(name.text()), errors);
        }
    }
}

/// Checks `hostnameOverride`, which excludes `setHostnameAsFQDN` and `hostNetwork`.
pub(super) fn check_hostname(spec: &Field<'_>, errors: &mut Errors) {
    let Some(name) = spec.find("hostnameOverride") else { return };
    for member in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.get(member).is_true() {
            errors.push(name.forbidden(format!("may not be specified when {member} is true")));
        }
    }
    if name.text().len() > HOSTNAME_LENGTH_MAX {
        errors.push(Error::too_long(&name.path(), HOSTNAME_LENGTH_MAX));
    }
    name.all_invalid(names::dns1123_subdomain(name.text()), errors);
}
