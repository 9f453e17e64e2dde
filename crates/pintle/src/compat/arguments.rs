//! Parses command lines as Go programs do: `--name=value`, `--name value`, `-name value`, `--name`.

/// A flag; the value of a switch is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

/// Parses a command line; other arguments are ignored.
pub(crate) fn flags(arguments: impl IntoIterator<Item = String>) -> Vec<Flag> {
    let mut flags: Vec<Flag> = Vec::new();
    let mut open = false; // the last flag may take the next argument as its value
    for argument in arguments {
        let Some(flag) =
            argument.strip_prefix('-').map(|rest| rest.strip_prefix('-').unwrap_or(rest))
        else {
            if let Some(last) = flags.last_mut().filter(|_| open) {
                last.value = Some(argument);
            }
            open = false;
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        open = value.is_none();
        flags.push(Flag { name: name.to_owned(), value });
    }
    flags
}

/// The last value of a flag.
pub(crate) fn value<'f>(flags: &'f [Flag], name: &str) -> Option<&'f str> {
    flags.iter().rev().find(|flag| flag.name == name)?.value.as_deref()
}

/// Whether a switch is on.
pub(crate) fn is_on(flags: &[Flag], name: &str) -> bool {
    let last = flags.iter().rev().find(|flag| flag.name == name);
    last.is_some_and(|flag| !matches!(flag.value.as_deref(), Some("false" | "0" | "f")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[(&str, Option<&str>)]) {
        let found = flags(line.split_whitespace().map(str::to_owned));
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.value.as_deref())).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn flags_are_read_as_go_reads_them() {
        check("--a=b", &[("a", Some("b"))]);
        check("--a b", &[("a", Some("b"))]);
        check("-a b c", &[("a", Some("b"))]);
        check("-a=b=c", &[("a", Some("b=c"))]);
        check("--a --b", &[("a", None), ("b", None)]);
        check("--a= --a x --c", &[("a", Some("")), ("a", Some("x")), ("c", None)]);
        check("stray --a=b stray", &[("a", Some("b"))]);
        check("", &[]);
    }

    #[test]
    fn the_last_value_wins() {
        let line = flags(["--a=1", "--on", "--a=2", "--off=false"].map(str::to_owned));
        assert_eq!(value(&line, "a"), Some("2"));
        assert_eq!(value(&line, "b"), None);
        assert!(is_on(&line, "on") && !is_on(&line, "off") && !is_on(&line, "missing"));
    }
}
