//! The IP families of a service: its addresses, families and policy are made consistent, or the
//! service is refused (upstream: `normalizeClusterIPs`, `initIPFamilyFields`).

use std::collections::BTreeSet;

use pintle_meta::Status;
use pintle_meta::field::{Error, Errors};
use pintle_value::Value;

use super::network::Family;
use super::service::{
    NONE, check, family, family_of, is_headless, is_selectorless, needs_address, path, set_texts,
    text, texts, value,
};

const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";

/// Makes `clusterIPs` consistent with `clusterIP`, the only field that old clients know.
pub(super) fn normalize(new: &mut Value, old: Option<&Value>) {
    let (first, all) = (text(new, "clusterIP").to_owned(), texts(new, "clusterIPs"));
    let Some(old) = old else {
        if !first.is_empty() && all.is_empty() {
            set_texts(new, "clusterIPs", &[first]);
        }
        return;
    };
    let (old_first, old_all) = (text(old, "clusterIP"), texts(old, "clusterIPs"));
    if first == old_first {
        if all.is_empty() {
            set_texts(new, "clusterIPs", &old_all);
        }
    } else if all == old_all {
        let cleared = !old_first.is_empty() && first.is_empty();
        set_texts(new, "clusterIPs", if cleared { &[] } else { std::slice::from_ref(&first) });
    }
}

/// Sets a missing policy and missing families; `configured` are the cluster's families, the default
/// one first.
pub(super) fn complete(
    new: &mut Value,
    old: Option<&Value>,
    configured: &[Family],
) -> Result<(), Status> {
    if !needs_address(new) || old.is_some_and(|old| keeps_preference(new, old)) {
        return Ok(());
    }
    if new.at(&["spec", "ipFamilyPolicy"]).is_none_or(Value::is_null) {
        let policy = inferred_policy(new, old);
        new.object_entry("spec").insert("ipFamilyPolicy", policy);
    }
    check(new, &inconsistencies(new))?;

    let mut errors = Errors::new();
    if let Some(old) = old {
        reduce(new, old, &mut errors);
    }
    check_single(new, &mut errors);
    infer_families(new, configured, &mut errors);
    check(new, &errors)?;

    let mut families = texts(new, "ipFamilies");
    let dual = text(new, "ipFamilyPolicy") != SINGLE;
    // The families of the endpoints of a headless service without a selector are unknown, so all
    // families are allowed.
    let free = text(new, "clusterIP") == NONE && is_selectorless(new);
    if !free {
        check_configured(new, configured, &mut errors);
        check(new, &errors)?;
    }
    if families.is_empty() {
        families.extend(configured.first().map(|family| family.name().to_owned()));
    }
    if let [first] = families.as_slice()
        && let Some(first) = family(first)
        && dual
        && (free || configured.len() == 2)
    {
        families.push(first.other().name().to_owned());
    }
    set_texts(new, "ipFamilies", &families);
    Ok(())
}

/// Whether an update keeps the service's addresses and families: a service that prefers two stacks
/// gains or loses a stack only if a client asks for it, not because the cluster's ranges change.
pub(super) fn keeps_preference(new: &Value, old: &Value) -> bool {
    let prefers = |service: &Value| text(service, "ipFamilyPolicy") == PREFER;
    prefers(new)
        && (prefers(old) || text(old, "ipFamilyPolicy").is_empty())
        && text(new, "type") == text(old, "type")
        && same(new, old, "clusterIPs")
        && same(new, old, "ipFamilies")
}

fn same(new: &Value, old: &Value, member: &str) -> bool {
    texts(new, member) == texts(old, member)
}

fn inferred_policy(new: &Value, old: Option<&Value>) -> String {
    let before = old.map(|old| text(old, "ipFamilyPolicy")).unwrap_or_default();
    if !before.is_empty() {
        before.to_owned()
    } else if text(new, "clusterIP") == NONE && is_selectorless(new) {
        REQUIRE.to_owned()
    } else {
        SINGLE.to_owned()
    }
}

