//! Counts the watches that a write affects.

use std::collections::HashMap;

/// The objects of a watch; an empty name means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Watched {
    /// The API group.
    pub group: String,
    /// The resource: `pods`.
    pub resource: String,
    /// The namespace; empty for all.
    pub namespace: String,
    /// The object's name; empty for all.
    pub name: String,
}

/// The open watches (upstream: `watchTracker`).
#[derive(Clone, Debug, Default)]
pub struct Watches(HashMap<Watched, usize>);

impl Watches {
    /// Counts a new watch.
    pub fn begin(&mut self, watched: Watched) {
        *self.0.entry(watched).or_default() += 1;
    }

    /// Removes a watch.
    pub fn end(&mut self, watched: &Watched) {
        if let Some(count) = self.0.get_mut(watched) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(watched);
            }
        }
    }

    /// The number of watches that may receive a write of this object: those of all objects, of its
    /// namespace, and of its name.
    pub fn interested(&self, mut written: Watched) -> usize {
        let (namespace, name) =
            (std::mem::take(&mut written.namespace), std::mem::take(&mut written.name));
        let count = |watched: &Watched| self.0.get(watched).copied().unwrap_or_default();
        let mut interested = count(&written);
        if !namespace.is_empty() {
            written.namespace = namespace;
            interested += count(&written);
        }
        if !name.is_empty() {
            written.name = name;
            interested += count(&written);
        }
        interested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_of_all_of_a_namespace_and_of_a_name_are_interested() {
        let watched = |namespace: &str, name: &str| Watched {
            group: String::new(),
            resource: "pods".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let mut watches = Watches::default();
        for one in [watched("", ""), watched("a", ""), watched("a", "x"), watched("b", "")] {
            watches.begin(one);
        }
        assert_eq!(watches.interested(watched("a", "x")), 3);
        assert_eq!(watches.interested(watched("a", "")), 2);
        assert_eq!(watches.interested(watched("c", "x")), 1);
        watches.end(&watched("", ""));
        assert_eq!(watches.interested(watched("c", "x")), 0);
        assert_eq!(watches.0.len(), 3);
    }
}
