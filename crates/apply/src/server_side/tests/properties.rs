//! Properties that hold for any schema, any objects and any writers.

use std::collections::BTreeMap;

use pintle_schema::{Schema, TypeId};
use pintle_value::{Map, Str, Value};
use proptest::prelude::*;

use super::schemas;
use crate::server_side::fieldset::{FieldSet, Filter, PathElement, order};
use crate::server_side::managers::{
    Failure, Identity, Kind, Managers, Operation, UniformVersions, apply, grant, update,
};
use crate::server_side::typed::{
    Exclusions, Outline, Typing, check, compare, created, field_set, merge, remove,
};

/// A type in the notation of the case files, and values of it.
#[derive(Clone, Debug)]
enum Sort {
    Number,
    Any,
    Atomic,
    Set,
    Map(Box<Sort>, bool),
    Keyed(Box<Sort>),
    Struct(Vec<Sort>, bool),
}

const FIELDS: [&str; 3] = ["a", "b", "c"];

fn sorts() -> impl Strategy<Value = Sort> {
    let leaf = prop_oneof![
        4 => Just(Sort::Number),
        1 => Just(Sort::Any),
        1 => Just(Sort::Atomic),
        2 => Just(Sort::Set),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let fields = prop::collection::vec(inner.clone(), 1..=3);
        prop_oneof![
            (inner.clone(), prop::bool::weighted(0.2)).prop_map(|(s, a)| Sort::Map(s.into(), a)),
            inner.prop_map(|s| Sort::Keyed(s.into())),
            (fields, prop::bool::weighted(0.2)).prop_map(|(s, a)| Sort::Struct(s, a)),
        ]
    })
}

impl Sort {
    /// The type's expression. Structs are added to `types`.
    fn expression(&self, types: &mut Map) -> String {
        match self {
            Self::Number => "number".to_owned(),
            Self::Any => "any".to_owned(),
            Self::Atomic => "[number]".to_owned(),
            Self::Set => "{number}".to_owned(),
            Self::Map(inner, atomic) => {
                format!("<{}>{}", inner.expression(types), if *atomic { "!" } else { "" })
            }
            Self::Keyed(inner) => {
                let value = inner.expression(types);
                let name = format!("t{}", types.len());
                types.insert(name.as_str(), Value::from([("k", "number = 0"), ("v", &*value)]));
                format!("{{{name} by k}}")
            }
            Self::Struct(fields, atomic) => {
                let fields = fields.iter().zip(FIELDS);
                let fields: Vec<_> =
                    fields.map(|(f, name)| (Str::from(name), f.expression(types).into())).collect();
                let name = format!("t{}{}", types.len(), if *atomic { "!" } else { "" });
                types.insert(name.as_str(), Value::Object(fields.into_iter().collect()));
                name
            }
        }
    }

    fn values(&self) -> BoxedStrategy<Value> {
        let numbers = || (0..3i64).prop_map(Value::Int);
        let distinct = |some: std::collections::BTreeSet<i64>| some.into_iter();
        match self {
            Self::Number => numbers().boxed(),
            Self::Any => prop_oneof![
                numbers(),
                Just(Value::object()),
                numbers().prop_map(|n| Value::from([("a", n)])),
                numbers().prop_map(|n| Value::from(vec![n])),
            ]
            .boxed(),
            Self::Atomic => prop::collection::vec(numbers(), 0..3).prop_map(Value::from).boxed(),
            Self::Set => prop::collection::btree_set(0..4i64, 0..4)
                .prop_map(move |some| distinct(some).map(Value::Int).collect::<Vec<_>>())
                .prop_shuffle()
                .prop_map(Value::from)
                .boxed(),
            Self::Map(inner, _) => {
                let entries = prop::collection::btree_map("[abc]", inner.values(), 0..3);
                entries.prop_map(object).boxed()
            }
            Self::Keyed(inner) => prop::collection::btree_map(0..4i64, inner.values(), 0..3)
                .prop_map(|items| items.into_iter().collect::<Vec<_>>())
                .prop_shuffle()
                .prop_map(|items| {
                    let item = |(k, v)| Value::from([("k", Value::Int(k)), ("v", v)]);
                    Value::Array(items.into_iter().map(item).collect())
                })
                .boxed(),
            Self::Struct(fields, _) => {
                let fields = fields.iter().zip(FIELDS).map(|(sort, name)| {
                    prop::option::of(sort.values())
                        .prop_map(move |v| v.map(|v| (name.to_owned(), v)))
                });
                let fields: Vec<_> = fields.collect();
                fields.prop_map(|fields| object(fields.into_iter().flatten().collect())).boxed()
            }
        }
    }
}

fn object(members: BTreeMap<String, Value>) -> Value {
    Value::Object(members.into_iter().map(|(k, v)| (Str::from(k), v)).collect())
}

