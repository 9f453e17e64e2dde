//! `resourceVersion`, `resourceVersionMatch`, and continue tokens of requests.

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{DecodeError, Engine, alphabet};
use pintle_meta::{GroupKind, Status, field};
use pintle_store::Revision;
use pintle_value::{Path, Value, json};

use crate::request::ListOptions;

/// The state of a collection that a list asks for: the cells of the reference's table (RV-L01 …
/// RV-L21).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The newest state, with every acknowledged write.
    Newest,
    /// Any cached state (`0`).
    Any,
    /// The state of that revision or a newer one.
    NotOlderThan(Revision),
    /// Exactly the state of that revision.
    Exact(Revision),
    /// The next page of a list: exactly that state, from a key on.
    Continue { revision: Revision, from: String },
    /// The next page of a list whose state was compacted: the newest state, from a key on.
    ContinueInconsistent { from: String },
}

impl Wanted {
    /// Derives the state from list options that passed [`check_list`].
    pub(crate) fn of(options: &ListOptions) -> Result<Self, Status> {
        if !options.continue_token.is_empty() {
            let wanted = decode_token(&options.continue_token)?;
            if !matches!(options.resource_version.as_str(), "" | "0") {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            return Ok(wanted);
        }
        let Some(revision) = parse(&options.resource_version)? else { return Ok(Self::Newest) };
        Ok(match options.version_match.as_str() {
            _ if revision == Revision(0) => Self::Any,
            "Exact" => Self::Exact(revision),
            // Legacy: with a limit, a bare revision means exactly that one (RV-L06).
            "" if options.limit > 0 => Self::Exact(revision),
            _ => Self::NotOlderThan(revision),
        })
    }
}

/// Parses a `resourceVersion`; `None` if absent.
pub(crate) fn parse(text: &str) -> Result<Option<Revision>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let problem = match text.parse::<u64>() {
        Ok(number) if !text.starts_with('+') => return Ok(Some(Revision(number))),
        Err(e) if *e.kind() == std::num::IntErrorKind::PosOverflow => "value out of range",
        _ => "invalid syntax",
    };
    Err(Status::bad_request(format!(
        "invalid resource version: resourceVersion: Invalid value: {text:?}: \
         strconv.ParseUint: parsing {text:?}: {problem}"
    )))
}

