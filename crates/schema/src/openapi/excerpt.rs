//! Excerpts of other servers' OpenAPI 2.0 documents, and their merge into this server's document.

use std::collections::{BTreeMap, BTreeSet};

use pintle_value::{Map, Value, json};

/// Paths of another server's document, with the definitions and parameters that they refer to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Excerpt {
    paths: Map,
    parts: Parts,
}

/// Parts by their location in a document: `definitions/NAME`, `parameters/NAME`.
type Parts = BTreeMap<String, Value>;

const REFERENCE: &str = "$ref";
const KINDS: [&str; 2] = ["definitions", "parameters"];

impl Excerpt {
    /// The paths of a document with this prefix; `None` if there are none.
    pub fn of(document: &Value, prefix: &str) -> Option<Self> {
        let mut paths = document.get("paths")?.as_object()?.clone();
        paths.retain(|path, _| path.starts_with(prefix));
        let mut due = BTreeSet::new();
        paths.values().for_each(|path| gather(path, &mut due));
        let mut parts = Parts::new();
        while let Some(pointer) = due.pop_first() {
            let Some((kind, name)) = pointer.split_once('/') else { continue };
            let Some(part) = KINDS.contains(&kind).then(|| document.at(&[kind, name])).flatten()
            else {
                continue;
            };
            let mut further = BTreeSet::new();
            gather(part, &mut further);
            parts.insert(pointer, part.clone());
            due.extend(further.into_iter().filter(|pointer| !parts.contains_key(pointer)));
        }
        (!paths.is_empty()).then_some(Self { paths, parts })
    }

    /// The excerpt as a document of its own.
    pub fn document(&self) -> Vec<u8> {
        let mut document = Map::new();
        document.insert("swagger", "2.0");
        document.insert("paths", self.paths.clone());
        for kind in KINDS {
            let named = parts_of(&self.parts, kind).map(|(name, part)| (name.into(), part.clone()));
            document.insert(kind, Map::from_sorted(named.collect()));
        }
        json::to_string(&document.into()).into_bytes()
    }
}

/// The content that excerpts add to a document.
#[derive(Default)]
pub(super) struct Addition {
    pub(super) paths: BTreeMap<String, Value>,
    parts: Parts,
}

impl Addition {
    /// Merges excerpts. A part that exists with the same name and content is not added again. A
    /// part whose name exists is renamed if its content differs, or if it refers to a renamed part
    /// (as upstream's merge does).
    pub(super) fn of<'a>(
        excerpts: impl IntoIterator<Item = &'a Excerpt>,
        own: impl Fn(&str) -> Option<Value>,
    ) -> Self {
        let mut addition = Self::default();
        for excerpt in excerpts {
            let known =
                |pointer: &str| addition.parts.get(pointer).cloned().or_else(|| own(pointer));
            let names = new_names(&excerpt.parts, known);
            for (pointer, part) in &excerpt.parts {
                let mut part = part.clone();
                rename(&mut part, &names);
                match names.get(pointer) {
                    Some(name) => {
                        addition.parts.insert(name.clone(), part);
                    }
                    None if own(pointer).is_none() => {
                        addition.parts.insert(pointer.clone(), part);
                    }
                    None => {} // the document has it
                }
            }
            for (path, item) in excerpt.paths.iter() {
                let mut item = item.clone();
                rename(&mut item, &names);
                addition.paths.entry(path.to_string()).or_insert(item);
            }
        }
        addition
    }

    /// The added parts of a kind, by name.
    pub(super) fn parts(&self, kind: &str) -> impl Iterator<Item = (&str, &Value)> {
        parts_of(&self.parts, kind)
    }
}

fn parts_of<'p>(parts: &'p Parts, kind: &str) -> impl Iterator<Item = (&'p str, &'p Value)> {
    parts.iter().filter_map(move |(pointer, part)| {
        let (of, name) = pointer.split_once('/')?;
        (of == kind).then_some((name, part))
    })
}

