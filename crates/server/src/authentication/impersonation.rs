//! Impersonation: a user with the permission acts as another user (AUTHN-04).
//!
//! There are several modes (upstream: constrained impersonation, KEP-5284). The legacy mode
//! authorizes each attribute of the impersonated user. A constrained mode first authorizes the
//! request itself, under a verb that names the mode.

mod measures;
mod modes;

use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use pintle_auth::{ANONYMOUS, AUTHENTICATED, Authorizer, UNAUTHENTICATED, User};
use pintle_meta::user::{service_account_groups, split_service_account};
use pintle_meta::{Status, quote::quote};

use super::front_proxy::collect_extra;
use crate::header_text::text;
use crate::request_info::RequestInfo;
pub(crate) use measures::{IMPERSONATION_BOUNDS, Measures};
use modes::Allowed;
pub(crate) use modes::own_node;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// The user that the headers name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    user: String,
    groups: Vec<String>,
    uid: String,
    /// Sorted by key.
    extra: Vec<(String, Vec<String>)>,
}

/// The authorizer of impersonations, with their settings and measures.
pub(crate) struct Impersonation<'a> {
    pub(crate) authorizer: &'a dyn Authorizer,
    /// False if there is only the legacy mode.
    pub(crate) is_constrained: bool,
    pub(crate) measures: &'a Measures,
}

/// Returns the user as whom a request acts, which is the requesting user or the impersonated one,
/// and the constrained mode that permitted the impersonation, if one did.
pub(crate) async fn impersonated(
    user: Arc<User>,
    headers: &HeaderMap,
    info: &RequestInfo,
    impersonation: &Impersonation<'_>,
) -> Result<(Arc<User>, Option<&'static str>), Status> {
    let Some(wanted) = Wanted::read(headers)? else { return Ok((user, None)) };
    let began = Instant::now();
    let allowed = Box::pin(modes::permit(&wanted, &user, info, impersonation)).await;
    let mode = allowed.as_ref().ok().map(|allowed| allowed.mode.unwrap_or_default());
    impersonation.measures.attempted(mode, began.elapsed());
    let Allowed { mode, group } = allowed?;
    Ok((Arc::new(wanted.into_user(group)), mode))
}

impl Wanted {
    /// Parses the headers; `None` if there are none.
    fn read(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        // Almost every request ends here, after one comparison for each header.
        if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
            return Ok(None);
        }
        let first = |name| headers.get(name).map(text).unwrap_or_default().into_owned();
        let mut wanted = Self {
            user: first(USER),
            groups: headers.get_all(GROUP).iter().map(|value| text(value).into_owned()).collect(),
            uid: first(UID),
            extra: Vec::new(),
        };
        collect_extra(headers, EXTRA, &mut wanted.extra);
        if !wanted.user.is_empty() {
            return Ok(Some(wanted));
        }
        if wanted == Self::default() {
            return Ok(None);
        }
        let wanted = wanted.in_go();
        Err(Status::bad_request(format!("requested {wanted} without impersonating a user name")))
    }

    /// The impersonated user, with the group of the mode and the groups that upstream adds.
    fn into_user(self, fixed: Option<&str>) -> User {
        let Self { user: name, mut groups, uid, extra } = self;
        groups.extend(fixed.map(str::to_owned));
        if let Some((namespace, _)) = split_service_account(&name)
            && groups.is_empty()
        {
            groups = service_account_groups(namespace);
        }
        let has = |group: &str| groups.iter().any(|g| g == group);
        let missing = if name == ANONYMOUS {
            (!has(UNAUTHENTICATED)).then_some(UNAUTHENTICATED)
        } else {
            (!has(AUTHENTICATED) && !has(UNAUTHENTICATED)).then_some(AUTHENTICATED)
        };
        groups.extend(missing.map(str::to_owned));
        User { name, uid, groups, extra }
    }

    /// Formats the wanted user as Go does.
    fn in_go(&self) -> String {
        let Self { user, groups, uid, extra } = self;
        let texts = |texts: &Vec<String>| match texts.as_slice() {
            [] => "[]string(nil)".to_owned(),
            texts => {
                let texts: Vec<String> = texts.iter().map(|text| quote(text)).collect();
                format!("[]string{{{}}}", texts.join(", "))
            }
        };
        let groups = texts(groups);
        let extra = match extra.as_slice() {
            [] => "map[string][]string(nil)".to_owned(),
            extra => {
                let of = |(key, values): &(String, _)| format!("{}:{}", quote(key), texts(values));
                let members: Vec<String> = extra.iter().map(of).collect();
                format!("map[string][]string{{{}}}", members.join(", "))
            }
        };
        let (user, uid) = (quote(user), quote(uid));
        format!("&user.DefaultInfo{{Name:{user}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
    }
}
