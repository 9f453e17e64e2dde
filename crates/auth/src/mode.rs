//! The authorization modes (`--authorization-mode`), with the authorizers that have no module of
//! their own.

use std::str::FromStr;

use crate::{
    Attributes, Authorizer, Decision, Error, NonResourceRule, ResourceRule, Rules, Ruling,
    RulingFuture, User,
};

/// An authorizer's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By a policy file: [`crate::abac`].
    Abac,
    /// Allows every request.
    AlwaysAllow,
    /// Allows no request. Upstream's has no opinion rather than denying, so a later authorizer may
    /// allow a request.
    AlwaysDeny,
    /// Allows kubelets the requests that they need for their pods: [`crate::node`].
    Node,
    /// By roles and bindings: [`crate::rbac`].
    Rbac,
    /// By a webhook: [`crate::review`].
    Webhook,
}

impl Mode {
    /// All modes, sorted by name.
    pub const ALL: [Self; 6] =
        [Self::Abac, Self::AlwaysAllow, Self::AlwaysDeny, Self::Node, Self::Rbac, Self::Webhook];

    /// Upstream's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Abac => "ABAC",
            Self::Webhook => "Webhook",
            Self::AlwaysAllow => "AlwaysAllow",
            Self::AlwaysDeny => "AlwaysDeny",
            Self::Node => "Node",
            Self::Rbac => "RBAC",
        }
    }

    /// Parses a comma-separated list.
    pub fn list(text: &str) -> Result<Vec<Self>, Error> {
        let refuse = |reason: String| Err(Error::Mode(reason));
        let mut modes = Vec::new();
        for name in text.split(',') {
            let mode = name.parse()?;
            if modes.contains(&mode) {
                return refuse(format!(
                    "authorization-mode {name:?} has mode specified more than once"
                ));
            }
            modes.push(mode);
        }
        Ok(modes)
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if name.is_empty() {
            return Err(Error::Mode("at least one authorization-mode must be passed".to_owned()));
        }
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| Error::Mode(format!("authorization-mode {name:?} is not a valid mode")))
    }
}

/// Allows members of `system:masters` everything, whatever the modes.
#[derive(Clone, Copy, Debug)]
pub struct Masters;

impl Authorizer for Masters {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        if attributes.user.is_master() {
            Ruling::new(Decision::Allow, "").into()
        } else {
            Ruling::NO_OPINION.into()
        }
    }

    /// Empty: RBAC lists the group's permissions, because the role `cluster-admin` is bound to it.
    fn rules(&self, _: &User, _: &str) -> Rules {
        Rules::default()
    }
}

/// Allows every request.
#[derive(Clone, Copy, Debug)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&self, _: &'a Attributes<'a>) -> RulingFuture<'a> {
        Ruling::new(Decision::Allow, "").into()
    }

    fn rules(&self, _: &User, _: &str) -> Rules {
        let all = || vec!["*".to_owned()];
        Rules {
            resource: vec![ResourceRule {
                verbs: all(),
                api_groups: all(),
                resources: all(),
                resource_names: Vec::new(),
            }],
            non_resource: vec![NonResourceRule { verbs: all(), paths: all() }],
            ..Rules::default()
        }
    }
}

/// Has no opinion on any request, as upstream's: see [`Mode::AlwaysDeny`].
#[derive(Clone, Copy, Debug)]
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize<'a>(&self, _: &'a Attributes<'a>) -> RulingFuture<'a> {
        Ruling::new(Decision::NoOpinion, "Everything is forbidden.").into()
    }

    fn rules(&self, _: &User, _: &str) -> Rules {
        Rules::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[Mode], &str>) {
        let found = Mode::list(text).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(<[Mode]>::to_vec).map_err(str::to_owned), "{text:?}");
    }

    #[test]
    fn modes_are_known_or_refused() {
        // AUTHZ-06
        check("RBAC", Ok(&[Mode::Rbac]));
        check("Node,RBAC", Ok(&[Mode::Node, Mode::Rbac]));
        check("AlwaysDeny,AlwaysAllow", Ok(&[Mode::AlwaysDeny, Mode::AlwaysAllow]));
        check("", Err("at least one authorization-mode must be passed"));
        check("ABAC,Webhook", Ok(&[Mode::Abac, Mode::Webhook]));
        check("rbac", Err("authorization-mode \"rbac\" is not a valid mode"));
        let twice = "authorization-mode \"RBAC\" has mode specified more than once";
        check("RBAC,RBAC", Err(twice));
    }
}
