//! `pintle envtest-assets DIR`: a directory as envtest wants it, with this program under two names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Lays the directory out; says where it is, as an absolute path.
pub(crate) fn lay_out(directory: &Path) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    for name in ["kube-apiserver", "etcd"] {
        replace(&program, &directory.join(name))?;
    }
    if let Some(kubectl) = find("kubectl") {
        let place = directory.join("kubectl");
        if !place.exists() {
            link(&kubectl, &place).with_context(|| format!("cannot make {}", place.display()))?;
        }
    }
    Ok(std::path::absolute(directory)?)
}

fn replace(program: &Path, place: &Path) -> anyhow::Result<()> {
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot replace {}", place.display()))
        }
        _ => link(program, place).with_context(|| format!("cannot make {}", place.display())),
    }
}

#[cfg(unix)]
fn link(program: &Path, place: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(program, place)
}

#[cfg(not(unix))]
fn link(program: &Path, place: &Path) -> io::Result<()> {
    fs::copy(program, place).map(|_| ())
}

/// A program on the path.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}
