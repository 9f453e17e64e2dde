//! Which fields a sort of write can set: nobody owns the others by it.

use super::{FieldSet, Node, PathElement};

/// What is kept of the fields that a write sets. Upstream knows both forms by its strategies' reset
/// fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All but these and what is in them: the fields that such a write resets.
    Except(FieldSet),
    /// None but these and what is in them.
    Only(Pattern),
}

/// Paths of members, `*` for each element at a level, as a tree. What is on the way to the end of a
/// path is kept, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// No steps at the end of a path: all that is in there matches.
    steps: Vec<(&'static str, Pattern)>,
}

impl Filter {
    /// Everything is kept.
    pub const ALL: Self = Self::Except(FieldSet::new());

    /// Keeps all but the fields at these paths.
    pub fn except(paths: &[&[&'static str]]) -> Self {
        let mut set = FieldSet::new();
        for path in paths {
            set.insert(path.iter().map(|name| PathElement::field(name)));
        }
        Self::Except(set)
    }

    /// Keeps only the fields at these paths.
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

    /// What it keeps of a set.
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
