//! An object of each kind that has several versions, written in each and read in all.

use serde_json::{Value, json};

use super::kinds::Kind;
use super::mutants::{Question, request};

/// Requests that create an object in each version, and read, change and apply it in all of them.
pub(super) fn versions(kind: &Kind, versions: &[String]) -> Vec<Question> {
    let named = |(number, version): (usize, &String)| {
        let name = format!("{}-{number}", kind.name);
        Written { kind, versions, version: version.clone(), name }
    };
    versions.iter().enumerate().map(named).flat_map(|written| written.questions()).collect()
}

/// An object, and the version in which it is created.
struct Written<'a> {
    kind: &'a Kind,
    versions: &'a [String],
    version: String,
    name: String,
}

impl Written<'_> {
    fn questions(&self) -> Vec<Question> {
        let collection = self.kind.collection_in(&self.version);
        let made = self.object(&self.version);
        let words = format!("POST in {}", self.version);
        let mut questions = vec![request(self.kind, &words, "POST", &collection, None, &made)];
        questions.extend(self.read("made"));
        for version in self.versions {
            let merge = ("application/merge-patch+json", "?fieldManager=patcher");
            questions.push(self.patch(version, merge, &self.kind.change));
            let apply = ("application/apply-patch+yaml", "?fieldManager=applier&force=true");
            questions.push(self.patch(version, apply, &self.object(version)));
            questions.extend(self.read(&format!("changed in {version}")));
        }
        let path = format!("{collection}/{}?gracePeriodSeconds=0", self.name);
        let words = format!("DELETE in {}", self.version);
        questions.push(request(self.kind, &words, "DELETE", &path, None, &json!({})));
        questions
    }

    fn object(&self, version: &str) -> Value {
        let mut object = self.kind.rich.clone();
        object["apiVersion"] = json!(version);
        object["metadata"]["name"] = json!(self.name);
        object
    }

    /// Reads of the object in every version.
    fn read(&self, after: &str) -> impl Iterator<Item = Question> {
        self.versions.iter().map(move |version| {
            let path = format!("{}/{}", self.kind.collection_in(version), self.name);
            let words = format!("GET in {version} what was made in {}, {after}", self.version);
            request(self.kind, &words, "GET", &path, None, &json!({}))
        })
    }

    fn patch(&self, version: &str, (media, query): (&str, &str), patch: &Value) -> Question {
        let path = format!("{}/{}{query}", self.kind.collection_in(version), self.name);
        let words = format!("PATCH {media} in {version} what was made in {}", self.version);
        request(self.kind, &words, "PATCH", &path, Some(media), patch)
    }
}
