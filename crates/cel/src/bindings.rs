//! The values of an evaluation's variables.

use std::sync::Arc;

use pintle_value::Value;

use crate::authorizer::{Asker, Authorizer, ResourceCheck};
use crate::value::{Opaque, Val};

/// The values of variables, in the order of their declaration.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'a> {
    values: Vec<Option<Bound<'a>>>,
}

/// The value of a variable.
#[derive(Clone, Debug)]
pub(crate) enum Bound<'a> {
    /// To be read by its declaration.
    Tree(&'a Value),
    Value(Val<'static>),
}

impl<'a> Bindings<'a> {
    /// No values yet.
    pub const fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// The next variable's value. A variable that is declared as optional may have none.
    #[must_use]
    pub fn with(mut self, value: impl Into<Option<&'a Value>>) -> Self {
        self.values.push(value.into().map(Bound::Tree));
        self
    }

    /// Who is asked by the next variable, [`Declaration::AUTHORIZER`], about whom the evaluation is about;
    /// and by the one after it, [`Declaration::RESOURCE_CHECK`], about `resource`.
    #[must_use]
    pub fn with_authorizer(
        mut self,
        authorizer: &Arc<dyn Authorizer>,
        resource: ResourceCheck,
    ) -> Self {
        let asker = Asker { authorizer: Arc::clone(authorizer), account: None };
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
