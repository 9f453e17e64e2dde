//! The change that one write makes to a quota's usage, committed together with the write.

use std::sync::Arc;

use pintle_meta::quantity::Quantity;
use pintle_registry::allocation::Posted;
use pintle_value::Value;

use super::Quota;
use crate::pods::{Amounts, read};

/// A change of a quota's usage.
#[derive(Debug)]
pub(super) struct Posting {
    /// The quota for which the change was computed.
    pub(super) quota: Arc<Quota>,
    /// The change by name; negative if usage is released.
    pub(super) change: Amounts,
    /// Whether exceeding a limit refuses the write; otherwise the change is only counted.
    pub(super) is_limited: bool,
    /// Whether the write must change the quota even without a change of usage, because the quota
    /// controller has yet to count (see `quota`).
    pub(super) needs_touch: bool,
}

impl Posting {
    /// Applies the change to the current state of the quota, or returns why the write is refused.
    /// If the quota was replaced, or its spec or limits changed since, the change is outdated and
    /// must be computed again.
    pub(super) fn post(&self, quota: &mut Value) -> Result<Posted, String> {
        const BASIS: [&[&str]; 3] = [&["metadata", "uid"], &["spec"], &["status", "hard"]];
        if BASIS.iter().any(|path| quota.at(path) != self.quota.tree.at(path)) {
            return Ok(Posted::Outdated);
        }
        // Only the changed members are read, because a quota may limit many others.
        let all_used = quota.at(&["status", "used"]);
        let used = |name: &str| {
            let amount = all_used.and_then(|all| all.get(name)).and_then(read);
            amount.unwrap_or(Quantity::ZERO)
        };
        let mut after = Vec::with_capacity(self.change.len());
        let mut exceeded = Vec::new();
        for (name, change) in &self.change {
            let sum = used(name) + *change;
            let hard = self.quota.hard.get(name);
            if self.is_limited && change.signum() > 0 && hard.is_some_and(|hard| sum > *hard) {
                exceeded.push(name.as_str());
            }
            after.push((name, if sum.signum() < 0 { Quantity::ZERO } else { sum }));
        }
        if !exceeded.is_empty() {
            return Err(self.refusal(&exceeded, &used));
        }
        if after.is_empty() {
            return Ok(if self.needs_touch { Posted::Changed } else { Posted::Unchanged });
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
            list(&|name| of(&self.change, name)),
            list(used),
            list(&|name| of(&self.quota.hard, name)),
        )
    }
}
