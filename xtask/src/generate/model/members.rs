//! Go members as JSON and Protobuf have them: embedded structs are inlined, tags are parsed.

use anyhow::{Context as _, Result, bail};

use crate::generate::sources::{Member, Message, MessageField, Sources, definition_of_message};

/// A Go member at its position in JSON, with embedded structs inlined.
pub(super) struct Flat<'a> {
    pub(super) member: &'a Member,
    /// The package that contains the member's struct.
    pub(super) package: &'a str,
    pub(super) tag: u32,
    /// The Protobuf field and the definition whose message has it, if there is one.
    pub(super) message: Option<(&'a MessageField, String)>,
    pub(super) inside: Vec<u32>,
    /// The embedded structs that contain the member, outermost first.
    pub(super) embedded: Vec<String>,
}

/// Lists the members of a type in the order in which JSON has them.
pub(super) fn flatten<'a>(
    sources: &'a Sources,
    name: &str,
    inside: &[u32],
    embedded: &[String],
    out: &mut Vec<Flat<'a>>,
) -> Result<()> {
    let (package, members) = sources.go_struct(name).context("no Go struct")?;
    let message = sources.message(name);
    for member in members.iter().filter(|m| m.name != "-") {
        let field = message.and_then(|m| message_field(m, member));
        if message.is_some() && field.is_none() && member.name != "TypeMeta" {
            bail!("no Protobuf field for {}", member.name);
        }
        if !member.inline {
            let tag = field.map_or(0, |f| f.tag);
            let message = field.map(|f| (f, name.to_owned()));
            let (inside, embedded) = (inside.to_vec(), embedded.to_vec());
            out.push(Flat { member, package, tag, message, inside, embedded });
        } else if member.name == "TypeMeta" {
            let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.TypeMeta";
            let (package, members) = sources.go_struct(meta).context("no TypeMeta")?;
            // In Protobuf, `apiVersion` and `kind` are in the envelope.
            out.extend(members.iter().map(|member| Flat {
                member,
                package,
                tag: 0,
                message: None,
                inside: Vec::new(),
                embedded: vec!["TypeMeta".to_owned()],
            }));
        } else {
            let of = match field {
                Some(f) => definition_of_message(&f.kind, name),
                None => definition_of_message(&member.name, name),
            };
            let mut inside = inside.to_vec();
            inside.extend(field.map(|f| f.tag));
            let mut embedded = embedded.to_vec();
            embedded.push(member.name.clone());
            flatten(sources, &of, &inside, &embedded, out).with_context(|| of.clone())?;
        }
    }
    Ok(())
}

/// The Protobuf field of a Go member: the same name, ignoring case and punctuation. For an embedded
/// struct, the field of its type (`ProbeHandler` is `handler`).
pub(crate) fn message_field<'a>(message: &'a Message, member: &Member) -> Option<&'a MessageField> {
    let plain = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let name = plain(&member.name);
    let field = message.iter().find(|(n, f)| match member.inline {
        true => f.kind.rsplit('.').next() == Some(&member.name),
        false => plain(n) == name,
    });
    field.map(|(_, f)| f)
}

/// The value of the marker `+default`.
pub(super) fn default(sources: &Sources, f: &Flat<'_>) -> Result<Option<serde_json::Value>> {
    let Some(text) = f.member.tag("default") else { return Ok(None) };
    let Some(constant) = text.strip_prefix("ref(").and_then(|t| t.strip_suffix(')')) else {
        return Ok(Some(serde_json::from_str(text)?));
    };
    let package = sources.packages.get(f.package).context("no package")?;
    let value = package.constants.get(constant).context("a default refers to no constant")?;
    Ok(Some(serde_json::Value::from(value.clone())))
}