/// A write: the manager, the value, whether it is an update or an apply, and whether it is forced.
type Step = (usize, Value, bool, bool);

/// A granular struct at the root, and some writes to an object of it.
fn histories() -> impl Strategy<Value = (Sort, Vec<Step>)> {
    let root = prop::collection::vec(sorts(), 1..=3).prop_map(|fields| Sort::Struct(fields, false));
    root.prop_flat_map(|root| {
        let step = (0..3usize, root.values(), prop::bool::weighted(0.3), prop::bool::ANY);
        (Just(root), prop::collection::vec(step, 1..8))
    })
}

struct World {
    schema: Schema,
    ty: TypeId,
    live: Value,
    managers: Managers,
}

impl World {
    fn new(root: &Sort) -> Self {
        let mut types = Map::new();
        let root = root.expression(&mut types);
        let schema = schemas::schema(&Value::Object(types));
        let (schema, ty) = schemas::with_type(&schema, &root);
        Self { schema, ty, live: Value::object(), managers: Managers::new() }
    }

    fn typing(&self) -> Typing<'_> {
        Typing::new(&self.schema, self.ty)
    }

    fn step(&mut self, (writer, value, is_update, force): Step) -> Result<(), Failure> {
        let versions = UniformVersions(&self.schema, self.ty);
        let kind = Kind { versions: &versions, filter: &Filter::ALL };
        let operation = if is_update { Operation::Update } else { Operation::Apply };
        let writer = Identity::new(["x", "y", "z"][writer], operation, "v1", "");
        if is_update {
            let change = (&self.live, &value);
            let fields = update(kind, "v1", change, &mut self.managers, &writer)?;
            grant(&mut self.managers, writer, "v1", fields, 0);
            self.live = value;
            return Ok(());
        }
        let (mut managers, mut live) = (self.managers.clone(), self.live.clone());
        let applied = (&value, field_set(self.typing(), &value));
        let changed = apply(kind, "v1", &mut live, applied, &mut managers, &writer, force)?;
        assert_eq!(changed, !order::same(&self.live, &live), "it says whether anything changed");
        // A real object never loses all of its members.
        self.live = if live.is_null() { Value::object() } else { live };
        self.managers = managers;
        Ok(())
    }
}

fn has_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        Value::Object(members) => members.is_empty() || members.values().any(has_empty),
        _ => false,
    }
}

/// Duplicates some items of lists, selected by the bits of `seed`.
fn double_items(value: &mut Value, seed: &mut u64) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(|item| double_items(item, seed));
            let doubled = items.clone().into_iter().filter(|_| {
                *seed = seed.rotate_left(1);
                *seed & 1 == 1
            });
            let doubled: Vec<Value> = doubled.collect();
            items.extend(doubled);
        }
        Value::Object(members) => members.iter_mut().for_each(|(_, v)| double_items(v, seed)),
        _ => {}
    }
}

/// Returns the value with other scalars, and without some members, selected by the bits of `seed`.
fn varied(value: &Value, seed: &mut u64) -> Value {
    *seed = seed.rotate_left(3);
    match (*seed & 7, value) {
        (0, Value::Int(n)) => Value::Int(n + 1),
        (1, Value::Int(_)) => Value::from("text"),
        (2, Value::Array(_)) if *seed & 8 == 0 => Value::Array(Vec::new()),
        (3, Value::Object(_)) if *seed & 8 == 0 => Value::Null,
        (_, Value::Array(items)) => {
            items.iter().map(|item| varied(item, seed)).collect::<Vec<_>>().into()
        }
        (turn, Value::Object(members)) => {
            let rest = members.iter().skip(usize::from(turn == 4 && *seed & 8 == 0));
            Value::Object(rest.map(|(name, value)| (name.clone(), varied(value, seed))).collect())
        }
        _ => value.clone(),
    }
}

