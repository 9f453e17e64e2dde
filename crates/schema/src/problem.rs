//! Problems of a body that do not prevent its decoding.

use std::fmt;

use pintle_meta::quote::quote;

/// An unknown or duplicate field. The request's `fieldValidation` decides whether it is an error, a
/// warning, or ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The type does not declare the field. It was dropped.
    Unknown(String),
    /// The field occurs more than once; the last one counts.
    Duplicate(String),
    /// A key occurs more than once in YAML. The text is go-yaml's, which names the line.
    Repeated(String),
}

impl Problem {
    /// The path of the field; for a key in YAML, the text with the line.
    pub fn path(&self) -> &str {
        let (Self::Unknown(path) | Self::Duplicate(path) | Self::Repeated(path)) = self;
        path
    }

    /// Formats all problems as one text, as a strict decoder's error.
    pub fn strict(problems: &[Self]) -> String {
        let (repeated, others): (Vec<&Self>, Vec<&Self>) =
            problems.iter().partition(|problem| matches!(problem, Self::Repeated(_)));
        let texts = |of: Vec<&Self>| of.iter().map(ToString::to_string).collect::<Vec<_>>();
        let repeated = texts(repeated).join("\n  ");
        let yaml = (!repeated.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {repeated}"));
        let all: Vec<String> = yaml.into_iter().chain(texts(others)).collect();
        format!("strict decoding error: {}", all.join(", "))
    }
}

/// The maximum number of problems that are reported, as in upstream.
pub const PROBLEMS_MAX: usize = 100;

/// The maximum number of problems that are compared with those before them. A body of 3 MiB can
/// repeat a few fields a hundred thousand times.
const COMPARED_MAX: usize = 10_000;

/// Collects problems: the first [`PROBLEMS_MAX`], each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems {
    distinct: Vec<Problem>,
    compared: usize,
}

impl Problems {
    /// Adds a problem unless it is already in the list or the list is full.
    pub(crate) fn add(&mut self, problem: impl FnOnce() -> Problem) {
        if self.distinct.len() < PROBLEMS_MAX && self.compared < COMPARED_MAX {
            self.compared += 1;
            let problem = problem();
            if !self.distinct.contains(&problem) {
                self.distinct.push(problem);
            }
        }
    }

    /// Adds all problems of another list.
    pub(crate) fn append(&mut self, other: Self) {
        other.distinct.into_iter().for_each(|problem| self.add(|| problem));
    }

    /// Returns the problems in the order in which they were added.
    pub(crate) fn into_vec(self) -> Vec<Problem> {
        self.distinct
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(path) => write!(f, "unknown field {}", quote(path)),
            Self::Duplicate(path) => write!(f, "duplicate field {}", quote(path)),
            Self::Repeated(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::decode::{Format, decode, duplicates};

    /// A long name in the path of many repeated members is neither copied nor compared for each.
    #[test]
    fn repeated_members_below_a_long_name_take_little_time_and_memory() {
        let names = (0..99).map(|i| format!(r#""{i:02}":0,"{i:02}":0,"#));
        let repeated = r#""98":0,"#.repeat(200_000);
        let inner = format!(r#"{{{}{repeated}"z":0}}"#, names.collect::<String>());
        let long = "k".repeat(1_500_000);
        let (_, found) = duplicates::read(format!(r#"{{"{long}":{inner}}}"#).as_bytes()).unwrap();
        assert!(!found.is_empty());
        assert!(found.iter().all(|problem| problem.path().len() < 5000));

        let schema = crate::builtin();
        let ty = schema.find("io.k8s.api.core.v1.Pod").unwrap();
        let pod = format!(r#"{{"metadata":{{"labels":{{"{long}":"",{repeated}"z":""}}}}}}"#);
        let decoded = decode(schema, ty, pod.replace(":0,", ":\"\",").as_bytes(), Format::Json);
        assert_eq!(decoded.unwrap().problems.len(), 1);
    }
}
