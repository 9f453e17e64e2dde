//! `admissionregistration.k8s.io/v1`: webhook configurations and admission policies.

mod policies;
mod rules;
mod webhooks;

use pintle_registry::Generation;

use crate::{
    conditions,
    conversion::renamed,
    defaults::{
        Constant::{EmptyObject, Int, Text},
        Defaults,
        Row::{Also, At, Each, In, Unset},
        set,
    },
    field::{Errors, Field},
    kind::{Form, Kind, kind},
    strategy::{
        AS_NEW, COUNTED, COUNTED_WITH_STATUS, MetadataChecks, NOT_CHECKED, Part, STATUS_ALONE,
        Strategy, part,
    },
};

const ADMISSION: &str = "admissionregistration.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    Kind {
        conversions: POLICY_FORMS,
        ..kind(ADMISSION, "mutatingadmissionpolicies", MUTATING_POLICY)
    },
    Kind {
        conversions: POLICY_FORMS,
        ..kind(ADMISSION, "mutatingadmissionpolicybindings", POLICY_BINDING)
    },
    kind(ADMISSION, "mutatingwebhookconfigurations", MUTATING_WEBHOOKS),
    kind(ADMISSION, "validatingadmissionpolicies", VALIDATING_POLICY),
    kind(ADMISSION, "validatingadmissionpolicybindings", VALIDATING_BINDING),
    kind(ADMISSION, "validatingwebhookconfigurations", VALIDATING_WEBHOOKS),
];

const POLICY_FORMS: &[Form] = &[
    renamed!(
        "v1",
        "admissionregistration.k8s.io/v1" => "admissionregistration.k8s.io/v1beta1"
    ),
    renamed!(
        "v1alpha1",
        "admissionregistration.k8s.io/v1alpha1" => "admissionregistration.k8s.io/v1beta1"
    ),
];

/// The base of the kinds without a status, which are all but ValidatingAdmissionPolicy.
const BASE: Strategy = Strategy {
    metadata: MetadataChecks { qualified_finalizers: false, ..AS_NEW },
    unconditional_update: false,
    declared_rules: false,
    ..COUNTED
};

const MUTATING_WEBHOOKS: Strategy =
    Strategy { default: |object| set(object, MUTATING_WEBHOOKS_DEFAULTS), ..WEBHOOKS };

const VALIDATING_WEBHOOKS: Strategy =
    Strategy { default: |object| set(object, &[Each("webhooks", WEBHOOK)]), ..WEBHOOKS };

const WEBHOOKS: Strategy = Strategy {
    generation: Generation::SpecAsSent,
    validate: webhooks::validate,
    is_expensive: true,
    ..BASE
};

const MUTATING_POLICY: Strategy = Strategy {
    default: |object| set(object, POLICY_DEFAULTS),
    validate: |new, _| policies::validate_mutating(new),
    is_expensive: true,
    ..BASE
};

const VALIDATING_POLICY: Strategy = Strategy {
    metadata: MetadataChecks { qualified_finalizers: false, ..AS_NEW },
    owned: STATUS_ALONE,
    unconditional_update: false,
    default: |object| set(object, POLICY_DEFAULTS),
    validate: |new, _| policies::validate_validating(new),
    is_expensive: true,
    declared_rules: false,
    parts: &[Part {
        metadata: Some(NOT_CHECKED),
        validate: |new, _| {
            let mut errors = Errors::new();
            policies::check_type_checking(&Field::root(new).get("status"), &mut errors);
            conditions::check(&Field::root(new).get("status"), &mut errors);
            errors
        },
        ..part("status")
    }],
    ..COUNTED_WITH_STATUS
};

const VALIDATING_BINDING: Strategy =
    Strategy { validate: |new, _| policies::validate_binding(new, true), ..POLICY_BINDING };

const POLICY_BINDING: Strategy = Strategy {
    default: |object| set(object, &[At("spec", &[At("matchResources", MATCH_RESOURCES)])]),
    validate: |new, _| policies::validate_binding(new, false),
    ..BASE
};

const MUTATING_WEBHOOKS_DEFAULTS: Defaults =
    &[Each("webhooks", &[Also(WEBHOOK), Unset("reinvocationPolicy", Text("Never"))])];

const WEBHOOK: Defaults = &[
    Unset("failurePolicy", Text("Fail")),
    Also(SELECTION),
    Unset("timeoutSeconds", Int(10)),
    Each("rules", SCOPE),
    At("clientConfig", &[At("service", &[Unset("port", Int(443))])]),
];

const SELECTION: Defaults = &[
    Unset("matchPolicy", Text("Equivalent")),
    Unset("namespaceSelector", EmptyObject),
    Unset("objectSelector", EmptyObject),
];

const POLICY_DEFAULTS: Defaults =
    &[In("spec", &[Unset("failurePolicy", Text("Fail")), At("matchConstraints", MATCH_RESOURCES)])];

const MATCH_RESOURCES: Defaults =
    &[Also(SELECTION), Each("resourceRules", SCOPE), Each("excludeResourceRules", SCOPE)];

const SCOPE: Defaults = &[Unset("scope", Text("*"))];
