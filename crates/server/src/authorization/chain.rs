//! The chain of authorizers in the configured order; rebuilt when the configuration file changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use pintle_auth::abac::Policies;
use pintle_auth::configuration::{self, Configured};
use pintle_auth::{
    AlwaysAllow, AlwaysDeny, Attributes, Authorizer, Chain, Decision, Masters, Mode, Rules, Ruling,
    RulingFuture, User,
};
use pintle_registry::Registry;
use pintle_value::yaml;

use super::Roles;
use super::measures::{Decisions, Measures};
use super::nodes::Nodes;
use super::webhook::Webhook;
use crate::Error;
use crate::backends::Dialers;
use crate::config::Config;
use crate::followed_file::{Content, FollowedFile, Unusable};

/// The authorizers and their configuration.
pub(crate) struct Authorization {
    current: Arc<Current>,
    parts: Parts,
    pub(crate) measures: Arc<Measures>,
    /// The configuration file and its contents at the start.
    file: Option<(PathBuf, Vec<u8>)>,
    /// The modes at the start, without webhooks. A new configuration must have all of them.
    modes: Vec<Mode>,
}

/// The parts that outlive a configuration.
struct Parts {
    roles: Arc<Roles>,
    /// `None` without the mode Node: then no graph is maintained.
    nodes: Option<Arc<Nodes>>,
    policies: Option<Arc<Policies>>,
    /// The connections to webhooks.
    dialers: Dialers,
}

impl Authorization {
    /// # Errors
    /// The error of the configuration or of a file that it names.
    pub(crate) fn new(config: &Config, dialers: Dialers) -> Result<Self, Error> {
        let (configured, file) = configured(config)?;
        let modes = configured.iter().map(|one| one.mode).filter(|mode| *mode != Mode::Webhook);
        let modes: Vec<Mode> = modes.collect();
        let is_wanted = |mode| modes.contains(&mode);
        let parts = Parts {
            roles: Arc::new(Roles::new()),
            nodes: is_wanted(Mode::Node).then(|| Arc::new(Nodes::new(config))),
            policies: if is_wanted(Mode::Abac) { Some(Arc::new(policies(config)?)) } else { None },
            dialers,
        };
        let measures = Arc::new(Measures::default());
        let chain = parts.chain(configured, &measures).map_err(|reason| {
            let flag = if file.is_some() { CONFIG } else { "authorization-webhook-config-file" };
            Error::Flag { flag, reason }
        })?;
        file.iter().for_each(|(_, text)| measures.reloads.set_current(text));
        let current = Arc::new(Current(ArcSwap::from_pointee(chain)));
        Ok(Self { current, parts, measures, file, modes })
    }

    /// The current chain as an authorizer.
    pub(crate) fn authorizer(&self) -> Arc<dyn Authorizer> {
        self.current.clone()
    }

    pub(crate) const fn roles(&self) -> &Arc<Roles> {
        &self.parts.roles
    }

    pub(crate) const fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.parts.nodes.as_ref()
    }

    /// True with the mode AlwaysAllow.
    pub(crate) fn is_open(&self) -> bool {
        self.modes.contains(&Mode::AlwaysAllow)
    }

    /// Starts to follow a registry.
    pub(crate) fn follow(&self, registry: &Registry) {
        self.parts.roles.follow(registry);
        self.parts.nodes.iter().for_each(|nodes| nodes.follow(registry));
    }

    /// Updates the node graph and reloads the configuration file.
    pub(crate) async fn run(mut self) {
        let file = self.file.take();
        let nodes = self.parts.nodes.clone();
        let graph = async {
            if let Some(nodes) = nodes {
                nodes.run().await;
            }
        };
        tokio::join!(graph, Arc::new(self).follow_file(file));
    }

    /// Reloads the configuration when its file changes. An invalid file changes nothing.
    async fn follow_file(self: Arc<Self>, file: Option<(PathBuf, Vec<u8>)>) {
        let Some((path, content)) = file else { return };
        // On a blocking thread, because the chain reads the files of webhooks.
        let take = |text: Content| async {
            let this = self.clone();
            let reloaded = tokio::task::spawn_blocking(move || this.reload(&text)).await;
            reloaded.unwrap_or_else(|why| Err(Unusable::NotReady(why.to_string())))
        };
        FollowedFile::new(&path, &content).follow(&self.measures.reloads, take).await;
    }

    /// Upstream forgets a valid configuration whose webhook cannot be made; here it is tried again.
    fn reload(&self, text: &[u8]) -> Result<(), Unusable> {
        let configured = read(text, &self.modes).map_err(Unusable::Invalid)?;
        // Anonymous requests are not allowed with AlwaysAllow, so a reload must not introduce it.
        let opens = configured.iter().any(|one| one.mode == Mode::AlwaysAllow) && !self.is_open();
        if opens {
            let why =
                "authorizer type AlwaysAllow is not allowed if it was not enabled at the start";
            return Err(Unusable::Invalid(why.to_owned()));
        }
        let chain = self.parts.chain(configured, &self.measures)?;
        self.current.0.store(Arc::new(chain));
        self.measures.reloads.set_current(text);
        Ok(())
    }
}

