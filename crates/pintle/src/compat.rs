//! Compatibility with harnesses: called as `kube-apiserver` or `etcd`, the program replaces these for test harnesses
//! (envtest, fabric8's kube-api-test, kwokctl), which start two binaries by those names.
//!
//! The `etcd` owns the directory in which the `kube-apiserver` that names it has its store, so that
//! either can be stopped and started again without the other. There is no etcd protocol between them.

pub(crate) mod arguments;
pub(crate) mod assets;
pub(crate) mod etcd;
pub(crate) mod kube_apiserver;

use std::ffi::OsStr;
use std::path::Path;

/// The program by whose name Pintle was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    KubeApiserver,
    Etcd,
}

impl Program {
    /// The program that the first argument names.
    pub(crate) fn of(program: &OsStr) -> Option<Self> {
        match Path::new(program).file_stem()?.to_str()? {
            "kube-apiserver" => Some(Self::KubeApiserver),
            "etcd" => Some(Self::Etcd),
            _ => None,
        }
    }
}
