//! Rollbacks of Deployments (upstream: `RollbackREST` of v1.15). This action annotates the
//! Deployment; the deployment controller then restores an earlier template. Only versions that
//! Kubernetes has removed have this subresource.

use std::collections::BTreeMap;

use pintle_meta::field::Error;
use pintle_meta::{GroupKind, Status, validation};
use pintle_registry::action::{Action, Performed, Request};
use pintle_registry::request::Target;
use pintle_registry::results::ResponseBody;
use pintle_value::{Path, Value};

/// The action `deployments/rollback`.
pub(crate) struct Rollback {
    /// The type of the posted object.
    pub type_name: &'static str,
}

/// The annotation that holds the requested revision in `apps/v1`, the stored version.
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

impl Action for Rollback {
    fn type_name(&self) -> &'static str {
        self.type_name
    }

    fn perform<'a>(&'a self, request: Request<'a>) -> Performed<'a> {
        Box::pin(async move {
            let Request { registry, target, posted, options, context } = request;
            let name = posted.str_at(&["name"]).unwrap_or_default().to_owned();
            let revision = posted.at(&["rollbackTo", "revision"]).and_then(Value::as_int);
            let revision = revision.unwrap_or(0);
            check(&posted, &name, revision)?;
            if name != target.name {
                let why = "name in URL does not match name in DeploymentRollback object";
                return Err(Status::bad_request(why));
            }
            let annotations = annotations(&posted);
            let deployment = Target { subresource: "".into(), ..target.clone() };
            let ask = |deployment: &mut Value| {
                let all = deployment.object_entry("metadata").entry_object("annotations");
                for (key, text) in &annotations {
                    all.insert(key.as_str(), text.as_str());
                }
                all.insert(ROLLBACK_TO, revision.to_string());
                Ok(())
            };
            registry.amend(&deployment, options.dry_run, context, ask).await?;
            let mut done = Status::success(201);
            done.message = format!("rollback request for deployment {name:?} succeeded");
            Ok(ResponseBody::Status(done))
        })
    }
}

fn check(posted: &Value, name: &str, revision: i64) -> Result<(), Status> {
    let annotations = posted.get("updatedAnnotations").and_then(Value::as_object);
    let mut errors = validation::annotations(annotations, &Path::new("updatedAnnotations"));
    if name.is_empty() {
        errors.push(Error::required(&Path::new("name"), "name is required"));
    }
    if revision < 0 {
        let path = Path::new("rollback").field("revision");
        let why = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path, &Value::Int(revision), why));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&GroupKind::new("apps", "DeploymentRollback"), name, &errors))
}

fn annotations(posted: &Value) -> BTreeMap<String, String> {
    let annotations = posted.get("updatedAnnotations").and_then(Value::as_object);
    let pairs = annotations.into_iter().flat_map(|all| all.iter());
    pairs.filter_map(|(key, text)| Some((key.to_string(), text.as_str()?.to_owned()))).collect()
}
