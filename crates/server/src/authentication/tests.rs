use super::impersonation::Impersonation;
use super::*;
use crate::config::RequestHeader;
use crate::pki::Authorities;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::tls::Chains;
use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue, Method};
use pintle_auth::token::{AccountTokens, TokenList};
use pintle_auth::{AlwaysAllow, AlwaysDeny, Authorizer};
use pintle_registry::Options;
use pintle_registry::admission::AdmitAll;

async fn registry() -> Registry {
    let options = Options {
        store: Box::new(pintle_store::memory(u64::MAX).unwrap()),
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
            list: TokenList::parse("known,jane,1,dev\ntökén,tove,2").unwrap(),
            accounts: AccountTokens::new(Vec::new(), Vec::new(), audiences),
            uses: Arc::default(),
            bootstrap: false,
            external: None,
        },
        anonymous: anonymous.then(|| Arc::new(User::anonymous())),
        anonymous_paths: Vec::new(),
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
    authenticate(&authentication, None, &headers, 0).await
}

#[tokio::test]
async fn requests_without_credentials_are_anonymous_or_refused() {
    assert_eq!(user(true, "").await, Ok("system:anonymous".to_owned()));
    assert_eq!(user(false, "").await, Err(Error::Missing));
}

#[tokio::test]
async fn unknown_tokens_are_refused() {
    // AUTHN-02, AUTHN-03
    assert_eq!(user(true, "Bearer known").await, Ok("jane".to_owned()));
    assert_eq!(user(true, "bearer known").await, Ok("jane".to_owned()));
    assert_eq!(user(true, "Bearer abc").await, Err(Error::Token));
    assert_eq!(user(true, "Basic abc").await, Ok("system:anonymous".to_owned()));
    assert_eq!(user(true, "Bearer  ").await, Ok("system:anonymous".to_owned()));
}

#[tokio::test]
async fn tokens_with_other_than_ascii_characters_are_checked() {
    assert_eq!(user(true, "Bearer tökén").await, Ok("tove".to_owned()));
    assert_eq!(user(true, "\u{a0}Bearer tökén ").await, Ok("tove".to_owned()));
    assert_eq!(user(true, "Bearer tökèn").await, Err(Error::Token));
    let latin = HeaderValue::from_bytes(b"Bearer t\xf6k\xe9n").unwrap();
    let headers = HeaderMap::from_iter([(AUTHORIZATION, latin)]);
    assert_eq!(
        authenticate(&authentication(true, None), None, &headers, 0).await,
        Err(Error::Token)
    );
}

/// Noon of a day in the named month of 2001, in seconds since 1970.
const JANUARY: i64 = 978_350_400;
const FEBRUARY: i64 = JANUARY + 40 * 86_400;
const MAY: i64 = JANUARY + 140 * 86_400;
const JUNE: i64 = JANUARY + 160 * 86_400;

/// A verifier for an authority, and a chain of a leaf and an intermediate certificate that it
/// trusts. All are valid from the start of 2001: the leaf until June, the others until these months.
fn chain(
    name: &str,
    [middle_until, root_until]: [u8; 2],
) -> (Arc<Verifier>, Vec<CertificateDer<'static>>) {
    let params = |name: &str, is_ca: bool, end: u8| {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2001, end, 1);
        if is_ca {
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        }
        params
    };
    let keys = [(); 3].map(|()| rcgen::KeyPair::generate().unwrap());
    let root = rcgen::CertifiedIssuer::self_signed(params("root", true, root_until), &keys[0]);
    let root = root.unwrap();
    let middle =
        rcgen::CertifiedIssuer::signed_by(params("middle", true, middle_until), &keys[1], &root);
    let middle = middle.unwrap();
    let leaf = params(name, false, 6).signed_by(&keys[2], &middle).unwrap();
    (Arc::new(verifier(root.der().clone())), vec![leaf.der().clone(), middle.der().clone()])
}

/// A verifier with one CA.
fn verifier(root: CertificateDer<'static>) -> Verifier {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Verifier::new(Chains::new(&Authorities::new(String::new(), [root]), &provider).unwrap())
}

