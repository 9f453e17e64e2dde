//! ServiceAccount: gives pods a service account of their namespace and mounts its token (upstream:
//! `ServiceAccount`).

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use pintle_meta::{GroupVersionResource, Status, names, object};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation, Waited};
use pintle_registry::request::{ListOptions, Target};
use pintle_registry::results::Event;
use pintle_value::{Str, Value};

use crate::pods::items;
use crate::references::{CONTAINERS, has_secrets};
use crate::{creates, forbidden};

/// The service account of pods that name none.
const DEFAULT: &str = "default";

/// How long the create of a pod waits for the default service account of its namespace, which a
/// controller creates. Upstream looks ten times, every 100 to 200 ms.
const ACCOUNT_WAIT_MAX: Duration = Duration::from_secs(1);

const VOLUME: &str = "kube-api-access";
/// The longest name of a valid volume, a DNS label. The volume's name is copied into each container
/// before validation refuses longer names.
const VOLUME_NAME_BYTES_MAX: usize = 63;
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour and seven seconds. The server recognizes by this number a token that no user requested
/// (upstream: `WarnOnlyBoundTokenExpirationPeriod`).
const TOKEN_SECONDS: i64 = 3607;
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCES: &str = "kubernetes.io/enforce-mountable-secrets";

/// The lists of containers of a new pod, and those to which an update can add containers.
const INITIAL_CONTAINERS: &[&str] = &["initContainers", "containers"];
const EPHEMERAL_CONTAINERS: &[&str] = &["ephemeralContainers"];

/// The plugin.
pub(crate) struct ServiceAccount {
    /// Fills a buffer with random bytes, for the names of volumes.
    pub entropy: fn(&mut [u8]),
}

impl Admission for ServiceAccount {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::AwaitPrerequisite, Hook::Mutate, Hook::Validate])
    }

    fn await_prerequisite<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let pod = write.object.filter(|_| creates(write, "", "pods"))?;
        let name = Some(account_name(pod)).filter(|name| !name.is_empty()).unwrap_or(DEFAULT);
        let accounts =
            registry.resource(&GroupVersionResource::new("", "v1", "serviceaccounts"))?;
        if is_mirror(pod) || registry.peek(&accounts, write.namespace, name).is_some() {
            return None;
        }
        if name != DEFAULT {
            // Another server of the same database may have created it.
            return Some(Box::pin(registry.catch_up()));
        }
        let target = Target {
            resource: accounts,
            namespace: write.namespace.into(),
            name: Str::default(),
            subresource: Str::default(),
        };
        Some(Box::pin(async move {
            // If the account does not appear, `mutate` refuses the pod.
            let _ =
                tokio::time::timeout(ACCOUNT_WAIT_MAX, wait_for_account(registry, &target)).await;
            Ok(())
        }))
    }

    fn mutate(
        &self,
        write: &Attributes<'_>,
        pod: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        if !creates(write, "", "pods") {
            return Ok(());
        }
        if is_mirror(pod) {
            return check(write, pod, registry);
        }
        if account_name(pod).is_empty() {
            let spec = pod.object_entry("spec");
            // The deprecated member `serviceAccount` has the same value, as after decoding.
            spec.insert("serviceAccount", DEFAULT);
            spec.insert("serviceAccountName", DEFAULT);
        }
        let account = account(write, pod, registry)?;
        if wants_token(pod, &account) {
            mount_token(pod, || {
                let mut bytes = [0; 8];
                (self.entropy)(&mut bytes);
                names::generate(&format!("{VOLUME}-"), u64::from_le_bytes(bytes))
            });
        }
        default_pull_secrets(pod, &account);
        let limited = limit_secrets(pod, &account, INITIAL_CONTAINERS);
        limited.map_err(|why| forbidden(write, pod, &why))
    }

    /// Checks the pod again, because later plugins and webhooks may have changed it.
    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        if let Some(pod) = write.object.filter(|_| concerns(write)) {
            check(write, pod, registry)?;
        }
        Ok(())
    }
}

/// Whether a write can add containers to a pod.
fn concerns(write: &Attributes<'_>) -> bool {
    let of = &write.resource.resource;
    let write_kind = (write.operation, write.subresource);
    let adds =
        matches!(write_kind, (Operation::Create, "") | (Operation::Update, "ephemeralcontainers"));
    adds && of.group.is_empty() && of.resource == "pods"
}

/// Refuses a new mirror pod that uses an account, secrets or tokens, any other pod without an
/// existing account, and a pod that uses secrets which its account does not let it use.
fn check(write: &Attributes<'_>, pod: &Value, registry: &Registry) -> Result<(), Status> {
    let is_new = write.operation == Operation::Create;
    if is_new && is_mirror(pod) {
        return check_mirror(pod).map_err(|why| forbidden(write, pod, why));
    }
    if account_name(pod).is_empty() {
        let name = object::name(pod);
        let why = format!("no service account specified for pod {}/{name}", write.namespace);
        return Err(forbidden(write, pod, &why));
    }
    let account = account(write, pod, registry)?;
    let limited = limit_secrets(
        pod,
        &account,
        if is_new { INITIAL_CONTAINERS } else { EPHEMERAL_CONTAINERS },
    );
    limited.map_err(|why| forbidden(write, pod, &why))
}

