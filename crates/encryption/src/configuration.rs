//! Reads an EncryptionConfiguration strictly, and validates it with upstream's rules and messages
//! (`apiserver/pkg/apis/apiserver/validation/validation_encryption.go`).

mod names;
mod providers;

use std::collections::BTreeSet;

use pintle_meta::field::{self, Errors};
use pintle_value::{Path, Value, yaml};
use zeroize::Zeroizing;

use crate::Error;
pub use providers::{Key, Kms, Provider};

const KIND: &str = "EncryptionConfiguration";
const VERSION: &str = "apiserver.config.k8s.io/v1";

/// The size limit of a file, in bytes: enough for thousands of rules with many keys each.
const FILE_BYTES_MAX: usize = 4 << 20;

/// Which resources are encrypted, and how.
#[derive(Debug)]
pub struct Configuration {
    /// Earlier rules take precedence.
    pub rules: Vec<ResourceRule>,
}

/// The providers of some resources.
#[derive(Debug)]
pub struct ResourceRule {
    /// As written in the file: `secrets`, `deployments.apps`, `*.apps`, `*.`, `*.*`.
    pub resources: Vec<String>,
    /// The first one writes; all of them read.
    pub providers: Vec<Provider>,
}

impl Configuration {
    /// Reads a YAML or JSON file. If the file is `reloaded` when it changes, the names of all KMS
    /// providers must be unique.
    ///
    /// # Errors
    /// A file that is too long, is not YAML, or has another kind; otherwise, all invalid fields.
    pub fn read(text: &[u8], reloaded: bool) -> Result<Self, Error> {
        let refuse = |why: String| Err(Error::Configuration(why));
        if text.len() > FILE_BYTES_MAX {
            return refuse(format!("it has more than {FILE_BYTES_MAX} bytes"));
        }
        let file = yaml::parse_strict(text).map_err(|why| Error::Configuration(why.to_string()))?;
        let member = |name: &str| file.str_at(&[name]).unwrap_or_default();
        if member("kind") != KIND || member("apiVersion") != VERSION {
            let (kind, version) = (member("kind"), member("apiVersion"));
            return refuse(format!("no kind {kind:?} is registered for version {version:?}"));
        }
        let mut reader = Reader { reloaded, ..Reader::default() };
        let rules = reader.rules(&file);
        if !reader.malformed.is_empty() {
            return refuse(format!("strict decoding error: {}", reader.malformed.join(", ")));
        }
        if !reader.errors.is_empty() {
            return refuse(field::aggregate(&reader.errors));
        }
        Ok(Self { rules })
    }
}

/// Reads a file and collects the errors.
#[derive(Default)]
struct Reader {
    reloaded: bool,
    /// Unknown members, and members of the wrong type.
    malformed: Vec<String>,
    errors: Errors,
    /// The names of the KMS providers so far.
    kms_names: BTreeSet<String>,
}

impl Reader {
    fn rules(&mut self, file: &Value) -> Vec<ResourceRule> {
        self.check_members(file, &Path::root(), &["apiVersion", "kind", "resources"]);
        let at = Path::new("resources");
        let listed = self.list(file, "resources", &at);
        if listed.is_empty() {
            self.errors.push(field::Error::required(&at, "at least one resources is required"));
        }
        listed.iter().enumerate().map(|(index, rule)| self.rule(rule, &at.index(index))).collect()
    }

    fn rule(&mut self, rule: &Value, at: &Path) -> ResourceRule {
        self.check_members(rule, at, &["resources", "providers"]);
        let at_resources = at.field("resources");
        let mut resources = Vec::new();
        for (index, one) in self.list(rule, "resources", &at_resources).iter().enumerate() {
            resources.extend(self.text(one, &at_resources.index(index)));
        }
        if resources.is_empty() {
            let why = format!("at least one {} is required", at_resources.as_str());
            self.errors.push(field::Error::required(&at_resources, why));
        }
        names::check_overlap(&resources, &at_resources, &mut self.errors);
        names::check_each(&resources, &at_resources, &mut self.errors);
        let at = at.field("providers");
        let listed = self.list(rule, "providers", &at);
        if listed.is_empty() {
            let why = format!("at least one {} is required", at.as_str());
            self.errors.push(field::Error::required(&at, why));
        }
        let mut providers = Vec::new();
        for (index, one) in listed.iter().enumerate() {
            providers.extend(self.provider(one, &at.index(index)));
        }
        ResourceRule { resources, providers }
    }

    /// Reports unknown members, and a value that is not an object.
    fn check_members(&mut self, value: &Value, at: &Path, known: &[&str]) {
        let Some(members) = value.as_object() else {
            return self.malformed.push(format!("{:?} must be an object", at.as_str()));
        };
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            self.malformed.push(format!("unknown field {:?}", at.field(name).as_str()));
        }
    }

    /// The items of a member; empty if it is absent.
    fn list<'v>(&mut self, value: &'v Value, member: &str, at: &Path) -> &'v [Value] {
        match value.get(member) {
            None | Some(Value::Null) => &[],
            Some(list) => list.as_array().unwrap_or_else(|| {
                self.malformed.push(format!("{:?} must be a list", at.as_str()));
                &[]
            }),
        }
    }

    /// A string. Reports any other type, without the value: it may be a secret.
    fn text(&mut self, value: &Value, at: &Path) -> Option<String> {
        let text = value.as_str().map(str::to_owned);
        if text.is_none() {
            self.malformed.push(format!("{:?} must be a string", at.as_str()));
        }
        text
    }

    /// A string member; empty if it is absent.
    fn member(&mut self, value: &Value, member: &str, at: &Path) -> String {
        match value.get(member) {
            None | Some(Value::Null) => String::new(),
            Some(text) => self.text(text, &at.field(member)).unwrap_or_default(),
        }
    }

    /// Like `member`, for a string that must be wiped from memory.
    fn secret(&mut self, value: &Value, member: &str, at: &Path) -> Zeroizing<String> {
        Zeroizing::new(self.member(value, member, at))
    }
}
