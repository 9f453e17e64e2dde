//! `node.k8s.io/v1`.

use crate::{
    kind::{Kind, kind},
    strategy::{PLAIN, Strategy},
};

pub(crate) const KINDS: &[Kind] = &[kind("node.k8s.io", "runtimeclasses", RUNTIME_CLASS)];

const RUNTIME_CLASS: Strategy =
    Strategy { create_on_update: true, unconditional_update: false, ..PLAIN };
