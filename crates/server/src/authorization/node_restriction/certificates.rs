//! Certificates: a node may request them for itself and for the pods on it.

use pintle_auth::certificate_request::{KUBELET_CLIENT, KUBELET_SERVING};
use pintle_meta::object;
use pintle_meta::quote::quote;
use pintle_registry::admission::Operation::Create;
use pintle_value::Value;

use super::super::signers::requested;
use super::pods::is_mirror;
use super::{Decision, Refusal, Restricted, ensure};

impl Restricted<'_> {
    pub(super) fn certificate(&self) -> Decision {
        let Some(request) = self.object.filter(|_| self.operation == Create) else {
            return Ok(());
        };
        let signer = request.str_at(&["spec", "signerName"]);
        if !matches!(signer, Some(KUBELET_CLIENT | KUBELET_SERVING)) {
            return Ok(());
        }
        let wanted = requested(request)
            .map_err(|why| Refusal::Forbidden(format!("unable to parse csr: {why}")))?;
        let name = format!("system:node:{}", self.node);
        ensure(wanted.subject.common_name() == name, || {
            format!("can only create a node CSR with CN={name}")
        })
    }

    pub(super) fn pod_certificate(&self) -> Decision {
        let operation = self.operation;
        ensure(operation == Create, || format!("unexpected operation {}", operation.name()))?;
        ensure(self.subresource.is_empty(), || {
            format!("unexpected subresource {}", self.subresource)
        })?;
        let request = self.object.unwrap_or(&Value::Null);
        let claimed = |member: &str| request.str_at(&["spec", member]).unwrap_or_default();
        let named = |name: &str| quote(&format!("{}/{name}", self.namespace));
        let (node, pod_name) = (claimed("nodeName"), claimed("podName"));
        ensure(node == self.node, || {
            let (claimed, node) = (quote(node), self.quoted());
            format!(
                "PodCertificateRequest.Spec.NodeName={claimed}, which is not the requesting node {node}"
            )
        })?;
        let known = self.retrieve("node", &quote(node), ("node", "nodes"), "", node)?;
        let (pod, is) = (named(pod_name), object::uid(&known));
        consistent(claimed("nodeUID") == is, || {
            let claimed = quote(claimed("nodeUID"));
            format!(
                "PodCertificateRequest for pod {pod} names node UID {claimed}, inconsistent with the \
                 running node ({})",
                quote(is)
            )
        })?;
        let running = self.retrieve("pod", &pod, ("pod", "pods"), self.namespace, pod_name)?;
        let is = object::uid(&running);
        consistent(claimed("podUID") == is, || {
            let claimed = quote(claimed("podUID"));
            format!(
                "PodCertificateRequest for pod {pod} contains pod UID ({claimed}) which differs from \
                 running pod {}",
                quote(is)
            )
        })?;
        ensure(running.str_at(&["spec", "nodeName"]) == Some(node), || {
            let node = quote(node);
            format!("pod {pod} is not running on node {node} named in the PodCertificateRequest")
        })?;
        ensure(!is_mirror(&running), || format!("pod {pod} is a mirror pod"))?;
        self.account_of_pod(
            &pod,
            &running,
            claimed("serviceAccountName"),
            claimed("serviceAccountUID"),
        )
    }

    /// Checks that the request's service account is the pod's and exists.
    fn account_of_pod(&self, pod: &str, running: &Value, name: &str, uid: &str) -> Decision {
        let is = running.str_at(&["spec", "serviceAccountName"]).unwrap_or_default();
        ensure(name == is, || {
            format!(
                "PodCertificateRequest for pod {pod} contains serviceAccountName ({}) that differs \
                 from running pod ({})",
                quote(name),
                quote(is)
            )
        })?;
        let quoted = quote(&format!("{}/{name}", self.namespace));
        let kind = ("serviceaccount", "serviceaccounts");
        let account = self.retrieve("service account", &quoted, kind, self.namespace, name)?;
        let is = object::uid(&account);
        consistent(uid == is, || {
            format!(
                "PodCertificateRequest for pod {pod} names service account UID {}, which differs from \
                 the running service account ({})",
                quote(uid),
                quote(is)
            )
        })
    }

    /// Returns an object that the request names. The object may be created later, so the refusal
    /// for a missing one is not a 403.
    fn retrieve(
        &self,
        what: &str,
        quoted: &str,
        kind: (&str, &str),
        namespace: &str,
        name: &str,
    ) -> Result<Value, Refusal> {
        self.require("", kind, namespace, name).map_err(|refusal| {
            let why = refusal.words();
            Refusal::Inconsistent(format!(
                "while retrieving {what} {quoted} named in the PodCertificateRequest: {why}"
            ))
        })
    }
}

fn consistent(holds: bool, why: impl FnOnce() -> String) -> Decision {
    if holds { Ok(()) } else { Err(Refusal::Inconsistent(why())) }
}
