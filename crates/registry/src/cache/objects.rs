//! The objects of a collection at one time, in the order of their keys.
//!
//! A B+ tree whose clones share its nodes, so that a clone is a cheap snapshot: a write copies the
//! nodes on its path that a snapshot shares, and changes others in place. A map of a library would
//! hold each key a second time, leave its nodes half full when keys arrive in order, and count the
//! objects behind a key one by one, as the first page of every divided list must.
//!
//! Invariants:
//! - The keys of a child are at or above its `first`, and below that of the next child. The `first`
//!   of the first child of a node is a bound, too, unless smaller keys were inserted since.
//! - All leaves have the same depth. No node but the root is empty, and none has more than
//!   [`NODE_MAX`] parts.

mod node;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use crate::Object;
use node::{Added, Child, Node};

/// The most objects of a leaf, and children of a branch. Larger nodes would be slower to copy,
/// smaller ones take more memory.
const NODE_MAX: usize = 32;

/// Two neighbours with at most so many parts become one node.
const MERGED_MAX: usize = NODE_MAX * 3 / 4;

/// Objects in the order of their keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    root: Arc<Node>,
    len: usize,
}

impl Objects {
    /// Returns the number of objects.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the object of a key.
    pub(crate) fn get(&self, item: &str) -> Option<&Arc<Object>> {
        let leaf = self.root.leaf_of(item);
        leaf.binary_search_by(|object| (*object.item).cmp(item)).ok().map(|at| &leaf[at])
    }

    /// Adds an object; returns the one with the same key that it replaces.
    pub(crate) fn insert(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        match Arc::make_mut(&mut self.root).insert(object) {
            Added::Replaced(previous) => return Some(previous),
            Added::Within => {}
            Added::Split(right) => {
                let objects = self.len + 1 - right.objects;
                let left = std::mem::take(&mut self.root);
                let left = Child { first: Arc::from(""), objects, node: left };
                self.root = Arc::new(Node::Branch(vec![left, right]));
            }
        }
        self.len += 1;
        None
    }

    /// Removes the object of a key; returns it.
    pub(crate) fn remove(&mut self, item: &str) -> Option<Arc<Object>> {
        let removed = Arc::make_mut(&mut self.root).remove(item)?;
        self.len -= 1;
        while let Node::Branch(children) = &*self.root
            && let [only] = &**children
        {
            self.root = only.node.clone();
        }
        Some(removed)
    }

    /// Returns the number of objects whose keys are below `item`.
    pub(crate) fn position(&self, item: &str) -> usize {
        let (mut node, mut before) = (&*self.root, 0);
        loop {
            match node {
                Node::Leaf(objects) => {
                    return before + objects.partition_point(|object| *object.item < *item);
                }
                Node::Branch(children) => {
                    let at = node::child_of(children, item);
                    before += children[..at].iter().map(|child| child.objects).sum::<usize>();
                    node = &children[at].node;
                }
            }
        }
    }

    /// Returns the objects at these positions, in order.
    pub(crate) fn range(&self, positions: Range<usize>) -> Iter<'_> {
        let end = positions.end.min(self.len);
        Iter { objects: self, leaf: &[], next: positions.start.min(end), end }
    }

    /// Returns all objects, in order.
    pub(crate) fn iter(&self) -> Iter<'_> {
        self.range(0..self.len)
    }

    /// Returns the objects of a namespace (`""` for all), from a key on. A key is `namespace/name`,
    /// or `name` for a cluster-scoped object.
    pub(crate) fn within(&self, namespace: &str, from: &str) -> Iter<'_> {
        if namespace.is_empty() {
            return self.range(self.position(from)..self.len);
        }
        // '0' is the byte after '/'.
        let (first, end) = (format!("{namespace}/"), format!("{namespace}0"));
        self.range(self.position(from.max(&first))..self.position(&end))
    }

    /// Returns the objects from a position on that lie in one leaf; empty if there are none.
    fn leaf_at(&self, position: usize) -> &[Arc<Object>] {
        let (mut node, mut after) = (&*self.root, position);
        loop {
            match node {
                Node::Leaf(objects) => return objects.get(after..).unwrap_or_default(),
                Node::Branch(children) => {
                    let mut children = children.iter();
                    let child = loop {
                        match children.next() {
                            Some(child) if after < child.objects => break child,
                            Some(child) => after -= child.objects,
                            None => return &[],
                        }
                    };
                    node = &child.node;
                }
            }
        }
    }
}

impl FromIterator<Arc<Object>> for Objects {
    fn from_iter<I: IntoIterator<Item = Arc<Object>>>(objects: I) -> Self {
        let mut all = Self::default();
        for object in objects {
            all.insert(object);
        }
        all
    }
}

/// Neighbouring objects, in order. Their number is known.
#[derive(Clone)]
pub(crate) struct Iter<'a> {
    objects: &'a Objects,
    /// The next objects, which lie in one leaf.
    leaf: &'a [Arc<Object>],
    /// The position of the next object.
    next: usize,
    end: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Arc<Object>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        if self.leaf.is_empty() {
            self.leaf = self.objects.leaf_at(self.next);
        }
        let (object, rest) = self.leaf.split_first()?;
        self.leaf = rest;
        self.next += 1;
        Some(object)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }

    fn count(self) -> usize {
        self.len()
    }
}

impl ExactSizeIterator for Iter<'_> {
    fn len(&self) -> usize {
        self.end - self.next
    }
}

/// All objects, in order.
pub(crate) struct IntoIter {
    objects: Objects,
    /// The next objects, which lie in one leaf.
    leaf: std::vec::IntoIter<Arc<Object>>,
    /// The position of the first object behind that leaf.
    next: usize,
}

impl IntoIterator for Objects {
    type Item = Arc<Object>;
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        IntoIter { objects: self, leaf: Vec::new().into_iter(), next: 0 }
    }
}

impl Iterator for IntoIter {
    type Item = Arc<Object>;

    fn next(&mut self) -> Option<Arc<Object>> {
        if let Some(object) = self.leaf.next() {
            return Some(object);
        }
        let leaf = self.objects.leaf_at(self.next);
        self.next += leaf.len();
        self.leaf = Vec::from(leaf).into_iter();
        self.leaf.next()
    }
}
