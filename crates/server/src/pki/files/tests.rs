use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn what_lies_where_a_key_is_written_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let (key, new) = (directory.path().join("a.key"), directory.path().join("a.key.new"));
    let elsewhere = directory.path().join("elsewhere");
    // Left by a crash, or laid there, for all to read.
    fs::write(&new, "old").unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o666)).unwrap();
    write_private(&key, "secret").unwrap();
    assert_eq!((fs::read_to_string(&key).unwrap(), mode(&key)), ("secret".into(), 0o600));
    fs::write(&elsewhere, "kept").unwrap();
    symlink(&elsewhere, &new).unwrap();
    write_private(&key, "other").unwrap();
    assert_eq!((fs::read_to_string(&key).unwrap(), mode(&key)), ("other".into(), 0o600));
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "kept");
    assert!(!new.exists());
}

#[test]
fn what_has_not_changed_is_left_alone() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("a"), directory.path().join("b"));
    let inode = |path: &Path| fs::symlink_metadata(path).expect("it is there").ino();
    write_private(&file, "text").unwrap();
    let first = inode(&file);
    write_private(&file, "text").unwrap();
    assert_eq!(inode(&file), first);
    // For others to read, or not a file of its own: then it is written.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    write_private(&file, "text").unwrap();
    assert_eq!((inode(&file) == first, mode(&file)), (false, 0o600));
    symlink(&file, &link).unwrap();
    write_private(&link, "text").unwrap();
    assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
}
