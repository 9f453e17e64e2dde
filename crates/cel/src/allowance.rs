//! The limit of the compilations for one object.

use crate::pattern::Pattern;

/// The number of visited nodes of types that take as long as the compilation of one node.
const VISITS_PER_NODE: usize = 10;

/// What the compilations of several expressions may take together. Each has limits of its own, but
/// an object can have thousands of expressions.
///
/// The compilation that exceeds the allowance ends by its own limits; no further one begins.
#[derive(Clone, Debug)]
pub struct Allowance {
    nodes: usize,
    pattern_bytes: usize,
}

impl Allowance {
    /// An allowance of this many nodes after macro expansion, and of these bytes of constant
    /// patterns.
    pub const fn new(nodes: usize, pattern_bytes: usize) -> Self {
        Self { nodes, pattern_bytes }
    }

    /// An allowance that no expression exceeds.
    pub(crate) const fn unlimited() -> Self {
        Self::new(usize::MAX, usize::MAX)
    }

    /// Whether nothing is left.
    pub const fn is_spent(&self) -> bool {
        self.nodes == 0 || self.pattern_bytes == 0
    }

    /// Counts the nodes of an expression.
    pub(crate) const fn spend_nodes(&mut self, nodes: usize) {
        self.nodes = self.nodes.saturating_sub(nodes);
    }

    /// Counts the visited nodes of an expression's types.
    pub(crate) const fn spend_visits(&mut self, visits: usize) {
        self.spend_nodes(visits / VISITS_PER_NODE);
    }

    /// Counts the patterns of an expression, of which `left` bytes of the room are not used.
    pub(crate) const fn spend_room(&mut self, left: usize) {
        let used = Pattern::ROOM.saturating_sub(left);
        self.pattern_bytes = self.pattern_bytes.saturating_sub(used);
    }
}
