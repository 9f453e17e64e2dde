//! TokenReviews: the request and response of a token webhook (upstream:
//! `plugin/pkg/authenticator/token/webhook`).

use pintle_meta::User;
use pintle_value::{Map, Value, json};

use crate::review::ReviewVersion;

const KIND: &str = "TokenReview";

const fn api_version(version: ReviewVersion) -> &'static str {
    match version {
        ReviewVersion::V1 => "authentication.k8s.io/v1",
        ReviewVersion::V1beta1 => "authentication.k8s.io/v1beta1",
    }
}

/// The review of a token, as JSON.
pub fn request(token: &str, audiences: &[String], version: ReviewVersion) -> Vec<u8> {
    let mut spec = Map::new();
    spec.insert("token", token);
    if !audiences.is_empty() {
        spec.insert("audiences", audiences.to_vec());
    }
    let review = Value::from([
        ("kind", Value::from(KIND)),
        ("apiVersion", api_version(version).into()),
        ("metadata", Value::object()),
        ("spec", Value::Object(spec)),
        ("status", Value::from([("user", Value::object())])),
    ]);
    json::to_string(&review).into_bytes()
}

/// A webhook's verdict on a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The user and the audiences; no audiences if the webhook does not know of any.
    Holds(User, Vec<String>),
    /// The token is invalid, or unknown to the webhook.
    Invalid,
}

/// Parses a response.
///
/// # Errors
/// If it is not a review of the requested version, or reports a failure of the webhook.
pub fn verdict(answer: &[u8], version: ReviewVersion) -> Result<Verdict, String> {
    let review = json::parse(answer).map_err(|why| why.to_string())?;
    let text = |path: &[&str]| review.str_at(path).unwrap_or_default();
    let wanted = api_version(version);
    if text(&["kind"]) != KIND || text(&["apiVersion"]) != wanted {
        let (kind, found) = (text(&["kind"]), text(&["apiVersion"]));
        return Err(format!("the answer is a {kind:?} of {found:?}, not a {KIND} of {wanted:?}"));
    }
    match review.at(&["status", "authenticated"]) {
        Some(Value::Bool(true)) => {}
        None | Some(Value::Bool(false) | Value::Null) => {
            return match text(&["status", "error"]) {
                "" => Ok(Verdict::Invalid),
                why => Err(why.to_owned()),
            };
        }
        Some(_) => return Err("status.authenticated must be true or false".to_owned()),
    }
    let texts = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(all)) => {
            let texts = all.iter().map(|one| one.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().ok_or("a list must hold strings only")
        }
        Some(_) => Err("a list is no list"),
    };
    let extra = review.at(&["status", "user", "extra"]).and_then(Value::as_object);
    let extra = extra.into_iter().flat_map(Map::iter);
    let mut extra = extra
        .map(|(key, values)| Ok((key.to_string(), texts(Some(values))?)))
        .collect::<Result<Vec<_>, &str>>()?;
    extra.sort();
    let user = User {
        name: text(&["status", "user", "username"]).to_owned(),
        uid: text(&["status", "user", "uid"]).to_owned(),
        groups: texts(review.at(&["status", "user", "groups"]))?,
        extra,
    };
    Ok(Verdict::Holds(user, texts(review.at(&["status", "audiences"]))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_has_token_and_audiences() {
        let asked = request("a.b", &["api".to_owned()], ReviewVersion::V1);
        let expected = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","metadata":{},"spec":{"audiences":["api"],"token":"a.b"},"status":{"user":{}}}"#;
        assert_eq!(String::from_utf8(asked).unwrap(), expected);
    }

    #[test]
    fn answers_are_read_or_refused() {
        let check = |status: &str, expected: Result<Verdict, &str>| {
            let answer = format!(
                r#"{{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{status}}}"#
            );
            let found = verdict(answer.as_bytes(), ReviewVersion::V1);
            assert_eq!(found, expected.map_err(str::to_owned), "{status}");
        };
        let jane = User {
            name: "jane".to_owned(),
            uid: "7".to_owned(),
            groups: vec!["dev".to_owned()],
            extra: vec![("k".to_owned(), vec!["v".to_owned()])],
        };
        check(
            r#"{"authenticated":true,"user":{"username":"jane","uid":"7","groups":["dev"],"extra":{"k":["v"]}},"audiences":["api"]}"#,
            Ok(Verdict::Holds(jane, vec!["api".to_owned()])),
        );
        check("{}", Ok(Verdict::Invalid));
        check(r#"{"authenticated":false,"error":"no database"}"#, Err("no database"));
        check(r#"{"authenticated":"yes"}"#, Err("status.authenticated must be true or false"));
        check(
            r#"{"authenticated":true,"user":{"groups":[1]}}"#,
            Err("a list must hold strings only"),
        );
        for other in [r#"{"kind":"TokenReview"}"#, r#"{"kind":"Pod"}"#, "[]", ""] {
            assert!(verdict(other.as_bytes(), ReviewVersion::V1).is_err(), "{other}");
        }
    }
}
