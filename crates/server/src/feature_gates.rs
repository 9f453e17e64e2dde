//! `--feature-gates`. All gates of kube-apiserver are known, with their stages. A gate that is
//! implemented both ways can be set; any other is refused the other way, by name.

mod upstream;

use std::collections::BTreeMap;

use pintle_meta::quote::quote;
use upstream::{DEPENDENCIES, GATES};

use crate::Error;

/// Upstream's stage of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Alpha,
    Beta,
    Stable,
    Deprecated,
}

/// Pintle's implementation of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    /// It can be on or off: a [`Feature`].
    Both,
    /// Always on.
    On,
    /// Not implemented.
    Off,
    /// Another component's feature, or an internal one of upstream's that no client sees: both
    /// settings have the same effect.
    Apart,
    /// Locked to its default upstream.
    Locked,
}

/// A row of the table of gates.
#[derive(Clone, Copy, Debug)]
struct Gate {
    stage: Stage,
    name: &'static str,
    /// Upstream's default.
    default: bool,
    here: Here,
}

const fn gate(stage: Stage, name: &'static str, default: bool, here: Here) -> Gate {
    Gate { stage, name, default, here }
}

const fn locked(stage: Stage, name: &'static str, default: bool) -> Gate {
    Gate { stage, name, default, here: Here::Locked }
}

/// The features that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Compresses long responses for clients that accept gzip.
    ApiResponseCompression,
    /// Serves CBOR to clients that accept it.
    CborServingAndStorage,
    /// Serves the command line at `/flagz`.
    ComponentFlagz,
    /// Serves the server's state at `/statusz`.
    ComponentStatusz,
    /// Allows deleting objects that cannot be decoded.
    UnsafeMalformedObjectDeletion,
    /// Watches that send initial events (`sendInitialEvents`).
    WatchList,
    /// Serves further kinds.
    Kinds(pintle_kinds::Feature),
}

impl Feature {
    const fn name(self) -> &'static str {
        match self {
            Self::ApiResponseCompression => "APIResponseCompression",
            Self::CborServingAndStorage => "CBORServingAndStorage",
            Self::ComponentFlagz => "ComponentFlagz",
            Self::ComponentStatusz => "ComponentStatusz",
            Self::UnsafeMalformedObjectDeletion => "AllowUnsafeMalformedObjectDeletion",
            Self::WatchList => "WatchList",
            Self::Kinds(feature) => feature.name(),
        }
    }
}

/// The feature gates' settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// The settings of the command line.
    set: BTreeMap<&'static str, bool>,
}

impl FeatureGates {
    /// True if a feature is on.
    pub fn has(&self, feature: Feature) -> bool {
        known(feature.name()).is_some_and(|gate| self.is_on(gate))
    }

    /// The enabled features of the built-in kinds.
    pub(crate) fn of_kinds(&self) -> pintle_kinds::Features {
        let all = pintle_kinds::Feature::ALL.into_iter();
        all.filter(|feature| self.has(Feature::Kinds(*feature))).collect()
    }

