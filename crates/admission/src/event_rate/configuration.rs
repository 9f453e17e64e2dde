//! The configuration of EventRateLimit (upstream: `Configuration` of
//! `eventratelimit.admission.k8s.io/v1alpha1`).

use pintle_meta::field::{Error, Errors};
use pintle_value::{Path, Value};

/// The default maximum number of buckets of a limit.
const CACHE_SIZE: usize = 4096;

/// A limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLimit {
    /// The key of a limit's buckets.
    pub limit_type: LimitType,
    /// The rate at which a bucket refills, in events per second.
    pub qps: i32,
    /// The events that a full bucket allows.
    pub burst: i32,
    /// The maximum number of buckets; the least recently used bucket is evicted first.
    pub cache_size: usize,
}

/// The key of a limit's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitType {
    /// No key: all events share one bucket.
    Server,
    /// The namespace of the event.
    Namespace,
    /// The user who writes the event.
    User,
    /// The source of the event and the object that the event is about.
    SourceAndObject,
}

impl LimitType {
    const ALL: [Self; 4] = [Self::Server, Self::Namespace, Self::User, Self::SourceAndObject];

    /// The name in configurations and refusals.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::Namespace => "Namespace",
            Self::User => "User",
            Self::SourceAndObject => "SourceAndObject",
        }
    }
}

impl EventLimit {
    /// Reads the limits of a `Configuration`.
    ///
    /// # Errors
    /// All errors in one text, in upstream's words except for a number that is no int32.
    pub(crate) fn all(configuration: &Value) -> Result<Vec<Self>, String> {
        let mut errors = Errors::new();
        let path = Path::new("limits");
        let items = configuration.get("limits").and_then(Value::as_array).unwrap_or_default();
        if items.is_empty() {
            let none = configuration.get("limits").unwrap_or(&Value::Null);
            errors.push(Error::invalid(&path, none, "must not be empty"));
        }
        let read = |(i, item)| Self::read(item, &path.index(i), &mut errors);
        let limits: Vec<Self> = items.iter().enumerate().filter_map(read).collect();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        match errors.as_slice() {
            [] => Ok(limits),
            [only] => Err(only.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }

    fn read(item: &Value, path: &Path, errors: &mut Errors) -> Option<Self> {
        let name = item.str_at(&["type"]).unwrap_or_default();
        let limit_type = LimitType::ALL.into_iter().find(|known| known.name() == name);
        if limit_type.is_none() {
            let names = LimitType::ALL.map(LimitType::name);
            errors.push(Error::not_supported(&path.field("type"), &name.into(), &names));
        }
        let mut number = |member: &str| {
            let value = item.get(member).unwrap_or(&Value::Int(0));
            let number = value.as_int().and_then(|number| i32::try_from(number).ok());
            if number.is_none() {
                errors.push(Error::invalid(&path.field(member), value, "must be an int32"));
            }
            number
        };
        let (burst, qps, cache_size) = (number("burst")?, number("qps")?, number("cacheSize")?);
        for (member, number) in [("burst", burst), ("qps", qps)] {
            if number <= 0 {
                let value = Value::from(i64::from(number));
                errors.push(Error::invalid(&path.field(member), &value, "must be positive"));
            }
        }
        if cache_size < 0 && limit_type != Some(LimitType::Server) {
            let (path, value) = (path.field("cacheSize"), Value::from(i64::from(cache_size)));
            errors.push(Error::invalid(&path, &value, "must not be negative"));
        }
        let cache_size = match usize::try_from(cache_size) {
            Ok(0) | Err(_) => CACHE_SIZE,
            Ok(size) => size,
        };
        Some(Self { limit_type: limit_type?, qps, burst, cache_size })
    }
}
