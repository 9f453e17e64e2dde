use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the file exists").permissions().mode() & 0o777
}

#[test]
fn a_file_or_link_at_the_temporary_path_is_not_reused() {
    let directory = tempfile::tempdir().unwrap();
    let (key, new) = (directory.path().join("a.key"), directory.path().join("a.key.new"));
    let elsewhere = directory.path().join("elsewhere");
    // A file that a crash left or an attacker made, readable by everyone.
    fs::write(&new, "old").unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o666)).unwrap();
    write_private(&key, "secret").unwrap();
    assert_eq!((fs::read_to_string(&key).unwrap(), mode(&key)), ("secret".into(), 0o600));
    fs::write(&elsewhere, "unchanged").unwrap();
    symlink(&elsewhere, &new).unwrap();
    write_private(&key, "other").unwrap();
    assert_eq!((fs::read_to_string(&key).unwrap(), mode(&key)), ("other".into(), 0o600));
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "unchanged");
    assert!(!new.exists());
}

#[test]
fn an_unchanged_private_file_is_not_rewritten() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("a"), directory.path().join("b"));
    let inode = |path: &Path| fs::symlink_metadata(path).expect("the file exists").ino();
    write_private(&file, "text").unwrap();
    let first = inode(&file);
    write_private(&file, "text").unwrap();
    assert_eq!(inode(&file), first);
    // A file that others can read, or a symbolic link, is replaced.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    write_private(&file, "text").unwrap();
    assert_eq!((inode(&file) == first, mode(&file)), (false, 0o600));
    symlink(&file, &link).unwrap();
    write_private(&link, "text").unwrap();
    assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
}
