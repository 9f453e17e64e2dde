//! Impersonation: who may, acts as someone else (AUTHN-04). Everything that a request wants to be is
//! asked about by itself, under the verb `impersonate`.

use std::sync::Arc;

use http::HeaderMap;
use pintle_auth::{
    ANONYMOUS, AUTHENTICATED, Attributes, Authorizer, Subject, UNAUTHENTICATED, User,
};
use pintle_meta::Status;
use pintle_meta::user::{service_account_groups, split_service_account};

use super::front_proxy::collect_extra;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Who a request wants to be made by.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    user: String,
    groups: Vec<String>,
    uid: String,
    /// Sorted by key.
    extra: Vec<(String, Vec<String>)>,
}

/// The user that a request is to be done as: the one who makes it, or whom that one may impersonate.
pub(crate) fn impersonated(
    user: Arc<User>,
    headers: &HeaderMap,
    authorizer: &dyn Authorizer,
) -> Result<Arc<User>, Status> {
    let Some(wanted) = Wanted::read(headers)? else { return Ok(user) };
    for subject in wanted.subjects() {
        let attributes = Attributes { user: &user, verb: "impersonate", subject };
        let ruling = authorizer.authorize(&attributes);
        if !ruling.allowed() {
            return Err(attributes.forbidden(&ruling.reason));
        }
    }
    Ok(Arc::new(wanted.into_user()))
}

impl Wanted {
    /// Reads the headers; `None` where there are none.
    fn read(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        // Almost every request: one look at each header's name.
        if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
            return Ok(None);
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let groups = headers.get_all(GROUP).iter().filter_map(|value| value.to_str().ok());
        let mut wanted = Self {
            user: text(USER).unwrap_or_default().to_owned(),
            groups: groups.map(str::to_owned).collect(),
            uid: text(UID).unwrap_or_default().to_owned(),
            extra: Vec::new(),
        };
        collect_extra(headers, EXTRA, &mut wanted.extra);
        if !wanted.user.is_empty() {
            return Ok(Some(wanted));
        }
        if wanted == Self::default() {
            return Ok(None);
        }
        let references = wanted.references();
        Err(Status::bad_request(format!("requested {references} without impersonating a user")))
    }

    /// What is asked about: the user or service account, each group, each extra value, the uid.
    fn subjects(&self) -> Vec<Subject<'_>> {
        fn subject<'a>(
            group: &'a str,
            resource: &'a str,
            subresource: &'a str,
            name: &'a str,
        ) -> Subject<'a> {
            Subject::Resource { group, resource, subresource, namespace: "", name }
        }
        let mut subjects = vec![match split_service_account(&self.user) {
            Some((namespace, name)) => {
                let (resource, subresource) = ("serviceaccounts", "");
                Subject::Resource { group: "", resource, subresource, namespace, name }
            }
            None => subject("", "users", "", &self.user),
        }];
        subjects.extend(self.groups.iter().map(|group| subject("", "groups", "", group)));
        for (key, values) in &self.extra {
            let values = values.iter();
            subjects.extend(values.map(|v| subject(AUTHENTICATION, "userextras", key, v)));
        }
        if !self.uid.is_empty() {
            subjects.push(subject(AUTHENTICATION, "uids", "", &self.uid));
        }
        subjects
    }

    /// The user, in the groups that everyone of its kind is in.
    fn into_user(self) -> User {
        let Self { user: name, mut groups, uid, extra } = self;
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

    /// What was wanted, as upstream shows it: Go's form of object references.
    fn references(&self) -> String {
        let version = format!("{AUTHENTICATION}/v1");
        let groups = self.groups.iter().map(|group| format!("{{Group  {group}    }}"));
        let extra = self.extra.iter().flat_map(|(key, values)| {
            let version = &version;
            values.iter().map(move |value| format!("{{UserExtra  {value}  {version}  {key}}}"))
        });
        let uid = (!self.uid.is_empty()).then(|| format!("{{UID  {}  {version}  }}", self.uid));
        let all: Vec<String> = groups.chain(extra).chain(uid).collect();
        format!("[{}]", all.join(" "))
    }
}
