//! Builds a server's admission chain.

use std::path::Path;
use std::sync::Arc;

use pintle_admission::{Callers, ImagePolicyWebhook, Plugins};
use pintle_registry::admission;
use pintle_registry::webhook::Caller;

use crate::authorization::{self, Authorization, Authorized, NoEscalation, Validation};
use crate::machine::random;
use crate::webhooks::{Remote, Users, Webhooks, WithUsers};
use crate::{Config, Error, Feature};

/// The chain of the enabled plugins and of the checks that are not plugins, and the measures of
/// admission.
pub(super) fn chain(
    config: &Config,
    authorization: &Authorization,
    webhooks: &Arc<Webhooks>,
) -> Result<(admission::Chain, Arc<pintle_admission::Measures>), Error> {
    let measures = Arc::new(pintle_admission::Measures::default());
    let (authorizer, roles) = (&authorization.authorizer(), authorization.roles());
    let escalation = NoEscalation { authorizer: authorizer.clone(), roles: roles.clone() };
    let plugins = &config.admission_plugins;
    let authorizes_claims =
        config.feature_gates.has(Feature::ResourceClaimGranularStatusAuthorization);
    let validation = Validation::new(authorizer, authorizes_claims);
    let mut chain: Vec<Box<dyn admission::Admission>> =
        vec![Box::new(escalation), Box::new(validation)];
    let permissions: Arc<dyn pintle_admission::Permissions> =
        Arc::new(Authorized(authorizer.clone()));
    chain.push(Box::new(pintle_admission::ExpressionValidation));
    let image_policy = image_policy(plugins, webhooks)?;
    let others = authorization::plugins(authorizer)
        .chain(image_policy.map(|plugin| (ImagePolicyWebhook::NAME, plugin)));
    chain.extend(plugins.in_order(random, &permissions, &measures, others));
    let callers = Callers {
        mutating: caller("MutatingAdmissionWebhook", plugins, webhooks)?,
        validating: caller("ValidatingAdmissionWebhook", plugins, webhooks)?,
    };
    let measured = measures.clone();
    chain.push(pintle_admission::Webhooks::measured(callers, permissions, plugins, measured));
    Ok((admission::Chain::new(chain), measures))
}

/// The ImagePolicyWebhook plugin, if it is enabled.
fn image_policy(
    plugins: &Plugins,
    webhooks: &Webhooks,
) -> Result<Option<Box<dyn admission::Admission>>, Error> {
    let Some(policy) = plugins.image_policy() else { return Ok(None) };
    let path = &policy.kubeconfig;
    let remote = Remote::read(path, &webhooks.dialers);
    let remote = remote.map_err(|why| unusable(ImagePolicyWebhook::NAME, path, &why))?;
    Ok(Some(Box::new(ImagePolicyWebhook::new(policy.clone(), Box::new(remote)))))
}

/// A client that calls a plugin's webhooks, with the credentials of the plugin's kubeconfig if the
/// configuration names one.
fn caller(
    plugin: &str,
    plugins: &Plugins,
    webhooks: &Arc<Webhooks>,
) -> Result<Arc<dyn Caller>, Error> {
    let Some(path) = plugins.webhook_kubeconfig(plugin) else { return Ok(webhooks.clone()) };
    let users = Users::read(path).map_err(|why| unusable(plugin, path, &why))?;
    Ok(Arc::new(WithUsers { webhooks: webhooks.clone(), users }))
}

fn unusable(plugin: &str, kubeconfig: &Path, why: &str) -> Error {
    let reason = format!("{plugin}: {}: {why}", kubeconfig.display());
    Error::Flag { flag: "admission-control-config-file", reason }
}
