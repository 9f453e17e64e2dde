//! Tests of the set of objects against a map.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_store::{Kind, Revision};
use proptest::prelude::*;

use super::node::Node;
use super::{NODE_MAX, Objects};
use crate::Object;

type Model = BTreeMap<String, u64>;

/// Some steps of one kind.
#[derive(Clone, Debug)]
enum Step {
    /// Inserts objects with neighbouring keys, in ascending or descending order.
    Insert { first: u16, count: u16, descending: bool },
    /// Inserts objects whose keys are scattered.
    Scatter { first: u16, count: u16 },
    /// Removes the keys of a range; some may be absent.
    Remove { first: u16, count: u16 },
    /// Takes a snapshot.
    Clone,
}

fn step() -> impl Strategy<Value = Step> {
    let (first, count) = (0u16..5000, 1u16..1500);
    prop_oneof![
        3 => (first.clone(), count.clone(), any::<bool>())
            .prop_map(|(first, count, descending)| Step::Insert { first, count, descending }),
        3 => (first.clone(), count.clone()).prop_map(|(first, count)| Step::Scatter { first, count }),
        4 => (first, count).prop_map(|(first, count)| Step::Remove { first, count }),
        1 => Just(Step::Clone),
    ]
}

impl Step {
    fn numbers(&self) -> Vec<u16> {
        match *self {
            Self::Insert { first, count, descending: true } => {
                (first..first + count).rev().collect()
            }
            Self::Insert { first, count, .. } | Self::Remove { first, count } => {
                (first..first + count).collect()
            }
            Self::Scatter { first, count } => {
                (0..count).map(|at| first.wrapping_add(at.wrapping_mul(2741)) % 6500).collect()
            }
            Self::Clone => Vec::new(),
        }
    }
}

/// The key of a number: the numbers of a thousand are a namespace.
fn item(number: u16) -> String {
    format!("ns{}/{:03}", number / 1000, number % 1000)
}

fn object(item: &str, revision: u64) -> Arc<Object> {
    Object::bare(b"{}".to_vec().into(), item.into(), Revision(revision), Kind::Created)
}

fn read<'a>(objects: impl Iterator<Item = &'a Arc<Object>>) -> Vec<(String, u64)> {
    objects.map(|object| (object.item.to_string(), object.revision.0)).collect()
}

/// Asserts that a set is the same as the model, whichever way it is read.
fn assert_same(objects: &Objects, model: &Model) {
    let all: Vec<_> = model.iter().map(|(item, revision)| (item.clone(), *revision)).collect();
    assert_eq!(objects.len(), all.len());
    assert_eq!(read(objects.iter()), all);
    assert_eq!(read(objects.clone().into_iter().collect::<Vec<_>>().iter()), all);
    for number in (0..6500).step_by(97) {
        let item = item(number);
        let found = objects.get(&item).map(|object| object.revision.0);
        assert_eq!(found, model.get(&item).copied(), "{item}");
        let below = model.range(..item.clone()).count();
        assert_eq!(objects.position(&item), below, "{item}");
        let (namespace, _) = item.split_once('/').expect("it has a namespace");
        for (namespace, prefix) in [("", ""), (namespace, &*format!("{namespace}/"))] {
            let within: Vec<_> = all
                .iter()
                .filter(|(key, _)| *key >= item && key.starts_with(prefix))
                .cloned()
                .collect();
            let found = objects.within(namespace, &item);
            assert_eq!((found.len(), found.clone().count()), (within.len(), within.len()));
            assert_eq!(read(found), within);
        }
    }
}

/// Asserts the invariants of a node, the bounds of whose keys are given; returns its depth and the
/// number of its objects.
fn assert_sound(node: &Node, from: &str, to: Option<&str>, is_root: bool) -> (usize, usize) {
    assert!(node.parts() <= NODE_MAX && (is_root || node.parts() > 0));
    match node {
        Node::Leaf(objects) => {
            assert!(objects.is_sorted_by(|one, other| one.item < other.item));
            assert!(objects.first().is_none_or(|object| *object.item >= *from));
            assert!(objects.last().is_none_or(|object| to.is_none_or(|to| *object.item < *to)));
            (0, objects.len())
        }
        Node::Branch(children) => {
            assert!(!is_root || children.len() > 1);
            let mut depths = Vec::new();
            for (at, child) in children.iter().enumerate() {
                let from = if at == 0 { from } else { &child.first };
                let to = children.get(at + 1).map(|next| &*next.first).or(to);
                let (depth, objects) = assert_sound(&child.node, from, to, false);
                assert_eq!(child.objects, objects);
                depths.push(depth);
            }
            assert!(depths.iter().all(|depth| *depth == depths[0]));
            (depths[0] + 1, children.iter().map(|child| child.objects).sum())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_set_is_a_map_and_its_clones_do_not_change(steps in prop::collection::vec(step(), 1..20)) {
        let (mut objects, mut model, mut clones) = (Objects::default(), Model::new(), Vec::new());
        for (revision, step) in (1..).zip(&steps) {
            for item in step.numbers().into_iter().map(item) {
                let (before, expected) = match step {
                    Step::Remove { .. } => (objects.remove(&item), model.remove(&item)),
                    _ => (
                        objects.insert(object(&item, revision)),
                        model.insert(item.clone(), revision),
                    ),
                };
                prop_assert_eq!(before.map(|object| object.revision.0), expected);
            }
            if matches!(step, Step::Clone) {
                clones.push((objects.clone(), model.clone()));
            }
            assert_sound(&objects.root, "", None, true);
        }
        clones.push((objects, model));
        clones.iter().for_each(|(objects, model)| assert_same(objects, model));
    }
}

/// The leaves of a set, and how many objects are in them for each place that they have.
fn leaves(node: &Node) -> (usize, usize) {
    match node {
        Node::Leaf(objects) => (1, objects.capacity()),
        Node::Branch(children) => children
            .iter()
            .map(|child| leaves(&child.node))
            .fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1)),
    }
}

/// How much memory leaves take depends on the order in which objects came and went.
#[test]
fn leaves_are_well_filled() {
    const COUNT: u32 = 20_000;
    let all = || 0..COUNT;
    let scattered = all().map(|at| at * 7919 % COUNT).collect();
    let thinned = all().filter(|number| number % 20 != 0).collect();
    // The numbers to insert, then those to remove, and the most places for each object.
    let rows: [(&str, Vec<u32>, Vec<u32>, f64); 4] = [
        ("ascending", all().collect(), Vec::new(), 1.01),
        ("descending", all().rev().collect(), Vec::new(), 1.7),
        ("scattered", scattered, Vec::new(), 1.6),
        ("thinned", all().collect(), thinned, 2.0),
    ];
    for (order, inserted, removed, most) in rows {
        let mut objects = Objects::default();
        inserted.iter().for_each(|number| drop(objects.insert(object(&format!("{number:05}"), 1))));
        removed.iter().for_each(|number| drop(objects.remove(&format!("{number:05}"))));
        let (count, places) = leaves(&objects.root);
        let for_each = places as f64 / objects.len() as f64;
        assert!(for_each <= most, "{order}: {for_each} places, {count} leaves");
    }
}
