//! Sets of field paths, as managers own them.
//!
//! Must not know: schemas, managers, objects.
//!
//! Invariant: the nodes of a [`FieldSet`] are sorted by element, each element occurs once, and each
//! node is a member or has members below it. So equal sets are equal trees.

mod addition;
mod codec;
mod element;
mod filter;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, fmt};

pub(crate) use codec::Writer;
pub(crate) use element::ElementRef;
pub use element::{Element, PathElement};
pub use filter::Filter;
pub(crate) use pintle_value::order;

/// A set of paths as an ordered tree. A path's membership is independent of that of its parents and
/// children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: Vec<Node>,
}

/// A path element with its subtree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    element: PathElement,
    /// Whether the path that ends here is in the set.
    member: bool,
    /// The members of the set below this path.
    below: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

/// The nodes of two sets that have the same element, or one node that only one set has.
enum Pair<A, B> {
    Left(A),
    Right(B),
    Both(A, B),
}

/// Iterates over the nodes of two sets in the order of their elements.
fn zip<A: std::borrow::Borrow<Node>, B: std::borrow::Borrow<Node>>(
    a: impl IntoIterator<Item = A>,
    b: impl IntoIterator<Item = B>,
) -> impl Iterator<Item = Pair<A, B>> {
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    std::iter::from_fn(move || {
        let order = match (a.peek(), b.peek()) {
            (Some(a), Some(b)) => a.borrow().element.cmp(&b.borrow().element),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        Some(match order {
            Ordering::Less => Pair::Left(a.next()?),
            Ordering::Greater => Pair::Right(b.next()?),
            Ordering::Equal => Pair::Both(a.next()?, b.next()?),
        })
    })
}

/// Iterates over the pairs of nodes of two sets that have the same element. The nodes of a much
/// smaller set are searched in the other one: thousands of managers may own a few fields each, and
/// each is compared with all changed fields of a write.
fn common<'n>(a: &'n [Node], b: &'n [Node]) -> impl Iterator<Item = (&'n Node, &'n Node)> {
    /// How many times larger the other set must be for a search in it.
    const MUCH: usize = 8;
    let (few, mut rest) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let is_searched = few.len() * MUCH < rest.len();
    few.iter().filter_map(move |node| {
        let is_before = |other: &Node| other.element < node.element;
        let before = match is_searched {
            true => rest.partition_point(is_before),
            false => rest.iter().take_while(|other| is_before(other)).count(),
        };
        rest = &rest[before..];
        rest.first().filter(|other| other.element == node.element).map(|other| (node, other))
    })
}

