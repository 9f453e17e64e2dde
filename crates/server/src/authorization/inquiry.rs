//! Questions to the authorizer in the midst of an evaluation, which cannot wait for an answer.
//!
//! Where an answer is not at hand, the question is noted, what was evaluated is thrown away, and it is
//! evaluated again when the question has been answered. So no thread waits for a webhook.
//!
//! Invariant: what was evaluated without an answer is never used; [`Inquiry::awaited`] tells.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_admission::Awaited;
use pintle_auth::{Attributes, Authorizer, OwnedAttributes, Ruling};

/// The questions of one evaluation.
pub(super) struct Inquiry {
    authorizer: Arc<dyn Authorizer>,
    questions: Mutex<Questions>,
}

#[derive(Default)]
struct Questions {
    /// What has been waited for.
    answered: Vec<(OwnedAttributes, Ruling)>,
    /// What is to be waited for next.
    open: Option<OwnedAttributes>,
}

impl Inquiry {
    pub(super) fn new(authorizer: &Arc<dyn Authorizer>) -> Self {
        Self { authorizer: authorizer.clone(), questions: Mutex::default() }
    }

    /// What the authorizer says; `None` if that has to be waited for.
    pub(super) fn authorize(&self, attributes: &Attributes<'_>) -> Option<Ruling> {
        if let Some(ruling) = self.authorizer.authorize(attributes).ready() {
            return Some(ruling);
        }
        let asked = attributes.to_owned();
        let mut questions = self.questions.lock();
        let answered = questions.answered.iter().find(|(question, _)| *question == asked);
        let ruling = answered.map(|(_, ruling)| ruling.clone());
        if ruling.is_none() {
            questions.open.get_or_insert(asked);
        }
        ruling
    }

    /// The answer that was not at hand, after which what asked for it is to be evaluated again.
    pub(super) fn awaited(&self) -> Option<Awaited<'_>> {
        let question = self.questions.lock().open.take()?;
        Some(Box::pin(async move {
            let ruling = self.authorizer.authorize(&question.borrowed()).await;
            self.questions.lock().answered.push((question, ruling));
        }))
    }
}
