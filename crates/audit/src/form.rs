//! The formats of events in backends, and the truncation of events that are too large.

use crate::{Event, Level, Zone, json};

/// Upstream's annotation of an event whose objects were removed because it was too large.
pub const TRUNCATED: &str = "audit.k8s.io/truncated";

/// How an event is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line with an object of JSON.
    Json,
    /// A line of text, with times of a zone.
    Legacy(Zone),
    /// An item of a list in JSON and a comma: see [`crate::event_list`].
    Item,
}

impl Event<'_> {
    /// Appends the event in a form. If its JSON would have `bytes_max` bytes or more, its objects
    /// are removed. Returns false and appends nothing if the event is still too large.
    pub fn write(&self, form: &Form, bytes_max: Option<usize>, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let mut fits = |event: &Event<'_>| {
            event.append(form, out);
            let fits = |max| event.json_length(form, out.len() - start) < max;
            let fits = bytes_max.is_none_or(fits);
            if !fits {
                out.truncate(start);
            }
            fits
        };
        if fits(self) {
            return true;
        }
        if self.level < Level::Request {
            return false;
        }
        let mut annotations = self.annotations.clone();
        annotations.insert(TRUNCATED.into(), "true".into());
        fits(&Event {
            request_object: None,
            response_object: None,
            annotations: &annotations,
            ..*self
        })
    }

    fn append(&self, form: &Form, out: &mut Vec<u8>) {
        match form {
            Form::Json => self.write_json(out),
            Form::Legacy(zone) => out.extend_from_slice(self.legacy(zone).as_bytes()),
            Form::Item => self.write_item(out),
        }
        out.push(if *form == Form::Item { b',' } else { b'\n' });
    }

    /// The length of the event's JSON, given the number of bytes that were written in this form.
    fn json_length(&self, form: &Form, written: usize) -> usize {
        match form {
            Form::Json => written - 1,
            Form::Item => written - 1 + json::TYPE.len(),
            Form::Legacy(_) => {
                let mut json = Vec::new();
                self.write_json(&mut json);
                json.len()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;
    use crate::{Annotations, Request, Stage, event_list};

    fn with_event<T>(level: Level, object: Option<&[u8]>, then: impl FnOnce(&Event<'_>) -> T) -> T {
        let request = Request {
            audit_id: "a",
            uri: "/x?y=<&>",
            verb: "get",
            user: None,
            source_ips: &["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
            user_agent: "",
            received_unix_micros: 1_700_000_000_000_001,
            text: &OnceLock::new(),
        };
        then(&Event {
            level,
            stage: Stage::ResponseComplete,
            stage_unix_micros: 1_700_000_000_900_000,
            request,
            impersonated: None,
            impersonation_constraint: None,
            object: None,
            response: None,
            request_object: object,
            response_object: None,
            omits_managed_fields: false,
            annotations: &Annotations::new(),
        })
    }

    const MEMBERS: &str = concat!(
        r#""auditID":"a","stage":"ResponseComplete","requestURI":"/x?y=\u003c\u0026\u003e","verb":"get","#,
        r#""user":{},"sourceIPs":["127.0.0.1","::1"],"#,
        r#""requestReceivedTimestamp":"2023-11-14T22:13:20.000001Z","#,
        r#""stageTimestamp":"2023-11-14T22:13:20.900000Z""#,
    );

    fn written(event: &Event<'_>, form: &Form, bytes_max: Option<usize>) -> Option<String> {
        let mut out = Vec::new();
        event.write(form, bytes_max, &mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn forms() {
        with_event(Level::Metadata, None, |event| {
            let item = format!(r#"{{"level":"Metadata",{MEMBERS}}},"#);
            let line = item.replacen('{', r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#, 1);
            let line = format!("{}\n", &line[..line.len() - 1]);
            assert_eq!(written(event, &Form::Item, None).unwrap(), item);
            assert_eq!(written(event, &Form::Json, None).unwrap(), line);
            let list = String::from_utf8(event_list(format!("{item}{item}").as_bytes())).unwrap();
            assert!(list.ends_with(&format!("[{item}{}]}}", &item[..item.len() - 1])), "{list}");
        });
    }

    #[test]
    fn objects_are_removed_from_large_events() {
        let object = format!("\"{}\"", "x".repeat(1000));
        with_event(Level::Request, Some(object.as_bytes()), |event| {
            for form in &[Form::Json, Form::Legacy(Zone::UTC), Form::Item] {
                assert!(written(event, form, Some(2000)).is_some(), "{form:?}");
                assert_eq!(written(event, form, Some(100)), None, "{form:?}");
            }
            let cut = written(event, &Form::Json, Some(1000)).unwrap();
            assert!(!cut.contains("xxx") && cut.contains(TRUNCATED), "{cut}");
            let whole = written(event, &Form::Json, None).unwrap().len() - 1;
            assert!(written(event, &Form::Item, Some(whole + 1)).unwrap().contains("xxx"));
            assert!(!written(event, &Form::Item, Some(whole)).unwrap().contains("xxx"));
        });
        let text = |level, max| with_event(level, None, |e| written(e, &Form::Json, Some(max)));
        assert_eq!(text(Level::Metadata, 100), None);
    }
}
