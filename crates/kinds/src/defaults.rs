//! Defaults as data: upstream's `SetDefaults_…` functions as rows.
//!
//! A row is about the members of one object, and rows nest as the object does, so the rows of an
//! embedded type (a pod template) are written once and used wherever the type is.
//!
//! Invariant: setting defaults twice has the same result as setting them once.

use pintle_meta::quantity::Quantity;
use pintle_value::{Map, Value};

/// The rows of one type, in the order in which they are applied.
pub(crate) type Defaults = &'static [Row];

/// One default of one object.
pub(crate) enum Row {
    /// Sets the member if it is absent (a pointer upstream).
    Unset(&'static str, Constant),
    /// Sets the member if it is absent or zero: `""`, 0, an empty list.
    Empty(&'static str, Constant),
    /// Sets the member, whatever the client sent (upstream: the conversion to the served version).
    Fixed(&'static str, &'static str),
    /// The rows of a member that is created if absent (a struct by value upstream).
    In(&'static str, Defaults),
    /// The rows of a member, if it is present.
    At(&'static str, Defaults),
    /// The rows of those of many members that are present, of which most objects have few.
    AtAny(&'static [(&'static str, Defaults)]),
    /// The rows of each item of a list.
    Each(&'static str, Defaults),
    /// Rounds the amounts of a ResourceList, if it is present, up to thousandths (upstream:
    /// `SetDefaults_ResourceList`).
    Rounded(&'static str),
    /// Rows that apply under a condition.
    When(Condition, Defaults),
    /// The rows of another table, for the same object.
    Also(Defaults),
    /// A default that no row can express.
    Do(fn(&mut Map)),
}

/// A condition on a member of the object that the row is about.
pub(crate) enum Condition {
    /// The text is this one.
    Is(&'static str, &'static str),
    /// The member is present, empty or not.
    Set(&'static str),
    /// The member is absent.
    NotSet(&'static str),
    /// The member is present and not zero.
    Filled(&'static str),
    /// The member is absent or zero.
    NotFilled(&'static str),
}

/// A constant value.
pub(crate) enum Constant {
    /// Text.
    Text(&'static str),
    /// A number.
    Int(i64),
    /// A boolean.
    Bool(bool),
    /// An object without members.
    EmptyObject,
    /// A list of texts.
    Texts(&'static [&'static str]),
    /// The result of a function, for larger values.
    Made(fn() -> Value),
}

/// Sets the defaults of an object.
pub(crate) fn set(object: &mut Value, rows: Defaults) {
    if let Some(members) = object.as_object_mut() {
        set_members(members, rows);
    }
}

fn set_members(object: &mut Map, rows: Defaults) {
    for row in rows {
        match row {
            Row::Unset(member, constant) => {
                if !is_set(object, member) {
                    object.insert(*member, constant.value());
                }
            }
            Row::Empty(member, constant) => {
                if !is_filled(object, member) {
                    object.insert(*member, constant.value());
                }
            }
            Row::Fixed(member, text) => _ = object.insert(*member, *text),
            Row::In(member, rows) => {
                if !is_set(object, member) {
                    object.insert(*member, Value::object());
                }
                set_member(object, member, rows);
            }
            Row::At(member, rows) => set_member(object, member, rows),
            Row::AtAny(members) => {
                for (member, value) in object.iter_mut() {
                    if let Some((_, rows)) = members.iter().find(|(name, _)| *name == *member) {
                        set(value, rows);
                    }
                }
            }
            Row::Each(member, rows) => {
                let items = object.get_mut(member).and_then(Value::as_array_mut);
                items.into_iter().flatten().for_each(|item| set(item, rows));
            }
            Row::Rounded(member) => {
                if let Some(amounts) = object.get_mut(member).and_then(Value::as_object_mut) {
                    amounts.iter_mut().for_each(|(_, amount)| round_up(amount));
                }
            }
            Row::When(condition, rows) => {
                if condition.holds(object) {
                    set_members(object, rows);
                }
            }
            Row::Also(rows) => set_members(object, rows),
            Row::Do(change) => change(object),
        }
    }
}

/// The most members that are inserted one by one.
const INSERTED_MAX: usize = 16;

/// Adds the members of a map that another one lacks; `null` counts as absent.
pub(crate) fn add_absent(to: &mut Map, from: &Map) {
    let absent = from.iter().filter(|(member, _)| !is_set(to, member));
    let absent: Vec<_> = absent.map(|(member, value)| (member.clone(), value.clone())).collect();
    if absent.len() <= INSERTED_MAX {
        absent.into_iter().for_each(|(member, value)| _ = to.insert(member, value));
    } else {
        // An insertion moves all later members, so many members are added at once.
        *to = std::mem::take(to).into_iter().chain(absent).collect();
    }
}

/// Makes a member and the first item of a list equal (upstream stores only the list). If they
/// differ the member wins, for clients that do not know the list.
pub(crate) fn first_of(
    object: &mut Map,
    (member, list): (&'static str, &'static str),
    read: fn(&Value) -> Option<&str>,
    make: fn(&str) -> Value,
) {
    let text = object.get(member).and_then(Value::as_str).unwrap_or_default();
    let items = object.get(list).and_then(Value::as_array).unwrap_or_default();
    let first = items.first().and_then(read).unwrap_or_default();
    if !text.is_empty() && (items.is_empty() || text != first) {
        let item = make(text);
        object.insert(list, vec![item]);
    } else if !items.is_empty() && text.is_empty() {
        let first = Value::from(first);
        object.insert(member, first);
    }
}

/// Rounds an amount up to thousandths. It is canonical, so only an amount with one of these letters
/// can have smaller parts.
fn round_up(amount: &mut Value) {
    let Some(text) = amount.as_str().filter(|text| text.contains(['n', 'u', 'e'])) else { return };
    if let Ok(exact) = text.parse::<Quantity>() {
        let rounded = exact.round_up(-3);
        if rounded != exact {
            *amount = rounded.to_string().into();
        }
    }
}

fn set_member(object: &mut Map, member: &str, rows: Defaults) {
    if let Some(value) = object.get_mut(member) {
        set(value, rows);
    }
}

impl Condition {
    fn holds(&self, object: &Map) -> bool {
        match self {
            Self::Is(member, text) => object.get(member).and_then(Value::as_str) == Some(text),
            Self::Set(member) => is_set(object, member),
            Self::NotSet(member) => !is_set(object, member),
            Self::Filled(member) => is_filled(object, member),
            Self::NotFilled(member) => !is_filled(object, member),
        }
    }
}

impl Constant {
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(*text),
            Self::Int(number) => Value::Int(*number),
            Self::Bool(truth) => Value::Bool(*truth),
            Self::EmptyObject => Value::object(),
            Self::Texts(texts) => Value::Array(texts.iter().map(|t| Value::from(*t)).collect()),
            Self::Made(make) => make(),
        }
    }
}

/// Whether the member is present; `null` counts as absent.
pub(crate) fn is_set(object: &Map, member: &str) -> bool {
    object.get(member).is_some_and(|value| !value.is_null())
}

/// Whether the member is present and not Go's zero value.
pub(crate) fn is_filled(object: &Map, member: &str) -> bool {
    object.get(member).is_some_and(|value| match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Int(number) => *number != 0,
        Value::Float(number) => *number != 0.0,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Raw(_) => true,
    })
}
