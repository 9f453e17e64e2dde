//! Values of Kubernetes' own types.

use std::fmt;
use std::net::IpAddr;

use pintle_meta::Quantity;

use crate::address::{self, Cidr};
use crate::authorizer::{self, Decision, ResourceCheck, UserAuthorizer};
use crate::context::Context;
use crate::error::EvalError;
use crate::format::Format;
use crate::semver::Semver;
use crate::url::Url;

/// The work of writing a byte of a URL, which may have to be escaped.
const URL_BYTE: u64 = 4;

/// A value that only the functions of its library can inspect.
#[derive(Clone, Debug)]
pub(crate) enum Opaque {
    /// A quantity, and whether it is the result of arithmetic.
    Quantity {
        quantity: Quantity,
        calculated: bool,
    },
    Semver(Semver),
    Url(Url),
    Ip(IpAddr),
    Cidr(Cidr),
    Format(&'static Format),
    Authorizer(UserAuthorizer),
    PathCheck(UserAuthorizer, String),
    GroupCheck(UserAuthorizer, String),
    ResourceCheck(UserAuthorizer, ResourceCheck),
    Decision(Decision),
}

impl Opaque {
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::Quantity { .. } => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Authorizer(_) => authorizer::AUTHORIZER,
            Self::PathCheck(..) => authorizer::PATH_CHECK,
            Self::GroupCheck(..) => authorizer::GROUP_CHECK,
            Self::ResourceCheck(..) => authorizer::RESOURCE_CHECK,
            Self::Decision(_) => authorizer::DECISION,
        }
    }

    /// The size in the cost model.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Ip(IpAddr::V4(_)) => 4,
            Self::Ip(IpAddr::V6(_)) => 16,
            Self::Cidr(cidr) => u64::from(cidr.length.div_ceil(8)),
            _ => 1,
        }
    }

    /// The length of a named format's pattern.
    pub(crate) const fn pattern_length(&self) -> u64 {
        match self {
            Self::Format(format) => format.pattern_length,
            _ => 1,
        }
    }

    /// Accounts for an operation on the value, of which each costs one in upstream.
    pub(crate) fn visit(&self, context: &mut Context) -> Result<(), EvalError> {
        match self {
            Self::Semver(version) => context.work(version.length as u64),
            Self::Url(url) => context.work((url.length() as u64).saturating_mul(URL_BYTE)),
            _ => Ok(()),
        }
    }

    /// Whether both are equal.
    pub(super) fn equals(&self, other: &Self, context: &mut Context) -> Result<bool, EvalError> {
        self.visit(context)?;
        other.visit(context)?;
        match (self, other) {
            // In upstream, a quantity from arithmetic on the right side is never equal.
            (Self::Quantity { quantity: a, .. }, Self::Quantity { quantity: b, calculated }) => {
                if *calculated {
                    self.not_equal()
                } else {
                    Ok(a == b)
                }
            }
            (Self::Semver(a), Self::Semver(b)) => Ok(a == b),
            (Self::Url(a), Self::Url(b)) => Ok(a.to_string() == b.to_string()),
            (Self::Ip(a), Self::Ip(b)) => Ok(a == b),
            (Self::Cidr(a), Self::Cidr(b)) => Ok(a == b),
            (Self::Format(a), Self::Format(b)) => Ok(a.name == b.name),
            _ => self.not_equal(),
        }
    }

    /// Values of these types cannot be compared with values of other types.
    pub(super) fn not_equal(&self) -> Result<bool, EvalError> {
        Err(EvalError::no_such_overload())
    }
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity { quantity, .. } => write!(f, "{quantity}"),
            Self::Semver(version) => write!(f, "{version}"),
            Self::Url(url) => write!(f, "{url}"),
            Self::Ip(ip) => f.write_str(&address::text(*ip)),
            Self::Cidr(cidr) => write!(f, "{cidr}"),
            Self::Format(format) => f.write_str(format.name),
            other => f.write_str(other.type_name()),
        }
    }
}
