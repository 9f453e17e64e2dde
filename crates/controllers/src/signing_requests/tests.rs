use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pintle_auth::{Attributes, Authorizer, Objects, Rules, Ruling, RulingFuture, Subject, User};
use pintle_value::Value;
use rcgen::{CertificateParams, DnType, KeyPair};

use super::cleaning::deadline;
use super::{Order, Signer, approve, clean, sign};
use crate::cluster::{Cluster, Running, gone, tree};

const REQUESTS: &str = "certificates.k8s.io/certificatesigningrequests";

/// A signer that encodes the order instead of a certificate.
struct OrderEncoder;

impl Signer for OrderEncoder {
    fn sign(&self, order: &Order<'_>) -> Result<String, String> {
        let name = order.request.subject.common_name();
        let text = format!("{name} {} {}", order.usages.join("+"), order.seconds);
        let text = BASE64.encode(text);
        Ok(format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"))
    }
}

/// An authorizer that allows a user the subresource of the user's name.
struct AllowByName;

impl Authorizer for AllowByName {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        let Subject::Resource(Objects { subresource, .. }) = attributes.subject else {
            return Ruling::NO_OPINION.into();
        };
        let name = attributes.user.name.trim_start_matches("system:node:");
        let allowed = attributes.verb == "create" && name == subresource;
        let decision =
            if allowed { pintle_auth::Decision::Allow } else { pintle_auth::Decision::NoOpinion };
        Ruling::new(decision, "").into()
    }

    fn rules(&self, _: &User, _: &str) -> Rules {
        Rules::default()
    }
}

fn request(name: &str, common_name: &str, group: &str, spec: &str) -> String {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, common_name);
    let made = params.serialize_request(&KeyPair::generate().expect("a key")).expect("made");
    let pem = BASE64.encode(made.pem().expect("PEM"));
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"request":"{pem}",{spec}}}}}"#)
}

