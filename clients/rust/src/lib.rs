//! kube-rs against Pintle; see `tests/`. It is no default member: kube and its types take a while to
//! compile.
