//! Static tokens from a file (`--token-auth-file`).

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Error, User};

/// Static tokens and their users. They never expire and change only with a restart.
#[derive(Debug, Default)]
pub struct TokenList(HashMap<String, Arc<User>>);

impl TokenList {
    /// Reads lines of `token,user,uid,"group1,group2"`, as CSV; the groups may be left out.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut users = HashMap::new();
        for (at, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() {
                continue;
            }
            let wrong = |why: &str| Err(Error::TokenFile(format!("line {}: {why}", at + 1)));
            let Some(fields) = fields(line) else {
                return wrong("a quoted field is not closed");
            };
            let [token, name, uid, more @ ..] = fields.as_slice() else {
                return wrong(&format!(
                    "the token file must have at least 3 columns (token, user name, user uid), found {}",
                    fields.len()
                ));
            };
            if token.is_empty() {
                tracing::warn!(
                    line = at + 1,
                    "the token file has a line without a token, which is ignored"
                );
                continue;
            }
            let groups = more.first().map(|groups| groups.split(',').map(str::to_owned).collect());
            let user = User {
                name: name.clone(),
                uid: uid.clone(),
                groups: groups.unwrap_or_default(),
                extra: Vec::new(),
            };
            users.insert(token.clone(), Arc::new(user.authenticated()));
        }
        Ok(Self(users))
    }

    /// The user of a token, if it is in the list.
    pub fn user(&self, token: &str) -> Option<&Arc<User>> {
        self.0.get(token)
    }
}

/// Splits a line of CSV into fields. A quoted field may contain commas, and `""` in it is a quote.
/// Returns `None` if a quote is not closed.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    (!quoted).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, token: &str, expected: Option<(&str, &str, &[&str])>) {
        let list = TokenList::parse(text).unwrap();
        let found = list.user(token).map(|user| {
            let groups: Vec<_> = user.groups.iter().map(String::as_str).collect();
            (user.name.as_str(), user.uid.as_str(), groups)
        });
        assert_eq!(
            found,
            expected.map(|(name, uid, groups)| (name, uid, groups.to_vec())),
            "{text}"
        );
    }

    #[test]
    fn tokens_of_the_file_have_users_and_groups() {
        // AUTHN-02
        let all = "system:authenticated";
        check("t,jane,1", "t", Some(("jane", "1", &[all])));
        check("t,jane,1,dev", "t", Some(("jane", "1", &["dev", all])));
        check("t,jane,1,\"dev,ops\"\nu,joe,2", "t", Some(("jane", "1", &["dev", "ops", all])));
        check("t,jane,1,\"dev,ops\"\nu,joe,2", "u", Some(("joe", "2", &[all])));
        check("t,jane,1", "x", None);
        check(",jane,1", "", None);
    }

    #[test]
    fn malformed_lines_are_errors_with_their_number() {
        for (text, expected) in [
            (
                "t,jane,1\n\nt,jane",
                "line 3: the token file must have at least 3 columns (token, user name, user uid), found 2",
            ),
            ("t,jane,1,\"dev\nu,joe,2", "line 1: a quoted field is not closed"),
        ] {
            let error = TokenList::parse(text).unwrap_err().to_string();
            assert_eq!(error, expected);
        }
    }
}
