//! Checks that rules cover other rules: nobody may grant permissions that they do not have
//! (AUTHZ-03).
//!
//! A rule allows each of its verbs on each of its resources in each of its groups: a few kilobytes
//! may list millions of permissions. So this module does not compare permissions one by one, as
//! upstream does. It compares classes of texts: texts that the same owned rules cover are
//! equivalent.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use pintle_meta::{field::truncated, quote::quote};
use pintle_value::Str;

use super::Rule;

/// The maximum number of missing permissions that are listed for one wanted rule.
const FOUND_MAX: usize = 1000;
/// The work limit of a comparison, in words of rule sets: a fraction of a second.
const WORK_MAX: usize = 1 << 28;
const WORD_BITS: usize = u64::BITS as usize;

/// The permissions that the owner lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// In upstream's format.
    pub rights: BTreeSet<String>,
    /// Whether there are more, or if the comparison was given up.
    pub more: bool,
}

impl Missing {
    /// Whether everything is covered.
    pub fn is_empty(&self) -> bool {
        self.rights.is_empty() && !self.more
    }
}

/// The permissions that `wanted` has and `owned` does not.
pub fn missing_rights<'r>(owned: impl IntoIterator<Item = &'r Rule>, wanted: &[Rule]) -> Missing {
    let owned: Vec<&Rule> = owned.into_iter().collect();
    let owned = Owned::new(&owned);
    let mut search = Search::default();
    let mut missing = Vec::new();
    let work = Cell::new(0);
    for rule in wanted {
        for (parts, axes) in [of_resources(&owned, rule, &work), of_paths(&owned, rule, &work)] {
            if axes.iter().all(|axis| axis.count > 0) {
                search.uncovered(&axes, &owned.every, &mut Vec::new());
            }
            search.found.sort_unstable();
            missing.extend(search.found.drain(..).map(|indices| parts.single(&indices)));
        }
    }
    let rights: BTreeSet<String> = compacted(missing).iter().map(shown).collect();
    let more = search.more || !rights.is_empty() && work.get() > WORK_MAX;
    Missing { rights, more }
}

/// A set of owned rules, as a bit set.
type Rules = Vec<u64>;

/// An index of the owned rules by the texts that they name.
struct Owned<'a> {
    /// All owned rules.
    every: Rules,
    verbs: Named<'a>,
    groups: Named<'a>,
    resources: Named<'a>,
    names: Named<'a>,
    paths: Named<'a>,
    /// The paths that end with a star, by length and text without the star.
    prefixes: BTreeMap<usize, HashMap<&'a str, Vec<usize>>>,
}

/// The rules that name a text in one of their lists.
struct Named<'a> {
    /// The rules that cover every text: for verbs, groups and resources those that name `*`; for
    /// resource names those that name none; for paths none, as `prefixes` has the path `*`.
    all: Rules,
    by_text: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Owned<'a> {
    fn new(rules: &[&'a Rule]) -> Self {
        let named = |list: fn(&Rule) -> &[Str]| Named::new(rules, list, |list| has(list, "*"));
        let mut prefixes: BTreeMap<usize, HashMap<&str, Vec<usize>>> = BTreeMap::new();
        for (number, rule) in rules.iter().enumerate() {
            for path in rule.paths.iter().filter(|path| path.ends_with('*')) {
                let prefix = path.trim_end_matches('*');
                prefixes.entry(prefix.len()).or_default().entry(prefix).or_default().push(number);
            }
        }
        Self {
            every: (0..rules.len()).fold(none(rules.len()), with),
            verbs: named(|rule| &rule.verbs),
            groups: named(|rule| &rule.api_groups),
            resources: named(|rule| &rule.resources),
            names: Named::new(rules, |rule| &rule.resource_names, <[Str]>::is_empty),
            paths: Named::new(rules, |rule| &rule.paths, |_| false),
            prefixes,
        }
    }

    /// The rules that cover a resource or subresource: `*/log` covers `pods/log`, too.
    fn covering_resource(&self, resource: &str) -> Option<Rules> {
        let part = resource.split_once('/').map(|(_, part)| format!("*/{part}"));
        self.resources.covering([Some(resource), part.as_deref()].into_iter().flatten())
    }

    fn covering_path(&self, path: &str) -> Option<Rules> {
        let fitting = self.prefixes.range(..=path.len());
        let numbers = fitting.filter_map(|(length, known)| known.get(path.get(..*length)?));
        let mut numbers = numbers.flatten().copied().peekable();
        let named = self.paths.covering([path]);
        match numbers.peek() {
            None => named,
            Some(_) => Some(numbers.fold(named.unwrap_or_else(|| self.paths.all.clone()), with)),
        }
    }
}

