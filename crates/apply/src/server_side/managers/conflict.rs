//! The conflicts of an apply, with upstream's messages, which clients parse (SSA-11, SSAI-07).

use std::fmt;

use pintle_meta::field::ERRORS_MAX;
use pintle_meta::quote::quote;
use pintle_meta::status::Cause;

use crate::Error;

use super::{FieldSet, Identity, Operation};
use crate::server_side::fieldset::{PathElement, show};

/// The maximum number of conflicts that an error names. Upstream names all, but a request of 3 MiB
/// may have a hundred thousand.
const SHOWN_MAX: usize = ERRORS_MAX;

/// The fields that an apply would change and other managers own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conflicts {
    /// The conflicting fields of each owner, in the order of the owners.
    pub(super) owners: Vec<(Identity, FieldSet)>,
}

impl Conflicts {
    /// The conflicts about fields that are not in the set.
    pub(crate) fn without(self, fields: &FieldSet) -> Self {
        let rest =
            self.owners.into_iter().map(|(identity, own)| (identity, own.difference(fields)));
        Self { owners: rest.filter(|(_, own)| !own.is_empty()).collect() }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    fn for_each(&self, mut each: impl FnMut(&Identity, &[PathElement])) {
        for (identity, fields) in &self.owners {
            fields.for_each(|path| each(identity, path));
        }
    }

    /// The error with a cause for each of the first [`SHOWN_MAX`] fields. The owners come in
    /// upstream's order: that of their identities as texts.
    pub(crate) fn into_error(mut self) -> Error {
        self.owners.sort_by_cached_key(|(identity, _)| identity.text());
        let mut causes = Vec::new();
        self.for_each(|identity, path| {
            if causes.len() < SHOWN_MAX {
                causes.push(Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: format!("conflict with {identity}"),
                    field: show(path),
                });
            }
        });
        Error::Conflict { message: self.to_string(), causes }
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.owners.iter().map(|(_, fields)| fields.len()).sum();
        if count == 1 {
            f.write_str("Apply failed with 1 conflict: ")?;
        } else {
            write!(f, "Apply failed with {count} conflicts: ")?;
        }
        let mut room = SHOWN_MAX;
        for (at, (identity, fields)) in self.owners.iter().enumerate() {
            let mut paths = Vec::new();
            fields.for_each(|path| {
                if paths.len() < room {
                    paths.push(show(path));
                }
            });
            room -= paths.len();
            match &paths[..] {
                [] => break,
                [path] if count == 1 => write!(f, "conflict with {identity}: {path}")?,
                paths => {
                    let line = if at == 0 { "" } else { "\n" };
                    write!(f, "{line}conflicts with {identity}:\n- {}", paths.join("\n- "))?;
                }
            }
        }
        if count > SHOWN_MAX {
            write!(f, "\nand {} more", count - SHOWN_MAX)?;
        }
        Ok(())
    }
}

impl Identity {
    /// The identity as upstream encodes it.
    fn text(&self) -> String {
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let members = [
            ("manager", self.manager.as_str()),
            ("operation", operation),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ];
        let given = members.into_iter().filter(|(_, text)| !text.is_empty());
        let given: Vec<_> = given.map(|(name, text)| format!("{name:?}:{}", quote(text))).collect();
        format!("{{{}}}", given.join(","))
    }
}

/// Displays a manager as `"kubectl" with subresource "status" using v1`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", quote(&self.subresource))?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}