/// Returns what the plugin reads of the service account of a pod. A missing account is a refusal.
fn account(write: &Attributes<'_>, pod: &Value, registry: &Registry) -> Result<Value, Status> {
    const READ: &[&[&str]] = &[
        &["metadata", "name"],
        &["metadata", "annotations"],
        &["automountServiceAccountToken"],
        &["imagePullSecrets"],
        &["secrets"],
    ];
    let name = account_name(pod);
    let accounts = registry.resource(&GroupVersionResource::new("", "v1", "serviceaccounts"));
    let account = accounts.and_then(|all| registry.peek(&all, write.namespace, name));
    let missing = || {
        let quoted = pintle_meta::quote::quote(name);
        let why = match pintle_meta::names::path_segment(name).as_slice() {
            [] => format!("serviceaccount {quoted} not found"),
            wrong => format!("invalid resource name {quoted}: [{}]", wrong.join(" ")),
        };
        let why = format!("error looking up service account {}/{name}: {why}", write.namespace);
        forbidden(write, pod, &why)
    };
    Ok(account.ok_or_else(missing)?.excerpt(READ)?)
}

/// Returns when the service account exists, or when the watch ends.
async fn wait_for_account(registry: &Registry, accounts: &Target) -> Result<(), Status> {
    let selector = format!("metadata.name={DEFAULT}");
    let options = ListOptions { field_selector: selector.into(), ..ListOptions::default() };
    let mut watch = registry.watch(accounts, &options).await?;
    while let Some(events) = watch.next().await {
        if events.iter().any(|event| matches!(event, Event::Added(_) | Event::Modified(_))) {
            break;
        }
    }
    Ok(())
}

fn account_name(pod: &Value) -> &str {
    pod.str_at(&["spec", "serviceAccountName"]).unwrap_or_default()
}

/// True for a mirror pod, by which a kubelet shows a static pod.
fn is_mirror(pod: &Value) -> bool {
    object::annotations(pod).is_some_and(|annotations| annotations.contains_key(MIRROR))
}

fn check_mirror(pod: &Value) -> Result<(), &'static str> {
    if !account_name(pod).is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    if has_secrets(pod) {
        return Err("a mirror pod may not reference secrets");
    }
    let is_token = |source: &Value| source.get("serviceAccountToken").is_some();
    let sources = |volume| items(volume, &["projected", "sources"]);
    if items(pod, &["spec", "volumes"]).iter().any(|volume| sources(volume).iter().any(is_token)) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

fn wants_token(pod: &Value, account: &Value) -> bool {
    let member = "automountServiceAccountToken";
    let of_pod = pod.at(&["spec", member]).and_then(Value::as_bool);
    of_pod.or_else(|| account.get(member).and_then(Value::as_bool)).unwrap_or(true)
}

/// Mounts the account's token, the cluster's CA certificate and the namespace's name in each
/// container that mounts nothing at their path.
fn mount_token(pod: &mut Value, new_name: impl FnOnce() -> String) {
    let prefix = format!("{VOLUME}-");
    let volumes = items(pod, &["spec", "volumes"]).iter();
    let mut volume_names = volumes.filter_map(|volume| volume.str_at(&["name"]));
    let is_of_token =
        |name: &&str| name.starts_with(&prefix) && name.len() <= VOLUME_NAME_BYTES_MAX;
    let present = volume_names.find(is_of_token).map(Str::from);
    let name = present.clone().unwrap_or_else(|| new_name().into());
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(list));
        for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
            let is_there = |mount: &Value| mount.str_at(&["mountPath"]) == Some(MOUNT_PATH);
            if items(container, &["volumeMounts"]).iter().any(is_there) {
                continue;
            }
            let mounts =
                container.make_object().entry_or("volumeMounts", || Vec::<Value>::new().into());
            if let Some(mounts) = mounts.as_array_mut() {
                mounts.push(Value::from([
                    ("mountPath", Value::from(MOUNT_PATH)),
                    ("name", name.clone().into()),
                    ("readOnly", true.into()),
                ]));
                mounted = true;
            }
        }
    }
    if mounted && present.is_none() {
        let volumes = pod.object_entry("spec").entry_or("volumes", || Vec::<Value>::new().into());
        if let Some(volumes) = volumes.as_array_mut() {
            volumes.push(Value::from([("name", name.into()), ("projected", token_sources())]));
        }
    }
}

