//! What one write takes of a quota or gives back, posted to the quota's status when the write is committed.

use std::sync::Arc;

use pintle_meta::quantity::Quantity;
use pintle_registry::allocation::Posted;
use pintle_value::Value;

use super::Quota;
use crate::pods::{Amounts, read};

/// What a write takes of a quota or gives back.
#[derive(Debug)]
pub(super) struct Entry {
    /// The quota that it was worked out for.
    pub(super) quota: Arc<Quota>,
    /// What is taken; less than nothing where it is given back.
    pub(super) more: Amounts,
    /// It may be refused; others are only counted.
    pub(super) is_limited: bool,
    /// Somebody is about to count for the quota, and must hear of the write, whatever it takes.
    pub(super) is_heard: bool,
}

impl Entry {
    /// Posts it to the quota as it is when its turn has come, or says why the write must not be. What it
    /// has of a quota with other terms, or of another one of that name, is to be worked out anew.
    pub(super) fn post(&self, quota: &mut Value) -> Result<Posted, String> {
        const TERMS: [&[&str]; 3] = [&["metadata", "uid"], &["spec"], &["status", "hard"]];
        if TERMS.iter().any(|path| quota.at(path) != self.quota.tree.at(path)) {
            return Ok(Posted::Outdated);
        }
        // Only what is posted is read: a quota may limit much else.
        let all_used = quota.at(&["status", "used"]);
        let used = |name: &str| {
            let amount = all_used.and_then(|all| all.get(name)).and_then(read);
            amount.unwrap_or(Quantity::ZERO)
        };
        let mut after = Vec::with_capacity(self.more.len());
        let mut exceeded = Vec::new();
        for (name, more) in &self.more {
            let sum = used(name).checked_add(more).unwrap_or_else(|| used(name));
            let hard = self.quota.hard.get(name);
            if self.is_limited && more.signum() > 0 && hard.is_some_and(|hard| sum > *hard) {
                exceeded.push(name.as_str());
            }
            after.push((name, if sum.signum() < 0 { Quantity::ZERO } else { sum }));
        }
        if !exceeded.is_empty() {
            return Err(self.refusal(&exceeded, &used));
        }
        if after.is_empty() {
            return Ok(if self.is_heard { Posted::Changed } else { Posted::Unchanged });
        }
        let used = quota.object_entry("status").entry_object("used");
        for (name, amount) in after {
            used.insert(name.as_str(), amount.to_string());
        }
        Ok(Posted::Changed)
    }

    fn refusal(&self, exceeded: &[&str], used: &dyn Fn(&str) -> Quantity) -> String {
        let of =
            |amounts: &Amounts, name: &str| amounts.get(name).copied().unwrap_or(Quantity::ZERO);
        let list = |amount: &dyn Fn(&str) -> Quantity| {
            let parts = exceeded.iter().map(|name| format!("{name}={}", amount(name)));
            parts.collect::<Vec<_>>().join(",")
        };
        format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            self.quota.name,
            list(&|name| of(&self.more, name)),
            list(used),
            list(&|name| of(&self.quota.hard, name)),
        )
    }
}