/// Authenticates a request at the time `seconds`, over a connection with this certificate chain, if
/// any, and returns the user's name.
async fn authenticate(
    authentication: &Authentication,
    chain: Option<&[CertificateDer<'_>]>,
    headers: &HeaderMap,
    seconds: i64,
) -> Result<String, Error> {
    let at = |seconds: i64| Now { unix_micros: seconds * 1_000_000 };
    let peer = authentication.peer(chain);
    let user =
        authentication.user(&peer, (headers, "/"), at(seconds), &registry().await).await?.user;
    Ok(user.name.clone())
}

#[tokio::test]
async fn a_client_certificate_is_valid_while_its_whole_chain_is() {
    let none = HeaderMap::new();
    let known = headers(&[("authorization", "Bearer known")]);
    for (ends, holds, ended) in
        [([9, 12], MAY, JUNE), ([3, 12], FEBRUARY, MAY), ([9, 3], FEBRUARY, MAY)]
    {
        let (verifier, chain) = chain("joe", ends);
        let authentication =
            Authentication { verifier: Some(verifier), ..authentication(true, None) };
        let at = |seconds, headers| authenticate(&authentication, Some(&chain), headers, seconds);
        assert_eq!(at(holds, &none).await, Ok("joe".to_owned()), "{ends:?}");
        assert!(matches!(at(ended, &none).await, Err(Error::Untrusted(_))), "{ends:?}");
        // A valid token is enough.
        assert_eq!(at(ended, &known).await, Ok("jane".to_owned()), "{ends:?}");
    }
}

#[tokio::test]
async fn a_front_proxy_is_trusted_while_its_whole_chain_is_valid() {
    let named = headers(&[("x-remote-user", "ann")]);
    for (ends, holds, ended) in
        [([9, 12], MAY, JUNE), ([3, 12], FEBRUARY, MAY), ([9, 3], FEBRUARY, MAY)]
    {
        let (verifier, chain) = chain("proxy", ends);
        let proxy = FrontProxy::new(verifier, RequestHeader::default());
        let authentication = authentication(true, Some(proxy));
        let at = |seconds| authenticate(&authentication, Some(&chain), &named, seconds);
        assert_eq!(at(holds).await, Ok("ann".to_owned()), "{ends:?}");
        assert!(matches!(at(ended).await, Err(Error::Untrusted(_))), "{ends:?}");
    }
}

#[tokio::test]
async fn an_expired_certificate_outside_the_chain_is_ignored() {
    let (verifier, mut chain) = chain("joe", [9, 12]);
    let (_, others) = self::chain("other", [3, 12]);
    chain.extend(others);
    let authentication = Authentication { verifier: Some(verifier), ..authentication(true, None) };
    let found = authenticate(&authentication, Some(&chain), &HeaderMap::new(), MAY).await;
    assert_eq!(found, Ok("joe".to_owned()));
}

#[tokio::test]
async fn only_a_front_proxy_can_name_the_user_in_headers() {
    let (verifier, chain) = chain("proxy", [9, 12]);
    let uid_headers = vec!["x-remote-uid".to_owned()];
    let given = RequestHeader { uid_headers, ..RequestHeader::default() };
    let proxy = || FrontProxy::new(verifier.clone(), given.clone());
    let (with, without) = (authentication(true, Some(proxy())), authentication(true, None));
    let registry = registry().await;
    let now = Now { unix_micros: JANUARY * 1_000_000 };
    let authenticate = async |authentication: &Authentication, headers: &HeaderMap| {
        let peer = authentication.peer(Some(&chain));
        authentication.user(&peer, (headers, "/"), now, &registry).await.unwrap().user
    };
    let named = headers(&[
        ("x-remote-user", "ann"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "dev"),
        ("x-remote-group", "ops"),
        ("x-remote-extra-example.com%2fteam", "a"),
    ]);
    let user = authenticate(&with, &named).await;
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "7"));
    assert_eq!(user.groups, ["dev", "ops", "system:authenticated"]);
    assert_eq!(user.extra, [("example.com/team".to_owned(), vec!["a".to_owned()])]);
    assert_eq!(authenticate(&without, &named).await.name, "system:anonymous");
    assert_eq!(authenticate(&with, &HeaderMap::new()).await.name, "system:anonymous");
    let latin =
        |name, bytes| (HeaderName::from_static(name), HeaderValue::from_bytes(bytes).unwrap());
    let user = authenticate(
        &with,
        &HeaderMap::from_iter([
            latin("x-remote-user", "jürgen".as_bytes()),
            latin("x-remote-group", "köche".as_bytes()),
            latin("x-remote-group", b"k\xf6che"),
            latin("x-remote-extra-a", b"\xff"),
        ]),
    )
    .await;
    assert_eq!(user.name, "jürgen");
    assert_eq!(user.groups, ["köche", "k\u{fffd}che", "system:authenticated"]);
    assert_eq!(user.extra, [("a".to_owned(), vec!["\u{fffd}".to_owned()])]);
    let user =
        authenticate(&with, &HeaderMap::from_iter([latin("x-remote-user", b"j\xfcrgen")])).await;
    assert_eq!(user.name, "j\u{fffd}rgen");
}

