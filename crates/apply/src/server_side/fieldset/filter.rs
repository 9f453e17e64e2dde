//! Selects the fields that a write can set and its manager can own.

use super::{FieldSet, Node, PathElement};

/// The fields that a write can set. Upstream expresses both variants by the reset fields of its
/// strategies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All fields but these and the fields below them. The write resets the excepted fields.
    Except(FieldSet),
    /// Only these fields and the fields below them.
    Only(Pattern),
}

/// A tree of field names; `*` matches every element of a level. Prefixes of a matching path match,
/// too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Empty at the end of a path: everything below it matches.
    steps: Vec<(&'static str, Pattern)>,
}

impl Filter {
    /// A filter that keeps everything.
    pub const ALL: Self = Self::Except(FieldSet::new());

    /// A filter that keeps all fields but those at these paths.
    pub fn except(paths: &[&[&'static str]]) -> Self {
        let mut set = FieldSet::new();
        for path in paths {
            set.insert(path.iter().map(|name| PathElement::field(name)));
        }
        Self::Except(set)
    }

    /// A filter that keeps only the fields at these paths.
    pub fn only(paths: &[&[&'static str]]) -> Self {
        let mut pattern = Pattern::default();
        for path in paths {
            let mut at = &mut pattern;
            for step in *path {
                let known = at.steps.iter().position(|(known, _)| known == step);
                let next = known.unwrap_or_else(|| {
                    at.steps.push((step, Pattern::default()));
                    at.steps.len() - 1
                });
                at = &mut at.steps[next].1;
            }
        }
        Self::Only(pattern)
    }

    /// The part of the set that passes the filter.
    #[must_use]
    pub fn retain(&self, set: FieldSet) -> FieldSet {
        match self {
            Self::Except(fields) => set.recursive_difference(fields),
            Self::Only(pattern) => pattern.retain(set),
        }
    }
}

impl Pattern {
    fn retain(&self, set: FieldSet) -> FieldSet {
        if self.steps.is_empty() {
            return set;
        }
        let nodes = set.nodes.into_iter().filter_map(|node| {
            let (_, next) = self.steps.iter().find(|(step, _)| matches(step, &node.element))?;
            let node = Node { below: next.retain(node.below), ..node };
            (!node.is_empty()).then_some(node)
        });
        FieldSet { nodes: nodes.collect() }
    }
}

fn matches(step: &str, element: &PathElement) -> bool {
    step == "*" || matches!(element, PathElement::Field(name) if name == step)
}
