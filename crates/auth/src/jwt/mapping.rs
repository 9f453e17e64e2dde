//! Maps the claims of a token to a user, by claim names or CEL expressions.

use pintle_cel::{
    Bindings, Budget, Declaration, Environment, Merge, Object, Program, SIZE_MAX, Type,
};
use pintle_meta::User;
use pintle_value::{Map, Value};

/// The cost limit of all expressions of a token; each has its own limit, too.
const COST_MAX: u64 = 10_000_000;
/// The key of a user's extra with the token's ID.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The mapping from claims to a user.
#[derive(Debug, Default)]
pub struct Mapping {
    pub(super) username: Source,
    pub(super) groups: Source,
    pub(super) uid: Source,
    /// The keys of a user's extra, with the expressions of their values.
    pub(super) extra: Vec<(String, Expression)>,
    /// Claims that must have these values.
    pub(super) required: Vec<(String, String)>,
    /// The rules for claims.
    pub(super) claim_rules: Vec<Rule>,
    /// The rules for the user.
    pub(super) user_rules: Vec<Rule>,
}

/// The source of a user's attribute.
#[derive(Debug, Default)]
pub(super) enum Source {
    #[default]
    None,
    Claim {
        name: String,
        prefix: String,
    },
    Expression(Expression),
}

/// An expression that must be true.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) expression: Expression,
    /// The text that follows the expression in the error.
    pub(super) message: String,
}

/// A compiled expression with its text, which errors name.
#[derive(Debug)]
pub(super) struct Expression {
    text: String,
    program: Program,
}

/// The input of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input {
    Claims,
    User,
}

/// Compiles an expression.
///
/// # Errors
/// The reason why it is invalid, with upstream's text.
pub(super) fn compile(text: &str, about: Input, is_rule: bool) -> Result<Expression, String> {
    let environment = match about {
        Input::Claims => {
            let any = Declaration::Dyn { size_max: SIZE_MAX };
            Environment::new().with("claims", Declaration::map(any, SIZE_MAX))
        }
        Input::User => Environment::new().with("user", user_declaration()),
    };
    let program = environment.compile(text);
    let program = program.map_err(|why| format!("compilation failed: {why}"))?;
    if is_rule && !matches!(program.output_type(), Type::Bool) {
        return Err("must evaluate to bool".to_owned());
    }
    Ok(Expression { text: text.to_owned(), program })
}

fn user_declaration() -> Declaration {
    let texts = || Declaration::list(Declaration::ANY_STRING, Merge::Atomic, SIZE_MAX);
    let fields = [
        ("username", Declaration::ANY_STRING),
        ("uid", Declaration::ANY_STRING),
        ("groups", texts()),
        ("extra", Declaration::map(texts(), SIZE_MAX)),
    ];
    let fields = fields.into_iter().map(|(name, declaration)| (name.into(), declaration));
    Declaration::Object(Object::new("kubernetes.UserInfo", fields))
}

impl Mapping {
    /// The user of a verified token.
    ///
    /// # Errors
    /// The reason why the claims map to no user.
    pub(super) fn user(&self, claims: &Map) -> Result<User, String> {
        let mut evaluation = Evaluation { claims, tree: None, budget: Budget::new(COST_MAX) };
        let mut user = User {
            name: self.username(&mut evaluation)?,
            groups: self.groups(&mut evaluation)?,
            uid: self.uid(&mut evaluation)?,
            extra: self.extra(&mut evaluation)?,
        };
        for (claim, wanted) in &self.required {
            if !claims.contains_key(claim) {
                return Err(format!("oidc: required claim {claim} not present in ID token"));
            }
            let found = text(claims, claim).map_err(|why| format!("oidc: parse claim {why}"))?;
            if found != wanted {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {found}, want = {wanted}"
                ));
            }
        }
        for rule in &self.claim_rules {
            let holds = rule.check(evaluation.value(&rule.expression));
            holds.map_err(|why| wrong("claim validation expression", &why))?;
        }
        if !self.user_rules.is_empty() {
            let tree = user_tree(&user);
            let bindings = Bindings::new().with(&tree);
            for rule in &self.user_rules {
                let holds = rule.check(rule.expression.value(&bindings, &mut evaluation.budget));
                holds.map_err(|why| wrong("user info validation rule", &why))?;
            }
        }
        user.extra.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(user)
    }

    fn username(&self, evaluation: &mut Evaluation<'_>) -> Result<String, String> {
        match &self.username {
            Source::None => Err("oidc: no username is mapped".to_owned()),
            Source::Expression(expression) => {
                let refused = |why: String| wrong("username claim expression", &why);
                match evaluation.value(expression).map_err(refused)? {
                    Value::String(name) if name.is_empty() => {
                        Err("oidc: empty username via CEL expression is not allowed".to_owned())
                    }
                    Value::String(name) => Ok(name.to_string()),
                    _ => Err(refused("username claim expression must return a string".to_owned())),
                }
            }
            Source::Claim { name, prefix } => {
                let claims = evaluation.claims;
                let found = text(claims, name);
                let found = found.map_err(|why| format!("oidc: parse username claims {why}"))?;
                if name == "email" {
                    match claims.get("email_verified") {
                        None | Some(Value::Bool(true)) => {}
                        Some(Value::Bool(false) | Value::Null) => {
                            return Err("oidc: email not verified".to_owned());
                        }
                        Some(_) => return Err("oidc: parse 'email_verified' claim".to_owned()),
                    }
                }
                Ok(format!("{prefix}{found}"))
            }
        }
    }

    fn groups(&self, evaluation: &mut Evaluation<'_>) -> Result<Vec<String>, String> {
        match &self.groups {
            Source::None => Ok(Vec::new()),
            Source::Expression(expression) => evaluation
                .value(expression)
                .and_then(texts)
                .map_err(|why| wrong("group claim expression", &why)),
            Source::Claim { name, prefix } => {
                let claims = evaluation.claims;
                if !claims.contains_key(name) && is_distributed(claims, name) {
                    return Err(format!("oidc: the distributed claim {name:?} is not fetched"));
                }
                let wrong = || format!("oidc: parse groups claim {name:?}");
                let found = match claims.get(name) {
                    None | Some(Value::Null) => Vec::new(),
                    Some(Value::String(one)) => vec![one.to_string()],
                    Some(Value::Array(all)) => {
                        let text = |one: &Value| match one {
                            Value::Null => Some(String::new()),
                            other => other.as_str().map(str::to_owned),
                        };
                        all.iter().map(text).collect::<Option<_>>().ok_or_else(wrong)?
                    }
                    Some(_) => return Err(wrong()),
                };
                Ok(found.into_iter().map(|group| format!("{prefix}{group}")).collect())
            }
        }
    }

    fn uid(&self, evaluation: &mut Evaluation<'_>) -> Result<String, String> {
        match &self.uid {
            Source::None => Ok(String::new()),
            Source::Claim { name, .. } => text(evaluation.claims, name)
                .map(str::to_owned)
                .map_err(|why| format!("oidc: parse uid claim {why}")),
            Source::Expression(expression) => {
                let refused = |why: String| wrong("uid claim expression", &why);
                match evaluation.value(expression).map_err(refused)? {
                    Value::String(uid) => Ok(uid.to_string()),
                    _ => Err(refused("uid claim expression must return a string".to_owned())),
                }
            }
        }
    }

    fn extra(&self, evaluation: &mut Evaluation<'_>) -> Result<Vec<(String, Vec<String>)>, String> {
        let mut extra = Vec::new();
        if let Some(Value::String(id)) = evaluation.claims.get("jti")
            && !id.is_empty()
        {
            extra.push((CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]));
        }
        for (key, expression) in &self.extra {
            let values = texts(evaluation.value(expression)?).map_err(|why| {
                wrong("extra claim expression", &format!("{}: {why}", expression.text))
            })?;
            if !values.is_empty() {
                extra.push((key.clone(), values));
            }
        }
        Ok(extra)
    }
}

