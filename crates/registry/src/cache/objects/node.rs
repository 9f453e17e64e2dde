//! The nodes of [`super::Objects`].

use std::sync::Arc;

use super::{MERGED_MAX, NODE_MAX};
use crate::Object;

/// A leaf grows by so many places at a time, so that at most these are unused.
const GROWTH: usize = 8;

/// A node. Its clones share its objects and children.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Objects in the order of their keys.
    Leaf(Vec<Arc<Object>>),
    /// Children in the order of their keys.
    Branch(Vec<Child>),
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(Vec::new())
    }
}

/// A child of a branch.
#[derive(Clone, Debug)]
pub(super) struct Child {
    /// A lower bound of the keys of the child.
    pub(super) first: Arc<str>,
    /// How many objects are below the child.
    pub(super) objects: usize,
    pub(super) node: Arc<Node>,
}

/// What the insertion of an object did.
pub(super) enum Added {
    /// It replaced the object with the same key.
    Replaced(Arc<Object>),
    /// It is in the node.
    Within,
    /// It is in the node or in a new node, which comes after it.
    Split(Child),
}

/// Returns the number of the child in which the object of a key is, if there is one.
pub(super) fn child_of(children: &[Child], item: &str) -> usize {
    children[1..].partition_point(|child| *child.first <= *item)
}

impl Node {
    /// Returns the leaf in which the object of a key is, if there is one.
    pub(super) fn leaf_of(&self, item: &str) -> &[Arc<Object>] {
        let mut node = self;
        loop {
            match node {
                Self::Leaf(objects) => return objects,
                Self::Branch(children) => node = &children[child_of(children, item)].node,
            }
        }
    }

    /// Adds an object, or replaces the one with the same key.
    pub(super) fn insert(&mut self, object: Arc<Object>) -> Added {
        match self {
            Self::Leaf(objects) => insert_into_leaf(objects, object),
            Self::Branch(children) => {
                let at = child_of(children, &object.item);
                let child = &mut children[at];
                let added = Arc::make_mut(&mut child.node).insert(object);
                match added {
                    Added::Replaced(_) => added,
                    Added::Within => {
                        child.objects += 1;
                        added
                    }
                    Added::Split(right) => {
                        child.objects = child.objects + 1 - right.objects;
                        add_child(children, at + 1, right)
                    }
                }
            }
        }
    }

    /// Removes the object of a key.
    pub(super) fn remove(&mut self, item: &str) -> Option<Arc<Object>> {
        match self {
            Self::Leaf(objects) => {
                let at = objects.binary_search_by(|object| (*object.item).cmp(item)).ok()?;
                let removed = objects.remove(at);
                if objects.capacity() - objects.len() > GROWTH {
                    objects.shrink_to_fit();
                }
                Some(removed)
            }
            Self::Branch(children) => {
                let at = child_of(children, item);
                let child = &mut children[at];
                let removed = Arc::make_mut(&mut child.node).remove(item)?;
                child.objects -= 1;
                if child.objects == 0 {
                    children.remove(at);
                } else if !merge(children, at) && at > 0 {
                    merge(children, at - 1);
                }
                Some(removed)
            }
        }
    }

    /// The number of objects of a leaf, or children of a branch.
    pub(super) const fn parts(&self) -> usize {
        match self {
            Self::Leaf(objects) => objects.len(),
            Self::Branch(children) => children.len(),
        }
    }

    /// Moves the parts of the next node, of the same depth, to the end of this one.
    fn append(&mut self, next: &Child) {
        match (self, &*next.node) {
            (Self::Leaf(objects), Self::Leaf(more)) => objects.extend_from_slice(more),
            (Self::Branch(children), Self::Branch(more)) => {
                let moved = children.len();
                children.extend_from_slice(more);
                children[moved].first = next.first.clone();
            }
            _ => debug_assert!(false, "all leaves have the same depth"),
        }
    }
}

fn insert_into_leaf(objects: &mut Vec<Arc<Object>>, object: Arc<Object>) -> Added {
    let at = match objects.binary_search_by(|other| other.item.cmp(&object.item)) {
        Ok(at) => return Added::Replaced(std::mem::replace(&mut objects[at], object)),
        Err(at) => at,
    };
    if objects.len() < NODE_MAX {
        if objects.len() == objects.capacity() {
            objects.reserve_exact(GROWTH);
        }
        objects.insert(at, object);
        return Added::Within;
    }
    let mut right = objects.split_off(split_at(at));
    objects.shrink_to(objects.len() + GROWTH);
    match at.checked_sub(objects.len()) {
        Some(at) => {
            right.reserve_exact(GROWTH);
            right.insert(at, object);
        }
        None => objects.insert(at, object),
    }
    let (first, len) = (right[0].item.clone(), right.len());
    Added::Split(Child { first, objects: len, node: Arc::new(Node::Leaf(right)) })
}

/// Adds a child before the one with the number `at`.
fn add_child(children: &mut Vec<Child>, at: usize, child: Child) -> Added {
    if children.len() < NODE_MAX {
        children.insert(at, child);
        return Added::Within;
    }
    let mut right = children.split_off(split_at(at));
    match at.checked_sub(children.len()) {
        Some(at) => right.insert(at, child),
        None => children.insert(at, child),
    }
    let objects = right.iter().map(|child| child.objects).sum();
    Added::Split(Child {
        first: right[0].first.clone(),
        objects,
        node: Arc::new(Node::Branch(right)),
    })
}

/// Where a full node is split to insert a part at `at`. Keys often arrive in order: then the node
/// stays full, and the next parts fill the new one.
const fn split_at(at: usize) -> usize {
    if at == NODE_MAX { NODE_MAX } else { NODE_MAX / 2 }
}

/// Merges a child with the next one, if both have few parts; returns whether it did.
fn merge(children: &mut Vec<Child>, at: usize) -> bool {
    let [child, next, ..] = &mut children[at..] else { return false };
    if child.node.parts() + next.node.parts() > MERGED_MAX {
        return false;
    }
    Arc::make_mut(&mut child.node).append(next);
    child.objects += next.objects;
    children.remove(at + 1);
    true
}
