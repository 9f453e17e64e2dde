//! The operations of writes, as admission and metrics name them.

/// The operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates an object.
    Create,
    /// Updates an object, also by a patch.
    Update,
    /// Deletes an object, also each object of a collection.
    Delete,
    /// Opens a connection, for instance `exec` into a pod.
    Connect,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// The operation's name in rules and reviews.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}
