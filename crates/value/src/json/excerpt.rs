//! Decodes some members of an object and skips the others.

use super::{Reader, text};
use crate::token::{Kind, Tokens};
use crate::{Error, Map, Str, Value};

/// Decodes only the members at `paths` of the object in `json`. Where a path expects an object and
/// finds another value, that value is included. Nothing is read after the last member that is
/// needed. [`check`](super::check) must have accepted `json`: what is skipped is not checked.
pub fn excerpt(json: &[u8], paths: &[&[&str]]) -> Result<Value, Error> {
    Reader::of_valid(&text(json)).excerpt(paths, true)
}

impl Reader<'_> {
    /// Reads the next value; of an object only the members at `paths`, as [`excerpt`] does. If
    /// `is_last`, the reader may stop within the value, and cannot be used afterwards.
    pub fn excerpt(&mut self, paths: &[&[&str]], is_last: bool) -> Result<Value, Error> {
        let is_wanted_whole = paths.iter().any(|path| path.is_empty());
        if is_wanted_whole || !self.is_at_object()? {
            return self.tree();
        }
        self.value()?;
        let mut object = Map::new();
        let mut below: Vec<&[&str]> = Vec::with_capacity(paths.len());
        let mut to_find = paths.len();
        while to_find > 0 {
            let Some(name) = self.key()? else { return Ok(object.into()) };
            below.clear();
            let on_path = |path: &&&[&str]| path.first() == Some(&name);
            below.extend(paths.iter().filter(on_path).map(|path| &path[1..]));
            if below.is_empty() {
                self.skip()?;
                continue;
            }
            let name = Str::from(name);
            to_find = to_find.saturating_sub(below.len()); // a name may occur twice
            object.insert(name, self.excerpt(&below, is_last && to_find == 0)?);
        }
        if !is_last {
            self.skip_rest(Kind::Object)?;
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_the_members_at_the_paths() {
        let json = r#"{"a":{"b":{"c":[1,2],"x":1},"d":"x"},"b":1,"e":{"f":null}}"#;
        for (paths, expected) in [
            (&[&["a", "b", "c"][..], &["b"]][..], r#"{"a":{"b":{"c":[1,2]}},"b":1}"#),
            (&[&["a", "d"], &["a"]], r#"{"a":{"b":{"c":[1,2],"x":1},"d":"x"}}"#),
            (&[&["e", "f", "g"], &["b", "c"], &["z"]], r#"{"b":1,"e":{"f":null}}"#),
            (&[], "{}"),
        ] {
            let found = excerpt(json.as_bytes(), paths).expect("it is JSON");
            assert_eq!(crate::json::to_string(&found), expected, "{paths:?}");
        }
        for cut in [r#"{"a":wrong}"#, r#"{"a""#, r#"{"a":"#, r#"{"a":{"b":1"#] {
            assert!(excerpt(cut.as_bytes(), &[&["a"]]).is_err(), "{cut}");
        }
        let spaced = br#" {"a" : {"b" : 1}, "\u0063" : 2} "#;
        let found = excerpt(spaced, &[&["a"], &["c"]]).expect("it is JSON");
        assert_eq!(crate::json::to_string(&found), r#"{"a":{"b":1},"c":2}"#);
        let twice = br#"{"a":{"b":1,"c":2},"a":{"b":3,"c":4},"d":5}"#;
        assert!(excerpt(twice, &[&["a", "b"], &["a", "c"], &["d"]]).is_ok());
    }
}
