//! Type unification: assignability, and the inference of type parameters.

use std::sync::Arc;

use crate::types::Type;

/// The inferred types of type parameters.
#[derive(Default)]
pub(super) struct Unifier {
    found: Vec<Option<Type>>,
    /// The changed parameters with their previous types, to undo a failed attempt.
    trail: Vec<(u32, Option<Type>)>,
}

impl Unifier {
    /// A new type parameter.
    pub(super) fn fresh(&mut self) -> Type {
        self.found.push(None);
        Type::Param(self.found.len() as u32 - 1)
    }

    fn get(&self, t: &Type) -> Option<&Type> {
        match t {
            Type::Param(number) => self.found[*number as usize].as_ref(),
            _ => None,
        }
    }

    fn set(&mut self, t: &Type, to: Type) {
        if let Type::Param(number) = t {
            let before = self.found[*number as usize].replace(to);
            self.trail.push((*number, before));
        }
    }

    /// Whether a value of type `from` is assignable to `to`. The inferred types are kept only in
    /// this case.
    pub(super) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.attempt(|u| u.fits(from, to))
    }

    /// The same for several types at once.
    pub(super) fn all_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len()
            && self.attempt(|u| from.iter().zip(to).all(|(from, to)| u.fits(from, to)))
    }

    fn attempt(&mut self, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.trail.len();
        let ok = attempt(self);
        if !ok {
            for (number, known) in self.trail.drain(before..).rev() {
                self.found[number as usize] = known;
            }
        }
        ok
    }

    fn fits(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Param(_) = to {
            let (valid, known) = self.substitutes(from, to);
            if valid || known {
                return valid;
            }
        }
        if let Type::Param(_) = from {
            return self.substitutes(to, from).0;
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Type(_), other) => matches!(other, Type::Type(_)),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.fits(a, b)
            }
            (Type::Map(a), Type::Map(b)) => self.fits(&a.0, &b.0) && self.fits(&a.1, &b.1),
            _ => from.is_exactly(to),
        }
    }

    /// Whether `candidate` can be substituted for `param`, and whether `param` was already bound.
    fn substitutes(&mut self, candidate: &Type, param: &Type) -> (bool, bool) {
        if candidate.is_exactly(param) {
            return (true, true);
        }
        if let Some(known) = self.get(param).cloned() {
            if candidate.is_exactly(&known) {
                return (true, true);
            }
            if !self.fits(candidate, &known) {
                return (false, true);
            }
            let general = most_general(candidate, &known);
            if self.is_free_of(param, &general) {
                self.set(param, general);
            }
            return (true, true);
        }
        let free = self.is_free_of(param, candidate);
        if free {
            self.set(param, candidate.clone());
        }
        (free, false)
    }

    /// Whether `param` does not occur in `within`.
    fn is_free_of(&self, param: &Type, within: &Type) -> bool {
        if param.is_exactly(within) {
            return false;
        }
        match within {
            Type::Param(_) => self.get(within).is_none_or(|known| self.is_free_of(param, known)),
            _ => within.parameters().iter().all(|inner| self.is_free_of(param, inner)),
        }
    }

    /// Substitutes the inferred types. Free parameters stay, or become `dyn` with `or_dyn`.
    pub(super) fn resolve(&self, t: &Type, or_dyn: bool) -> Type {
        match t {
            Type::Param(_) => match self.get(t) {
                Some(known) => self.resolve(known, or_dyn),
                None if or_dyn => Type::Dyn,
                None => t.clone(),
            },
            Type::List(_) | Type::Map(_) | Type::Optional(_) | Type::Type(Some(_)) => {
                t.map_parameters(&mut |inner| self.resolve(inner, or_dyn))
            }
            _ => t.clone(),
        }
    }
}

/// Whether null is assignable to a type. Upstream's rule is from before wrapper types existed.
fn is_nullable(t: &Type) -> bool {
    matches!(
        t,
        Type::Null
            | Type::Object(_)
            | Type::Struct(_)
            | Type::Made(_)
            | Type::Opaque(_)
            | Type::Optional(_)
            | Type::Duration
            | Type::Timestamp
    )
}

/// The more general of two assignable types.
pub(super) fn most_general(a: &Type, b: &Type) -> Type {
    if is_as_general(a, b) { a.clone() } else { b.clone() }
}

fn is_as_general(a: &Type, b: &Type) -> bool {
    if matches!(a, Type::Dyn | Type::Param(_)) {
        return true;
    }
    if matches!(b, Type::Dyn | Type::Param(_)) {
        return false;
    }
    let same = |a: &Arc<Type>, b: &Arc<Type>| is_as_general(a, b);
    match (a, b) {
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => same(a, b),
        (Type::Map(a), Type::Map(b)) => is_as_general(&a.0, &b.0) && is_as_general(&a.1, &b.1),
        (Type::Type(_), Type::Type(_)) => true,
        _ => a.is_exactly(b),
    }
}
