//! Configuration files that name what is not there yet.

use std::fs;

use pintle_server::{AuthorizationFiles, Config, Running, Server};

use super::certificates::until;
use super::client::get;

const KUBECONFIG: &str = "\
current-context: c
contexts: [{name: c, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
";

fn configuration(authorizers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
         authorizers:\n{authorizers}- {{type: RBAC, name: rbac}}\n"
    )
}

/// The number of reloads of the authorization configuration with a status, from `/metrics`.
async fn reloads(server: &Running, status: &str) -> u64 {
    let (_, page) = get(server, "/metrics").await;
    let name = "apiserver_authorization_config_controller_automatic_reloads_total{";
    let status = format!("status=\"{status}\"");
    let line = page.lines().find(|line| line.starts_with(name) && line.contains(&status));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_taken_into_use_when_the_file_that_it_names_appears() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name| directory.path().join(name);
    fs::write(path("configuration"), configuration("")).unwrap();
    let mut config = Config::ephemeral();
    config.authorization_files =
        AuthorizationFiles { config: Some(path("configuration")), ..Default::default() };
    let server = Server::start(config).await.unwrap();

    let webhook = format!(
        "- type: Webhook\n  name: w\n  webhook:\n    timeout: 5s\n    \
         subjectAccessReviewVersion: v1\n    matchConditionSubjectAccessReviewVersion: v1\n    \
         failurePolicy: NoOpinion\n    \
         connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {}}}\n",
        path("kubeconfig").display()
    );
    fs::write(path("configuration"), configuration(&webhook)).unwrap();
    until(true, async || reloads(&server, "failure").await > 0).await;
    assert_eq!(reloads(&server, "success").await, 0);
    fs::write(path("kubeconfig"), KUBECONFIG).unwrap();
    until(1, async || reloads(&server, "success").await).await;
    server.shutdown().await;
}
