//! Field ownership when managers write in versions that only a webhook converts (SSA-14, CRD-14).

use super::*;

impl Things {
    async fn apply(
        &self,
        version: &str,
        params: &PatchParams,
        spec: Value,
    ) -> kube::Result<DynamicObject> {
        let mut applied = thing(version, "a");
        if !spec.is_null() {
            applied.data["spec"] = spec;
        }
        self.within(version).patch("a", params, &Patch::Apply(&applied)).await
    }

    /// The owned fields below `spec`, by manager and version.
    async fn owners(&self) -> Result<Vec<Value>> {
        let thing = self.within("v1").get("a").await?;
        let mut owners = Vec::new();
        for entry in thing.managed_fields() {
            let fields = entry.fields_v1.as_ref().map(|fields| &fields.0["f:spec"]);
            let fields = fields.and_then(Value::as_object).into_iter().flat_map(|f| f.keys());
            let fields: Vec<_> = fields.map(|f| f.trim_start_matches("f:")).collect();
            let version = entry.api_version.as_deref().unwrap_or_default();
            let version = version.trim_start_matches("example.com/");
            owners.push(json!([entry.manager, version, fields.join(" ")]));
        }
        owners.sort_by_key(ToString::to_string);
        Ok(owners)
    }
}

fn fields_in_conflict(status: &Status) -> Vec<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.map(|cause| format!("{}: {}", cause.message, cause.field)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_has_its_owner_in_every_version() -> Result<()> {
    let things = Things::start().await?;
    let (a, b) = (PatchParams::apply("a"), PatchParams::apply("b"));
    things.apply("v1", &a, json!({"host": "h", "port": 1})).await?;
    things.apply("v2", &b, json!({"hostPort": "h:1"})).await?;
    let both = [json!(["a", "v1", "host port"]), json!(["b", "v2", "hostPort"])];
    ensure!(things.owners().await? == both);

    let status = failure(things.apply("v2", &b, json!({"hostPort": "g:1"})).await)?;
    ensure!(status.code == 409 && status.reason == "Conflict", "{status:?}");
    let conflicts = fields_in_conflict(&status);
    ensure!(conflicts == ["conflict with \"a\": .spec.host"], "{status:?}");
    let status = failure(things.apply("v1", &a, json!({"host": "h", "port": 2})).await)?;
    let conflicts = fields_in_conflict(&status);
    ensure!(conflicts == ["conflict with \"b\": .spec.hostPort"], "{status:?}");

    things.apply("v2", &b.clone().force(), json!({"hostPort": "g:2"})).await?;
    ensure!(things.owners().await? == [json!(["b", "v2", "hostPort"])]);
    ensure!(things.spec("v1", "a").await? == json!({"host": "g", "port": 2}));

    // Shared fields stay as long as one manager has them, in any version.
    things.apply("v1", &a, json!({"host": "g", "port": 2})).await?;
    ensure!(things.owners().await? == both);
    things.apply("v2", &b, Value::Null).await?;
    ensure!(things.owners().await? == [json!(["a", "v1", "host port"])]);
    ensure!(things.spec("v2", "a").await? == json!({"hostPort": "g:2"}));
    things.apply("v1", &a, Value::Null).await?;
    ensure!(things.within("v1").get("a").await?.data.get("spec").is_none_or(|s| *s == json!({})));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_takes_fields_from_their_owners_in_other_versions() -> Result<()> {
    let things = Things::start().await?;
    things.apply("v1", &PatchParams::apply("a"), json!({"host": "h", "port": 1})).await?;
    let c = PatchParams { field_manager: Some("c".to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"spec": {"hostPort": "h:3"}}));
    things.within("v2").patch("a", &c, &patch).await?;
    let owners = [json!(["a", "v1", "host"]), json!(["c", "v2", "hostPort"])];
    ensure!(things.owners().await? == owners, "{:?}", things.owners().await?);
    let patch = Patch::Merge(json!({"spec": {"port": 4}}));
    things.within("v1").patch("a", &c, &patch).await?;
    let owners = [json!(["a", "v1", "host"]), json!(["c", "v1", "port"])];
    ensure!(things.owners().await? == owners, "{:?}", things.owners().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_fails_if_an_owners_version_cannot_be_converted() -> Result<()> {
    let things = Things::start().await?;
    things.apply("v1", &PatchParams::apply("a"), json!({"host": "h"})).await?;
    things.apply("v2", &PatchParams::apply("b"), json!({"hostPort": "h:0"})).await?;
    let (before, owners) = (things.within("v1").get("a").await?, things.owners().await?);
    things.answers(|_| Value::Null);
    let applied = things.apply("v1", &PatchParams::apply("a"), json!({"host": "g"})).await;
    let status = failure(applied)?;
    let head = "conversion webhook for example.com/v1, Kind=Thing failed: ";
    ensure!(status.code == 500 && status.message.starts_with(head), "{status:?}");
    ensure!(things.within("v1").get("a").await? == before);

    // An update causes no conflict, and other managers keep their fields.
    let patch = Patch::Merge(json!({"spec": {"host": "g"}}));
    things.within("v1").patch("a", &PatchParams::default(), &patch).await?;
    ensure!(things.spec("v1", "a").await? == json!({"host": "g", "port": 0}));
    ensure!(things.owners().await? == owners, "{:?}", things.owners().await?);
    Ok(())
}
