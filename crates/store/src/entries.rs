//! Entries of directories on disk: a new or renamed file survives a power failure only once the
//! directory that names it is synchronised, too.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Returns the directory that has the entry of a path.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path, // the root
    }
}

/// Synchronises the entry of a path. A process that may not read the directory did not create the
/// entry either.
pub fn sync_entry(path: &Path) -> io::Result<()> {
    match File::open(directory_of(path)) {
        Ok(directory) => directory.sync_all(),
        Err(why) if why.kind() == ErrorKind::PermissionDenied => Ok(()),
        Err(why) => Err(why),
    }
}

/// Creates a directory and its parents for this user only, because they will hold secrets. Existing
/// ones keep their permissions. The entries of new ones are synchronised.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    let is_missing = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
    let missing: Vec<_> = path.ancestors().take_while(is_missing).collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    missing.into_iter().try_for_each(sync_entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_a_directory() {
        for (path, directory) in
            [("/a/b", "/a"), ("a/b", "a"), ("a", "."), ("./a", "."), ("/a", "/"), ("/", "/")]
        {
            assert_eq!(directory_of(Path::new(path)), Path::new(directory), "{path}");
        }
    }

    #[test]
    fn directories_are_made_with_their_parents() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("a/b/c");
        for _ in 0..2 {
            make_private_directory(&path).expect("made");
            assert!(path.is_dir());
        }
        assert!(sync_entry(&path).is_ok());
        assert!(sync_entry(&root.path().join("d/e")).is_err(), "there is no directory d");
        std::fs::write(root.path().join("f"), "").expect("written");
        assert!(make_private_directory(&root.path().join("f/g")).is_err());
    }
}
