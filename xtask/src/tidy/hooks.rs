//! Admission plugins: `hooks` names exactly the hooks that a plugin implements. A hook that it does
//! not name would never be called.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::code::without_comments_and_literals;

const IMPL: &str = "impl Admission for ";

/// Has hooks of every kind, those of its members.
const WRAPPERS: [&str; 2] = ["Chain", "Measured"];

/// Returns the plugins whose `hooks` is not what they implement.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let mut offences = Vec::new();
    for path in super::files(root, "rs")? {
        let text = fs::read_to_string(root.join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let found = offending(&without_comments_and_literals(&text));
        offences.extend(found.into_iter().map(|why| format!("{}: {why}", path.display())));
    }
    Ok(offences)
}

/// The offences in a file's code.
fn offending(code: &str) -> Vec<String> {
    let mut offences = Vec::new();
    for block in code.split(&format!("\n{IMPL}")).skip(1) {
        let block = block.split("\n}\n").next().unwrap_or_default();
        let plugin = block.split(' ').next().unwrap_or_default();
        if WRAPPERS.contains(&plugin) {
            continue;
        }
        let functions = block.split("\n    fn ").skip(1);
        let functions = functions.map(|f| f.split(['(', '<']).next().unwrap_or_default());
        let implemented: BTreeSet<String> =
            functions.filter(|name| *name != "hooks").map(hook).collect();
        let named = block.split("Hook::").skip(1);
        let named = named.map(|hook| hook.split(|c: char| !c.is_alphanumeric()).next());
        let named: BTreeSet<String> = named.flatten().map(str::to_owned).collect();
        if named != implemented {
            offences.push(format!("{plugin} names the hooks {named:?} and has {implemented:?}"));
        }
    }
    offences
}

/// The name of the hook that a function implements: `BeforeCommit` for `before_commit`.
fn hook(function: &str) -> String {
    let capital = |word: &str| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_uppercase() + rest,
        None => String::new(),
    };
    function.split('_').map(capital).collect()
}

#[cfg(test)]
mod tests {
    use super::offending;

    #[test]
    fn a_hook_that_is_implemented_and_not_named_is_an_offence() {
        let plugin = "
impl Admission for Plugin {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self) {}
}
";
        assert_eq!(offending(plugin), Vec::<String>::new());
        let more = plugin
            .replace("    fn validate(", "    fn before_commit<'a>(&self) {}\n\n    fn validate(");
        assert_eq!(
            offending(&more),
            [r#"Plugin names the hooks {"Validate"} and has {"BeforeCommit", "Validate"}"#]
        );
    }
}