impl FieldSet {
    /// An empty set.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of paths in the set.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    fn find(&self, element: &PathElement) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        Some(&self.nodes[at])
    }

    /// Whether the path is in the set. The empty path is in no set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has(rest)),
        }
    }

    /// Whether the path with this single element is in the set.
    pub(crate) fn has_member(&self, element: &PathElement) -> bool {
        self.find(element).is_some_and(|node| node.member)
    }

    /// The non-empty subset below an element.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.find(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// Adds a path.
    pub fn insert(&mut self, path: impl IntoIterator<Item = PathElement>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(element) = path.next() {
            let at = match set.nodes.binary_search_by(|node| node.element.cmp(&element)) {
                Ok(at) => at,
                Err(at) => {
                    set.nodes.insert(at, Node { element, member: false, below: Self::new() });
                    at
                }
            };
            let node = &mut set.nodes[at];
            node.member |= path.peek().is_none();
            set = &mut node.below;
        }
    }

    /// The paths that are in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let nodes = zip(self.nodes, other.nodes).map(|pair| match pair {
            Pair::Left(node) | Pair::Right(node) => node,
            Pair::Both(a, b) => Node {
                element: a.element,
                member: a.member || b.member,
                below: a.below.union(b.below),
            },
        });
        Self { nodes: nodes.collect() }
    }

    /// The paths that are in any of the sets. Sets are united in pairs, so that each path takes part
    /// in few unions.
    pub(crate) fn union_of(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let (mut left, mut united) = (sets.into_iter(), Vec::new());
            while let Some(one) = left.next() {
                united.push(one.union(left.next().unwrap_or_default()));
            }
            sets = united;
        }
        sets.pop().unwrap_or_default()
    }

    /// The paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let nodes = common(&self.nodes, &other.nodes).filter_map(|(a, b)| {
            let (member, below) = (a.member && b.member, a.below.intersection(&b.below));
            (member || !below.is_empty()).then(|| Node {
                element: a.element.clone(),
                member,
                below,
            })
        });
        Self { nodes: nodes.collect() }
    }

    /// The paths that are not in `other`.
    #[must_use]
    pub fn difference(mut self, other: &Self) -> Self {
        self.take_out(other, false);
        self
    }

    /// The paths that are not in `other` and have no prefix in it.
    #[must_use]
    pub fn recursive_difference(mut self, other: &Self) -> Self {
        self.take_out(other, true);
        self
    }

    fn take_out(&mut self, other: &Self, recursive: bool) {
        let mut others = &other.nodes[..];
        self.nodes.retain_mut(|node| {
            while let [other, rest @ ..] = others {
                match other.element.cmp(&node.element) {
                    Ordering::Less => others = rest,
                    Ordering::Equal if recursive && other.member => return false,
                    Ordering::Equal => {
                        node.member &= !other.member;
                        node.below.take_out(&other.below, recursive);
                        return !node.is_empty();
                    }
                    Ordering::Greater => break,
                }
            }
            true
        });
    }

    /// Whether every path is also in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        zip(&self.nodes, &other.nodes).all(|pair| match pair {
            Pair::Left(_) => false,
            Pair::Right(_) => true,
            Pair::Both(a, b) => (b.member || !a.member) && a.below.is_subset(&b.below),
        })
    }

    /// Whether the sets share a path.
    pub(crate) fn intersects(&self, other: &Self) -> bool {
        common(&self.nodes, &other.nodes)
            .any(|(a, b)| (a.member && b.member) || a.below.intersects(&b.below))
    }

    /// The paths that are not a prefix of another path in the set.
    #[must_use]
    pub fn leaves(self) -> Self {
        let leaf = |node: Node| Node {
            member: node.member && node.below.is_empty(),
            below: node.below.leaves(),
            element: node.element,
        };
        Self { nodes: self.nodes.into_iter().map(leaf).collect() }
    }

    /// Calls `each` with every path. As upstream lists them, the paths of a level come before those
    /// below it.
    pub fn for_each(&self, mut each: impl FnMut(&[PathElement])) {
        self.for_each_below(&mut Vec::new(), &mut each);
    }

    fn for_each_below(&self, path: &mut Vec<PathElement>, each: &mut impl FnMut(&[PathElement])) {
        for node in self.nodes.iter().filter(|node| node.member) {
            path.push(node.element.clone());
            each(path);
            path.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            path.push(node.element.clone());
            node.below.for_each_below(path, each);
            path.pop();
        }
    }

    /// Changes every node. `change` gets the element, whether the node is a member, and the subset
    /// below it.
    pub(crate) fn change_nodes(
        &mut self,
        mut change: impl FnMut(&PathElement, &mut bool, &mut Self),
    ) {
        for node in &mut self.nodes {
            change(&node.element, &mut node.member, &mut node.below);
        }
        self.nodes.retain(|node| !node.is_empty());
    }
}

impl<const N: usize> From<[&[&str]; N]> for FieldSet {
    /// The set of these paths of field names.
    fn from(paths: [&[&str]; N]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path.iter().map(|name| PathElement::field(name)));
        }
        set
    }
}

/// Displays one path a line.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        self.for_each(|path| lines.push(show(path)));
        f.write_str(&lines.join("\n"))
    }
}

/// A path in upstream's notation, for messages. Long paths are truncated: one long name may be part
/// of the paths of many fields.
pub(crate) fn show(path: &[PathElement]) -> String {
    let mut shown = String::new();
    for element in path {
        if shown.len() > SHOWN_BYTES_MAX {
            shown.push_str("...");
            break;
        }
        shown.push_str(&element.to_string());
    }
    shown
}

/// The size of a path after which no element is appended to it in messages.
const SHOWN_BYTES_MAX: usize = 4096;

/// Builds a set from nodes in any order.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    nodes: Vec<Node>,
    unsorted: bool,
}

impl Builder {
    /// A builder with capacity for `elements`.
    pub(crate) fn with_room(elements: usize) -> Self {
        Self { nodes: Vec::with_capacity(elements), unsorted: false }
    }

    /// Adds an element, unless it is neither a member nor has anything below it.
    pub(crate) fn add(
        &mut self,
        element: impl FnOnce() -> PathElement,
        member: bool,
        below: FieldSet,
    ) {
        if !member && below.is_empty() {
            return;
        }
        let element = element();
        self.unsorted |= self.nodes.last().is_some_and(|last| last.element >= element);
        self.nodes.push(Node { element, member, below });
    }

    /// Adds elements, each with its membership and the subset below it.
    pub(crate) fn extend(&mut self, some: impl IntoIterator<Item = (PathElement, bool, FieldSet)>) {
        for (element, member, below) in some {
            self.add(|| element, member, below);
        }
    }

    /// Returns the set.
    pub(crate) fn finish(mut self) -> FieldSet {
        if self.unsorted {
            self.nodes.sort_by(|a, b| a.element.cmp(&b.element));
            self.nodes.dedup_by(|later, earlier| {
                let same = later.element == earlier.element;
                if same {
                    earlier.member |= later.member;
                    let below = std::mem::take(&mut earlier.below);
                    earlier.below = below.union(std::mem::take(&mut later.below));
                }
                same
            });
        }
        FieldSet { nodes: self.nodes }
    }
}
