//! `node.k8s.io/v1`.

use pintle_meta::names;

use crate::{
    amounts,
    checks::{frozen, unchanged},
    kind::{Kind, kind},
    place::{Errors, Place},
    pods,
    rules::{
        Rule::{At, Do, Labels},
        Rules, errors,
    },
    strategy::{PLAIN, Strategy},
};

pub(crate) const KINDS: &[Kind] = &[kind("node.k8s.io", "runtimeclasses", RUNTIME_CLASS)];

const RUNTIME_CLASS: Strategy = Strategy {
    create_on_update: true,
    unconditional_update: false,
    validate: |new, old| match old {
        None => errors(new, RULES),
        Some(_) => unchanged(new, old, &[frozen(&["handler"])]),
    },
    declared_rules: false,
    warnings: |new, _| {
        let class = Place::root(new);
        let scheduling = class.get("scheduling");
        let selector = scheduling.get("nodeSelector");
        let words = selector.pairs().filter_map(|(label, _)| pods::old_label(label));
        words.map(|words| format!("{}: {words}", selector.path())).collect()
    },
    ..PLAIN
};

const RULES: Rules = &[
    Do(|class, errors| {
        let handler = class.get("handler");
        errors.extend(
            names::dns1123_label(handler.text())
                .into_iter()
                .map(|words| handler.invalid_as(handler.text(), words)),
        );
    }),
    At("overhead", &[Do(check_overhead)]),
    At("scheduling", &[Labels("nodeSelector"), Do(pods::check_tolerations)]),
];

/// What running a pod of the class costs besides its containers. Upstream checks it as limits.
fn check_overhead(overhead: &Place<'_>, errors: &mut Errors) {
    let fixed = overhead.get("podFixed");
    let limits = fixed.called("limits");
    for (name, place) in limits.pairs() {
        amounts::container_name(&place, name, errors);
        amounts::amount(&place, name, errors);
    }
}
