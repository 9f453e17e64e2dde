//! The values of an evaluation's variables.

use std::sync::Arc;

use pintle_value::Value;

use crate::authorizer::{Authorizer, ResourceCheck, UserAuthorizer};
use crate::value::{Opaque, Val};

/// The values of variables, in the order of their declaration.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'a> {
    values: Vec<Option<Bound<'a>>>,
}

/// The value of a variable.
#[derive(Clone, Debug)]
pub(crate) enum Bound<'a> {
    /// A tree that is read according to its declaration.
    Tree(&'a Value),
    Value(Val<'static>),
}

impl<'a> Bindings<'a> {
    /// No values.
    pub const fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// Adds the value of the next variable. An optional variable can have none.
    #[must_use]
    pub fn with(mut self, value: impl Into<Option<&'a Value>>) -> Self {
        self.values.push(value.into().map(Bound::Tree));
        self
    }

    /// Adds the values of the next two variables, `Declaration::AUTHORIZER` for the user of the
    /// evaluation, and `Declaration::RESOURCE_CHECK` for `resource`.
    #[must_use]
    pub fn with_authorizer(
        mut self,
        authorizer: &Arc<dyn Authorizer>,
        resource: ResourceCheck,
    ) -> Self {
        let asker = UserAuthorizer { authorizer: Arc::clone(authorizer), account: None };
        let check = Opaque::ResourceCheck(asker.clone(), resource);
        for opaque in [Opaque::Authorizer(asker), check] {
            self.values.push(Some(Bound::Value(Val::Opaque(Arc::new(opaque)))));
        }
        self
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Bound<'a>> {
        self.values.get(index)?.as_ref()
    }
}
