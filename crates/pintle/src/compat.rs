//! Compatibility with test harnesses (envtest, fabric8's kube-api-test, kwokctl), which start the
//! binaries `kube-apiserver` and `etcd`: called by one of these names, Pintle runs in place of that
//! binary.
//!
//! Called as `kubectl-convert`, it is kubectl's plugin of that name: `pintle convert`.
//!
//! Pintle's `etcd` owns the directory with the store of the `kube-apiserver` that connects to it,
//! so each of the two can be restarted without the other. The two do not speak etcd's protocol with
//! each other; `kube-apiserver` does with a real etcd.

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
    KubectlConvert,
}

impl Program {
    /// The program that `argv[0]` stands for, the name by which Pintle was called.
    pub(crate) fn of(program: &OsStr) -> Option<Self> {
        match Path::new(program).file_stem()?.to_str()? {
            "kube-apiserver" => Some(Self::KubeApiserver),
            "etcd" => Some(Self::Etcd),
            "kubectl-convert" | "kubectl_convert" => Some(Self::KubectlConvert),
            _ => None,
        }
    }
}
