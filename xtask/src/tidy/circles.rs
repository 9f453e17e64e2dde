//! Circles between the modules of a crate: no top-level module may depend on a module that depends
//! on it. [`KNOWN`] has the number of modules that break this rule today.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::code::{without_comments_and_literals, without_tests};

/// The crates that have circles, with the number of modules in them. A number may only fall: a
/// change that takes a module out of a circle lowers it.
const KNOWN: &[(&str, usize)] = &[("admission", 5), ("auth", 3), ("registry", 17), ("server", 7)];

/// The modules of a crate, each with the modules that it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Reports each crate whose number of modules in circles is not the one in [`KNOWN`].
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut offences = Vec::new();
    let crates = root.join("crates");
    for entry in fs::read_dir(&crates).with_context(|| crates.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let modules = in_circles(&graph(&entry.path().join("src"))?);
        let known = KNOWN.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
        if modules.len() != known {
            offences.push(format!(
                "crates/{name}: {} modules are in circles, KNOWN allows {known}: {}",
                modules.len(),
                modules.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
    }
    offences.sort();
    Ok(offences)
}

/// The dependencies between the top-level modules of a crate; its tests do not count.
fn graph(src: &Path) -> Result<Graph> {
    let crate_root = fs::read_to_string(src.join("lib.rs")).unwrap_or_default();
    let exports = exports(&without_comments_and_literals(&crate_root));
    let mut graph = Graph::new();
    for path in super::files(src, "rs")? {
        let mut steps = path.iter().filter_map(|step| step.to_str());
        let first = steps.next().unwrap_or_default();
        let module = first.trim_end_matches(".rs").to_owned();
        let is_test = path.iter().any(|step| step == "tests" || step == "tests.rs");
        if is_test || matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let text = fs::read_to_string(src.join(&path))?;
        let code = without_tests(&without_comments_and_literals(&text));
        let edges = graph.entry(module).or_default();
        for name in names(&code) {
            edges.insert(exports.get(name).cloned().unwrap_or_else(|| name.to_owned()));
        }
    }
    Ok(graph)
}

/// The names that the crate's root re-exports, each with the module that defines it.
fn exports(crate_root: &str) -> BTreeMap<String, String> {
    let statements = crate_root.split(';').filter_map(|statement| {
        let (_, path) = statement.trim().split_once("use ")?;
        path.split_once("::")
    });
    let mut exports = BTreeMap::new();
    for (module, rest) in statements {
        for word in words(rest) {
            exports.insert(word.to_owned(), module.trim().to_owned());
        }
    }
    exports
}

/// The first names of the paths that begin with `crate::`.
fn names(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for path in code.split("crate::").skip(1) {
        match path.strip_prefix('{') {
            None => names.extend(words(path).next()),
            Some(group) => {
                let mut depth = 0_i32;
                let mut begins = true;
                for (at, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => begins = true,
                        _ if begins && !c.is_whitespace() => {
                            names.extend(words(&group[at..]).next());
                            begins = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The modules that depend on themselves through other modules.
fn in_circles(graph: &Graph) -> BTreeSet<String> {
    let reaches_itself = |start: &String| {
        let mut seen = BTreeSet::new();
        let mut due = vec![start];
        while let Some(module) = due.pop() {
            for next in graph.get(module).into_iter().flatten().filter(|next| *next != module) {
                if next == start {
                    return true;
                }
                if seen.insert(next) {
                    due.push(next);
                }
            }
        }
        false
    };
    graph.keys().filter(|module| reaches_itself(module)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_paths_and_groups() {
        let code = "use crate::value::Val; use crate::{a::{B, C}, d, E}; f(crate::g::h());";
        assert_eq!(names(code), ["value", "a", "d", "E", "g"]);
        let exports = exports("mod a; pub use a::{One, Two}; pub(crate) use b::c::Three;");
        let expected = [("One", "a"), ("Two", "a"), ("Three", "b"), ("c", "b")];
        let expected = expected.map(|(name, module)| (name.to_owned(), module.to_owned()));
        assert_eq!(exports, expected.into());
    }

    #[test]
    fn circles_are_found_through_others() {
        let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "e")];
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(from.to_owned()).or_default().insert(to.to_owned());
        }
        let found: Vec<String> = in_circles(&graph).into_iter().collect();
        assert_eq!(found, ["a", "b", "c"]);
    }
}
