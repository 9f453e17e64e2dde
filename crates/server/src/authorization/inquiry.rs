//! Authorization checks within an evaluation that cannot wait.
//!
//! If a ruling needs a webhook, the check is recorded, the result of the evaluation is discarded,
//! and the evaluation runs again with the ruling. So no thread waits for a webhook.
//!
//! Invariant: a result that was evaluated without a ruling is never used; [`Inquiry::pending`]
//! reports that a ruling is pending.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_admission::PendingRuling;
use pintle_auth::{Attributes, Authorizer, OwnedAttributes, Ruling};

/// The checks of one evaluation.
pub(super) struct Inquiry {
    authorizer: Arc<dyn Authorizer>,
    questions: Mutex<Questions>,
}

#[derive(Default)]
struct Questions {
    /// The checks with their rulings.
    answered: Vec<(OwnedAttributes, Ruling)>,
    /// The check to wait for next.
    open: Option<OwnedAttributes>,
}

impl Inquiry {
    pub(super) fn new(authorizer: &Arc<dyn Authorizer>) -> Self {
        Self { authorizer: authorizer.clone(), questions: Mutex::default() }
    }

    /// The ruling; `None` while it is pending.
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

    /// The pending ruling, after which the evaluation must run again.
    pub(super) fn pending(&self) -> Option<PendingRuling<'_>> {
        let question = self.questions.lock().open.take()?;
        Some(Box::pin(async move {
            let ruling = self.authorizer.authorize(&question.borrowed()).await;
            self.questions.lock().answered.push((question, ruling));
        }))
    }
}