impl<'a> Named<'a> {
    fn new(
        rules: &[&'a Rule],
        list: impl Fn(&'a Rule) -> &'a [Str],
        is_all: impl Fn(&'a [Str]) -> bool,
    ) -> Self {
        let mut named = Self { all: none(rules.len()), by_text: HashMap::new() };
        for (number, rule) in rules.iter().enumerate() {
            if is_all(list(rule)) {
                named.all = with(named.all, number);
            }
            for text in list(rule) {
                named.by_text.entry(text).or_default().push(number);
            }
        }
        named
    }

    /// Returns the rules that cover one of some texts; `None` if no rule names any of them.
    fn covering<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Option<Rules> {
        let numbers = texts.into_iter().filter_map(|text| self.by_text.get(text));
        let mut numbers = numbers.flatten().copied().peekable();
        numbers.peek()?;
        Some(numbers.fold(self.all.clone(), with))
    }
}

/// One list of a wanted rule: the indices of its texts, grouped by the owned rules that cover them.
struct Axis {
    count: usize,
    classes: BTreeMap<Rules, Vec<usize>>,
}

impl Axis {
    /// Groups texts. `covering` returns `None` for a text that no owned rule names, which only the
    /// rules of `all` cover. The work is counted: each set of rules may have thousands of words.
    fn new(
        texts: &[Str],
        all: &Rules,
        work: &Cell<usize>,
        covering: impl Fn(&str) -> Option<Rules>,
    ) -> Self {
        let mut classes: BTreeMap<Rules, Vec<usize>> = BTreeMap::new();
        let mut unnamed = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            // Beyond the limit texts count as unnamed: at worst, a permission counts as missing.
            let named = if work.get() <= WORK_MAX { covering(text) } else { None };
            match named {
                Some(rules) => {
                    work.set(work.get() + 1 + 2 * rules.len());
                    classes.entry(rules).or_default().push(index);
                }
                None => unnamed.push(index),
            }
        }
        if !unnamed.is_empty() {
            classes.entry(all.clone()).or_default().append(&mut unnamed);
        }
        Self { count: texts.len(), classes }
    }
}

/// The lists of a wanted rule, in the order of upstream's product.
enum Parts<'a> {
    Resources(&'a Rule),
    Paths(&'a Rule),
}

fn of_resources<'a>(
    owned: &Owned<'_>,
    rule: &'a Rule,
    work: &Cell<usize>,
) -> (Parts<'a>, Vec<Axis>) {
    let of = |named: &Named<'_>, texts: &[Str]| {
        Axis::new(texts, &named.all, work, |text| named.covering([text]))
    };
    let mut names = of(&owned.names, &rule.resource_names);
    if rule.resource_names.is_empty() {
        names = Axis { count: 1, classes: [(owned.names.all.clone(), vec![0])].into() };
    }
    let of_resource = |text: &str| owned.covering_resource(text);
    let resources = Axis::new(&rule.resources, &owned.resources.all, work, of_resource);
    let (groups, verbs) = (of(&owned.groups, &rule.api_groups), of(&owned.verbs, &rule.verbs));
    (Parts::Resources(rule), vec![groups, resources, verbs, names])
}

fn of_paths<'a>(owned: &Owned<'_>, rule: &'a Rule, work: &Cell<usize>) -> (Parts<'a>, Vec<Axis>) {
    let of_path = |text: &str| owned.covering_path(text);
    let paths = Axis::new(&rule.paths, &owned.paths.all, work, of_path);
    let of_verb = |text: &str| owned.verbs.covering([text]);
    let verbs = Axis::new(&rule.verbs, &owned.verbs.all, work, of_verb);
    // Rules with resource names cover no paths.
    let unnamed = Axis { count: 1, classes: [(owned.names.all.clone(), vec![0])].into() };
    (Parts::Paths(rule), vec![paths, verbs, unnamed])
}