/// The leaves of a set that an object lacks.
fn absent(ty: Typing<'_>, object: &Value, fields: &FieldSet) -> FieldSet {
    fields.clone().leaves().difference(&compare(ty, &Value::object(), object).added)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// After any writes: a failed write changed nothing, the object matches its type, the leaves
    /// that managers other than an applier own exist, no manager owns an empty set, an applier owns
    /// the fields that it applied, and repeating an apply without empty values changes nothing.
    #[test]
    fn ownership_invariants_hold((root, steps) in histories()) {
        let mut world = World::new(&root);
        for step in steps {
            let before = (world.live.clone(), world.managers.clone());
            if world.step(step.clone()).is_err() {
                prop_assert_eq!((&world.live, &world.managers), (&before.0, &before.1));
                continue;
            }
            let ty = world.typing();
            prop_assert_eq!(check(ty, &world.live, false), Ok(field_set(ty, &world.live)));
            let unowned = world.managers.values().find(|owned| owned.is_empty());
            prop_assert!(unowned.is_none(), "no manager owns an empty set");
            let (writer, value, is_update, _) = step.clone();
            let writer = ["x", "y", "z"][writer];
            for (other, owned) in &world.managers {
                if is_update || other.manager != writer {
                    let absent = absent(ty, &world.live, owned.fields());
                    prop_assert!(absent.is_empty(), "{other} owns absent fields: {absent}");
                }
            }
            // A value that an applier empties becomes null, and empty again at the next apply.
            if !is_update {
                let mine = Identity::new(writer, Operation::Apply, "v1", "");
                let fields = world.managers.get(&mine).map(|owned| owned.fields().clone());
                prop_assert_eq!(fields.unwrap_or_default(), field_set(ty, &value));
            }
            if !is_update && !has_empty(&value) {
                let mut merged = world.live.clone();
                merge(ty, &mut merged, &value).expect("it fits");
                let mut change = compare(ty, &world.live, &merged);
                change.removed = FieldSet::new();
                prop_assert!(change.modified.is_empty() && change.added.is_empty());
                let after = (world.live.clone(), world.managers.clone());
                prop_assert_eq!(world.step(step), Ok(()));
                prop_assert_eq!((&world.live, &world.managers), (&after.0, &after.1));
            }
        }
    }

    /// A merge reports its changes and has only fields of the two objects. Its value differs from
    /// the applied value only at fields of the live object. A merge with itself changes nothing.
    #[test]
    fn a_merge_has_only_fields_of_both_objects((root, steps) in histories()) {
        let world = World::new(&root);
        let ty = world.typing();
        let values: Vec<Value> = steps.into_iter().map(|(_, value, ..)| value).collect();
        for pair in values.windows(2) {
            let mut merged = pair[0].clone();
            let outcome = merge(ty, &mut merged, &pair[1]).expect("it fits");
            prop_assert_eq!(&outcome.change, &compare(ty, &pair[0], &merged));
            prop_assert_eq!(outcome.changed_object(), !order::same(&pair[0], &merged));
            let fields = field_set(ty, &pair[0]).union(field_set(ty, &pair[1]));
            prop_assert!(field_set(ty, &merged).is_subset(&fields));
            let over = compare(ty, &pair[1], &merged);
            let emptied = |path: &[PathElement]| !field_set(ty, &pair[0]).has(path);
            over.modified.for_each(|path| assert!(!emptied(path), "neither object has the value"));
            prop_assert!(over.removed.intersection(&field_set(ty, &merged)).is_empty());
            let mut same = pair[0].clone();
            merge(ty, &mut same, &pair[0]).expect("it fits");
            prop_assert_eq!(&same, &pair[0]);
        }
    }

    /// A merge reports its changes, even if live lists have duplicate items.
    #[test]
    fn a_merge_reports_its_changes((root, steps) in histories(), seed in any::<u64>()) {
        let world = World::new(&root);
        let ty = world.typing();
        let values: Vec<Value> = steps.into_iter().map(|(_, value, ..)| value).collect();
        for pair in values.windows(2) {
            let mut live = pair[0].clone();
            double_items(&mut live, &mut seed.clone());
            let mut merged = live.clone();
            let outcome = merge(ty, &mut merged, &pair[1]).expect("it fits");
            prop_assert_eq!(&outcome.change, &compare(ty, &live, &merged));
            prop_assert_eq!(outcome.changed_object(), !order::same(&live, &merged));
        }
    }

    /// The fields of a new object equal those of a comparison with the empty object.
    #[test]
    fn fields_of_a_create_equal_a_comparison((root, steps) in histories(), mut seed in any::<u64>()) {
        let world = World::new(&root);
        let (ty, empty) = (world.typing(), Value::object());
        let mut values: Vec<Value> = steps.into_iter().map(|(_, value, ..)| value).collect();
        double_items(&mut values[0], &mut seed);
        let set = |value: Option<&Value>| {
            value.map(|value| compare(ty, &empty, value).added).unwrap_or_default()
        };
        let (fields, trees) = (set(values.get(1)), set(values.get(2)).leaves());
        let change = compare(ty, &empty, &values[0]).filtered(&Filter::Except(trees.clone()));
        let expected = change.modified.union(change.added).difference(&fields).to_json();
        let found = created(ty, &empty, &values[0], Exclusions { fields: &fields, trees: &trees });
        prop_assert_eq!(found.as_deref(), Some(&*expected));
    }

    /// Objects of one outline have the same fields. The outline of an object fits the object itself.
    #[test]
    fn an_outline_decides_the_fields_of_a_create((root, steps) in histories(), seed in any::<u64>()) {
        let world = World::new(&root);
        let (ty, empty) = (world.typing(), Value::object());
        let values: Vec<Value> = steps.into_iter().map(|(_, value, ..)| value).collect();
        let set = |value: &Value| compare(ty, &empty, value).added;
        let (fields, trees) = (set(&values[values.len() - 1]), set(&values[values.len() / 2]).leaves());
        let without = Exclusions { fields: &fields, trees: &trees };
        for value in &values {
            let Some((outline, _)) = Outline::of(ty, &empty, value, without) else { continue };
            prop_assert!(outline.fits(value));
            let fields = created(ty, &empty, value, without);
            let changed = (0..8).map(|turn| varied(value, &mut seed.rotate_left(turn * 8)));
            for other in values.iter().cloned().chain(changed).filter(|other| outline.fits(other)) {
                prop_assert_eq!(&created(ty, &empty, &other, without), &fields, "{:?}", &other);
            }
        }
    }

    /// Comparisons in the two directions mirror each other, and an object equals itself.
    #[test]
    fn comparisons_are_symmetric((root, steps) in histories()) {
        let world = World::new(&root);
        let ty = world.typing();
        let values: Vec<Value> = steps.into_iter().map(|(_, value, ..)| value).collect();
        for pair in values.windows(2) {
            let (there, back) = (compare(ty, &pair[0], &pair[1]), compare(ty, &pair[1], &pair[0]));
            prop_assert_eq!(&there.added, &back.removed);
            prop_assert_eq!(&there.removed, &back.added);
            prop_assert_eq!(&there.modified, &back.modified);
            prop_assert_eq!(compare(ty, &pair[0], &pair[0]), Default::default());
        }
    }

    /// The only owner of a field removes it by no longer applying it.
    #[test]
    fn the_only_owner_removes_a_field((root, steps) in histories()) {
        let mut world = World::new(&root);
        for (_, value, ..) in steps {
            world.step((0, value.clone(), false, false)).expect("nobody else is there");
            let fields = field_set(world.typing(), &world.live);
            let applied = field_set(world.typing(), &value);
            prop_assert_eq!(fields.clone().leaves().difference(&applied), FieldSet::new());
        }
    }

    /// With other managers, too, an apply of nothing removes the applier's fields that no other
    /// manager owns, including their content. Fields of other managers stay, unless they are in a
    /// value that only the applier owned.
    #[test]
    fn an_applier_removes_fields_that_no_other_manager_owns((root, steps) in histories(), writer in 0..3usize) {
        let mut world = World::new(&root);
        // An empty list has no owner, so a field that contains only such lists belongs to no other
        // manager.
        for step in steps.into_iter().filter(|(_, value, ..)| !has_empty(value)) {
            let _ = world.step(step);
        }
        let me = Identity::new(["x", "y", "z"][writer], Operation::Apply, "v1", "");
        let mine = world.managers.get(&me).map(|owned| owned.fields().clone()).unwrap_or_default();
        let mut others = FieldSet::new();
        for (_, owned) in world.managers.iter().filter(|(writer, _)| **writer != me) {
            others = others.union(owned.fields().clone());
        }
        let before = compare(world.typing(), &Value::object(), &world.live).added;
        world.step((writer, Value::object(), false, false)).expect("no other manager conflicts");
        let after = compare(world.typing(), &Value::object(), &world.live).added;
        let mut of_others = Vec::new();
        others.for_each(|path| of_others.push(path.to_vec()));
        mine.clone().leaves().for_each(|path| {
            // An item in which somebody owns a field keeps its key.
            let is_key = path.last() == Some(&PathElement::field("k"));
            let prefix = if is_key { &path[..path.len() - 1] } else { path };
            if !of_others.iter().any(|other| other.starts_with(prefix)) {
                assert!(!after.has(path), "{path:?} is left in {:?}", world.live);
            }
        });
        for path in of_others.iter().filter(|path| before.has(path)) {
            let mut above = (1..path.len()).map(|end| &path[..end]);
            if !above.any(|above| mine.has(above) && !others.has(above)) {
                assert!(after.has(path), "{path:?} is gone from {:?}", world.live);
            }
        }
    }

    /// Removing fields leaves none of them.
    #[test]
    fn removed_fields_are_absent((root, steps) in histories()) {
        let world = World::new(&root);
        let ty = world.typing();
        let values: Vec<Value> = steps.into_iter().map(|(_, value, ..)| value).collect();
        for pair in values.windows(2) {
            let (mut object, fields) = (pair[0].clone(), field_set(ty, &pair[1]));
            remove(ty, &mut object, &fields);
            let left = field_set(ty, &object).leaves().intersection(&fields.leaves());
            prop_assert_eq!(left, FieldSet::new());
        }
    }
}