/// Inconsistencies of addresses, families and policy, independent of the cluster (upstream:
/// `ValidateServiceClusterIPsRelatedFields`).
fn inconsistencies(service: &Value) -> Errors {
    let mut errors = Errors::new();
    let (first, all) = (text(service, "clusterIP"), texts(service, "clusterIPs"));
    let (at, shown) = (path("clusterIPs"), value(service, "clusterIPs"));
    match all.first() {
        None if !first.is_empty() => errors.push(Error::required(&at, "")),
        Some(_) if first.is_empty() => {
            let why = "must be empty when `clusterIP` is not specified";
            errors.push(Error::invalid(&at, &shown, why));
        }
        Some(other) if other != first => {
            errors.push(Error::invalid(&at, &shown, "first value must match `clusterIP`"));
        }
        _ => {}
    }
    let families = texts(service, "ipFamilies");
    let mut seen = BTreeSet::new();
    for (i, name) in families.iter().enumerate() {
        let (at, shown) = (path("ipFamilies").index(i), Value::from(name.as_str()));
        if family(name).is_none() {
            errors.push(Error::not_supported(&at, &shown, &["IPv4", "IPv6"]));
        }
        if !seen.insert(name) {
            errors.push(Error::duplicate(&at, &shown));
        }
    }
    let policy = text(service, "ipFamilyPolicy");
    if ![SINGLE, PREFER, REQUIRE].contains(&policy) {
        let supported = [PREFER, REQUIRE, SINGLE];
        errors.push(Error::not_supported(&path("ipFamilyPolicy"), &policy.into(), &supported));
    }
    if has_invalid_address(&all, &shown, &mut errors) {
        return errors;
    }
    if all.len() > 1 && family_of(&all[0]) == family_of(&all[1]) {
        let why = "may specify no more than one IP for each IP family";
        errors.push(Error::invalid(&at, &shown, why));
    }
    if !is_headless(service) {
        for (i, (address, name)) in all.iter().zip(&families).enumerate() {
            if family(name).is_some_and(|family| family_of(address) != Some(family)) {
                let why = format!("expected an {name} value as indicated by `ipFamilies[{i}]`");
                errors.push(Error::invalid(&at.index(i), &address.as_str().into(), why));
            }
        }
    }
    errors
}

/// Reports invalid addresses, and more than two addresses; returns whether any address is invalid.
fn has_invalid_address(all: &[String], shown: &Value, errors: &mut Errors) -> bool {
    let at = path("clusterIPs");
    let mut invalid = false;
    for (i, address) in all.iter().enumerate() {
        if i == 0 && address == NONE {
            if all.len() > 1 {
                invalid = true;
                let why = "'None' must be the first and only value";
                errors.push(Error::invalid(&at, shown, why));
            }
        } else {
            for why in pintle_kinds::wrong_ip(address) {
                invalid = true;
                errors.push(Error::invalid(&at.index(i), &address.as_str().into(), why));
            }
        }
    }
    if all.len() > 2 {
        errors.push(Error::invalid(&at, shown, "may only hold up to 2 values"));
    }
    invalid
}

/// Removes the second address and family if the policy is now `SingleStack` and the client left
/// them unchanged. With another policy, they cannot be removed.
fn reduce(new: &mut Value, old: &Value, errors: &mut Errors) {
    let rows = [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")];
    let single = text(new, "ipFamilyPolicy") == SINGLE;
    for (member, what) in rows {
        let (now, before) = (texts(new, member), texts(old, member));
        if single && now == before && now.len() > 1 {
            set_texts(new, member, &now[..1]);
        } else if !single && !now.is_empty() && now.len() < before.len() {
            let why = format!("must be 'SingleStack' to release the secondary {what}");
            let policy = value(new, "ipFamilyPolicy");
            errors.push(Error::invalid(&path("ipFamilyPolicy"), &policy, why));
        }
    }
}

fn check_single(service: &Value, errors: &mut Errors) {
    if text(service, "ipFamilyPolicy") != SINGLE {
        return;
    }
    for (member, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if texts(service, member).len() == 2 {
            let why = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            let policy = value(service, "ipFamilyPolicy");
            errors.push(Error::invalid(&path("ipFamilyPolicy"), &policy, why));
        }
    }
}

/// Adds the families of the addresses.
fn infer_families(service: &mut Value, configured: &[Family], errors: &mut Errors) {
    let addresses = texts(service, "clusterIPs");
    let mut families = texts(service, "ipFamilies");
    for (i, address) in addresses.iter().enumerate().skip(families.len()) {
        let Some(family) = family_of(address) else { break };
        if configured.contains(&family) {
            families.push(family.name().to_owned());
        } else {
            let why = format!("{} is not configured on this cluster", family.name());
            let shown = value(service, "clusterIPs");
            errors.push(Error::invalid(&path("clusterIPs").index(i), &shown, why));
        }
    }
    set_texts(service, "ipFamilies", &families);
}

fn check_configured(service: &Value, configured: &[Family], errors: &mut Errors) {
    if text(service, "ipFamilyPolicy") == REQUIRE && configured.len() < 2 {
        let why = "this cluster is not configured for dual-stack services";
        let policy = value(service, "ipFamilyPolicy");
        errors.push(Error::invalid(&path("ipFamilyPolicy"), &policy, why));
    }
    for (i, name) in texts(service, "ipFamilies").iter().enumerate() {
        if !family(name).is_some_and(|family| configured.contains(&family)) {
            let at = path("ipFamilies").index(i);
            let why = "not configured on this cluster";
            errors.push(Error::invalid(&at, &name.as_str().into(), why));
        }
    }
}