fn verdict(kind: &str) -> Value {
    tree(&format!(r#"{{"conditions":[{{"type":"{kind}","status":"True","reason":"x"}}]}}"#))
}

/// Returns the encoded order.
fn certificate(request: &Value) -> Option<String> {
    let pem = BASE64.decode(request.str_at(&["status", "certificate"])?).expect("base64");
    let pem = String::from_utf8(pem).expect("text");
    let text = BASE64.decode(pem.lines().nth(1)?).expect("base64");
    Some(String::from_utf8(text).expect("text"))
}

fn condition(request: &Value, kind: &str) -> Option<String> {
    let found = super::conditions(request).iter().find(|c| c.str_at(&["type"]) == Some(kind))?;
    found.str_at(&["message"]).map(str::to_owned)
}

const CLIENT: &str =
    r#""signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]"#;
const NODE: &str = r#""signerName":"kubernetes.io/kube-apiserver-client-kubelet",
    "usages":["client auth","digital signature"]"#;

#[tokio::test]
async fn approved_requests_are_signed() {
    let cluster = Cluster::start().await;
    let environment = cluster.environment.clone();
    let controller = Running::start(|stopped| {
        sign(environment, Arc::new(OrderEncoder), async move { _ = stopped.await })
    });
    let ask = async |name: &str, spec: &str, verdict_of: &str| {
        let text = request(name, "jane", "dev", spec);
        let mut made = cluster.create(REQUESTS, &text).await.expect("created");
        made.make_object().insert("status", verdict(verdict_of));
        cluster.update_part(REQUESTS, "approval", made).await.expect("updated");
    };
    ask("denied", CLIENT, "Denied").await;
    ask("others", &CLIENT.replace("kubernetes.io/", "example.com/"), "Approved").await;
    ask("wrong", &CLIENT.replace("client auth", "server auth"), "Approved").await;
    ask("short", &format!(r#"{CLIENT},"expirationSeconds":3600"#), "Approved").await;
    ask("plain", CLIENT, "Approved").await;
    let plain = cluster.see(REQUESTS, "plain", |request| certificate(request).is_some()).await;
    assert_eq!(certificate(&plain).as_deref(), Some("jane client auth 31536000"));
    let short = cluster.see(REQUESTS, "short", |request| certificate(request).is_some()).await;
    assert_eq!(certificate(&short).as_deref(), Some("jane client auth 3600"));
    let wrong = cluster.see(REQUESTS, "wrong", |r| condition(r, "Failed").is_some()).await;
    let words = "invalid usage for client certificate: server auth";
    assert_eq!(condition(&wrong, "Failed").as_deref(), Some(words));
    for name in ["denied", "others", "wrong"] {
        let request = cluster.get(REQUESTS, "", name).expect("it is there");
        assert_eq!(certificate(&request), None, "{name}");
    }
    controller.stop().await;
}

#[tokio::test]
async fn requests_of_nodes_are_approved() {
    let cluster = Cluster::start().await;
    let environment = cluster.environment.clone();
    let controller = Running::start(|stopped| {
        approve(environment, Arc::new(AllowByName), async move { _ = stopped.await })
    });
    let ask = async |name: &str, common_name: &str, asker: &str| {
        let text = request(name, common_name, "system:nodes", NODE);
        cluster.create_as(asker, REQUESTS, &text).await.expect("created");
    };
    ask("nobody", "system:node:a", "someone").await;
    ask("anothers", "system:node:a", "system:node:selfnodeclient").await;
    ask("no-node", "nodeclient", "nodeclient").await;
    ask("own", "system:node:selfnodeclient", "system:node:selfnodeclient").await;
    ask("first", "system:node:a", "nodeclient").await;
    let words = |whose: &str| {
        format!("Auto approving {whose}kubelet client certificate after SubjectAccessReview.")
    };
    let approved = |request: &Value| condition(request, "Approved").is_some();
    let first = cluster.see(REQUESTS, "first", approved).await;
    assert_eq!(condition(&first, "Approved"), Some(words("")));
    let own = cluster.see(REQUESTS, "own", approved).await;
    assert_eq!(condition(&own, "Approved"), Some(words("self ")));
    for name in ["nobody", "anothers", "no-node"] {
        assert!(!approved(&cluster.get(REQUESTS, "", name).expect("it is there")), "{name}");
    }
    controller.stop().await;
}

#[tokio::test]
async fn old_requests_are_deleted() {
    let cluster = Cluster::start().await;
    for name in ["waiting", "denied"] {
        let text = request(name, "jane", "dev", CLIENT);
        let mut made = cluster.create(REQUESTS, &text).await.expect("created");
        if name == "denied" {
            made.make_object().insert("status", verdict("Denied"));
            cluster.update_part(REQUESTS, "approval", made).await.expect("updated");
        }
    }
    cluster.pass_seconds(3601);
    let mut watch = cluster.watch(REQUESTS).await;
    let environment = cluster.environment.clone();
    let controller = Running::start(|stopped| clean(environment, async move { _ = stopped.await }));
    gone(&mut watch, "denied").await;
    let mut waiting = cluster.get(REQUESTS, "", "waiting").expect("it is there");
    cluster.pass_seconds(24 * 3600);
    waiting.object_entry("metadata").insert("labels", tree(r#"{"a":"b"}"#)); // this change enqueues it
    cluster.update(REQUESTS, waiting).await.expect("updated");
    gone(&mut watch, "waiting").await;
    controller.stop().await;
}

#[test]
fn requests_are_deleted_after_decision_or_expiry() {
    let check = |request: &str, expected: Option<i64>| {
        let found = deadline(&tree(request)).map(|micros| micros / 1_000_000);
        assert_eq!(found, expected, "{request}");
    };
    let of = |kind: &str, rest: &str| {
        format!(
            r#"{{"status":{{{rest}"conditions":[
                {{"type":"{kind}","status":"True","lastUpdateTime":"1970-01-01T00:01:00Z"}}]}}}}"#
        )
    };
    check(r#"{"metadata":{"creationTimestamp":"1970-01-01T00:00:10Z"}}"#, Some(86_410));
    check(&of("Denied", ""), Some(3660));
    check(&of("Failed", ""), Some(3660));
    check(&of("Approved", ""), None);
    check(&of("Approved", r#""certificate":"eA==","#), Some(3660));
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.not_before = rcgen::date_time_ymd(1970, 1, 1);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1);
    let expired = params.self_signed(&KeyPair::generate().expect("a key")).expect("made");
    let expired = format!(r#""certificate":"{}","#, BASE64.encode(expired.pem()));
    check(&of("Approved", &expired), Some(0));
}