fn impersonate(list: &[(&str, &str)], allowed: bool) -> Result<Arc<User>, String> {
    impersonate_by(&headers(list), allowed)
}

fn impersonate_by(headers: &HeaderMap, allowed: bool) -> Result<Arc<User>, String> {
    let joe = Arc::new(User { name: "joe".to_owned(), ..User::default() });
    let query = Query::parse("");
    let info = RequestInfo::parse(&Method::GET, "/api/v1/pods", &query).expect("it is a path");
    let authorizer: &dyn Authorizer = if allowed { &AlwaysAllow } else { &AlwaysDeny };
    let measures = &impersonation::Measures::default();
    let impersonation = Impersonation { authorizer, is_constrained: true, measures };
    let found = impersonation::impersonated(joe, headers, &info, &impersonation);
    let found = found.now_or_never().expect("no webhook").map(|(user, _)| user);
    found.map_err(|status| format!("{} {}", status.code, status.message))
}

fn check_groups(list: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(impersonate(list, true).unwrap().groups, expected, "{list:?}");
}

#[test]
fn an_authorized_user_impersonates() {
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
    for (name, seen) in [(&b"j\xc3\xbcrgen"[..], "jürgen"), (b"j\xfcrgen", "j\u{fffd}rgen")] {
        let name = HeaderValue::from_bytes(name).unwrap();
        let headers = HeaderMap::from_iter([(HeaderName::from_static("impersonate-user"), name)]);
        assert_eq!(impersonate_by(&headers, true).unwrap().name, seen);
        assert!(impersonate_by(&headers, false).is_err(), "{seen}");
    }
    let extra = [("impersonate-user", "ann"), ("impersonate-extra-scopes", "view")];
    let expected = [("scopes".to_owned(), vec!["view".to_owned()])];
    assert_eq!(impersonate(&extra, true).unwrap().extra, expected);
}

fn check_refusal(list: &[(&str, &str)], allowed: bool, expected: &str) {
    assert_eq!(impersonate(list, allowed).unwrap_err(), expected, "{list:?}");
}

#[test]
fn impersonation_without_authorization_is_forbidden() {
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

#[test]
fn credentials_are_removed_before_a_request_is_relayed() {
    let custom =
        RequestHeader { username_headers: vec!["X-Who".into()], ..RequestHeader::default() };
    let (verifier, _) = chain("proxy", [9, 12]);
    let proxy = FrontProxy::new(verifier, custom);
    let asked = headers(&[
        ("authorization", "Bearer secret"),
        ("impersonate-user", "root"),
        ("impersonate-extra-scopes", "all"),
        ("x-who", "root"),
        ("x-remote-user", "root"),
        ("x-remote-extra-a", "b"),
        ("accept", "text/html"),
        ("cookie", "of the backend"),
    ]);
    let mut asked = asked;
    for names in [
        "a, base64url.bearer.authorization.k8s.io.c2VjcmV0,b",
        "base64url.bearer.authorization.k8s.io.c2VjcmV0",
    ] {
        asked.append("sec-websocket-protocol", HeaderValue::from_static(names));
    }
    let relayed = authentication(true, Some(proxy)).without_credentials(&asked);
    let mut relayed: Vec<_> =
        relayed.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    relayed.sort_unstable();
    let rest =
        [("accept", "text/html"), ("cookie", "of the backend"), ("sec-websocket-protocol", "a, b")];
    assert_eq!(relayed, rest);
}
