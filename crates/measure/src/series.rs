//! Series of measures, by label values.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

/// The default maximum number of series.
const SERIES_MAX: usize = 4096;

/// Measures by the values of `N` labels. Beyond the maximum, all further label values share one
/// measure with empty labels.
pub struct Series<const N: usize, M> {
    new: fn() -> M,
    max: usize,
    by_labels: RwLock<BTreeMap<[Box<str>; N], Arc<M>>>,
}

impl<const N: usize, M> Series<N, M> {
    /// An empty map; `new` creates each series.
    pub const fn new(new: fn() -> M) -> Self {
        Self::with_max(SERIES_MAX, new)
    }

    /// An empty map with a maximum number of series.
    pub const fn with_max(max: usize, new: fn() -> M) -> Self {
        Self { new, max, by_labels: RwLock::new(BTreeMap::new()) }
    }

    /// The measure with these labels.
    pub fn with(&self, labels: [&str; N]) -> Arc<M> {
        let labels = labels.map(Box::from);
        if let Some(measure) = self.by_labels.read().get(&labels) {
            return measure.clone();
        }
        let mut by_labels = self.by_labels.write();
        let is_full = by_labels.len() >= self.max && !by_labels.contains_key(&labels);
        let labels = if is_full { [""; N].map(Box::from) } else { labels };
        by_labels.entry(labels).or_insert_with(|| Arc::new((self.new)())).clone()
    }

    /// Removes the series for whose labels `keep` returns false.
    pub fn retain(&self, keep: impl Fn([&str; N]) -> bool) {
        let labels = |labels: &[Box<str>; N]| keep(labels.each_ref().map(|label| &**label));
        self.by_labels.write().retain(|key, _| labels(key));
    }

    /// All series with their labels.
    pub fn all(&self) -> Vec<([Box<str>; N], Arc<M>)> {
        let by_labels = self.by_labels.read();
        by_labels.iter().map(|(labels, measure)| (labels.clone(), measure.clone())).collect()
    }
}

impl<const N: usize, M: Default> Default for Series<N, M> {
    fn default() -> Self {
        Self::new(M::default)
    }
}

impl<const N: usize, M> fmt::Debug for Series<N, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series").field("number", &self.by_labels.read().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counter;

    #[test]
    fn series_are_removed_by_label() {
        let series = Series::<2, Counter>::default();
        for labels in [["a", "1"], ["a", "2"], ["b", "1"]] {
            series.with(labels).add(1);
        }
        series.retain(|[letter, _]| letter == "b");
        assert_eq!(series.all().len(), 1);
        assert_eq!(series.with(["a", "1"]).get(), 0);
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let series = Series::<2, Counter>::with_max(3, Counter::default);
        for n in 0..10 {
            series.with(["a", &n.to_string()]).add(1);
        }
        series.with(["a", "1"]).add(1);
        let all = series.all();
        let all: Vec<_> = all.iter().map(|([_, n], count)| (&**n, count.get())).collect();
        assert_eq!(all, [("", 7), ("0", 1), ("1", 2), ("2", 1)]);
    }
}