/// The projected volume of a token.
fn token_sources() -> Value {
    let token =
        Value::from([("expirationSeconds", Value::from(TOKEN_SECONDS)), ("path", "token".into())]);
    let authority = Value::from([
        ("items", vec![Value::from([("key", "ca.crt"), ("path", "ca.crt")])].into()),
        ("name", Value::from("kube-root-ca.crt")),
    ]);
    let field = Value::from([("apiVersion", "v1"), ("fieldPath", "metadata.namespace")]);
    let file = Value::from([("fieldRef", field), ("path", "namespace".into())]);
    let namespace = Value::from([("items", vec![file])]);
    let sources = vec![
        Value::from([("serviceAccountToken", token)]),
        Value::from([("configMap", authority)]),
        Value::from([("downwardAPI", namespace)]),
    ];
    Value::from([("defaultMode", Value::from(0o644)), ("sources", sources.into())])
}

/// Sets the account's image pull secrets for a pod without image pull secrets.
fn default_pull_secrets(pod: &mut Value, account: &Value) {
    let of_account = items(account, &["imagePullSecrets"]);
    if items(pod, &["spec", "imagePullSecrets"]).is_empty() && !of_account.is_empty() {
        pod.object_entry("spec").insert("imagePullSecrets", of_account.to_vec());
    }
}

/// Refuses a pod that uses a secret which its account does not reference, if the account enforces
/// this by its annotation. Checks the containers of `lists`; for a new pod also its volumes and
/// image pull secrets.
fn limit_secrets(pod: &Value, account: &Value, lists: &[&str]) -> Result<(), String> {
    let enforces = object::annotations(account).and_then(|a| a.get(ENFORCES)?.as_str());
    if !matches!(enforces, Some("1" | "t" | "T" | "true" | "TRUE" | "True")) {
        return Ok(());
    }
    let own = |member: &str| -> BTreeSet<&str> {
        items(account, &[member]).iter().filter_map(|secret| secret.str_at(&["name"])).collect()
    };
    let (name, mountable, pull) = (object::name(account), own("secrets"), own("imagePullSecrets"));
    let why = "because service account";
    for (used_in, secret) in secrets(pod, lists) {
        if !mountable.contains(secret) {
            let quoted = format!("secret.secretName=\"{secret}\"");
            return Err(match used_in {
                SecretUse::Volume => {
                    format!(
                        "volume with {quoted} is not allowed {why} {name} does not reference that secret"
                    )
                }
                SecretUse::Environment { container: (what, container), variable } => format!(
                    "{what} {container} with envVar {variable} referencing {quoted} is not allowed {why} \
                     {name} does not reference that secret"
                ),
                SecretUse::EnvFrom { container: (what, container) } => format!(
                    "{what} {container} with envFrom referencing {quoted} is not allowed {why} {name} does \
                     not reference that secret"
                ),
            });
        }
    }
    let pulls =
        if lists == INITIAL_CONTAINERS { items(pod, &["spec", "imagePullSecrets"]) } else { &[] };
    for (i, secret) in pulls.iter().enumerate() {
        let secret = secret.str_at(&["name"]).unwrap_or_default();
        if !pull.contains(secret) {
            return Err(format!(
                "imagePullSecrets[{i}].name=\"{secret}\" is not allowed {why} {name} does not reference \
                 that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// The part of a pod that uses a secret. A container is the words for its list and its name, which
/// may be long and have many variables, so only the text of a refusal copies it.
enum SecretUse<'a> {
    Volume,
    Environment {
        container: (&'static str, &'a str),
        variable: &'a str,
    },
    /// All keys of the secret become variables.
    EnvFrom {
        container: (&'static str, &'a str),
    },
}

/// Returns the secrets that a pod uses in the environments of the containers of `lists`; for a new
/// pod also in its volumes.
fn secrets<'p>(pod: &'p Value, lists: &[&str]) -> Vec<(SecretUse<'p>, &'p str)> {
    let volumes = if lists == INITIAL_CONTAINERS { items(pod, &["spec", "volumes"]) } else { &[] };
    let volumes = volumes.iter().filter_map(|volume| volume.str_at(&["secret", "secretName"]));
    let mut found: Vec<_> = volumes.map(|secret| (SecretUse::Volume, secret)).collect();
    for (list, what) in CONTAINERS.into_iter().filter(|(list, _)| lists.contains(list)) {
        for one in items(pod, &["spec", list]) {
            let container = (what, one.str_at(&["name"]).unwrap_or_default());
            for variable in items(one, &["env"]) {
                if let Some(secret) = variable.str_at(&["valueFrom", "secretKeyRef", "name"]) {
                    let variable = variable.str_at(&["name"]).unwrap_or_default();
                    found.push((SecretUse::Environment { container, variable }, secret));
                }
            }
            for source in items(one, &["envFrom"]) {
                if let Some(secret) = source.str_at(&["secretRef", "name"]) {
                    found.push((SecretUse::EnvFrom { container }, secret));
                }
            }
        }
    }
    found
}