/// Refuses invalid combinations of a list's options (RV-L10 … RV-L20, RV-21, SL-07).
pub(crate) fn check_list(options: &ListOptions) -> Result<(), Status> {
    let mut errors = Vec::new();
    let path = Path::new("resourceVersionMatch");
    let wanted = options.version_match.as_str();
    if !wanted.is_empty() {
        let mut forbid = |detail: &str| errors.push(field::Error::forbidden(&path, detail));
        if options.resource_version.is_empty() {
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !options.continue_token.is_empty() {
            forbid("resourceVersionMatch is forbidden when continue is provided");
        }
        if wanted == "Exact" && options.resource_version == "0" {
            forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        if !matches!(wanted, "Exact" | "NotOlderThan") {
            let supported = ["Exact", "NotOlderThan", ""];
            errors.push(field::Error::not_supported(&path, &wanted.into(), &supported));
        }
    }
    if options.send_initial_events.is_some() {
        let path = Path::new("sendInitialEvents");
        errors.push(field::Error::forbidden(&path, "sendInitialEvents is forbidden for list"));
    }
    invalid_options(&errors)
}

/// Refuses invalid combinations of a watch's options (SL-03).
pub(crate) fn check_watch(options: &ListOptions) -> Result<(), Status> {
    let mut errors = Vec::new();
    let path = Path::new("resourceVersionMatch");
    let wanted = options.version_match.as_str();
    let mut forbid = |detail: &str| errors.push(field::Error::forbidden(&path, detail));
    if options.send_initial_events.is_some() && wanted != "NotOlderThan" {
        forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if !wanted.is_empty() && options.send_initial_events.is_none() {
        forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if !wanted.is_empty() && wanted != "NotOlderThan" {
        errors.push(field::Error::not_supported(&path, &wanted.into(), &["NotOlderThan"]));
    }
    // A watch without a version or with `0` starts with initial events, as if the client had asked
    // for them.
    let from_state = options.send_initial_events.is_none()
        && matches!(options.resource_version.as_str(), "" | "0");
    if !options.continue_token.is_empty() && (from_state || !wanted.is_empty()) {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(field::Error::forbidden(&path, why));
    }
    invalid_options(&errors)
}

fn invalid_options(errors: &[field::Error]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&GroupKind::new("meta.k8s.io", "ListOptions"), "", errors))
}

/// Encodes a continue token in upstream's form (`k8s.io/apiserver/pkg/storage/continue.go`). With
/// the revision `None` the next page comes from the newest state.
pub(crate) fn encode_token(revision: Option<Revision>, from: &str) -> String {
    let revision = revision.map_or(-1, |r| i64::try_from(r.0).unwrap_or(i64::MAX));
    let token = Value::from([
        ("rv", Value::Int(revision)),
        ("start", Value::from(from)),
        ("v", Value::from(TOKEN_VERSION)),
    ]);
    TOKEN.encode(json::to_string(&token))
}

const TOKEN_VERSION: &str = "meta.k8s.io/v1";
/// As Go's decoder, it ignores the unused bits of the last symbol.
const TOKEN: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

fn decode_token(text: &str) -> Result<Wanted, Status> {
    let refuse = |why: &str| {
        Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    let bytes = TOKEN.decode(text).map_err(|error| {
        // The offset at which Go's decoder stops.
        let at = match error {
            DecodeError::InvalidByte(at, _) => at,
            DecodeError::InvalidLastSymbol { offset, .. } => offset,
            DecodeError::InvalidLength(length) => length.saturating_sub(1),
            DecodeError::InvalidPadding => text.find('=').unwrap_or_default(),
        };
        refuse(&format!("illegal base64 data at input byte {at}"))
    })?;
    let token = json::parse(&bytes).map_err(|e| refuse(&e.to_string()))?;
    let version = token.str_at(&["v"]).unwrap_or_default();
    if version != TOKEN_VERSION {
        let why = format!("server does not recognize this encoded version {version}");
        return Err(refuse(&why));
    }
    let revision = token.get("rv").and_then(Value::as_int).filter(|revision| *revision != 0);
    let Some(revision) = revision else {
        return Err(refuse("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"));
    };
    let from = token.str_at(&["start"]).unwrap_or_default();
    if from.is_empty() {
        return Err(refuse("encoded start key empty (version meta.k8s.io/v1)"));
    }
    // The key must not point outside of the collection.
    let path = from.strip_prefix('/').unwrap_or(from);
    if path.split('/').any(|step| matches!(step, "" | "." | "..")) {
        return Err(refuse(from));
    }
    let from = from.to_owned();
    Ok(match u64::try_from(revision) {
        Ok(n) => Wanted::Continue { revision: Revision(n), from },
        Err(_) => Wanted::ContinueInconsistent { from },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the reason for which a token is refused.
    fn check(token: &str, why: &str) {
        let status = decode_token(token).expect_err("it is refused");
        let expected = format!("invalid continue token: continue key is not valid: {why}");
        assert_eq!(status.message, expected, "{token}");
    }

    #[test]
    fn a_token_is_refused_in_upstreams_words() {
        // CHK-06
        check("a", "illegal base64 data at input byte 0");
        check("ab*d", "illegal base64 data at input byte 2");
        check("abc=", "illegal base64 data at input byte 3");
        for (token, why) in [
            (
                r#"{"v":"v9","rv":1,"start":"a"}"#,
                "server does not recognize this encoded version v9",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","start":""}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":1}"#,
                "encoded start key empty (version meta.k8s.io/v1)",
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#, "../a"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}"#, "a//b"),
            ("{", "unexpected end of JSON input"),
        ] {
            check(&TOKEN.encode(token), why);
        }
    }

    #[test]
    fn an_encoded_token_decodes_to_the_same_position() {
        for (revision, from) in
            [(Some(Revision(7)), "ns/a\0"), (Some(Revision(1)), "a"), (None, "a\0")]
        {
            let wanted = decode_token(&encode_token(revision, from)).expect("it is a token");
            let expected = match revision {
                Some(revision) => Wanted::Continue { revision, from: from.to_owned() },
                None => Wanted::ContinueInconsistent { from: from.to_owned() },
            };
            assert_eq!(wanted, expected);
        }
    }
}
