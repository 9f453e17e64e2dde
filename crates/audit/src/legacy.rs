//! Events as lines of text: upstream's format `legacy`.

use std::fmt::Write as _;

use pintle_meta::quote::quote;

use crate::{Event, Response, Zone};

impl Event<'_> {
    /// The event as a line of text, with times of a zone, without a line end.
    pub(crate) fn legacy(&self, zone: &Zone) -> String {
        let request = &self.request;
        let user = request.user.filter(|user| !user.name.is_empty());
        let groups = user.map(|user| &user.groups).filter(|groups| !groups.is_empty());
        let impersonated = self.impersonated;
        let impersonated_groups =
            impersonated.map(|user| &user.groups).filter(|groups| !groups.is_empty());
        let namespace = self.object.map_or("", |object| object.namespace);
        let mut line = String::with_capacity(512);
        line.push_str(&zone.format(request.received_unix_micros));
        let members = [
            ("id", request.audit_id.to_owned()),
            ("stage", self.stage.name().to_owned()),
            ("ip", request.source_ips.first().map_or("<unknown>".to_owned(), ToString::to_string)),
            ("method", request.verb.to_owned()),
            ("user", user.map_or("<none>", |user| &user.name).to_owned()),
            ("groups", groups.map_or_else(|| "<none>".to_owned(), |groups| quoted(groups))),
            ("as", impersonated.map_or("<self>", |user| &user.name).to_owned()),
            (
                "asgroups",
                impersonated_groups.map_or_else(|| "<lookup>".to_owned(), |groups| quoted(groups)),
            ),
            ("user-agent", request.user_agent.to_owned()),
            ("namespace", if namespace.is_empty() { "<none>" } else { namespace }.to_owned()),
            ("uri", request.uri.to_owned()),
        ];
        line.push_str(" AUDIT:");
        for (name, text) in members {
            let _ = write!(line, " {name}={}", quote(&text)); // writing to a String cannot fail
        }
        let response = match &self.response {
            None => "<deferred>".to_owned(),
            Some(response) => response.code().to_string(),
        };
        let _ = write!(line, " response=\"{response}\"");
        line
    }
}

impl Response {
    /// The HTTP status code.
    pub const fn code(&self) -> u16 {
        match self {
            Self::Code(code) | Self::Status(_, code) => *code,
            Self::ClosedEarly => 200,
        }
    }
}

fn quoted(texts: &[String]) -> String {
    texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(",")
}
