//! The rules for claims and users, and the mappings of claims to a user, with their expressions.

use pintle_meta::validation;
use pintle_value::{Path, Value};

use super::reader::{Reader, Shape, list, text};
use crate::jwt::mapping::{self, Input, Mapping, Rule, Source};

impl Reader<'_> {
    /// Parses the rules for claims. Returns true if one of them uses `claims.email_verified`.
    pub(super) fn claim_rules(&mut self, one: &Value, at: &Path, mapping: &mut Mapping) -> bool {
        let at = at.field("claimValidationRules");
        let mut uses_email_verified = false;
        let mut seen: Vec<&str> = Vec::new();
        for (index, rule) in list(one, "claimValidationRules").iter().enumerate() {
            let at = at.index(index);
            self.only(
                rule,
                &at,
                &[
                    ("claim", Shape::Text),
                    ("requiredValue", Shape::Text),
                    ("expression", Shape::Text),
                    ("message", Shape::Text),
                ],
            );
            let (claim, value) = (text(rule, "claim"), text(rule, "requiredValue"));
            let (expression, message) = (text(rule, "expression"), text(rule, "message"));
            match (claim, expression) {
                ("", "") => self.required(&at, "claim or expression is required"),
                (claim, "") => {
                    if !message.is_empty() {
                        let why = "may not be specified when claim is set";
                        self.invalid(&at.field("message"), message, why);
                    }
                    if mapping.required.iter().any(|(other, _)| other == claim) {
                        self.duplicate(&at.field("claim"), claim);
                    }
                    mapping.required.push((claim.to_owned(), value.to_owned()));
                }
                ("", expression) => {
                    if !value.is_empty() {
                        let why = "may not be specified when expression is set";
                        self.invalid(&at.field("requiredValue"), value, why);
                    }
                    let at = at.field("expression");
                    if seen.contains(&expression) {
                        self.duplicate(&at, expression);
                        continue;
                    }
                    seen.push(expression);
                    let rule = self.rule(expression, message, Input::Claims, &at);
                    uses_email_verified |= rule.is_some() && uses(expression, "email_verified");
                    mapping.claim_rules.extend(rule);
                }
                _ => self.invalid(&at, claim, "claim and expression can't both be set"),
            }
        }
        uses_email_verified
    }

    pub(super) fn user_rules(&mut self, one: &Value, at: &Path, mapping: &mut Mapping) {
        let at = at.field("userValidationRules");
        let mut seen: Vec<&str> = Vec::new();
        for (index, rule) in list(one, "userValidationRules").iter().enumerate() {
            self.only(
                rule,
                &at.index(index),
                &[("expression", Shape::Text), ("message", Shape::Text)],
            );
            let at = at.index(index).field("expression");
            let expression = text(rule, "expression");
            if expression.is_empty() {
                self.required(&at, "");
            } else if seen.contains(&expression) {
                self.duplicate(&at, expression);
            } else {
                seen.push(expression);
                let rule = self.rule(expression, text(rule, "message"), Input::User, &at);
                mapping.user_rules.extend(rule);
            }
        }
    }

    fn rule(&mut self, expression: &str, message: &str, about: Input, at: &Path) -> Option<Rule> {
        match mapping::compile(expression, about, true) {
            Ok(expression) => Some(Rule { expression, message: message.to_owned() }),
            Err(why) => {
                self.invalid(at, expression, why);
                None
            }
        }
    }

    pub(super) fn mappings(
        &mut self,
        one: &Value,
        at: &Path,
        mapping: &mut Mapping,
        uses_email_verified: &mut bool,
    ) {
        let (at, empty) = (at.field("claimMappings"), Value::object());
        let section = one.get("claimMappings").unwrap_or(&empty);
        self.only(
            section,
            &at,
            &[
                ("username", Shape::Object),
                ("groups", Shape::Object),
                ("uid", Shape::Object),
                ("extra", Shape::Objects),
            ],
        );
        let of = |member: &str| section.get(member).unwrap_or(&empty);
        mapping.username = self.prefixed(of("username"), &at.field("username"), true);
        mapping.groups = self.prefixed(of("groups"), &at.field("groups"), false);
        mapping.uid = self.uid(of("uid"), &at.field("uid"));
        let expression = text(of("username"), "expression");
        *uses_email_verified |= uses(expression, "email_verified");
        for (index, one) in list(section, "extra").iter().enumerate() {
            let expression = text(one, "valueExpression");
            *uses_email_verified |= uses(expression, "email_verified");
            self.extra(one, &at.field("extra").index(index), mapping);
        }
        if uses(expression, "email") && !*uses_email_verified {
            let why = "claims.email_verified must be used in claimMappings.username.expression or \
                       claimMappings.extra[*].valueExpression or \
                       claimValidationRules[*].expression when claims.email is used in \
                       claimMappings.username.expression";
            self.invalid(&at.field("username").field("expression"), expression, why);
        }
    }

    fn prefixed(&mut self, section: &Value, at: &Path, is_required: bool) -> Source {
        self.only(
            section,
            at,
            &[("claim", Shape::Text), ("prefix", Shape::Text), ("expression", Shape::Text)],
        );
        let prefix = section.get("prefix").and_then(Value::as_str);
        match (text(section, "claim"), text(section, "expression")) {
            ("", "") if is_required => self.required(at, "claim or expression is required"),
            ("", "") => {}
            ("", expression) => {
                if let Some(prefix) = prefix {
                    let why = "may not be specified when expression is set";
                    self.invalid(&at.field("prefix"), prefix, why);
                }
                return self.expression(expression, &at.field("expression"));
            }
            (name, "") => match prefix {
                Some(prefix) => {
                    return Source::Claim { name: name.to_owned(), prefix: prefix.to_owned() };
                }
                None => {
                    let why = "prefix is required when claim is set. It can be set to an empty \
                               string to disable prefixing";
                    self.required(&at.field("prefix"), why);
                }
            },
            _ => self.invalid(at, "", "claim and expression can't both be set"),
        }
        Source::None
    }

    fn uid(&mut self, section: &Value, at: &Path) -> Source {
        self.only(section, at, &[("claim", Shape::Text), ("expression", Shape::Text)]);
        match (text(section, "claim"), text(section, "expression")) {
            ("", "") => Source::None,
            ("", expression) => self.expression(expression, &at.field("expression")),
            (name, "") => Source::Claim { name: name.to_owned(), prefix: String::new() },
            _ => {
                self.invalid(at, "", "claim and expression can't both be set");
                Source::None
            }
        }
    }

    fn expression(&mut self, expression: &str, at: &Path) -> Source {
        match mapping::compile(expression, Input::Claims, false) {
            Ok(expression) => Source::Expression(expression),
            Err(why) => {
                self.invalid(at, expression, why);
                Source::None
            }
        }
    }

    fn extra(&mut self, section: &Value, at: &Path, mapping: &mut Mapping) {
        self.only(section, at, &[("key", Shape::Text), ("valueExpression", Shape::Text)]);
        let (key, of_key) = (text(section, "key"), at.field("key"));
        self.errors.extend(validation::domain_prefixed_path(key, &of_key));
        if key != key.to_lowercase() {
            self.invalid(&of_key, key, "must be lowercase");
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_below = |parent: &str| {
            domain.strip_suffix(parent).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
        };
        if is_below("kubernetes.io") || is_below("k8s.io") {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            self.invalid(&of_key, key, why);
        }
        if mapping.extra.iter().any(|(other, _)| other == key) {
            return self.duplicate(&of_key, key);
        }
        let (expression, at) = (text(section, "valueExpression"), at.field("valueExpression"));
        if expression.is_empty() {
            return self.required(&at, "");
        }
        match mapping::compile(expression, Input::Claims, false) {
            Ok(expression) => mapping.extra.push((key.to_owned(), expression)),
            Err(why) => self.invalid(&at, expression, why),
        }
    }
}

/// Whether an expression selects the claim.
fn uses(expression: &str, claim: &str) -> bool {
    !expression.is_empty() && pintle_cel::selects(expression, "claims", claim)
}
