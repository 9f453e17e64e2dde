//! A scripted session with the real kubectl; see `session.yaml` and `tests/session.rs`.
