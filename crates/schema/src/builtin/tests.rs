use super::builtin;
use crate::table::{MapType, Presence, Rule, Scalar, Schema, Shape, TypeId};

fn in_range(schema: &Schema, id: TypeId) -> bool {
    (id.0 as usize) < schema.types().len()
}

#[test]
fn the_table_only_refers_to_its_own_types() {
    let schema = builtin();
    for ty in schema.types().iter() {
        match &ty.shape {
            Shape::Scalar(_) => {}
            Shape::Map { value: id, .. } | Shape::List { item: id, .. } => {
                assert!(in_range(schema, *id), "{}", ty.name);
            }
            Shape::Struct { fields, by_name, .. } => {
                assert_eq!(fields.len(), by_name.len(), "{}", ty.name);
                let mut names: Vec<&str> =
                    by_name.iter().map(|&i| fields[usize::from(i)].name.as_ref()).collect();
                assert!(names.is_sorted(), "{}: {names:?}", ty.name);
                names.dedup();
                assert_eq!(names.len(), fields.len(), "{}: a field twice", ty.name);
                for field in fields.iter() {
                    assert!(in_range(schema, field.ty), "{}.{}", ty.name, field.name);
                }
            }
        }
    }
    assert!(schema.names().is_sorted_by(|(a, _), (b, _)| a < b));
    for (name, id) in schema.names().iter() {
        assert_eq!(schema.get(*id).name, *name);
        assert_eq!(schema.find(name), Some(*id));
    }
}

#[test]
fn list_keys_are_members_of_the_items() {
    let schema = builtin();
    for ty in schema.types().iter() {
        let Shape::List { item, list_type: crate::ListType::Map(keys) } = &ty.shape else {
            continue;
        };
        for key in keys.iter() {
            assert!(schema.field(*item, key).is_some(), "{}: {key}", schema.get(*item).name);
        }
    }
}

#[test]
fn merge_keys_are_members_of_the_items() {
    let schema = builtin();
    for ty in schema.types().iter() {
        let Shape::Struct { fields, .. } = &ty.shape else { continue };
        for field in fields.iter().filter(|f| !f.patch.merge_key.is_empty()) {
            let Shape::List { item, .. } = schema.get(field.ty).shape else {
                panic!("{}.{} is no list", ty.name, field.name);
            };
            assert!(schema.field(item, &field.patch.merge_key).is_some(), "{}", field.name);
        }
    }
}

/// Checks a field of a type: the shape of its type, presence, tag.
#[track_caller]
fn check(ty: &str, field: &str, shape: &str, presence: Presence, tag: u32) {
    let schema = builtin();
    let id = schema.find(ty).unwrap_or_else(|| panic!("no type {ty}"));
    let f = schema.field(id, field).unwrap_or_else(|| panic!("no field {ty}.{field}"));
    let t = schema.get(f.ty);
    let representable = match &t.shape {
        Shape::Scalar(s) => format!("{s:?}"),
        Shape::Struct { map_type: MapType::Granular, .. } => format!("struct {}", t.name),
        Shape::Struct { map_type: MapType::Atomic, .. } => format!("atomic struct {}", t.name),
        Shape::Map { .. } => "map".to_owned(),
        Shape::List { list_type, .. } => format!("list {list_type:?}"),
    };
    assert_eq!((representable.as_str(), f.presence, f.tag), (shape, presence, tag), "{ty}.{field}");
}

#[test]
fn fields_match_upstream() {
    use Presence::{Always, Distinct, Null, OmitZero, Pointer};
    let core = |name| format!("io.k8s.api.core.v1.{name}");
    let meta = |name| format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
    check(&meta("ObjectMeta"), "creationTimestamp", "Time", OmitZero, 8);
    check(&meta("ObjectMeta"), "deletionTimestamp", "Time", Pointer, 9);
    check(&core("PodSpec"), "containers", "list Map([\"name\"])", Always, 2);
    check(&core("Container"), "ports", "list Map([\"containerPort\", \"protocol\"])", OmitZero, 6);
    check(&core("Event"), "firstTimestamp", "Time", Always, 6);
    check(&core("Event"), "eventTime", "MicroTime", Always, 10);
    check(&core("TypedLocalObjectReference"), "apiGroup", "String", Null, 1);
    check("io.k8s.api.apps.v1.DeploymentSpec", "replicas", "Int32", Pointer, 1);
    check(
        "io.k8s.api.apps.v1.DeploymentSpec",
        "selector",
        "atomic struct io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
        Null,
        2,
    );
    check(
        &core("PersistentVolumeSpec"),
        "claimRef",
        "struct io.k8s.api.core.v1.ObjectReference",
        Pointer,
        4,
    );
    check(&core("Secret"), "data", "map", Distinct, 2);
    check(&meta("TableRow"), "cells", "list Atomic", Always, 0);
    check(&meta("ManagedFieldsEntry"), "fieldsV1", "Fields", Pointer, 7);
}

#[test]
fn embedded_structs_are_inline_in_json_and_messages_in_protobuf() {
    let schema = builtin();
    let row = |ty: &str, field: &str| {
        let f = schema.field(schema.find(ty).expect("the type"), field).expect("the field");
        (f.inside.to_vec(), f.tag)
    };
    assert_eq!(row("io.k8s.api.core.v1.Volume", "emptyDir"), (vec![2], 2));
    assert_eq!(row("io.k8s.api.core.v1.Probe", "exec"), (vec![1], 1));
    let rules = "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations";
    assert_eq!(row(rules, "apiGroups"), (vec![2, 2], 1));
    assert_eq!(row(rules, "operations"), (vec![2], 1));
    assert_eq!(row(rules, "resourceNames"), (vec![], 1));
}

#[test]
fn only_marked_types_are_enums() {
    let schema = builtin();
    let has_enum = |ty: &str, field: &str| {
        let f = schema.field(schema.find(ty).expect("the type"), field).expect("the field");
        f.rules.iter().any(|r| matches!(r, Rule::Enum(_)))
    };
    assert!(has_enum("io.k8s.api.core.v1.ContainerPort", "protocol"));
    assert!(has_enum("io.k8s.api.core.v1.PodSpec", "restartPolicy"));
    assert!(!has_enum("io.k8s.api.core.v1.Secret", "type"));
    assert!(!has_enum("io.k8s.api.core.v1.PodCondition", "type"));
    assert!(!has_enum("io.k8s.api.core.v1.ResourceQuotaSpec", "hard"));
}

#[test]
fn recursion_is_a_reference() {
    let schema = builtin();
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let id = schema.find(name).expect("the type");
    assert_eq!(schema.field(id, "not").map(|f| f.ty), Some(id));
    let items = schema.field(id, "items").expect("items");
    assert!(matches!(schema.get(items.ty).shape, Shape::Scalar(Scalar::Any)));
}
