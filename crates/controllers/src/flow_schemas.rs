//! The condition `Dangling` of flow schemas: whether their priority level exists (APF-03; upstream:
//! the status that `apf_controller.go` writes).

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_meta::{Status, object, quote::quote, time};
use pintle_registry::{Object, Resource};
use pintle_value::{Map, Str, Value};

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, apply_status, target, until};

const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const CONDITION: &str = "Dangling";

/// Keeps the conditions of flow schemas up to date until shutdown.
pub async fn run(environment: Environment, shutdown: impl Future<Output = ()>) {
    let resource = |name| environment.resource("flowcontrol.apiserver.k8s.io", "v1", name);
    let resources = resource("flowschemas").zip(resource("prioritylevelconfigurations"));
    let Some((schemas, levels)) = resources else { return };
    let conditions = Conditions { environment: &environment, schemas, levels };
    until(shutdown, work(&environment, &conditions)).await;
}

/// Reconciles the flow schemas of one priority level.
struct Conditions<'e> {
    environment: &'e Environment,
    schemas: Arc<Resource>,
    levels: Arc<Resource>,
}

impl Reconciler for Conditions<'_> {
    fn purpose(&self) -> &'static str {
        "say whether the priority level of a flow schema is there"
    }

    fn queue(&self) -> &'static str {
        "priority_and_fairness_config_queue"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.schemas, its_level), Source::new(&self.levels, itself)]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.update_all(name))
    }
}

fn its_level(schema: &Object) -> Option<Str> {
    // An unreadable schema has no known level, so its condition stays as it is.
    schema.tree().ok()?.str_at(&["spec", "priorityLevelConfiguration", "name"]).map(Str::from)
}

impl Conditions<'_> {
    async fn update_all(&self, level: &str) -> Result<Progress, Status> {
        let registry = &self.environment.registry;
        let is_there = registry.peek(&self.levels, "", level).is_some();
        for schema in registry.objects(&self.schemas) {
            if its_level(&schema).is_some_and(|its| its == level) {
                self.write_condition(&self.schemas.tree(&schema)?, level, is_there).await?;
            }
        }
        Ok(Progress::Done)
    }

    /// Writes the condition of a schema, if it changed.
    async fn write_condition(
        &self,
        schema: &Value,
        level: &str,
        is_there: bool,
    ) -> Result<(), Status> {
        let conditions = schema.at(&["status", "conditions"]).and_then(Value::as_array);
        let is_ours = |condition: &&Value| condition.str_at(&["type"]) == Some(CONDITION);
        let current = conditions.unwrap_or_default().iter().find(is_ours);
        let members = members(level, is_there);
        let is_same = |condition: &Value| {
            members.iter().all(|(member, text)| condition.str_at(&[*member]) == Some(text.as_str()))
        };
        if current.is_some_and(is_same) {
            return Ok(());
        }
        let mut condition: Map =
            members.into_iter().map(|(member, text)| (member.into(), text.into())).collect();
        let now = (self.environment.clock)().unix_micros;
        condition.insert("lastTransitionTime", time::format(now));
        let one = target(&self.schemas, "", object::name(schema), "status");
        let status = Value::from([("conditions", vec![Value::from(condition)])]);
        match apply_status(self.environment, &one, status, MANAGER).await {
            Err(status) if status.code != 404 => Err(status),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Returns the members of the condition.
fn members(level: &str, is_there: bool) -> [(&'static str, String); 4] {
    let (status, reason, end) = match is_there {
        true => ("False", "Found", "it exists"),
        false => ("True", "NotFound", "there is no such object"),
    };
    let joint = if is_there { "and" } else { "but" };
    let level = quote(level);
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {level} {joint} {end}"
    );
    [
        ("type", CONDITION.to_owned()),
        ("status", status.to_owned()),
        ("reason", reason.to_owned()),
        ("message", message),
    ]
}
