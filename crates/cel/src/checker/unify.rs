//! Type unification: assignability, and the inference of type parameters.
//!
//! Types share their parts: after `[0].map(x, {x: x})`, each further step doubles the size of the
//! type, but not its memory. A walk visits all parts, so every walk here is limited.

use std::cell::Cell;

use crate::types::{NODES_MAX, Type};

/// The maximum number of nodes of types that the check of one expression visits.
const VISITS_MAX: usize = 2_000_000;

/// The inferred types of type parameters.
#[derive(Default)]
pub(super) struct Unifier {
    found: Vec<Option<Type>>,
    /// The changed parameters with their previous types, to undo a failed attempt.
    trail: Vec<(u32, Option<Type>)>,
    /// The number of visited nodes of types.
    visits: Cell<usize>,
    /// Whether a limit was exceeded. All results are arbitrary from then on.
    exceeded: Cell<bool>,
}

impl Unifier {
    /// A new type parameter.
    pub(super) fn fresh(&mut self) -> Type {
        self.found.push(None);
        Type::Param(self.found.len() as u32 - 1)
    }

    /// Whether types were too large to check the expression.
    pub(super) const fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    /// The number of nodes of types that were visited.
    pub(super) const fn visits(&self) -> usize {
        self.visits.get()
    }

    /// Counts a visited node; returns false if the limit is exceeded.
    fn visit(&self) -> bool {
        self.visits.set(self.visits.get() + 1);
        if self.visits.get() > VISITS_MAX {
            self.exceeded.set(true);
        }
        !self.exceeded.get()
    }

    /// Whether both types are identical in all parts.
    pub(super) fn is_same(&self, a: &Type, b: &Type) -> bool {
        let before = VISITS_MAX.saturating_sub(self.visits.get());
        let mut left = before;
        let same = a.is_exactly_within(b, &mut left);
        self.visits.set(self.visits.get() + (before - left));
        if left == 0 {
            self.exceeded.set(true);
        }
        same
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
        if (from.is_composite() || to.is_composite()) && !self.visit() {
            return false;
        }
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
            _ => self.is_same(from, to),
        }
    }

    /// Whether `candidate` can be substituted for `param`, and whether `param` was already bound.
    fn substitutes(&mut self, candidate: &Type, param: &Type) -> (bool, bool) {
        if candidate.is_exactly(param) {
            return (true, true);
        }
        if let Some(known) = self.get(param).cloned() {
            if self.is_same(candidate, &known) {
                return (true, true);
            }
            if !self.fits(candidate, &known) {
                return (false, true);
            }
            let general = self.most_general(candidate, &known);
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
        if param.is_exactly(within) || (within.is_composite() && !self.visit()) {
            return false;
        }
        match within {
            Type::Param(_) => self.get(within).is_none_or(|known| self.is_free_of(param, known)),
            _ => within.parameters().iter().all(|inner| self.is_free_of(param, inner)),
        }
    }

    /// Substitutes the inferred types. Free parameters stay, or become `dyn` with `or_dyn`.
    pub(super) fn resolve(&self, t: &Type, or_dyn: bool) -> Type {
        self.resolve_within(t, or_dyn, &mut { NODES_MAX })
    }

    /// Resolves a type of at most `left` nodes.
    fn resolve_within(&self, t: &Type, or_dyn: bool, left: &mut usize) -> Type {
        match t {
            Type::Param(_) => match self.get(t) {
                Some(known) => self.resolve_within(known, or_dyn, left),
                None if or_dyn => Type::Dyn,
                None => t.clone(),
            },
            _ if t.is_composite() => {
                match left.checked_sub(1) {
                    Some(less) => *left = less,
                    None => self.exceeded.set(true),
                }
                if !self.visit() {
                    return Type::Dyn;
                }
                t.map_parameters(&mut |inner| self.resolve_within(inner, or_dyn, left))
            }
            _ => t.clone(),
        }
    }

    /// The more general of two assignable types.
    pub(super) fn most_general(&self, a: &Type, b: &Type) -> Type {
        if self.is_as_general(a, b) { a.clone() } else { b.clone() }
    }

    fn is_as_general(&self, a: &Type, b: &Type) -> bool {
        if matches!(a, Type::Dyn | Type::Param(_)) {
            return true;
        }
        if matches!(b, Type::Dyn | Type::Param(_)) || (a.is_composite() && !self.visit()) {
            return false;
        }
        match (a, b) {
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.is_as_general(a, b)
            }
            (Type::Map(a), Type::Map(b)) => {
                self.is_as_general(&a.0, &b.0) && self.is_as_general(&a.1, &b.1)
            }
            (Type::Type(_), Type::Type(_)) => true,
            _ => self.is_same(a, b),
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
