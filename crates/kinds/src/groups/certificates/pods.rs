//! The rules for PodCertificateRequests, in upstream's order, except the contents of keys and
//! certificates.

use pintle_meta::{field::Error, names, time};
use pintle_value::Value;

use crate::{
    checks::{items, same},
    conditions,
    field::{Errors, Field},
    signers::{SECONDS_MIN, seconds_max, signer_name, user_annotations},
};

const UID_LENGTH_MAX: usize = 128;
/// The largest request, key or proof.
const KEY_BYTES_MAX: usize = 10 * 1024;
const CHAIN_LENGTH_MAX: usize = 100 * 1024;
const REFRESH_SECONDS_MIN: i64 = 600;
const ISSUED: &str = "Issued";
const VERDICTS: &[&str] = &[ISSUED, "Denied", "Failed"];

/// Validates a new request.
pub(super) fn validate(spec: &Field<'_>) -> Errors {
    let mut errors = Errors::new();
    signer_name(&spec.get("signerName"), &mut errors);
    user_annotations(&spec.get("unverifiedUserAnnotations"), &mut errors);
    for (name, uid) in [
        ("podName", "podUID"),
        ("serviceAccountName", "serviceAccountUID"),
        ("nodeName", "nodeUID"),
    ] {
        let (name, uid) = (spec.get(name), spec.get(uid));
        name.all_invalid(names::dns1123_subdomain(name.text()), &mut errors);
        if uid.is_empty() {
            errors.push(uid.invalid_as("", "must not be empty"));
        }
        if uid.text().len() > UID_LENGTH_MAX {
            errors.push(Error::too_long(&uid.path(), UID_LENGTH_MAX));
        }
    }
    let seconds = spec.get("maxExpirationSeconds");
    let most = seconds_max(spec.str("signerName"));
    match seconds.int() {
        None => {
            errors.push(seconds.required("must be set"));
            return errors;
        }
        Some(number) if !(SECONDS_MIN..=most).contains(&number) => {
            errors.push(seconds.invalid(format!("must be in the range [{SECONDS_MIN}, {most}]")));
        }
        Some(_) => {}
    }
    check_key(spec, &mut errors);
    errors
}

/// Checks that a key is sent in exactly one of two ways and is not too long. `pintle-server` checks
/// that the sender has the private key.
fn check_key(spec: &Field<'_>, errors: &mut Errors) {
    let [request, key, proof] =
        ["stubPKCS10Request", "pkixPublicKey", "proofOfPossession"].map(|name| spec.str(name));
    let one_way = match (request.is_empty(), key.is_empty(), proof.is_empty()) {
        (false, true, true) => [("stubPKCS10Request", request)].to_vec(),
        (true, false, false) => [("pkixPublicKey", key), ("proofOfPossession", proof)].to_vec(),
        _ => {
            let words = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) \
                         must be set";
            return errors.push(spec.invalid_without_value(words));
        }
    };
    let too_long = one_way.iter().find(|(_, base64)| base64.len() / 4 * 3 > KEY_BYTES_MAX + 2);
    errors.extend(too_long.map(|(name, _)| Error::too_long(&spec.get(name).path(), KEY_BYTES_MAX)));
}

/// Validates the status of a request: the decision about it is final.
pub(super) fn validate_status(new: &Value, old: &Value) -> Errors {
    let request = Field::root(new);
    let status = request.get("status");
    let mut errors = Errors::new();
    check_verdicts(&status, &mut errors);
    conditions::check(&status, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let is = |object: &Value, verdicts: &[&str]| {
        items(object, &["status", "conditions"]).iter().any(|condition| {
            let kind = condition.str_at(&["type"]).unwrap_or_default();
            verdicts.contains(&kind) && condition.str_at(&["status"]) == Some("True")
        })
    };
    let is_changed = !same(new.get("status"), old.get("status"));
    let words = if is(old, VERDICTS) {
        is_changed.then_some("immutable after PodCertificateRequest is issued, denied, or failed")
    } else if is(new, &VERDICTS[1..]) {
        let members = status.value().as_object().map_or(0, pintle_value::Map::len);
        (members > 1).then_some(
            "non-condition status fields must be empty when denying or failing the \
             PodCertificateRequest",
        )
    } else if is(new, &VERDICTS[..1]) {
        check_issued(&status, &mut errors);
        None
    } else {
        is_changed.then_some(
            "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"",
        )
    };
    errors.extend(words.map(|words| status.invalid_without_value(words)));
    errors
}

/// Upstream's paths have a dot before the index.
fn check_verdicts(status: &Field<'_>, errors: &mut Errors) {
    let mut count = 0;
    let list = status.get("conditions");
    for (i, condition) in status.items("conditions").enumerate() {
        let path = list.path().field(&format!("[{i}]"));
        let (kind, state) = (condition.get("type"), condition.get("status"));
        if !VERDICTS.contains(&kind.text()) {
            errors.push(Error::not_supported(&path.field("type"), kind.value(), VERDICTS));
            continue;
        }
        count += 1;
        if count > 1 {
            let words = "There may be at most one condition with type \"Issued\", \"Denied\", or \
                         \"Failed\"";
            errors.push(Error::invalid(&path.field("type"), kind.value(), words));
        }
        if state.text() != "True" {
            errors.push(Error::not_supported(&path.field("status"), state.value(), &["True"]));
        }
    }
}

fn check_issued(status: &Field<'_>, errors: &mut Errors) {
    let chain = status.get("certificateChain");
    if chain.text().len() > CHAIN_LENGTH_MAX {
        return errors.push(Error::too_long(&chain.path(), CHAIN_LENGTH_MAX));
    }
    if !chain.text().contains("-----BEGIN CERTIFICATE-----") {
        let words = "issued certificate chain must contain at least one certificate";
        return errors.push(chain.invalid_as(chain.text(), words));
    }
    const CONSISTENT: &str = "must be present and consistent with the issued certificate";
    for (member, words) in [
        ("notBefore", CONSISTENT),
        ("notAfter", CONSISTENT),
        ("beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]"),
    ] {
        let field = status.get(member);
        if field.is_empty() {
            errors.push(field.required(words));
        }
    }
    let refresh = status.get("beginRefreshAt");
    let seconds =
        |member: &str| time::parse(status.str(member)).ok().map(|instant| instant / time::SECOND);
    let [Some(from), Some(at), Some(to)] = ["notBefore", "beginRefreshAt", "notAfter"].map(seconds)
    else {
        return;
    };
    if at < from.saturating_add(REFRESH_SECONDS_MIN) {
        errors.push(refresh.invalid("must be at least 10 minutes after status.notBefore"));
    } else if at > to.saturating_sub(REFRESH_SECONDS_MIN) {
        errors.push(refresh.invalid("must be at least 10 minutes before status.notAfter"));
    }
}
