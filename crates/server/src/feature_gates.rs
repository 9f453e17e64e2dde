//! `--feature-gates`. All gates of kube-apiserver are known, with their stages. A gate can be set
//! if its feature can be on and off here, or if the gate has no effect here. The setting of any
//! other gate is an error unless it is the value that the gate has.

mod earlier;
mod upstream;

use std::collections::BTreeMap;

use earlier::EARLIER;
use pintle_meta::quote::quote;
use upstream::{DEPENDENCIES, GATES};

use crate::{EffectiveVersion, Error};

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
enum Support {
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
    support: Support,
}

const fn gate(stage: Stage, name: &'static str, default: bool, support: Support) -> Gate {
    Gate { stage, name, default, support }
}

const fn locked(stage: Stage, name: &'static str, default: bool) -> Gate {
    Gate { stage, name, default, support: Support::Locked }
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
    /// Modes of impersonation that are constrained to some requests.
    ConstrainedImpersonation,
    /// Changes of the status of ResourceClaims need permissions of their own.
    ResourceClaimGranularStatusAuthorization,
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
            Self::ConstrainedImpersonation => "ConstrainedImpersonation",
            Self::ResourceClaimGranularStatusAuthorization => {
                "DRAResourceClaimGranularStatusAuthorization"
            }
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
    /// The release whose stages and defaults apply.
    version: EffectiveVersion,
}

impl FeatureGates {
    /// Whether a feature is on.
    pub fn has(&self, feature: Feature) -> bool {
        known(feature.name()).is_some_and(|gate| self.is_on(gate))
    }

    /// The enabled features of the built-in kinds.
    pub(crate) fn of_kinds(&self) -> pintle_kinds::Features {
        let all = pintle_kinds::Feature::ALL.into_iter();
        all.filter(|feature| self.has(Feature::Kinds(*feature))).collect()
    }

    /// Every gate of the release, by name: upstream's word for its stage, and whether it is on.
    /// Includes a gate that the release does not have yet if the server has the feature
    /// nevertheless.
    pub(crate) fn all(&self) -> Vec<(&'static str, &'static str, bool)> {
        let of_one = GATES.iter().filter_map(|gate| {
            let on = self.is_on(gate);
            let spec = self.spec(gate);
            let (stage, _) = spec.or(on.then_some((gate.stage, gate.default)))?;
            Some((gate.name, stage.word(), on))
        });
        let of_stage = OF_STAGES.iter().map(|(name, stage)| {
            (*name, stage.word(), self.set.get(name).copied().unwrap_or_default())
        });
        let mut all: Vec<_> = of_one.chain(of_stage).collect();
        all.sort_unstable_by_key(|(name, ..)| *name);
        all
    }

    /// The features that the server has although the emulated release lacks them or has them off.
    pub(crate) fn ahead(&self) -> Vec<&'static str> {
        let fixed =
            GATES.iter().filter(|gate| matches!(gate.support, Support::On | Support::Locked));
        let is_ahead =
            |gate: &&Gate| self.is_on(gate) && !self.spec(gate).is_some_and(|(_, default)| default);
        fixed.filter(is_ahead).map(|gate| gate.name).collect()
    }

    fn is_on(&self, gate: &Gate) -> bool {
        match gate.support {
            Support::On => true,
            Support::Off => false,
            Support::Locked => gate.default,
            Support::Both | Support::Apart => self
                .set
                .get(gate.name)
                .copied()
                .unwrap_or_else(|| self.spec(gate).is_some_and(|(_, default)| default)),
        }
    }

    /// The stage and the default of a gate in the emulated release; `None` if that release has no
    /// such gate.
    fn spec(&self, gate: &Gate) -> Option<(Stage, bool)> {
        let release = self.version.emulated_minor();
        let first = EARLIER.partition_point(|row| row.name < gate.name);
        let rows = EARLIER[first..].iter().take_while(|row| row.name == gate.name);
        let earlier = rows.into_iter().find(|row| release < row.until);
        earlier.map_or(Some((gate.stage, gate.default)), |row| row.spec)
    }

    /// Parses the flag's values as [`Self::parse_for`] does, for this program's own release.
    pub fn parse<'a>(flags: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        Self::parse_for(EffectiveVersion::default(), flags)
    }

    /// Parses the flag's values, each `Name=true,Other=false`. The last setting of a gate wins. An
    /// unknown gate is an error (DEP-22), as is a value that a gate cannot have (DEP-23). The
    /// emulated release determines which gates exist and their defaults.
    pub fn parse_for<'a>(
        version: EffectiveVersion,
        flags: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Flag { flag: "feature-gates", reason };
        let mut settings = BTreeMap::new();
        for setting in flags.into_iter().flat_map(|flag| flag.split(',')) {
            if !setting.trim().is_empty() {
                let (name, on) = read(setting).map_err(refuse)?;
                settings.insert(name, on);
            }
        }
        let mut gates = Self { set: BTreeMap::new(), version };
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
        let Some((name, stage)) = stage_of_all(name) else { return };
        self.set.insert(name, on);
        let is_of_stage = |gate: &&Gate| self.spec(gate).is_some_and(|(own, _)| own == stage);
        let of_stage: Vec<&Gate> = GATES.iter().filter(is_of_stage).collect();
        let mut stay = Vec::new();
        for gate in of_stage {
            match (gate.support, on) {
                (Support::Both | Support::Apart, _) => _ = self.set.insert(gate.name, on),
                (Support::On, false) | (Support::Off, true) => stay.push(gate.name),
                (Support::On | Support::Off | Support::Locked, _) => {}
            }
        }
        if !stay.is_empty() {
            tracing::warn!(
                "--feature-gates={name}={on} does not change these gates, whose features are fixed: {}",
                stay.join(", ")
            );
        }
    }

    fn set_one(&mut self, name: &str, on: bool) -> Result<(), String> {
        let gate = known(name).ok_or_else(|| format!("unrecognized feature gate: {name}"))?;
        let Some((stage, _)) = self.spec(gate) else {
            let (emulation, oldest) = (self.version.emulation(), self.version.min_compatibility());
            return Err(format!(
                "cannot set feature gate {name} to {on}, feature is PreAlpha at emulated version \
                 {emulation}, min compatibility version {oldest}"
            ));
        };
        match gate.support {
            Support::Locked if on != gate.default => {
                let default = gate.default;
                return Err(format!(
                    "cannot set feature gate {name} to {on}, feature is locked to {default}"
                ));
            }
            Support::On if !on => {
                return Err(format!(
                    "cannot set feature gate {name} to false, this server always has the feature"
                ));
            }
            Support::Off if on => {
                return Err(format!(
                    "cannot set feature gate {name} to true, this server does not have the feature"
                ));
            }
            Support::Both | Support::Apart => _ = self.set.insert(gate.name, on),
            Support::On | Support::Off | Support::Locked => {}
        }
        // DEP-25
        match stage {
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

    /// Returns an error if a gate that is on depends on one that is off.
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

/// The settings that apply to all gates of a stage.
const OF_STAGES: [(&str, Stage); 2] = [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

/// The stage to whose gates a setting applies, or `None` for the setting of one gate.
fn stage_of_all(name: &str) -> Option<(&'static str, Stage)> {
    OF_STAGES.into_iter().find(|(own, _)| *own == name)
}

fn known(name: &str) -> Option<&'static Gate> {
    let found = GATES.binary_search_by(|gate| gate.name.cmp(name)).ok()?;
    GATES.get(found)
}

#[cfg(test)]
mod tests;
