//! The node graph: which objects belong to which node, by the pods on it.
//!
//! A node reads the objects that its pods refer to, the volumes bound to its pods' claims, the
//! secrets of these volumes, and objects that name the node (attachments, resource slices, pod
//! certificate requests). Each node has a table of its objects and of the objects that they refer
//! to, with the number of the node's objects that refer to each. A volume and its secrets are not
//! in the table: they are found by the volume's claim, which is. So a query is a look-up however
//! many nodes share a secret, and a permission ends with the last object that gave it.

use std::collections::HashMap;
use std::sync::Arc;

use pintle_value::Value;

use super::object::{Kind, Object, Sort};
use super::references;

/// The graph. Its owner applies changes of objects one by one.
#[derive(Debug, Default)]
pub struct Graph {
    objects: Objects,
    /// The objects on nodes.
    scheduled: HashMap<Id, Scheduled>,
    /// The objects that each node may read, except volumes and their secrets, with the number of
    /// the node's objects that refer to each.
    nodes: HashMap<Id, HashMap<Id, u32>>,
    /// The bound volumes.
    bound: HashMap<Id, Bound>,
    /// By secret: the claims to which the volumes that refer to the secret are bound, each with the
    /// number of these volumes.
    claims: HashMap<Id, HashMap<Id, u32>>,
}

/// An object on a node.
#[derive(Debug)]
struct Scheduled {
    node: Id,
    /// The objects that the node may read because of this object, including this object; without
    /// duplicates.
    reads: Box<[Id]>,
}

/// A volume that is bound to a claim.
#[derive(Debug)]
struct Bound {
    claim: Id,
    /// The secrets that kubelets need for the volume; without duplicates.
    secrets: Box<[Id]>,
}

impl Graph {
    /// Applies the state of an object, of which [`Kind::members`] are enough.
    pub fn set(&mut self, kind: Kind, namespace: &str, name: &str, object: &Value) {
        self.remove(kind, namespace, name);
        let this = Object::of(kind, namespace, name);
        if kind == Kind::Volume {
            if let Some((claim, secrets)) = references::of_volume(object) {
                self.bind(this, claim, secrets);
            }
            return;
        }
        let node = object.str_at(&["spec", "nodeName"]).unwrap_or_default();
        if node.is_empty() {
            return;
        }
        let mut reads = match kind {
            Kind::Pod => references::of_pod(object, namespace, name),
            _ => Vec::new(),
        };
        reads.push(this.clone());
        self.schedule(this, Object::new(Sort::Node, "", node), reads);
    }

