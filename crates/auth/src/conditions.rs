//! Match conditions: the CEL expressions that must all be true for a webhook to be called
//! (upstream: `k8s.io/apiserver/pkg/authorization/cel`).

use pintle_cel::{
    Bindings, Budget, Declaration, Environment, Merge, Object, Program, SIZE_MAX, Type,
};
use pintle_value::{Map, Value};

/// The cost limit of all conditions of a webhook; each has its own limit, too.
const COST_MAX: u64 = 10_000_000;

/// The conditions of a webhook.
#[derive(Debug, Default)]
pub struct Conditions(Vec<(String, Program)>);

/// The text members of `resourceAttributes`, which expressions always see.
const RESOURCE_TEXTS: [&str; 7] =
    ["namespace", "verb", "group", "version", "resource", "subresource", "name"];

impl Conditions {
    /// Adds an expression.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn add(&mut self, expression: &str) -> Result<(), String> {
        let environment = Environment::new().with("request", request());
        let program = environment.compile(expression);
        let program = program.map_err(|why| format!("compilation failed: {why}"))?;
        let output = program.output_type();
        if !matches!(output, Type::Bool) {
            return Err(format!("must evaluate to bool but got {output}"));
        }
        self.0.push((expression.to_owned(), program));
        Ok(())
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Evaluates the conditions for the spec of a review. A false condition outweighs one that
    /// fails.
    ///
    /// # Errors
    /// The error of a condition.
    pub fn hold(&self, spec: &Value) -> Result<bool, String> {
        let input = input(spec);
        let bindings = Bindings::new().with(&input);
        let mut budget = Budget::new(COST_MAX);
        let mut errors = Vec::new();
        for (expression, program) in &self.0 {
            match program.evaluate(&bindings, &mut budget) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(why) => errors.push(format!(
                    "cel evaluation error: expression '{expression}' resulted in error: {}",
                    why.message()
                )),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [why] => Err(why.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }
}

/// The input of expressions: text members are present even if empty.
fn input(spec: &Value) -> Value {
    let mut input = spec.clone();
    let members = input.make_object();
    for member in ["user", "uid"] {
        members.entry_or(member, || Value::from(""));
    }
    members.entry_or("groups", || Value::Array(Vec::new()));
    members.entry_or("extra", || Value::Object(Map::new()));
    let mut fill = |part: &str, texts: &[&str]| {
        if let Some(Value::Object(attributes)) = members.get_mut(part) {
            texts.iter().for_each(|member| _ = attributes.entry_or(member, || Value::from("")));
        }
    };
    fill("resourceAttributes", &RESOURCE_TEXTS);
    fill("nonResourceAttributes", &["path", "verb"]);
    input
}

fn text() -> Declaration {
    Declaration::String { size_max: SIZE_MAX }
}

fn texts() -> Declaration {
    Declaration::list(text(), Merge::Atomic, SIZE_MAX)
}

fn object(
    name: &str,
    fields: impl IntoIterator<Item = (&'static str, Declaration)>,
) -> Declaration {
    let fields = fields.into_iter().map(|(name, declaration)| (name.into(), declaration));
    Declaration::Object(Object::new(name, fields))
}

fn request() -> Declaration {
    let requirement = || {
        let members = [("key", text()), ("operator", text()), ("values", texts())];
        object("kubernetes.SelectorRequirement", members)
    };
    let selector = |name| {
        let requirements = Declaration::list(requirement(), Merge::Atomic, SIZE_MAX);
        object(name, [("rawSelector", text()), ("requirements", requirements)])
    };
    let mut resource: Vec<_> = RESOURCE_TEXTS.map(|member| (member, text())).into();
    resource.push(("fieldSelector", selector("kubernetes.FieldSelectorAttributes")));
    resource.push(("labelSelector", selector("kubernetes.LabelSelectorAttributes")));
    let path = [("path", text()), ("verb", text())];
    object(
        "kubernetes.SubjectAccessReviewSpec",
        [
            ("resourceAttributes", object("kubernetes.ResourceAttributes", resource)),
            ("nonResourceAttributes", object("kubernetes.NonResourceAttributes", path)),
            ("user", text()),
            ("groups", texts()),
            ("extra", Declaration::map(texts(), SIZE_MAX)),
            ("uid", text()),
        ],
    )
}
