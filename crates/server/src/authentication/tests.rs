use super::*;
use crate::config::RequestHeader;
use crate::query::Query;
use crate::request_info::RequestInfo;
use http::{HeaderName, HeaderValue, Method};
use pintle_auth::token::{AccountTokens, TokenList};
use pintle_auth::{AlwaysAllow, AlwaysDeny, Authorizer};
use pintle_registry::Options;
use pintle_registry::admission::AdmitAll;

async fn registry() -> Registry {
    let options = Options {
        store: pintle_store::memory().unwrap(),
        admission: Arc::new(AdmitAll),
        entropy: |bytes| bytes.fill(7),
        garbage_collection: false,
        history_bytes_max: 1,
        encodings_bytes_max: 1,
    };
    Registry::open(options, Vec::new()).await.unwrap()
}

fn authentication(anonymous: bool, front_proxy: Option<FrontProxy>) -> Authentication {
    let audiences = vec!["api".to_owned()];
    Authentication {
        verifier: None,
        front_proxy,
        tokens: Tokens {
            list: TokenList::parse("known,jane,1,dev").unwrap(),
            accounts: AccountTokens::new(Vec::new(), Vec::new(), audiences),
        },
        anonymous: anonymous.then(|| Arc::new(User::anonymous())),
    }
}

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let header = |(name, value): &(&str, &str)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    };
    list.iter().map(header).collect()
}

async fn user(anonymous: bool, authorization: &str) -> Result<String, Error> {
    let authentication = authentication(anonymous, None);
    let headers = if authorization.is_empty() {
        HeaderMap::new()
    } else {
        headers(&[("authorization", authorization)])
    };
    let peer = authentication.peer(None);
    let now = Now { unix_micros: 0 };
    let user = authentication.user(&peer, &headers, now, &registry().await)?;
    Ok(user.name.clone())
}

#[tokio::test]
async fn who_has_no_credentials_is_anonymous_or_refused() {
    assert_eq!(user(true, "").await, Ok("system:anonymous".to_owned()));
    assert_eq!(user(false, "").await, Err(Error::Missing));
}

#[tokio::test]
async fn tokens_are_known_or_refused() {
    // AUTHN-02, AUTHN-03
    assert_eq!(user(true, "Bearer known").await, Ok("jane".to_owned()));
    assert_eq!(user(true, "bearer known").await, Ok("jane".to_owned()));
    assert_eq!(user(true, "Bearer abc").await, Err(Error::Token));
    assert_eq!(user(true, "Basic abc").await, Ok("system:anonymous".to_owned()));
    assert_eq!(user(true, "Bearer  ").await, Ok("system:anonymous".to_owned()));
}

#[tokio::test]
async fn a_certificate_holds_until_it_expires() {
    let authentication = authentication(true, None);
    let user = Arc::new(User { name: "joe".to_owned(), ..User::default() });
    let credential = Credential::Certificate { user, not_after_unix_seconds: 100 };
    let peer = Peer { credential, is_front_proxy: false };
    let registry = registry().await;
    let at = |seconds: i64, headers: HeaderMap| {
        let now = Now { unix_micros: seconds * 1_000_000 };
        authentication.user(&peer, &headers, now, &registry).map(|user| user.name.clone())
    };
    assert_eq!(at(100, HeaderMap::new()), Ok("joe".to_owned()));
    assert!(at(101, HeaderMap::new()).is_err());
    // Another credential that holds is enough.
    let token = headers(&[("authorization", "Bearer known")]);
    assert_eq!(at(101, token), Ok("jane".to_owned()));
}

/// Takes every certificate.
fn proxy() -> FrontProxy {
    let authority = rcgen::CertificateParams::default();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.self_signed(&key).unwrap().der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    FrontProxy::new(verifier.build().unwrap(), RequestHeader::default())
}

#[tokio::test]
async fn a_front_proxy_says_who_asks_and_nobody_else() {
    let authentication = authentication(true, Some(proxy()));
    let registry = registry().await;
    let ask = |is_front_proxy, list: &[(&str, &str)]| {
        let peer = Peer { credential: Credential::None, is_front_proxy };
        let now = Now { unix_micros: 0 };
        authentication.user(&peer, &headers(list), now, &registry).unwrap()
    };
    let named = [
        ("x-remote-user", "ann"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "dev"),
        ("x-remote-group", "ops"),
        ("x-remote-extra-example.com%2fteam", "a"),
    ];
    let user = ask(true, &named);
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "7"));
    assert_eq!(user.groups, ["dev", "ops", "system:authenticated"]);
    assert_eq!(user.extra, [("example.com/team".to_owned(), vec!["a".to_owned()])]);
    assert_eq!(ask(false, &named).name, "system:anonymous");
    assert_eq!(ask(true, &[]).name, "system:anonymous");
}

fn impersonate(list: &[(&str, &str)], allowed: bool) -> Result<Arc<User>, String> {
    let joe = Arc::new(User { name: "joe".to_owned(), ..User::default() });
    let (headers, query) = (headers(list), Query::parse(""));
    let info = RequestInfo::parse(&Method::GET, "/api/v1/pods", &query).expect("it is a path");
    let authorizer: &dyn Authorizer = if allowed { &AlwaysAllow } else { &AlwaysDeny };
    let found = impersonation::impersonated(joe, &headers, &info, authorizer);
    found.map_err(|status| format!("{} {}", status.code, status.message))
}

fn check_groups(list: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(impersonate(list, true).unwrap().groups, expected, "{list:?}");
}

#[test]
fn who_may_acts_as_someone_else() {
    // AUTHN-04
    assert_eq!(impersonate(&[], false).unwrap().name, "joe");
    let user = impersonate(&[("impersonate-user", "ann"), ("impersonate-uid", "7")], true).unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "7"));
    let (all, none) = ("system:authenticated", "system:unauthenticated");
    check_groups(&[("impersonate-user", "ann")], &[all]);
    check_groups(&[("impersonate-user", "ann"), ("impersonate-group", "dev")], &["dev", all]);
    check_groups(&[("impersonate-user", "ann"), ("impersonate-group", none)], &[none]);
    check_groups(&[("impersonate-user", "system:anonymous")], &[none]);
    check_groups(
        &[("impersonate-user", "system:serviceaccount:ns:sa")],
        &["system:serviceaccounts", "system:serviceaccounts:ns", all],
    );
    let extra = [("impersonate-user", "ann"), ("impersonate-extra-scopes", "view")];
    let expected = [("scopes".to_owned(), vec!["view".to_owned()])];
    assert_eq!(impersonate(&extra, true).unwrap().extra, expected);
}

fn check_refusal(list: &[(&str, &str)], allowed: bool, expected: &str) {
    assert_eq!(impersonate(list, allowed).unwrap_err(), expected, "{list:?}");
}

#[test]
fn who_may_not_is_told_so() {
    check_refusal(
        &[("impersonate-user", "ann")],
        false,
        "403 pods is forbidden: User \"joe\" cannot impersonate-on:user-info:list resource \"pods\" in \
         API group \"\" at the cluster scope: Everything is forbidden.",
    );
    check_refusal(
        &[("impersonate-user", "system:serviceaccount:ns:sa")],
        false,
        "403 pods is forbidden: User \"joe\" cannot impersonate-on:serviceaccount:list resource \
         \"pods\" in API group \"\" at the cluster scope: Everything is forbidden.",
    );
    check_refusal(
        &[("impersonate-group", "dev")],
        true,
        "400 requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, \
         Extra:map[string][]string(nil)} without impersonating a user name",
    );
}
