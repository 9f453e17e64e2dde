//! Go sources as far as API types need them: structs with their tags and markers, `+enum` types
//! with their values, string constants. It reads line by line, because gofmt formats upstream's
//! files.

use std::collections::BTreeSet;

use crate::generate::sources::{Member, Package};

/// Adds the declarations of one file of a package.
pub(crate) fn read(text: &str, package: &mut Package) {
    let mut reader = Reader { package, markers: Vec::new(), current: None };
    for line in text.lines() {
        reader.line(line.trim());
    }
}

struct Reader<'a> {
    package: &'a mut Package,
    /// The markers of the current comment.
    markers: Vec<String>,
    /// The current struct.
    current: Option<(String, Vec<Member>)>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str) {
        if let Some(comment) = line.strip_prefix("//") {
            if let Some(marker) = comment.trim_start().strip_prefix('+') {
                self.markers.push(marker.trim().to_owned());
            }
            return;
        }
        if line.is_empty() {
            // An empty line can separate a marker from its type: upstream's own generators, too,
            // use the comment before the last one.
            return;
        }
        let markers = std::mem::take(&mut self.markers);
        if let Some((_, members)) = &mut self.current {
            if line == "}" {
                if let Some((name, members)) = self.current.take() {
                    self.package.structs.insert(name, members);
                }
            } else if let Some(member) = member(line, markers) {
                members.push(member);
            }
            return;
        }
        let line = line.strip_prefix("const ").unwrap_or(line);
        if let Some(declared) = line.strip_prefix("type ") {
            self.declaration(declared, &markers);
        } else if let Some((name, kind, value)) = constant(line) {
            self.package.constants.insert(name.to_owned(), value.to_owned());
            if let Some(kind) = kind {
                self.package.typed.push((kind.to_owned(), value.to_owned()));
            }
        }
    }

    fn declaration(&mut self, declared: &str, markers: &[String]) {
        let Some((name, kind)) = declared.split_once(' ') else { return };
        match kind {
            "struct {" => self.current = Some((name.to_owned(), Vec::new())),
            "struct{}" | "struct {}" => {
                self.package.structs.insert(name.to_owned(), Vec::new());
            }
            "string" if markers.iter().any(|m| m == "enum" || m.starts_with("k8s:enum")) => {
                self.package.enums.entry(name.to_owned()).or_default();
            }
            _ => {}
        }
    }
}

/// Parses `Name Type = "value"`: the constant, its type if it has one, and its value.
fn constant(line: &str) -> Option<(&str, Option<&str>, &str)> {
    let (left, right) = line.split_once('=')?;
    let mut words = left.split_whitespace();
    let name = words.next().filter(|n| n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))?;
    let kind = words.next();
    // `Type("value")` is a typed constant too.
    let right = right.trim();
    let (cast, value) = match right.strip_prefix('"') {
        Some(value) => (None, value),
        None => {
            let (cast, rest) = right.split_once("(\"")?;
            (Some(cast), rest)
        }
    };
    Some((name, kind.or(cast), &value[..value.find('"')?]))
}

/// Parses a struct's line with a JSON tag; `None` for other lines.
fn member(line: &str, markers: Vec<String>) -> Option<Member> {
    let (left, rest) = line.split_once('`')?;
    let tags = &rest[..rest.find('`')?];
    let json = tag_value(tags, "json")?;
    let mut options = json.split(',');
    let json_name = options.next()?;
    let options: Vec<&str> = options.collect();
    let words: Vec<&str> = left.split_whitespace().collect();
    let go = words.last()?;
    let embedded = words.len() == 1;
    let inline = options.contains(&"inline") || (embedded && json_name.is_empty());
    let bare = go.trim_start_matches('*').rsplit('.').next().unwrap_or(go);
    let mut tags_of_member = markers;
    for key in ["patchStrategy", "patchMergeKey"] {
        if let Some(value) = tag_value(tags, key) {
            let marker = format!("{key}={value}");
            if !tags_of_member.contains(&marker) {
                tags_of_member.push(marker);
            }
        }
    }
    Some(Member {
        name: if inline { bare.to_owned() } else { json_name.to_owned() },
        go: (*go).to_owned(),
        omit_empty: options.contains(&"omitempty"),
        omit_zero: options.contains(&"omitzero"),
        inline,
        tags: tags_of_member,
    })
}

/// The value of `key:"value"` in a struct tag.
fn tag_value<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let at = tags.match_indices(key).find(|(i, _)| {
        tags[i + key.len()..].starts_with(":\"") && (*i == 0 || tags[..*i].ends_with(' '))
    })?;
    let value = &tags[at.0 + key.len() + 2..];
    Some(&value[..value.find('"')?])
}

/// Finishes a package: gives each `+enum` type its values, and keeps only the constants that some
/// default refers to; a package has thousands.
pub(crate) fn finish(package: &mut Package) {
    for (kind, value) in std::mem::take(&mut package.typed) {
        if let Some(values) = package.enums.get_mut(&kind) {
            values.push(value);
        }
    }
    for values in package.enums.values_mut() {
        values.sort();
        values.dedup();
    }
    let referenced: BTreeSet<&str> = package
        .structs
        .values()
        .flatten()
        .filter_map(|m| m.tag("default")?.strip_prefix("ref(")?.strip_suffix(')'))
        .collect();
    package.constants.retain(|name, _| referenced.contains(name.as_str()));
}
