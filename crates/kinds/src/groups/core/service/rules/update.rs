//! Updates of a Service: its first address and family are immutable while it has addresses; a
//! second one can be added and removed (DEF-03).

use pintle_value::Value;

use super::{check_class, is_balanced, is_headless, needs_health_check};
use crate::field::{Errors, Field};

const STAYS: &str = "may not change once set";

/// Checks a spec against the stored one.
pub(super) fn check(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let is_external = |spec: &Field<'_>| spec.str("type") == "ExternalName";
    if !is_external(new) && !is_external(old) {
        if !(is_headless(new) && is_headless(old)) {
            check_addresses(new, old, errors);
        }
        if !is_headless(new) && !is_headless(old) {
            check_families(new, old, errors);
        }
    }
    let class = new.get("loadBalancerClass");
    let has_changed = class.some() != old.get("loadBalancerClass").some();
    if is_balanced(new) && is_balanced(old) && has_changed {
        errors.push(class.invalid(STAYS));
    }
    // Upstream reports an invalid class twice if there was one before.
    check_class(new, errors);
    let port = new.get("healthCheckNodePort");
    let is_checked = needs_health_check(new) && needs_health_check(old);
    if is_checked && port.some() != old.get("healthCheckNodePort").some() {
        errors.push(port.forbidden("field is immutable"));
    }
}

fn check_addresses(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let list = new.get("clusterIPs");
    let (now, before) = (texts(&list), texts(&old.get("clusterIPs")));
    let mut wrong = |i: usize, words: &str| {
        let path = list.path().index(i);
        errors.push(pintle_meta::field::Error::invalid(&path, &shown(&list), words));
    };
    if now.len() == before.len() {
        let changed = now.iter().zip(&before).enumerate().filter(|(_, (now, old))| now != old);
        changed.for_each(|(i, _)| wrong(i, STAYS));
        return;
    }
    if now.is_empty() {
        wrong(0, "primary clusterIP can not be unset");
    } else if !before.is_empty() && now[0] != before[0] {
        wrong(0, STAYS);
    }
    if now.len() == 1 && before.len() > 1 {
        check_release(new, "clusterIP", errors);
    }
}

/// Upstream's path is that of the first family, whichever changed.
fn check_families(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let list = new.get("ipFamilies");
    let (now, before) = (texts(&list), texts(&old.get("ipFamilies")));
    let ips = new.get("clusterIPs");
    let mut wrong = |of: &Field<'_>, words: &str| {
        let path = list.path().index(0);
        errors.push(pintle_meta::field::Error::invalid(&path, &shown(of), words));
    };
    if now.len() == before.len() {
        let changed = now.iter().zip(&before).filter(|(now, old)| now != old);
        changed.for_each(|_| wrong(&list, STAYS));
        return;
    }
    if ips.is_empty() && now.len() < before.len() {
        wrong(&list, "primary ipFamily can not be unset");
    }
    if !now.is_empty() && !before.is_empty() && now[0] != before[0] {
        wrong(&ips, STAYS);
    }
    if now.len() == 1 && before.len() > 1 {
        check_release(new, "ipFamily", errors);
    }
}

/// A client that removes the second address must change the policy, too.
fn check_release(spec: &Field<'_>, what: &str, errors: &mut Errors) {
    let policy = spec.get("ipFamilyPolicy");
    if policy.text() != "SingleStack" {
        let words = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        errors.push(policy.invalid(words));
    }
}

fn texts<'a>(list: &Field<'a>) -> Vec<&'a str> {
    let items = list.value().as_array().unwrap_or_default();
    items.iter().map(|item| item.as_str().unwrap_or_default()).collect()
}

/// The list as messages show it.
fn shown(list: &Field<'_>) -> Value {
    list.some().cloned().unwrap_or(Value::Null)
}
