//! Tokens: a node may request them for the pods on it and for the audiences that these need.

use pintle_meta::object;
use pintle_meta::quote::quote;
use pintle_registry::admission::{self, Operation::Create};
use pintle_value::Value;

use super::{Decision, Refusal, Restricted, ensure};

/// The volume members that were migrated to CSI drivers (upstream: `k8s.io/csi-translation-lib`).
const MIGRATED: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

/// True for a TokenRequest.
pub(super) fn is_about(write: &admission::Attributes<'_>) -> bool {
    let of = &write.resource.resource;
    write.operation == Create
        && (of.group.as_str(), of.resource.as_str(), write.subresource)
            == ("", "serviceaccounts", "token")
}

impl Restricted<'_> {
    pub(super) fn token(&self) -> Decision {
        let Some(request) =
            self.object.filter(|_| self.operation == Create && self.subresource == "token")
        else {
            return Ok(());
        };
        let bound =
            |member: &str| request.str_at(&["spec", "boundObjectRef", member]).unwrap_or_default();
        let is_bound =
            (bound("apiVersion"), bound("kind")) == ("v1", "Pod") && !bound("name").is_empty();
        ensure(is_bound, || "node requested token not bound to a pod".to_owned())?;
        let uid = bound("uid");
        ensure(!uid.is_empty(), || {
            "node requested token with a pod binding without a uid".to_owned()
        })?;
        let pod = self.require_pod(bound("name"))?;
        ensure(uid == object::uid(&pod), || {
            format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The \
                 object might have been deleted and then recreated"
            )
        })?;
        ensure(pod.str_at(&["spec", "nodeName"]) == Some(self.node), || {
            "node requested token bound to a pod scheduled on a different node".to_owned()
        })?;
        self.audience(request, &pod)
    }

    /// Checks that the pod needs the audience or that the node may have it.
    fn audience(&self, request: &Value, pod: &Value) -> Decision {
        let asked = request.at(&["spec", "audiences"]).and_then(Value::as_array);
        let audience = match asked.unwrap_or_default() {
            [] => "",
            [one] => one.as_str().unwrap_or_default(),
            _ => {
                let why = "node may only request 0 or 1 audiences";
                return Err(Refusal::Forbidden(why.to_owned()));
            }
        };
        let mut errors = Vec::new();
        for volume in list(pod, &["spec", "volumes"]) {
            match self.volume_has_audience(pod, volume, audience) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(refusal) => errors.push(refusal.words()),
            }
        }
        let quoted = quote(audience);
        if !errors.is_empty() {
            errors.dedup();
            let why = match errors.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            return Err(Refusal::Forbidden(format!("error validating audience {quoted}: {why}")));
        }
        ensure(self.world.may_have_audience(audience, self.namespace, self.name), || {
            format!(
                "audience {quoted} not found in pod spec volume, system:node:{} is not authorized to \
                 request tokens for this audience",
                self.node
            )
        })
    }

    /// Whether the volume projects tokens for the audience, or its CSI driver requests them.
    fn volume_has_audience(
        &self,
        pod: &Value,
        volume: &Value,
        audience: &str,
    ) -> Result<bool, Refusal> {
        let of = |request: &Value| request.str_at(&["audience"]).unwrap_or_default() == audience;
        let mut tokens = list(volume, &["projected", "sources"])
            .iter()
            .filter_map(|source| source.get("serviceAccountToken"));
        if tokens.any(of) {
            return Ok(true);
        }
        let claim = |name: &str| self.driver_of_claim(name);
        let driver = if volume.at(&["ephemeral", "volumeClaimTemplate"]).is_some() {
            let volume = volume.str_at(&["name"]).unwrap_or_default();
            claim(&format!("{}-{volume}", object::name(pod)))?
        } else if let Some(name) = volume.str_at(&["persistentVolumeClaim", "claimName"]) {
            claim(name)?
        } else {
            driver(volume)
        };
        if driver.is_empty() {
            return Ok(false);
        }
        let driver = self.require("storage.k8s.io", ("csidriver", "csidrivers"), "", &driver)?;
        Ok(list(&driver, &["spec", "tokenRequests"]).iter().any(of))
    }

    /// The CSI driver of the volume that a claim is bound to.
    fn driver_of_claim(&self, name: &str) -> Result<String, Refusal> {
        let kind = ("persistentvolumeclaim", "persistentvolumeclaims");
        let claim = self.require("", kind, self.namespace, name)?;
        let volume = claim.str_at(&["spec", "volumeName"]).unwrap_or_default();
        let volume = self.require("", ("persistentvolume", "persistentvolumes"), "", volume)?;
        Ok(volume.get("spec").map(driver).unwrap_or_default())
    }
}

/// The CSI driver of a volume; `""` if it has none.
fn driver(volume: &Value) -> String {
    let own = volume.str_at(&["csi", "driver"]);
    let migrated = || {
        let is_it = |(member, _): &&(&str, &str)| {
            volume.get(member).is_some_and(|source| !source.is_null())
        };
        MIGRATED.iter().find(is_it).map(|(_, driver)| *driver)
    };
    own.or_else(migrated).unwrap_or_default().to_owned()
}

fn list<'v>(value: &'v Value, path: &[&str]) -> &'v [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}