    /// Removes an object and the permissions that it gave.
    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        if let Some(id) = self.objects.find(&Object::of(kind, namespace, name)) {
            self.forget(id);
        }
    }

    /// Removes all objects of a kind.
    pub fn clear(&mut self, kind: Kind) {
        let all = self.scheduled.keys().chain(self.bound.keys());
        let is_of = |id: &&Id| self.objects.sort(**id) == Some(kind.sort());
        let ids: Vec<Id> = all.filter(is_of).copied().collect();
        ids.into_iter().for_each(|id| self.forget(id));
    }

    /// Whether a node may read an object.
    pub fn reaches(&self, node: &str, object: &Object) -> bool {
        let node = self.objects.find(&Object::new(Sort::Node, "", node));
        let Some(reads) = node.and_then(|node| self.nodes.get(&node)) else { return false };
        let Some(id) = self.objects.find(object) else { return false };
        let reads_claim = |claim: &Id| reads.contains_key(claim);
        let of_volumes = || match object.sort {
            Sort::Volume => self.bound.get(&id).is_some_and(|bound| reads_claim(&bound.claim)),
            Sort::Secret => self.claims.get(&id).is_some_and(|claims| {
                // Iterates over the smaller table: volumes of a whole cluster may share a secret.
                if claims.len() < reads.len() {
                    claims.keys().any(reads_claim)
                } else {
                    reads.keys().any(|read| claims.contains_key(read))
                }
            }),
            _ => false,
        };
        reads.contains_key(&id) || of_volumes()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let Objects { ids, free, held } = &self.objects;
        let tables = self.nodes.is_empty() && self.claims.is_empty();
        tables
            && self.scheduled.is_empty()
            && self.bound.is_empty()
            && ids.is_empty()
            && free.len() == held.len()
    }

    fn schedule(&mut self, object: Object, node: Object, reads: Vec<Object>) {
        let (id, node) = (self.objects.hold(object), self.objects.hold(node));
        let reads = self.hold_each(reads);
        let of_node = self.nodes.entry(node).or_default();
        reads.iter().for_each(|read| *of_node.entry(*read).or_default() += 1);
        self.scheduled.insert(id, Scheduled { node, reads });
    }

    fn bind(&mut self, volume: Object, claim: Object, secrets: Vec<Object>) {
        let (id, claim) = (self.objects.hold(volume), self.objects.hold(claim));
        let secrets = self.hold_each(secrets);
        for secret in &secrets {
            *self.claims.entry(*secret).or_default().entry(claim).or_default() += 1;
        }
        self.bound.insert(id, Bound { claim, secrets });
    }

    fn hold_each(&mut self, objects: Vec<Object>) -> Box<[Id]> {
        let mut ids: Vec<Id> =
            objects.into_iter().map(|object| self.objects.hold(object)).collect();
        ids.sort_unstable();
        ids.dedup_by(|again, id| {
            let is_again = again == id;
            if is_again {
                self.objects.release(*again);
            }
            is_again
        });
        ids.into()
    }

    fn forget(&mut self, id: Id) {
        if let Some(Scheduled { node, reads }) = self.scheduled.remove(&id) {
            reads.iter().for_each(|read| uncount(&mut self.nodes, node, *read));
            reads.iter().for_each(|read| self.objects.release(*read));
            [node, id].into_iter().for_each(|held| self.objects.release(held));
        }
        if let Some(Bound { claim, secrets }) = self.bound.remove(&id) {
            secrets.iter().for_each(|secret| uncount(&mut self.claims, *secret, claim));
            secrets.iter().for_each(|secret| self.objects.release(*secret));
            [claim, id].into_iter().for_each(|held| self.objects.release(held));
        }
    }
}

/// Decrements a count; removes empty counts and tables.
fn uncount(tables: &mut HashMap<Id, HashMap<Id, u32>>, of: Id, what: Id) {
    let Some(table) = tables.get_mut(&of) else { return };
    if let Some(count) = table.get_mut(&what) {
        *count -= 1;
        if *count == 0 {
            table.remove(&what);
        }
    }
    if table.is_empty() {
        tables.remove(&of);
    }
}

/// The number of an interned object. Objects are interned because many of them refer to the same
/// few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Id(u32);

/// Interned objects with reference counts.
#[derive(Debug, Default)]
struct Objects {
    ids: HashMap<Arc<Object>, Id>,
    held: Vec<Option<Held>>,
    /// Free numbers.
    free: Vec<Id>,
}

#[derive(Debug)]
struct Held {
    object: Arc<Object>,
    times: u32,
}

impl Objects {
    fn find(&self, object: &Object) -> Option<Id> {
        self.ids.get(object).copied()
    }

    fn sort(&self, id: Id) -> Option<Sort> {
        Some(self.held.get(id.0 as usize)?.as_ref()?.object.sort)
    }

    fn hold(&mut self, object: Object) -> Id {
        if let Some(id) = self.find(&object) {
            if let Some(held) = &mut self.held[id.0 as usize] {
                held.times += 1;
            }
            return id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.held.push(None);
            Id(u32::try_from(self.held.len() - 1).expect("memory ends before"))
        });
        let object = Arc::new(object);
        self.held[id.0 as usize] = Some(Held { object: object.clone(), times: 1 });
        self.ids.insert(object, id);
        id
    }

    fn release(&mut self, id: Id) {
        let slot = &mut self.held[id.0 as usize];
        let Some(held) = slot else { return };
        held.times -= 1;
        if held.times == 0 {
            self.ids.remove(&held.object);
            *slot = None;
            self.free.push(id);
        }
    }
}
