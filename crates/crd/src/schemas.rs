//! The schemas of a definition's versions, read and compiled on first use.

use std::sync::{Arc, OnceLock};

use pintle_value::{Str, Value};

use crate::cel::Rules;
use crate::check::structural;
use crate::definition::Crd;
use crate::structural::Structural;

/// Returns the schema of a version from the stored definition (see [`crate::stored_schema`]). It is
/// called on first use, so that the schema of an unused definition takes no memory.
pub type Source = Arc<dyn Fn(&str) -> Option<Value> + Send + Sync>;

/// The schemas of a definition's versions, each read on first use.
pub(crate) struct Schemas {
    source: Source,
    /// Whether objects keep undeclared fields, as definitions of v1beta1 usually specify.
    keeps_unknown: bool,
    by_version: Vec<(Str, OnceLock<Arc<Structural>>)>,
    /// The compiled validation rules, in the same order.
    rules: Vec<OnceLock<Option<Arc<Rules>>>>,
}

impl Schemas {
    pub(crate) fn new(crd: Crd<'_>, source: Source) -> Self {
        let versions = crd.versions().map(|version| (version.name().into(), OnceLock::new()));
        let rules = crd.versions().map(|_| OnceLock::new()).collect();
        let keeps_unknown = crd.preserves_unknown();
        Self { source, keeps_unknown, by_version: versions.collect(), rules }
    }

    /// The schema by which objects are decoded: that of the version if it is structural. Objects of
    /// other schemas have no known structure, and keep all members.
    pub(crate) fn structure(&self, version: &str) -> Arc<Structural> {
        let is_unstructured = || {
            let schema = (self.source)(version);
            schema.is_some_and(|schema| !structural::is_structural(&schema))
        };
        // Only definitions that preserve unknown fields may have schemas that are not structural.
        if self.keeps_unknown && is_unstructured() {
            return Structural { preserve_unknown: true, ..Structural::default() }.into();
        }
        self.of(version)
    }

    /// The schema of a version; a version without one keeps all fields.
    pub(crate) fn of(&self, version: &str) -> Arc<Structural> {
        let read = || {
            let schema = (self.source)(version).map(|schema| Structural::read(&schema));
            let mut schema = schema
                .unwrap_or_else(|| Structural { preserve_unknown: true, ..Structural::default() });
            if self.keeps_unknown {
                schema.keep_unknown();
            }
            Arc::new(schema)
        };
        match self.by_version.iter().find(|(name, _)| name == version) {
            Some((_, schema)) => schema.get_or_init(read).clone(),
            None => read(),
        }
    }

    /// The validation rules of a version, if it has any.
    pub(crate) fn rules(&self, version: &str) -> Option<Arc<Rules>> {
        let at = self.by_version.iter().position(|(name, _)| name == version)?;
        let compile = || Rules::of(&self.of(version), true).map(Arc::new);
        self.rules.get(at)?.get_or_init(compile).clone()
    }

    /// Whether the schema of a version is not compiled yet, or has rules, which may run up to their
    /// budget.
    pub(crate) fn is_expensive(&self, version: &str) -> bool {
        let at = self.by_version.iter().position(|(name, _)| name == version);
        let rules = at.and_then(|at| self.rules.get(at)?.get());
        rules.is_none_or(Option::is_some)
    }

    /// Whether the definition has this version.
    pub(crate) fn has(&self, version: &str) -> bool {
        self.by_version.iter().any(|(name, _)| name == version)
    }
}

/// The type name of a version, as in upstream's OpenAPI: `com.example.stable.v1.CronTab`.
pub fn type_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').collect();
    parts.reverse();
    parts.extend([version, kind]);
    parts.join(".")
}

/// The members of a simple path such as `.spec.replicas`.
pub(crate) fn members(path: &str) -> Vec<Str> {
    path.strip_prefix('.').unwrap_or(path).split('.').map(Str::from).collect()
}
