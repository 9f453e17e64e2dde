//! Admission plugins: `hooks` names exactly the hooks that a plugin implements. A hook that it does
//! not name would never be called.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::code::without_comments_and_literals;

const TRAIT: &str = "Admission for ";

/// Plugins that only call the hooks of other plugins.
const WRAPPERS: [&str; 2] = ["Chain", "Measured"];

/// Returns the plugins whose `hooks` differs from the hooks that they implement.
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
    let lines: Vec<&str> = code.lines().collect();
    let is_impl = |line: &str| line.trim_start().starts_with("impl") && line.contains(TRAIT);
    let begins = (0..lines.len()).filter(|at| is_impl(lines[*at]));
    begins.filter_map(|at| offence(&lines[at..])).collect()
}

/// The offence of the implementation that begins at the first line.
fn offence(lines: &[&str]) -> Option<String> {
    let (first, body) = lines.split_first()?;
    let plugin = first.split(TRAIT).nth(1)?.split([' ', '<']).next()?;
    if WRAPPERS.contains(&plugin) {
        return None;
    }
    let indent = &first[..first.len() - first.trim_start().len()];
    let end = format!("{indent}}}");
    let body: Vec<&str> = body.iter().copied().take_while(|line| *line != end).collect();
    let member = format!("{indent}    fn ");
    let name =
        |line: &&str| Some(line.strip_prefix(&*member)?.split(['(', '<']).next()?.to_owned());
    let functions = body.iter().filter_map(name);
    let implemented: BTreeSet<String> =
        functions.filter(|name| name != "hooks").map(|name| hook(&name)).collect();
    let of_hooks = body.iter().skip_while(|line| !line.starts_with(&format!("{member}hooks(")));
    let of_hooks: Vec<&str> =
        of_hooks.copied().take_while(|line| *line != format!("{indent}    }}")).collect();
    let of_hooks = of_hooks.join("\n");
    let named = of_hooks.split("Hook::").skip(1);
    let named = named.filter_map(|hook| hook.split(|c: char| !c.is_alphanumeric()).next());
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    let why = || format!("{plugin} names the hooks {named:?} and has {implemented:?}");
    (named != implemented).then(why)
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

    const PLUGIN: &str = "
impl Admission for Plugin {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self) {}
}
";

    #[test]
    fn a_plugin_names_the_hooks_that_it_has() {
        assert_eq!(offending(PLUGIN), Vec::<String>::new());
        let unnamed = r#"Plugin names the hooks {"Validate"} and has {"BeforeCommit", "Validate"}"#;
        let with =
            |more: &str| PLUGIN.replace("    fn validate", &format!("{more}    fn validate"));
        let more = with("    fn before_commit<'a>(&self) {}\n\n");
        let elsewhere =
            with("    fn before_commit(&self) {\n        Hook::BeforeCommit\n    }\n\n");
        let nested: String = more.lines().map(|line| format!("    {line}\n")).collect();
        let other = more.replace("impl Admission", "impl<'a> admission::Admission");
        for code in [more, elsewhere, nested, other] {
            assert_eq!(offending(&code), [unnamed], "{code}");
        }
        let missing = PLUGIN.replace("    fn validate(&self) {}\n", "");
        assert_eq!(offending(&missing), [r#"Plugin names the hooks {"Validate"} and has {}"#]);
    }
}
