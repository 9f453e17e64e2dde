//! Group, version, kind and resource, and their textual forms.

use std::fmt;

use pintle_value::Str;

macro_rules! coordinates {
    ($(#[$doc:meta])* $name:ident { $($part:ident),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name { $(pub $part: Str),+ }

        impl $name {
            /// Creates it from its parts.
            pub fn new($($part: impl Into<Str>),+) -> Self {
                Self { $($part: $part.into()),+ }
            }
        }
    };
}

coordinates!(
    /// A group and a version; the core group is `""`.
    GroupVersion { group, version }
);
coordinates!(
    /// A kind without a version.
    GroupKind { group, kind }
);
coordinates!(
    /// A resource without a version.
    GroupResource { group, resource }
);
coordinates!(
    /// A kind of a group version.
    GroupVersionKind { group, version, kind }
);
coordinates!(
    /// A resource of a group version, as a URL names it.
    GroupVersionResource { group, version, resource }
);

impl GroupVersion {
    /// Parses `v1` or `apps/v1`; `None` for more than one slash.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once('/') {
            None => Some(Self::new("", text)),
            Some((_, version)) if version.contains('/') => None,
            Some((group, version)) => Some(Self::new(group, version)),
        }
    }
}

impl GroupVersionKind {
    /// The kind's group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// The kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

impl GroupVersionResource {
    /// The resource's group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// The resource without its version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

/// Displays `apps/v1`, or `v1` for the core group: an object's `apiVersion`.
impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

/// Displays `deployments.apps`, or `pods` for the core group, as upstream's messages name a
/// resource.
impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(f, &self.resource, &self.group)
    }
}

/// Displays `Deployment.apps`, or `Pod` for the core group, as upstream's messages name a kind.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(f, &self.kind, &self.group)
    }
}

/// Displays `apps/v1, Kind=Deployment`, as Go prints a `schema.GroupVersionKind`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

fn dotted(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    f.write_str(name)?;
    if group.is_empty() { Ok(()) } else { write!(f, ".{group}") }
}
