//! Pods bear it for a while that their node is not ready or cannot be reached (upstream:
//! `DefaultTolerationSeconds`).

use pintle_meta::Status;
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Operation};
use pintle_value::Value;

use crate::is_of;

/// How long a pod that says nothing stays on a node that is not ready, or cannot be reached.
const SECONDS: i64 = 300;

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The plugin.
pub struct DefaultTolerationSeconds;

impl Admission for DefaultTolerationSeconds {
    fn shape(&self, write: &Attributes<'_>, pod: &mut Value, _: &Registry) -> Result<(), Status> {
        if is_of(write, "", "pods") && write.operation != Operation::Delete {
            TAINTS.into_iter().for_each(|taint| tolerate(pod, taint));
        }
        Ok(())
    }
}

/// Has a pod bear a taint for a while, unless it says itself what to do about it.
fn tolerate(pod: &mut Value, taint: &str) {
    let tolerations =
        pod.object_entry("spec").entry_or("tolerations", || Vec::<Value>::new().into());
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    let is = |toleration: &Value, member: &str, wanted: &str| {
        let said = toleration.str_at(&[member]).unwrap_or_default();
        said.is_empty() || said == wanted
    };
    if tolerations.iter().any(|t| is(t, "key", taint) && is(t, "effect", "NoExecute")) {
        return;
    }
    tolerations.push(Value::from([
        ("effect", Value::from("NoExecute")),
        ("key", taint.into()),
        ("operator", "Exists".into()),
        ("tolerationSeconds", SECONDS.into()),
    ]));
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    fn check(tolerations: &str, expected: &str) {
        let mut pod =
            json::parse(format!(r#"{{"spec":{{"tolerations":{tolerations}}}}}"#).as_bytes())
                .unwrap();
        TAINTS.into_iter().for_each(|taint| tolerate(&mut pod, taint));
        assert_eq!(json::to_string(pod.at(&["spec", "tolerations"]).unwrap()), expected);
    }

    #[test]
    fn what_is_said_counts() {
        let added = |taint: &str| {
            format!(
                r#"{{"effect":"NoExecute","key":"node.kubernetes.io/{taint}","operator":"Exists","tolerationSeconds":300}}"#
            )
        };
        let (not_ready, unreachable) = (added("not-ready"), added("unreachable"));
        check("[]", &format!("[{not_ready},{unreachable}]"));
        check(r#"[{"operator":"Exists"}]"#, r#"[{"operator":"Exists"}]"#);
        let other = r#"{"effect":"NoSchedule","operator":"Exists"}"#;
        check(&format!("[{other}]"), &format!("[{other},{not_ready},{unreachable}]"));
        let own = r#"{"key":"node.kubernetes.io/not-ready","operator":"Exists"}"#;
        check(&format!("[{own}]"), &format!("[{own},{unreachable}]"));
    }
}
