use std::cell::Cell;

use super::*;
use crate::Error;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};

/// The service account `ns/builder` and one object `x` of each other kind, all with the UID `uid`.
struct World {
    without: Option<StoredKind>,
    uid: &'static str,
    deleted: Option<i64>,
    token: String,
    is_invalidated: bool,
}

const WHOLE: World =
    World { without: None, uid: "1", deleted: None, token: String::new(), is_invalidated: false };

impl Objects for World {
    fn find(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<StoredObject> {
        let known = name == "builder" || kind != StoredKind::ServiceAccount && name == "x";
        let in_scope =
            if kind == StoredKind::Node { namespace.is_empty() } else { namespace == "ns" };
        let there = known && in_scope && self.without != Some(kind);
        let (deleted, token) = (self.deleted, self.token.clone().into_bytes());
        let is_invalidated = self.is_invalidated && kind == StoredKind::Secret;
        let uid = self.uid.into();
        there.then(|| StoredObject {
            uid,
            deleted,
            token,
            is_invalidated,
            ..StoredObject::default()
        })
    }

    fn revision(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<u64> {
        self.find(kind, namespace, name).map(|_| 1)
    }

    fn resets(&self) -> u64 {
        0
    }

    fn used(&self, _: &str, _: &str) {}
}

/// A world whose objects have all changed at a revision, and how many objects were read.
struct Counted<'a> {
    world: &'a World,
    resets: u64,
    revision: u64,
    reads: Cell<usize>,
}

impl Objects for Counted<'_> {
    fn find(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<StoredObject> {
        self.reads.set(self.reads.get() + 1);
        self.world.find(kind, namespace, name)
    }

    fn revision(&self, kind: StoredKind, namespace: &str, name: &str) -> Option<u64> {
        self.world.find(kind, namespace, name).map(|_| self.revision)
    }

    fn resets(&self) -> u64 {
        self.resets
    }

    fn used(&self, _: &str, _: &str) {}
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn issuer() -> (Issuer, AccountTokens) {
    let pem = KeyPair::generate().unwrap().serialize_pem();
    let key = SigningKey::from_pem(&pem).unwrap();
    let tokens = AccountTokens::new(
        vec![key.public().clone()],
        texts(&["https://me", "old"]),
        texts(&["api"]),
    );
    (Issuer::new(key, "https://me"), tokens)
}

fn reference(name: &str) -> Reference {
    Reference { name: name.into(), uid: "1".into() }
}

fn claims(binding: Binding) -> Claims {
    Claims {
        namespace: "ns".into(),
        account: reference("builder"),
        audiences: texts(&["api"]),
        binding,
        id: "j".into(),
        not_before: Some(1000),
        issued: Some(1000),
        expires: Some(2000),
        ..Claims::default()
    }
}

fn check(binding: Binding, world: &World, now: i64, audience: &str, expected: Result<(), &str>) {
    let (issuer, tokens) = issuer();
    let token = issuer.sign(&claims(binding)).unwrap();
    // The second round takes the verified signature from the cache.
    for _ in 0..2 {
        let found = tokens.authenticate(&token, &texts(&[audience]), now, world);
        let found = found.map(|found| {
            let found = found.unwrap();
            assert_eq!(found.user.name, "system:serviceaccount:ns:builder");
            assert_eq!(found.audiences, [audience]);
        });
        assert_eq!(found.map_err(|e| e.to_string()), expected.map_err(str::to_owned));
    }
}

#[test]
fn a_token_is_valid_in_its_time_for_its_audience() {
    // TOK-01
    check(Binding::Account, &WHOLE, 1000, "api", Ok(()));
    check(Binding::Account, &WHOLE, 940, "api", Ok(()));
    check(Binding::Account, &WHOLE, 939, "api", Err("service account token is not valid yet"));
    check(Binding::Account, &WHOLE, 2060, "api", Ok(()));
    check(Binding::Account, &WHOLE, 2061, "api", Err("service account token has expired"));
    let other = r#"token audiences ["api"] is invalid for the target audiences ["vault"]"#;
    check(Binding::Account, &WHOLE, 1000, "vault", Err(other));
}

#[test]
fn a_token_is_invalid_after_its_bound_object_is_deleted() {
    // TOK-02
    let invalidated = Err("service account token has been invalidated");
    let without = |kind| World { without: Some(kind), ..WHOLE };
    let replaced = World { uid: "2", ..WHOLE };
    let deleted = |second| World { deleted: Some(second), ..WHOLE };
    let missing = Err("serviceaccounts \"builder\" not found");
    check(Binding::Account, &without(StoredKind::ServiceAccount), 1000, "api", missing);
    let wrong = Err("service account UID (2) does not match claim (1)");
    check(Binding::Account, &replaced, 1000, "api", wrong);
    check(Binding::Account, &deleted(940), 1000, "api", Ok(()));
    let gone = Err("service account ns/builder has been deleted");
    check(Binding::Account, &deleted(939), 1000, "api", gone);
    let pod = || Binding::Pod { pod: reference("x"), node: Some(reference("gone")) };
    check(pod(), &WHOLE, 1000, "api", Ok(()));
    check(pod(), &without(StoredKind::Pod), 1000, "api", invalidated);
    check(Binding::Secret(reference("x")), &WHOLE, 1000, "api", Ok(()));
    check(Binding::Secret(reference("x")), &without(StoredKind::Secret), 1000, "api", invalidated);
    check(Binding::Node(reference("x")), &WHOLE, 1000, "api", Ok(()));
    check(Binding::Node(reference("x")), &without(StoredKind::Node), 1000, "api", invalidated);
}

/// The objects of a token are read when one of them has changed, and not at each request.
#[test]
fn the_objects_of_a_token_are_read_after_a_change() {
    let (issuer, tokens) = issuer();
    let token = issuer.sign(&claims(Binding::Pod { pod: reference("x"), node: None })).unwrap();
    let reads = |world: &World, [resets, revision]: [u64; 2]| {
        let objects = Counted { world, resets, revision, reads: Cell::default() };
        let found = tokens.authenticate(&token, &texts(&["api"]), 1_000, &objects);
        (found.is_ok_and(|user| user.is_some()), objects.reads.get())
    };
    let deleting = World { deleted: Some(1_000), ..WHOLE };
    let other = World { uid: "2", ..WHOLE };
    let without = World { without: Some(StoredKind::Pod), ..WHOLE };
    let steps = [
        (&WHOLE, [0, 1], (true, 2)),
        (&WHOLE, [0, 1], (true, 0)),
        (&WHOLE, [0, 2], (true, 2)),
        (&without, [0, 2], (false, 2)),
        (&WHOLE, [0, 2], (true, 0)),
        (&deleting, [0, 3], (true, 2)),
        (&deleting, [0, 3], (true, 2)),
        (&other, [0, 4], (false, 1)),
        (&other, [0, 4], (false, 1)),
        (&WHOLE, [0, 5], (true, 2)),
        (&WHOLE, [0, 5], (true, 0)),
        (&WHOLE, [1, 5], (true, 2)),
        (&other, [2, 5], (false, 1)),
    ];
    for (at, (world, revision, expected)) in steps.into_iter().enumerate() {
        assert_eq!(reads(world, revision), expected, "step {at}");
    }
}

#[test]
fn a_legacy_token_must_equal_the_one_in_its_secret() {
    let (issuer, tokens) = issuer();
    let token = issuer.sign_for_secret("ns", reference("builder"), "x").unwrap();
    let ask = |world: &World| {
        let found = tokens.authenticate(&token, &texts(&["api"]), 0, world);
        found.map(|found| found.unwrap().user.name.clone()).map_err(|e| e.to_string())
    };
    let world_with_token = || World { token: token.clone(), ..WHOLE };
    assert_eq!(ask(&world_with_token()), Ok("system:serviceaccount:ns:builder".to_owned()));
    assert_eq!(ask(&WHOLE), Err("Token does not match server's copy".to_owned()));
    let gone = World { without: Some(StoredKind::Secret), ..world_with_token() };
    assert_eq!(ask(&gone), Err("Token has been invalidated".to_owned()));
    let marked = ask(&World { is_invalidated: true, ..world_with_token() }).unwrap_err();
    assert!(
        marked.starts_with("the token in secret ns/x for service account ns/builder"),
        "{marked}"
    );
    assert!(marked.contains("'kubernetes.io/legacy-token-invalid-since' label"), "{marked}");
}

#[test]
fn tokens_with_other_signatures_are_refused() {
    let (issuer, tokens) = issuer();
    let (stranger, _) = self::issuer();
    let ask = |token: &str| tokens.authenticate(token, &texts(&["api"]), 1000, &WHOLE);
    // A token of another issuer, or of another kind, is left to other authenticators.
    for token in ["", "abc", "a.b.c", "..", "e30.e30.e30"] {
        assert_eq!(ask(token), Ok(None), "{token}");
    }
    let token = stranger.sign(&claims(Binding::Account)).unwrap();
    assert_eq!(ask(&token), Err(Error::Account("invalid signature, no keys found".to_owned())));
    let token = issuer.sign(&claims(Binding::Account)).unwrap();
    let (message, signature) = token.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let other = issuer.sign(&claims(Binding::Node(reference("x")))).unwrap();
    let (_, body) = other.rsplit_once('.').unwrap().0.split_once('.').unwrap();
    assert!(ask(&format!("{header}.{body}.{signature}")).is_err());
    assert!(ask(&format!("{message}.")).is_err());
}

#[test]
fn a_token_gives_groups_and_extra_as_upstream() {
    let (issuer, tokens) = issuer();
    let bound = Binding::Pod { pod: reference("x"), node: Some(reference("n")) };
    let token = issuer.sign(&claims(bound)).unwrap();
    let found = tokens.authenticate(&token, &texts(&["api"]), 1000, &WHOLE).unwrap().unwrap();
    let all =
        texts(&["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]);
    assert_eq!((found.user.uid.as_str(), &found.user.groups), ("1", &all));
    let expected = [
        ("authentication.kubernetes.io/credential-id", "JTI=j"),
        ("authentication.kubernetes.io/node-name", "n"),
        ("authentication.kubernetes.io/node-uid", "1"),
        ("authentication.kubernetes.io/pod-name", "x"),
        ("authentication.kubernetes.io/pod-uid", "1"),
    ];
    assert_eq!(found.user.extra, expected.map(|(k, v)| (k.to_owned(), texts(&[v]))));
}

#[test]
fn keys_are_read_from_private_keys_public_keys_and_certificates() {
    for (algorithm, name) in
        [(&PKCS_ECDSA_P256_SHA256, "ES256"), (&PKCS_ECDSA_P384_SHA384, "ES384")]
    {
        let pair = KeyPair::generate_for(algorithm).unwrap();
        let key = SigningKey::from_pem(&pair.serialize_pem()).unwrap();
        assert_eq!(key.public().algorithm(), name);
        let certificate = rcgen::CertificateParams::default().self_signed(&pair).unwrap();
        for pem in [pair.serialize_pem(), pair.public_key_pem(), certificate.pem()] {
            let keys = public_keys(&pem).unwrap();
            assert_eq!((keys.len(), keys[0].id()), (1, key.public().id()), "{pem}");
        }
        let message = b"message";
        let signature = key.sign(message).unwrap();
        assert!(key.public().verifies(name, message, &signature));
        assert!(!key.public().verifies(name, b"other", &signature));
        assert!(!key.public().verifies("none", message, &signature));
    }
    assert!(public_keys("").is_err());
    assert!(SigningKey::from_pem(&KeyPair::generate().unwrap().public_key_pem()).is_err());
}