impl Parts<'_> {
    /// The rule of a single permission.
    fn single(&self, indices: &[usize]) -> Rule {
        let one =
            |list: &[Str], axis: usize| list.get(indices[axis]).cloned().into_iter().collect();
        match self {
            Self::Resources(rule) => Rule {
                api_groups: one(&rule.api_groups, 0),
                resources: one(&rule.resources, 1),
                verbs: one(&rule.verbs, 2),
                resource_names: one(&rule.resource_names, 3),
                ..Rule::default()
            },
            Self::Paths(rule) => {
                Rule { paths: one(&rule.paths, 0), verbs: one(&rule.verbs, 1), ..Rule::default() }
            }
        }
    }
}

#[derive(Default)]
struct Search {
    work: usize,
    /// The uncovered combinations, as indices in the lists of the wanted rule.
    found: Vec<Vec<usize>>,
    more: bool,
}

impl Search {
    /// Finds combinations that no rule covers. `rules` are those that cover the texts that were
    /// `chosen` from the lists before `axes`.
    fn uncovered<'a>(&mut self, axes: &'a [Axis], rules: &Rules, chosen: &mut Vec<&'a [usize]>) {
        if rules.iter().all(|word| *word == 0) {
            return self.record(chosen, axes, &mut Vec::new());
        }
        let Some((axis, rest)) = axes.split_first() else { return };
        for (covering, indices) in &axis.classes {
            self.work += 1 + rules.len();
            if self.work > WORK_MAX {
                self.more = true;
                return;
            }
            let both = rules.iter().zip(covering).map(|(a, b)| a & b).collect();
            chosen.push(indices);
            self.uncovered(rest, &both, chosen);
            chosen.pop();
        }
    }

    /// Records every combination of the chosen texts with the rest, up to the limit.
    fn record(&mut self, chosen: &[&[usize]], rest: &[Axis], indices: &mut Vec<usize>) {
        let all: Vec<usize>;
        let (next, chosen, rest) = match (chosen.split_first(), rest.split_first()) {
            (Some((next, chosen)), _) => (*next, chosen, rest),
            (None, Some((axis, rest))) => {
                all = (0..axis.count.min(FOUND_MAX + 1)).collect();
                (all.as_slice(), chosen, rest)
            }
            (None, None) => {
                self.more |= self.found.len() == FOUND_MAX;
                if self.found.len() < FOUND_MAX {
                    self.found.push(indices.clone());
                }
                return;
            }
        };
        for one in next {
            if self.more {
                return;
            }
            indices.push(*one);
            self.record(chosen, rest, indices);
            indices.pop();
        }
    }
}

fn has(list: &[Str], word: &str) -> bool {
    list.iter().any(|entry| entry == word)
}

fn none(rules: usize) -> Rules {
    vec![0; rules.div_ceil(WORD_BITS)]
}

fn with(mut rules: Rules, number: usize) -> Rules {
    rules[number / WORD_BITS] |= 1 << (number % WORD_BITS);
    rules
}

/// Merges rules of one resource that differ in their verbs (upstream: `CompactRules`). Each rule
/// names at most one object.
fn compacted(rules: Vec<Rule>) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::new();
    let mut known = HashMap::new();
    for mut rule in rules {
        if rule.paths.is_empty() {
            let Rule { api_groups, resources, resource_names, .. } = &rule;
            let thing = (api_groups.clone(), resources.clone(), resource_names.clone());
            let index = *known.entry(thing).or_insert(compacted.len());
            if let Some(other) = compacted.get_mut(index) {
                other.verbs.append(&mut rule.verbs);
                continue;
            }
        }
        compacted.push(rule);
    }
    compacted
}

fn shown(rule: &Rule) -> String {
    let parts = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.paths),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let mut text = String::from("{");
    for (name, list) in parts.into_iter().filter(|(_, list)| !list.is_empty()) {
        if text.len() > 1 {
            text.push_str(", ");
        }
        let _ = write!(text, "{name}:{}", quoted_list(list)); // writing to a String cannot fail
    }
    text.push('}');
    text
}

/// Formats a list of texts as Go's `%q`.
pub fn quoted_list<S: AsRef<str>>(list: &[S]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| quote(&truncated(text.as_ref()))).collect();
    format!("[{}]", quoted.join(" "))
}