    /// All gates with upstream's name of the stage, and whether they are on.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        GATES.iter().map(|gate| (gate.name, gate.stage.word(), self.is_on(gate)))
    }

    fn is_on(&self, gate: &Gate) -> bool {
        match gate.here {
            Here::On => true,
            Here::Off => false,
            Here::Both | Here::Apart | Here::Locked => {
                self.set.get(gate.name).copied().unwrap_or(gate.default)
            }
        }
    }

    /// Parses the flag's values, each `Name=true,Other=false`; the last setting of a gate wins. An
    /// unknown gate is an error (DEP-22), and so is turning off a gate that is always on (DEP-23).
    pub fn parse<'a>(flags: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Flag { flag: "feature-gates", reason };
        let mut settings = BTreeMap::new();
        for setting in flags.into_iter().flat_map(|flag| flag.split(',')) {
            if !setting.trim().is_empty() {
                let (name, on) = read(setting).map_err(refuse)?;
                settings.insert(name, on);
            }
        }
        let mut gates = Self::default();
        let (all, single): (Vec<_>, Vec<_>) =
            settings.into_iter().partition(|(name, _)| stage_of_all(name).is_some());
        for (name, on) in all {
            gates.set_all(name, on);
        }
        for (name, on) in single {
            gates.set_one(name, on).map_err(refuse)?;
        }
        gates.check_dependencies().map_err(refuse)?;
        Ok(gates)
    }

    fn set_all(&mut self, name: &str, on: bool) {
        let Some(stage) = stage_of_all(name) else { return };
        let of_stage = GATES.iter().filter(|gate| gate.stage == stage);
        let mut stay = Vec::new();
        for gate in of_stage {
            match (gate.here, on) {
                (Here::Both | Here::Apart, _) => _ = self.set.insert(gate.name, on),
                (Here::On, false) | (Here::Off, true) => stay.push(gate.name),
                (Here::On | Here::Off | Here::Locked, _) => {}
            }
        }
        if !stay.is_empty() {
            tracing::warn!("--feature-gates={name}={on} does not set {}", stay.join(", "));
        }
    }

    fn set_one(&mut self, name: &str, on: bool) -> Result<(), String> {
        let gate = known(name).ok_or_else(|| format!("unrecognized feature gate: {name}"))?;
        match gate.here {
            Here::Locked if on != gate.default => {
                let default = gate.default;
                return Err(format!(
                    "cannot set feature gate {name} to {on}, feature is locked to {default}"
                ));
            }
            Here::On if !on => {
                return Err(format!(
                    "cannot set feature gate {name} to false, this server always has the feature"
                ));
            }
            Here::Off if on => {
                return Err(format!(
                    "cannot set feature gate {name} to true, this server does not have the feature"
                ));
            }
            Here::Both | Here::Apart => _ = self.set.insert(gate.name, on),
            Here::On | Here::Off | Here::Locked => {}
        }
        // DEP-25
        match gate.stage {
            Stage::Stable => tracing::warn!(
                "setting GA feature gate {name}={on}. It will be removed in a future release."
            ),
            Stage::Deprecated => tracing::warn!(
                "setting deprecated feature gate {name}={on}. It will be removed in a future release."
            ),
            Stage::Alpha | Stage::Beta => {}
        }
        Ok(())
    }

    /// A gate that is on may depend on one that is off.
    fn check_dependencies(&self) -> Result<(), String> {
        let is_on = |name: &str| known(name).is_some_and(|gate| self.is_on(gate));
        for (name, needed) in DEPENDENCIES.iter().filter(|(name, _)| is_on(name)) {
            let off: Vec<&str> = needed.iter().copied().filter(|name| !is_on(name)).collect();
            if !off.is_empty() {
                let off = off.join(" ");
                return Err(format!(
                    "{name} is enabled, but depends on features that are disabled: [{off}]"
                ));
            }
        }
        Ok(())
    }
}

impl Stage {
    /// The label of `kubernetes_feature_enabled`.
    const fn word(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Stable => "",
            Self::Deprecated => "DEPRECATED",
        }
    }
}

/// Parses `Name=true`, or `kube:Name=true` with the component's name.
fn read(setting: &str) -> Result<(&str, bool), String> {
    let setting = setting.trim();
    let setting = setting.strip_prefix("kube:").unwrap_or(setting);
    let (name, value) = setting
        .split_once('=')
        .ok_or_else(|| format!("missing bool value for {}", setting.trim()))?;
    let (name, value) = (name.trim(), value.trim());
    match value {
        "true" | "True" | "TRUE" | "t" | "T" | "1" => Ok((name, true)),
        "false" | "False" | "FALSE" | "f" | "F" | "0" => Ok((name, false)),
        _ => Err(format!(
            "invalid value of {name}={value}, err: strconv.ParseBool: parsing {}: invalid syntax",
            quote(value)
        )),
    }
}

/// The stage that `AllAlpha` or `AllBeta` sets.
fn stage_of_all(name: &str) -> Option<Stage> {
    match name {
        "AllAlpha" => Some(Stage::Alpha),
        "AllBeta" => Some(Stage::Beta),
        _ => None,
    }
}

fn known(name: &str) -> Option<&'static Gate> {
    let found = GATES.binary_search_by(|gate| gate.name.cmp(name)).ok()?;
    GATES.get(found)
}

#[cfg(test)]
mod tests;
