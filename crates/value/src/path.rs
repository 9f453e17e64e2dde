//! Field paths such as `spec.containers[0].image`, in the notation of upstream's errors, warnings
//! and causes (`k8s.io/apimachinery/pkg/util/validation/field`).

use std::fmt;

use crate::Str;

/// A path from the root of an object. Cheap to extend while walking: see [`Path::push_field`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    text: String,
}

impl Path {
    /// The path of the object itself.
    pub const fn root() -> Self {
        Self { text: String::new() }
    }

    /// A path that begins with a member.
    pub fn new(name: &str) -> Self {
        Self { text: name.to_owned() }
    }

    /// This path extended by the member `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        let mut path = self.with_room(name.len() + 1);
        path.push_field(name);
        path
    }

    /// This path extended by a list index.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut path = self.with_room("[99999]".len());
        path.push_index(index);
        path
    }

    /// This path extended by a map key: `metadata.annotations[key]`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut path = self.with_room(key.len() + 2);
        path.push_key(key);
        path
    }

    /// A copy that can grow by `more` bytes without another allocation.
    fn with_room(&self, more: usize) -> Self {
        let mut text = String::with_capacity(self.text.len() + more);
        text.push_str(&self.text);
        Self { text }
    }

    /// Extends this path by a member; undo with [`Path::truncate`].
    pub fn push_field(&mut self, name: &str) {
        if !self.text.is_empty() {
            self.text.push('.');
        }
        self.text.push_str(name);
    }

    /// Extends this path by a list index; undo with [`Path::truncate`].
    pub fn push_index(&mut self, index: usize) {
        use fmt::Write;
        write!(self.text, "[{index}]").expect("writing to a String cannot fail");
    }

    /// Extends this path by a map key; undo with [`Path::truncate`].
    pub fn push_key(&mut self, key: &str) {
        self.text.push('[');
        self.text.push_str(key);
        self.text.push(']');
    }

    /// The length of the text, for a later [`Path::truncate`].
    pub const fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether this is the root.
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Shortens the path to `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.text.truncate(len);
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Path> for Str {
    fn from(path: Path) -> Self {
        path.text.into()
    }
}
