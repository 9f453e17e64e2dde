//! `pintle envtest-assets DIR`: creates a directory for envtest, with this program under two names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Creates the directory and returns its absolute path.
pub(crate) fn lay_out(directory: &Path) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let link_paths = ["kube-apiserver", "etcd"].map(|name| directory.join(name));
    for link_path in &link_paths {
        check_link_path(&program, link_path)?;
    }
    for link_path in &link_paths {
        replace(&program, link_path)?;
    }
    if let Some(kubectl) = find("kubectl") {
        let link_path = directory.join("kubectl");
        if !link_path.exists() {
            link(&kubectl, &link_path)
                .with_context(|| format!("cannot make {}", link_path.display()))?;
        }
    }
    Ok(std::path::absolute(directory)?)
}

/// A path as one word of a POSIX shell.
pub(crate) fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%".contains(&byte);
    match path.bytes().all(is_plain) {
        true => path.into_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Replaces only what an earlier call created, never a real `etcd` or `kube-apiserver`.
fn check_link_path(program: &Path, link_path: &Path) -> anyhow::Result<()> {
    let is_free = match fs::symlink_metadata(link_path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(error).context(format!("cannot read {}", link_path.display())),
        Ok(_) => is_own(program, link_path),
    };
    anyhow::ensure!(
        is_free,
        "{} is another program and is left as it is; choose another directory, or remove it",
        link_path.display()
    );
    Ok(())
}

/// Whether a link points to this program or to a file of its name: another build, which may not
/// exist any more.
#[cfg(unix)]
fn is_own(program: &Path, link_path: &Path) -> bool {
    let Ok(target) = fs::read_link(link_path) else { return false };
    target == program || target.file_stem().is_some_and(|name| name == NAME)
}

/// Whether a file is a copy of this program.
#[cfg(not(unix))]
fn is_own(program: &Path, link_path: &Path) -> bool {
    matches!((fs::read(program), fs::read(link_path)), (Ok(ours), Ok(theirs)) if ours == theirs)
}

/// The program's own name.
#[cfg(unix)]
const NAME: &str = "pintle";

fn replace(program: &Path, link_path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(link_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot replace {}", link_path.display()))
        }
        _ => {
            link(program, link_path).with_context(|| format!("cannot make {}", link_path.display()))
        }
    }
}

#[cfg(unix)]
fn link(program: &Path, link_path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(program, link_path)
}

#[cfg(not(unix))]
fn link(program: &Path, link_path: &Path) -> io::Result<()> {
    fs::copy(program, link_path).map(|_| ())
}

/// Finds a program in the directories of `PATH`.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_shell_reads_the_path_as_one_word() {
        for path in ["/usr/bin", "/a b", "/it's", "/$HOME/`id`/\"q\"", "/a\nb", "/é"] {
            let line = format!("printf %s {}", quoted(Path::new(path)));
            let read = std::process::Command::new("sh").args(["-c", &line]).output().expect("sh");
            assert_eq!(String::from_utf8_lossy(&read.stdout), path);
        }
        assert_eq!(quoted(Path::new("/usr/bin")), "/usr/bin", "a plain path needs no quotes");
    }

    #[test]
    fn only_links_to_this_program_are_replaced() {
        let directory = std::env::temp_dir().join(format!("pintle-assets-{}", std::process::id()));
        let etcd = directory.join("etcd");
        for _ in 0..2 {
            lay_out(&directory).expect("an empty directory, then our own");
        }
        let program = std::env::current_exe().expect("this is a program");
        assert_eq!(fs::read_link(&etcd).expect("a link"), program);

        // Another build of this program, which is gone.
        fs::remove_file(&etcd).expect("removed");
        symlink("/nowhere/target/release/pintle", &etcd).expect("linked");
        lay_out(&directory).expect("a link to a pintle");
        assert_eq!(fs::read_link(&etcd).expect("a link"), program);

        let real = directory.join("etcd-v3");
        fs::write(&real, "a real etcd").expect("written");
        for is_link in [false, true] {
            fs::remove_file(&etcd).expect("removed");
            if is_link {
                symlink(&real, &etcd).expect("linked");
            } else {
                fs::write(&etcd, "a real etcd").expect("written");
            }
            let first_link = directory.join("kube-apiserver");
            fs::remove_file(&first_link).ok();
            let refused = lay_out(&directory).expect_err("another program").to_string();
            assert!(refused.starts_with(&etcd.display().to_string()), "{refused}");
            assert_eq!(fs::read_to_string(&etcd).expect("there"), "a real etcd");
            assert!(!first_link.exists(), "no link is made if one cannot be replaced");
        }
        fs::remove_dir_all(&directory).expect("removed");
    }
}