const CONFIG: &str = "authorization-config";

/// The configuration, and its file if it comes from one.
type Found = (Vec<Configured>, Option<(PathBuf, Vec<u8>)>);

fn configured(config: &Config) -> Result<Found, Error> {
    let files = &config.authorization_files;
    let Some(path) = &files.config else {
        let of = |mode: &Mode| match mode {
            Mode::Webhook => files.webhook(),
            mode => Ok(Configured::of(*mode)),
        };
        return Ok((config.authorization_modes.iter().map(of).collect::<Result<_, _>>()?, None));
    };
    let text = fs::read(path).map_err(|why| unreadable(CONFIG, path, why))?;
    let configured = read(&text, &[]).map_err(|why| Error::Flag {
        flag: CONFIG,
        reason: format!("{}: {why}", path.display()),
    })?;
    Ok((configured, Some((path.clone(), text))))
}

fn read(text: &[u8], required: &[Mode]) -> Result<Vec<Configured>, String> {
    let file = yaml::parse_strict(text).map_err(|why| why.to_string())?;
    configuration::read(&file, required).map_err(|why| why.to_string())
}

fn policies(config: &Config) -> Result<Policies, Error> {
    const FLAG: &str = "authorization-policy-file";
    let Some(path) = &config.authorization_files.policies else {
        let reason = "authorization-mode ABAC's authorization policy file not passed".to_owned();
        return Err(Error::Flag { flag: FLAG, reason });
    };
    let text = fs::read_to_string(path).map_err(|why| unreadable(FLAG, path, why))?;
    Policies::parse(&text)
        .map_err(|why| Error::Flag { flag: FLAG, reason: format!("{}: {why}", path.display()) })
}

fn unreadable(flag: &'static str, path: &Path, why: std::io::Error) -> Error {
    Error::File { action: "read", path: path.to_owned(), why }.of(flag)
}

impl Parts {
    fn chain(
        &self,
        configured: Vec<Configured>,
        measures: &Arc<Measures>,
    ) -> Result<Chain, String> {
        let mut chain: Vec<Arc<dyn Authorizer>> = vec![Arc::new(Masters)];
        for Configured { mode, name, webhook } in configured {
            let absent = || {
                format!(
                    "authorizer type {} is not allowed if it was not enabled at the start",
                    mode.name()
                )
            };
            let decisions = measures.decisions.with([&name, mode.name()]);
            let authorizer: Arc<dyn Authorizer> = match (mode, webhook) {
                (Mode::AlwaysAllow, _) => Arc::new(AlwaysAllow),
                (Mode::AlwaysDeny, _) => Arc::new(AlwaysDeny),
                (Mode::Abac, _) => self.policies.clone().ok_or_else(absent)?,
                (Mode::Node, _) => self.nodes.clone().ok_or_else(absent)?,
                (Mode::Rbac, _) => self.roles.clone(),
                (Mode::Webhook, Some(settings)) => {
                    Arc::new(Webhook::new(name, settings, &self.dialers, measures.clone())?)
                }
                (Mode::Webhook, None) => return Err(absent()),
            };
            chain.push(Arc::new(Counted { authorizer, decisions }));
        }
        Ok(Chain::new(chain))
    }
}

/// The chain that is in force.
struct Current(ArcSwap<Chain>);

impl Authorizer for Current {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        self.0.load().authorize(attributes)
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        self.0.load().rules(user, namespace)
    }
}

/// Counts the decisions of an authorizer.
struct Counted {
    authorizer: Arc<dyn Authorizer>,
    decisions: Arc<Decisions>,
}

impl Authorizer for Counted {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        match self.authorizer.authorize(attributes) {
            RulingFuture::Ready(ruling) => counted(&self.decisions, ruling).into(),
            pending => {
                let decisions = self.decisions.clone();
                RulingFuture::pending(async move { counted(&decisions, pending.await) })
            }
        }
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        self.authorizer.rules(user, namespace)
    }
}

fn counted(decisions: &Decisions, ruling: Ruling) -> Ruling {
    match ruling.decision {
        Decision::Allow => decisions.allowed.add(1),
        Decision::Deny => decisions.denied.add(1),
        Decision::NoOpinion => {}
    }
    ruling
}
