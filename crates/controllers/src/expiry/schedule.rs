//! The schedule of deletions.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Items and their deadlines, in microseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    by_deadline: BTreeSet<(i64, Arc<str>)>,
    items: HashMap<Arc<str>, (u64, i64)>,
}

impl Schedule {
    /// Sets the deadline of a written item. If it is called twice for one write, the first deadline
    /// holds, because it is closer to the time of the write.
    pub(super) fn set(&mut self, item: &Arc<str>, revision: u64, deadline: i64) {
        if self.items.get(item).is_some_and(|(known, _)| *known == revision) {
            return;
        }
        self.remove(item);
        self.by_deadline.insert((deadline, item.clone()));
        self.items.insert(item.clone(), (revision, deadline));
    }

    /// Removes an item.
    pub(super) fn remove(&mut self, item: &Arc<str>) {
        if let Some((_, deadline)) = self.items.remove(item) {
            self.by_deadline.remove(&(deadline, item.clone()));
        }
    }

    /// Returns the next deadline.
    pub(super) fn first(&self) -> Option<i64> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    /// Removes and returns due items, at most `count_max`, the oldest deadline first.
    pub(super) fn take_due(&mut self, now: i64, count_max: usize) -> Vec<(Arc<str>, u64)> {
        let mut due = Vec::new();
        while due.len() < count_max && self.first().is_some_and(|deadline| deadline <= now) {
            let Some((_, item)) = self.by_deadline.pop_first() else { break };
            if let Some((revision, _)) = self.items.remove(&item) {
                due.push((item, revision));
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Set(u8, u64, i64),
        Forget(u8),
        Take(i64, usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..8_u8, 0..4_u64, 0..50_i64).prop_map(|(item, rev, at)| Step::Set(item, rev, at)),
            (0..8_u8).prop_map(Step::Forget),
            (0..60_i64, 0..4_usize).prop_map(|(now, max)| Step::Take(now, max)),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        /// Compares the schedule with a map that is scanned.
        #[test]
        fn due_items_come_in_order(steps in steps()) {
            let mut schedule = Schedule::default();
            let mut model: BTreeMap<String, (u64, i64)> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Set(item, revision, deadline) => {
                        let item = item.to_string();
                        schedule.set(&item.as_str().into(), revision, deadline);
                        if model.get(&item).is_none_or(|known| known.0 != revision) {
                            model.insert(item, (revision, deadline));
                        }
                    }
                    Step::Forget(item) => {
                        schedule.remove(&item.to_string().into());
                        model.remove(&item.to_string());
                    }
                    Step::Take(now, max) => {
                        let mut expected: Vec<_> =
                            model.iter().map(|(item, (_, at))| (*at, item.clone())).collect();
                        expected.sort();
                        let due = expected.into_iter().filter(|(at, _)| *at <= now).take(max);
                        let expected: Vec<String> = due.map(|(_, item)| item).collect();
                        let taken = schedule.take_due(now, max);
                        let names: Vec<String> = taken.iter().map(|(i, _)| i.to_string()).collect();
                        prop_assert_eq!(&names, &expected);
                        for (item, revision) in taken {
                            prop_assert_eq!(model.remove(&*item).map(|m| m.0), Some(revision));
                        }
                    }
                }
                prop_assert_eq!(schedule.first(), model.values().map(|(_, at)| *at).min());
                prop_assert_eq!(schedule.by_deadline.len(), schedule.items.len());
            }
        }
    }
}
