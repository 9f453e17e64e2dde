//! kube-rs against Pintle; see `tests/`. It is not a default member of the workspace, because kube
//! and its types take a while to compile.
