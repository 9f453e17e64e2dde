//! `node.k8s.io/v1`.

use std::collections::BTreeSet;

use pintle_meta::{field::Error, names};
use pintle_value::json;

use crate::{
    checks::{frozen, unchanged},
    field::{Errors, Field},
    kind::{Kind, kind},
    pods,
    rules::{
        Rule::{At, Do, Labels, Named},
        Rules, errors,
    },
    strategy::{AS_UPDATE_AND_NEW, MetadataChecks, PLAIN, Strategy},
};

pub(crate) const KINDS: &[Kind] = &[kind("node.k8s.io", "runtimeclasses", RUNTIME_CLASS)];

const RUNTIME_CLASS: Strategy = Strategy {
    metadata: MetadataChecks { qualified_finalizers: false, ..AS_UPDATE_AND_NEW },
    create_on_update: true,
    unconditional_update: false,
    validate: |new, old| match old {
        None => errors(new, RULES),
        Some(_) => {
            let mut all = errors(new, RULES);
            all.extend(unchanged(new, old, &[frozen(&["handler"])]));
            all
        }
    },
    declared_rules: false,
    warnings: |new, _| {
        let class = Field::root(new);
        let scheduling = class.get("scheduling");
        let selector = scheduling.get("nodeSelector");
        let words = selector.pairs().filter_map(|(label, _)| pods::old_label(label));
        words.map(|words| format!("{}: {words}", selector.path())).collect()
    },
    ..PLAIN
};

const RULES: Rules = &[
    Named("handler", names::dns1123_label),
    At("overhead", &[Do(pods::check_fixed_overhead)]),
    At("scheduling", &[Labels("nodeSelector"), Do(pods::check_tolerations), Do(same_tolerations)]),
];

/// Checks that no two tolerations are equal except for `tolerationSeconds`.
fn same_tolerations(scheduling: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for toleration in scheduling.items("tolerations") {
        let key = ["key", "operator", "value", "effect"].map(|member| toleration.str(member));
        if !seen.insert(key.map(str::to_owned)) {
            // The error shows the toleration in upstream's internal form.
            let [key, operator, value, effect] = key.map(|text| json::to_string(&text.into()));
            let seconds = json::to_string(toleration.get("tolerationSeconds").value());
            let shown = format!(
                r#"{{"Key":{key},"Operator":{operator},"Value":{value},"Effect":{effect},"TolerationSeconds":{seconds}}}"#
            );
            errors.push(Error { value: Some(shown), ..toleration.duplicate() });
        }
    }
}
