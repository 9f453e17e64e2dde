//! Families of admission.

use pintle_admission::{CALL_BOUNDS, CONDITION_BOUNDS, POLICY_BOUNDS};
use pintle_registry::measures::ADMISSION_BOUNDS;

use super::Stability::{Alpha, Beta, Stable};
use super::{Family, Labels, counter, families, seconds};

/// Labels of match conditions.
const CONDITIONS: Labels = &["kind", "name", "operation", "type"];
/// Labels of validating policies.
const VALIDATION: Labels = &["enforcement_action", "error_type", "policy", "policy_binding"];
/// Labels of mutating policies.
const MUTATION: Labels = &["error_type", "policy", "policy_binding"];

/// Labels of Pod Security.
const POD_SECURITY: Labels = &["request_operation", "resource", "subresource"];

families! {
    ADMISSION_STEPS = seconds("apiserver_admission_step_admission_duration_seconds", Stable, &["operation", "rejected", "type"], &ADMISSION_BOUNDS,
        "How long the mutating and the validating phase of admission took.");
    PLUGINS = seconds("apiserver_admission_controller_admission_duration_seconds", Stable, &["name", "operation", "rejected", "type"], &ADMISSION_BOUNDS,
        "How long admission plugins took.");
    WEBHOOK_DURATION = seconds("apiserver_admission_webhook_admission_duration_seconds", Stable, &["name", "operation", "rejected", "type"], &CALL_BOUNDS,
        "How long calls of admission webhooks took.");
    WEBHOOK_REQUESTS = counter("apiserver_admission_webhook_request_total", Alpha, &["code", "name", "operation", "rejected", "type"],
        "Calls of admission webhooks, by status code; 0 for a dry run that the webhook does not support.");
    WEBHOOK_REJECTIONS = counter("apiserver_admission_webhook_rejection_count", Alpha, &["error_type", "name", "operation", "rejection_code", "type"],
        "Writes rejected by an admission webhook or because its call failed.");
    WEBHOOK_FAIL_OPEN = counter("apiserver_admission_webhook_fail_open_count", Alpha, &["name", "type"],
        "Failed calls of admission webhooks with the failure policy Ignore.");
    CONDITION_SECONDS = seconds("apiserver_admission_match_condition_evaluation_seconds", Alpha, CONDITIONS, &CONDITION_BOUNDS,
        "How long the evaluation of match conditions of webhooks and policies took.");
    CONDITION_ERRORS = counter("apiserver_admission_match_condition_evaluation_errors_total", Alpha, CONDITIONS,
        "Match conditions whose evaluation failed.");
    CONDITION_EXCLUSIONS = counter("apiserver_admission_match_condition_exclusions_total", Alpha, CONDITIONS,
        "Webhooks and policies that were skipped because a match condition was false.");
    VALIDATING_POLICY_DURATION = seconds("apiserver_validating_admission_policy_check_duration_seconds", Beta, VALIDATION, &POLICY_BOUNDS,
        "How long failed validations of validating policies took.");
    VALIDATING_POLICY_CHECKS = counter("apiserver_validating_admission_policy_check_total", Beta, VALIDATION,
        "Failed validations of validating policies, by enforcement action.");
    MUTATING_POLICY_DURATION = seconds("apiserver_mutating_admission_policy_check_duration_seconds", Alpha, MUTATION, &POLICY_BOUNDS,
        "How long mutations by policies took.");
    POD_SECURITY_EVALUATIONS = counter("pod_security_evaluations_total", Alpha, &["decision", "mode", "policy_level", "policy_version", "request_operation", "resource", "subresource"],
        "Evaluations of the Pod Security Standards.");
    POD_SECURITY_EXEMPTIONS = counter("pod_security_exemptions_total", Alpha, POD_SECURITY,
        "Writes exempt from the Pod Security Standards.");
    POD_SECURITY_ERRORS = counter("pod_security_errors_total", Alpha, &["fatal", "request_operation", "resource", "subresource"],
        "Errors in evaluations of the Pod Security Standards.");
    MUTATING_POLICY_CHECKS = counter("apiserver_mutating_admission_policy_check_total", Alpha, MUTATION,
        "Mutations by policies, successful and failed.");
}