impl Rule {
    fn check(&self, found: Result<Value, String>) -> Result<(), String> {
        match found? {
            Value::Bool(true) => Ok(()),
            _ => Err(format!(
                "validation expression '{}' failed: {}",
                self.expression.text, self.message
            )),
        }
    }
}

impl Expression {
    fn value(&self, bindings: &Bindings<'_>, budget: &mut Budget) -> Result<Value, String> {
        let value = self.program.evaluate(bindings, budget);
        value.map_err(|why| {
            format!("expression '{}' resulted in error: {}", self.text, why.message())
        })
    }
}

/// The error of an expression, with upstream's text.
fn wrong(what: &str, why: &str) -> String {
    format!("oidc: error evaluating {what}: {why}")
}

/// The evaluation of one token's expressions.
struct Evaluation<'c> {
    claims: &'c Map,
    /// The claims as expressions see them; built for the first expression.
    tree: Option<Value>,
    budget: Budget,
}

impl Evaluation<'_> {
    fn value(&mut self, expression: &Expression) -> Result<Value, String> {
        let claims = self.claims;
        let tree = self.tree.get_or_insert_with(|| as_go_reads(&Value::Object(claims.clone())));
        expression.value(&Bindings::new().with(&*tree), &mut self.budget)
    }
}

/// Converts claims to what upstream's expressions see: Go decodes every number as a double.
fn as_go_reads(value: &Value) -> Value {
    match value {
        Value::Int(number) => Value::Float(*number as f64),
        Value::Array(items) => Value::Array(items.iter().map(as_go_reads).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), as_go_reads(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// A claim that must be a text. Go decodes `null` as an empty one.
fn text<'c>(claims: &'c Map, name: &str) -> Result<&'c str, String> {
    match claims.get(name) {
        None => Err(format!("{name:?}: claim not present")),
        Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("{name:?}: the claim is no string")),
    }
}

/// The texts of a string or of a list of strings, without empty texts; none for `null`.
fn texts(value: Value) -> Result<Vec<String>, String> {
    let wrong = || "expression must return a string or a list of strings".to_owned();
    let all = match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.to_string()],
        Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>().ok_or_else(wrong)?
        }
        _ => return Err(wrong()),
    };
    Ok(all.into_iter().filter(|text| !text.is_empty()).collect())
}

/// True for a distributed claim (OpenID Connect Core, section 5.6.2).
fn is_distributed(claims: &Map, name: &str) -> bool {
    let Some(source) = claims.get("_claim_names").and_then(|names| names.str_at(&[name])) else {
        return false;
    };
    let sources = claims.get("_claim_sources");
    sources.and_then(|sources| sources.str_at(&[source, "endpoint"])).is_some_and(|e| !e.is_empty())
}

fn user_tree(user: &User) -> Value {
    let texts = |texts: &[String]| Value::Array(texts.iter().map(|t| t.as_str().into()).collect());
    let extra = user.extra.iter().map(|(key, values)| (key.as_str().into(), texts(values)));
    Value::from([
        ("username", Value::from(user.name.as_str())),
        ("uid", Value::from(user.uid.as_str())),
        ("groups", texts(&user.groups)),
        ("extra", Value::Object(extra.collect())),
    ])
}