/// The pointers of the parts that must be renamed, with their new pointers.
fn new_names(parts: &Parts, known: impl Fn(&str) -> Option<Value>) -> BTreeMap<String, String> {
    let taken: BTreeMap<&str, Value> =
        parts.keys().filter_map(|pointer| Some((pointer.as_str(), known(pointer)?))).collect();
    let mut moved: BTreeSet<&str> = BTreeSet::new();
    loop {
        let moves = |(pointer, part): &(&str, &Value)| {
            let mut referred = BTreeSet::new();
            gather(part, &mut referred);
            !moved.contains(pointer)
                && taken.get(pointer).is_some_and(|other| {
                    other != *part || referred.iter().any(|to| moved.contains(to.as_str()))
                })
        };
        let more = parts.iter().map(|(pointer, part)| (pointer.as_str(), part)).filter(moves);
        let more: Vec<&str> = more.map(|(pointer, _)| pointer).collect();
        if more.is_empty() {
            break;
        }
        moved.extend(more);
    }
    let free = |pointer: &str| {
        let mut names = (2_u32..).map(|number| format!("{pointer}_v{number}"));
        names.find(|name| !parts.contains_key(name) && known(name).is_none()).unwrap_or_default()
    };
    moved.into_iter().map(|pointer| (pointer.to_owned(), free(pointer))).collect()
}

/// Collects the pointers (`definitions/NAME`) that a value refers to.
fn gather(value: &Value, pointers: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter() {
                let pointer = member.as_str().filter(|_| &**key == REFERENCE);
                match pointer.and_then(|pointer| pointer.strip_prefix("#/")) {
                    Some(pointer) => {
                        pointers.insert(pointer.to_owned());
                    }
                    None => gather(member, pointers),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, pointers)),
        _ => {}
    }
}

/// Updates the references of a value to renamed parts.
fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    if names.is_empty() {
        return;
    }
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                let pointer = member.as_str().filter(|_| &**key == REFERENCE);
                match pointer.and_then(|pointer| names.get(pointer.strip_prefix("#/")?)) {
                    Some(name) => *member = format!("#/{name}").into(),
                    None => rename(member, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    const DOCUMENT: &str = r##"{"paths":{
        "/apis/a.io/v1/things":{"get":{"parameters":[{"$ref":"#/parameters/p"}],"schema":{"$ref":"#/definitions/Thing"}}},
        "/apis/b.io/v1/others":{"get":{"schema":{"$ref":"#/definitions/Other"}}}},
        "definitions":{"Meta":{"type":"object"},"Other":{},"Thing":{"meta":{"$ref":"#/definitions/Meta"}}},
        "parameters":{"p":{"name":"p"},"q":{}}}"##;

    /// Checks what the excerpt adds to a document with the parts `own`: the pointers, and the
    /// schema of the path.
    fn check(own: &[(&str, &str)], expected: &[&str], schema: &str) {
        let excerpt = Excerpt::of(&tree(DOCUMENT), "/apis/a.io/v1/").unwrap();
        let own = |pointer: &str| Some(tree(own.iter().find(|(known, _)| *known == pointer)?.1));
        let addition = Addition::of([&excerpt], own);
        let pointers: Vec<&str> = addition.parts.keys().map(String::as_str).collect();
        assert_eq!(pointers, expected);
        let item = &addition.paths["/apis/a.io/v1/things"];
        assert_eq!(item.str_at(&["get", "schema", REFERENCE]), Some(schema));
        assert_eq!(addition.paths.len(), 1);
    }

    #[test]
    fn excerpts_include_referenced_parts() {
        let all = ["definitions/Meta", "definitions/Thing", "parameters/p"];
        check(&[], &all, "#/definitions/Thing");
        assert_eq!(Excerpt::of(&tree(DOCUMENT), "/apis/c.io/"), None);
    }

    #[test]
    fn differing_parts_are_renamed() {
        let same = ("definitions/Meta", r#"{"type":"object"}"#);
        let added = ["definitions/Thing", "parameters/p"];
        check(&[same, ("parameters/q", "{}")], &added, "#/definitions/Thing");
        let other = ("definitions/Meta", r#"{"type":"string"}"#);
        let added = ["definitions/Meta_v2", "definitions/Thing", "parameters/p"];
        check(&[other], &added, "#/definitions/Thing");
        // A part that refers to a renamed part is renamed, too.
        let thing = ("definitions/Thing", r##"{"meta":{"$ref":"#/definitions/Meta"}}"##);
        let added = ["definitions/Meta_v2", "definitions/Thing_v2", "parameters/p"];
        check(&[other, thing], &added, "#/definitions/Thing_v2");
        check(&[same, thing], &["parameters/p"], "#/definitions/Thing");
        let second = ("definitions/Meta_v2", "{}");
        let added = ["definitions/Meta_v3", "definitions/Thing", "parameters/p"];
        check(&[other, second], &added, "#/definitions/Thing");
    }
}
