//! AlwaysPullImages: sets `imagePullPolicy` to `Always`, so that a pod can use an image only with
//! credentials that may pull it.

use std::collections::BTreeSet;

use pintle_meta::{Status, field};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation};
use pintle_value::{Path, Value};

use crate::pods::items;
use crate::{forbidden, is_of};

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The plugin.
pub(crate) struct AlwaysPullImages;

impl Admission for AlwaysPullImages {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Mutate, Hook::Validate])
    }

    fn mutate(&self, write: &Attributes<'_>, pod: &mut Value, _: &Registry) -> Result<(), Status> {
        if concerns(write, pod) {
            always_pull(pod);
        }
        Ok(())
    }

    fn validate(&self, write: &Attributes<'_>, _: &Registry) -> Result<(), Status> {
        let Some(pod) = write.object.filter(|pod| concerns(write, pod)) else {
            return Ok(());
        };
        match others(pod).first() {
            Some(error) => Err(forbidden(write, pod, &error.to_string())),
            None => Ok(()),
        }
    }
}

/// Whether the write creates the pod, or gives it an image that the stored pod does not have.
fn concerns(write: &Attributes<'_>, pod: &Value) -> bool {
    let is_it = is_of(write, "", "pods") && write.operation != Operation::Delete;
    is_it && write.old().is_none_or(|old| !images(pod).is_subset(&images(old)))
}

fn images(pod: &Value) -> BTreeSet<&str> {
    let containers = CONTAINERS.iter().flat_map(|member| items(pod, &["spec", member]));
    containers.filter_map(|container| container.str_at(&["image"])).collect()
}

fn always_pull(pod: &mut Value) {
    let spec = pod.object_entry("spec");
    for member in CONTAINERS {
        let containers = spec.get_mut(member).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            container.make_object().insert("imagePullPolicy", "Always");
        }
    }
    let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut);
    for image in volumes.into_iter().flatten().filter_map(|volume| volume.get_mut("image")) {
        image.make_object().insert("pullPolicy", "Always");
    }
}

/// Returns an error for each container and each volume of an image that is not always pulled.
fn others(pod: &Value) -> field::Errors {
    let mut errors = field::Errors::new();
    for member in CONTAINERS {
        for (i, container) in items(pod, &["spec", member]).iter().enumerate() {
            let policy = container.str_at(&["imagePullPolicy"]).unwrap_or_default();
            if policy != "Always" {
                let path = Path::new("spec").field(member).index(i).field("imagePullPolicy");
                errors.push(field::Error::not_supported(&path, &policy.into(), &["Always"]));
            }
        }
    }
    for (i, volume) in items(pod, &["spec", "volumes"]).iter().enumerate() {
        let Some(image) = volume.get("image").filter(|image| !image.is_null()) else { continue };
        let policy = image.str_at(&["pullPolicy"]).unwrap_or_default();
        if policy != "Always" {
            let path = Path::new("spec").field("volumes").index(i).field("image");
            let path = path.field("pullPolicy");
            errors.push(field::Error::not_supported(&path, &policy.into(), &["Always"]));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    #[test]
    fn every_container_and_every_volume_of_an_image_pulls() {
        let text = r#"{"spec":{"containers":[{"image":"a"},{"imagePullPolicy":"Never"}],
            "initContainers":[{"imagePullPolicy":"Always"}],
            "volumes":[{"emptyDir":{}},{"image":{"reference":"a","pullPolicy":"IfNotPresent"}}]}}"#;
        let mut pod = json::parse(text.as_bytes()).unwrap();
        let messages: Vec<String> = others(&pod).iter().map(ToString::to_string).collect();
        let expected = r#"spec.containers[1].imagePullPolicy: Unsupported value: "Never": supported values: "Always""#;
        assert_eq!((messages.len(), messages[1].as_str()), (3, expected));
        let expected = r#"spec.volumes[1].image.pullPolicy: Unsupported value: "IfNotPresent": supported values: "Always""#;
        assert_eq!(messages[2], expected);
        always_pull(&mut pod);
        assert!(others(&pod).is_empty());
    }
}
