//! Sets of fields: what a manager owns of an object.
//!
//! Must not know: schemas, managers, objects.
//!
//! Invariant: the nodes of a [`FieldSet`] are sorted by element, each element once, and each is a
//! member or has members below; so equal sets are equal trees.

mod codec;
mod element;
mod filter;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, fmt};

pub(crate) use codec::Writer;
pub use element::PathElement;
pub use filter::Filter;
pub(crate) use pintle_value::order;

/// A set of paths as an ordered tree. That a path is in it says nothing of its parents or children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: Vec<Node>,
}

/// An element below some path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    element: PathElement,
    /// Whether the path that ends here is in the set.
    member: bool,
    /// The paths that go on.
    below: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

/// A node that two sets may both have.
enum Pair<A, B> {
    Left(A),
    Right(B),
    Both(A, B),
}

/// Goes through the nodes of two sets in the order of their elements.
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

impl FieldSet {
    /// No fields.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Whether there are no fields in it.
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many fields are in it.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    fn find(&self, element: &PathElement) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        Some(&self.nodes[at])
    }

    /// Whether the path is in the set. The object itself is in none.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has(rest)),
        }
    }

    /// Whether the path of this one element is in the set.
    pub(crate) fn has_member(&self, element: &PathElement) -> bool {
        self.find(element).is_some_and(|node| node.member)
    }

    /// What is in the set below an element; never empty.
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

    /// The paths that are in either.
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

    /// The paths that are in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let nodes = zip(&self.nodes, &other.nodes).filter_map(|pair| {
            let Pair::Both(a, b) = pair else { return None };
            let (member, below) = (a.member && b.member, a.below.intersection(&b.below));
            (member || !below.is_empty()).then(|| Node {
                element: a.element.clone(),
                member,
                below,
            })
        });
        Self { nodes: nodes.collect() }
    }

    /// The paths that are not in the other.
    #[must_use]
    pub fn difference(mut self, other: &Self) -> Self {
        self.take_out(other, false);
        self
    }

    /// The paths that are not in the other, nor below a path that is.
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

    /// Whether every path is in the other, too.
    pub fn is_subset(&self, other: &Self) -> bool {
        zip(&self.nodes, &other.nodes).all(|pair| match pair {
            Pair::Left(_) => false,
            Pair::Right(_) => true,
            Pair::Both(a, b) => (b.member || !a.member) && a.below.is_subset(&b.below),
        })
    }

    /// Whether a path is in both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        zip(&self.nodes, &other.nodes).any(|pair| match pair {
            Pair::Both(a, b) => (a.member && b.member) || a.below.meets(&b.below),
            Pair::Left(_) | Pair::Right(_) => false,
        })
    }

    /// The paths that have no others below them.
    #[must_use]
    pub fn leaves(self) -> Self {
        let leaf = |node: Node| Node {
            member: node.member && node.below.is_empty(),
            below: node.below.leaves(),
            element: node.element,
        };
        Self { nodes: self.nodes.into_iter().map(leaf).collect() }
    }

    /// Calls `each` with every path, those of a level before those below it, as upstream lists them.
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

    /// Changes every node: `change` is given the element, whether it is a member, and what is below.
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
    /// The set of these paths of members.
    fn from(paths: [&[&str]; N]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path.iter().map(|name| PathElement::field(name)));
        }
        set
    }
}

/// A path a line.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        self.for_each(|path| lines.push(show(path)));
        f.write_str(&lines.join("\n"))
    }
}

/// A path as upstream shows it.
pub(crate) fn show(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

/// A set in the making: its nodes may come in any order.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    nodes: Vec<Node>,
    unsorted: bool,
}

impl Builder {
    /// For so many elements.
    pub(crate) fn with_room(elements: usize) -> Self {
        Self { nodes: Vec::with_capacity(elements), unsorted: false }
    }

    /// Adds an element if it is a member or has something below.
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

    /// Adds elements, each with whether it is a member and what is below it.
    pub(crate) fn extend(&mut self, some: impl IntoIterator<Item = (PathElement, bool, FieldSet)>) {
        for (element, member, below) in some {
            self.add(|| element, member, below);
        }
    }

    /// The set.
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
