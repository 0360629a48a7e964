//! How the work of evaluating an expression grows with the size of what it looks at: a factor, and a
//! power of that size.
//!
//! An upper bound for expressions that whoever evaluates cannot stop. Steps are added up by adding
//! factors and taking the greater power. The elements of what a loop ranges over are as large as
//! that is, all together: so a loop over an element within a loop over the whole grows no faster
//! than the outer one, and two of them within each other as its square, as does one over the whole.

use super::{call_name, functions::Functions, identifier};
use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};

/// A range that an expression makes of nothing is this long at most, to count as a constant.
const RANGE_MAX: i64 = 1000;
/// Literals count by so many bytes.
const WORD_BYTES: usize = 8;
/// What a clause of a format may make of each of its bytes: `%.100f` has hundred digits.
const FORMATTED_BYTES: u64 = 32;

/// How often sorting compares each element, of a million.
const COMPARISONS: u64 = 20;

/// Operators and functions that look at no more than one element, and whose result is small.
const CONSTANT: &[&str] = &[
    "!_",
    "-_",
    "@not_strictly_false",
    "_%_",
    "_&&_",
    "_*_",
    "_-_",
    "_/_",
    "_||_",
    "hasValue",
    "size",
    "type",
];
/// Those that give what they are given, or a part of it.
const PASSED_ON: &[&str] = &[
    "_?._",
    "_?_:_",
    "_[?_]",
    "_[_]",
    "dyn",
    "optional.of",
    "or",
    "orValue",
    "value",
];
/// Those that look at no more than the smaller one of two has.
const SMALLER: &[&str] = &[
    "_!=_",
    "_<=_",
    "_<_",
    "_==_",
    "_>=_",
    "_>_",
    "endsWith",
    "startsWith",
];

/// Steps are no more than the factor times the size of the variables to the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub factor: u64,
    pub power: u32,
}

impl Work {
    /// How many steps it takes to look at so much.
    pub fn steps(self, size: u64) -> u64 {
        self.factor.saturating_mul(size.saturating_pow(self.power))
    }
}

/// `None` where there is no bound. Recurses as deep as the expression.
pub fn work(expression: &IdedExpr, functions: &Functions) -> Option<Work> {
    let mut counter = Counter {
        functions,
        names: Vec::new(),
        slots: 1,
    };
    let Bound { factor, powers } = counter.count(expression)?.steps;
    let power = powers.first().copied().unwrap_or(0);
    Some(Work { factor, power })
}

/// A factor, with the power of the size of the variables and, behind it, those of the sizes of the
/// elements of each loop around.
#[derive(Clone, Debug)]
struct Bound {
    factor: u64,
    powers: Vec<u32>,
}

impl Bound {
    fn constant(factor: u64) -> Self {
        let powers = Vec::new();
        Self { factor, powers }
    }

    fn of_slot(slot: usize) -> Self {
        let mut powers = vec![0; slot + 1];
        powers[slot] = 1;
        Self { factor: 1, powers }
    }

    fn with(&self, other: &Self, factor: u64, power: fn(u32, u32) -> u32) -> Self {
        let length = self.powers.len().max(other.powers.len());
        let of = |bound: &Self, slot: usize| bound.powers.get(slot).copied().unwrap_or(0);
        let powers = (0..length).map(|slot| power(of(self, slot), of(other, slot)));
        Self {
            factor,
            powers: powers.collect(),
        }
    }

    fn and(&self, other: &Self) -> Self {
        self.with(other, self.factor.saturating_add(other.factor), u32::max)
    }

    fn times(&self, other: &Self) -> Self {
        let factor = self.factor.saturating_mul(other.factor);
        self.with(other, factor, u32::saturating_add)
    }

    fn and_all<'b>(all: impl Iterator<Item = &'b Self>) -> Self {
        all.fold(Self::constant(0), |sum, one| sum.and(one))
    }

    /// The one that grows less.
    fn smaller<'b>(&'b self, other: &'b Self) -> &'b Self {
        let rank = |bound: &Self| (bound.powers.iter().sum::<u32>(), bound.factor);
        if rank(self) <= rank(other) {
            self
        } else {
            other
        }
    }

    /// The sum over the elements of a range, whose sizes are in the slot.
    fn over(mut self, range: &Self, slot: usize) -> Self {
        let power = self.powers.get_mut(slot).map_or(0, std::mem::take);
        // A power of the elements is no more, in all, than that power of the whole; and there are
        // no more elements than the whole is large.
        (0..power.max(1)).fold(self, |sum, _| sum.times(range))
    }
}

/// What evaluating takes, and how large the result is.
#[derive(Clone, Debug)]
struct Counted {
    steps: Bound,
    size: Bound,
}

struct Counter<'e> {
    functions: &'e Functions,
    /// Names that loops have made, with the size of what they stand for; the innermost last.
    names: Vec<(&'e str, Bound)>,
    /// The size of the variables, and those of the elements of the loops around.
    slots: usize,
}

impl<'e> Counter<'e> {
    fn count(&mut self, expression: &'e IdedExpr) -> Option<Counted> {
        let one = Bound::constant(1);
        match &expression.expr {
            Expr::Literal(literal) => Some(Counted {
                steps: one,
                size: Bound::constant(size(literal)),
            }),
            Expr::Unspecified => Some(Counted {
                steps: one.clone(),
                size: one,
            }),
            Expr::Ident(name) => {
                let known = self.names.iter().rev().find(|(known, _)| known == name);
                let size = known.map_or_else(|| Bound::of_slot(0), |(_, size)| size.clone());
                Some(Counted { steps: one, size })
            }
            Expr::Select(select) => {
                let mut of = self.count(&select.operand)?;
                of.steps = of.steps.and(&one);
                Some(of)
            }
            Expr::Call(call) => self.count_call(call),
            Expr::Comprehension(one) => self.count_loop(one),
            Expr::List(list) => self.count_all(list.elements.iter()),
            Expr::Map(map) => self.count_all(map.entries.iter().flat_map(|one| parts(&one.expr))),
            Expr::Struct(made) => {
                self.count_all(made.entries.iter().flat_map(|one| parts(&one.expr)))
            }
        }
    }

    fn count_call(&mut self, call: &'e CallExpr) -> Option<Counted> {
        let name = call_name(call, self.functions);
        if let (Some(range), "sortBy", [variable, key]) = (&call.target, &*name, &call.args[..]) {
            return self.count_sort(range, variable, key);
        }
        // What stands before the name of a package's function is the package.
        let target = call.target.as_deref().filter(|_| name == call.func_name);
        let operands = target.into_iter().chain(&call.args);
        let all: Vec<Counted> = operands.map(|one| self.count(one)).collect::<Option<_>>()?;
        let mut steps = Bound::and_all(all.iter().map(|one| &one.steps));
        let sizes: Vec<&Bound> = all.iter().map(|one| &one.size).collect();
        let whole = Bound::and_all(sizes.iter().copied());
        let small = || Bound::constant(1);
        let (own, size) = match (&*name, &sizes[..]) {
            ("lists.range", _) => {
                let length = Bound::constant(small_range(call.args.first())?);
                (length.clone(), length)
            }
            ("distinct", _) => (whole.times(&whole), whole),
            // Between all characters there may stand what replaces nothing.
            ("replace", [text, _, by, ..]) => {
                let all = text.times(&by.and(&small()));
                (all.and(&whole), all)
            }
            ("join", [list, between]) => {
                let all = list.times(&between.and(&small()));
                (all.clone(), all)
            }
            ("format", [text, arguments]) => {
                let text = text.times(&Bound::constant(FORMATTED_BYTES));
                let all = text.and(arguments);
                (all.clone(), all)
            }
            // Each state of a pattern may be in at each character.
            ("matches", [text, pattern]) => (text.times(pattern).and(&whole), small()),
            ("@in" | "contains", _) => (whole, small()),
            (name, _) if PASSED_ON.contains(&name) => (small(), whole),
            (name, _) if CONSTANT.contains(&name) => (small(), small()),
            (name, [a, b]) if SMALLER.contains(&name) => (a.smaller(b).clone(), small()),
            _ => (whole.clone(), whole),
        };
        steps = steps.and(&own).and(&small());
        Some(Counted { steps, size })
    }

    /// Sorting by a key is a loop too.
    fn count_sort(
        &mut self,
        range: &'e IdedExpr,
        variable: &'e IdedExpr,
        key: &'e IdedExpr,
    ) -> Option<Counted> {
        let Counted { steps, size } = self.count(range)?;
        let slot = self.slots;
        self.slots += 1;
        let outer = self.names.len();
        let element = identifier(variable).map(|name| (name, Bound::of_slot(slot)));
        self.names.extend(element);
        let key = self.count(key)?;
        self.names.truncate(outer);
        self.slots = slot;
        let each = key
            .steps
            .and(&key.size)
            .times(&Bound::constant(COMPARISONS));
        Some(Counted {
            steps: steps.and(&each.over(&size, slot)),
            size,
        })
    }

    fn count_all(&mut self, all: impl Iterator<Item = &'e IdedExpr>) -> Option<Counted> {
        let mut sum = Counted {
            steps: Bound::constant(1),
            size: Bound::constant(0),
        };
        for one in all {
            let Counted { steps, size } = self.count(one)?;
            sum.steps = sum.steps.and(&steps).and(&size);
            sum.size = sum.size.and(&size);
        }
        Some(sum)
    }

    fn count_loop(&mut self, one: &'e ComprehensionExpr) -> Option<Counted> {
        let range = self.count(&one.iter_range)?;
        let start = self.count(&one.accu_init)?;
        let (outer, slot) = (self.names.len(), self.slots);
        self.slots += 1;
        let elements = [Some(&one.iter_var), one.iter_var2.as_ref()];
        let elements = elements.into_iter().flatten();
        let element = Bound::of_slot(slot);
        self.names
            .extend(elements.map(|name| (&**name, element.clone())));
        self.names.push((&one.accu_var, start.size.clone()));
        let condition = self.count(&one.loop_cond)?;
        let step = self.count(&one.loop_step)?;
        self.names.truncate(outer);
        self.slots = slot;
        let size = start.size.and(&step.size.over(&range.size, slot));
        self.names.push((&one.accu_var, size));
        let result = self.count(&one.result)?;
        self.names.truncate(outer);
        let each = condition.steps.and(&step.steps).over(&range.size, slot);
        let before = range.steps.and(&start.steps);
        Some(Counted {
            steps: each.and(&before).and(&result.steps),
            size: result.size,
        })
    }
}

fn size(literal: &LiteralValue) -> u64 {
    let bytes = match literal {
        LiteralValue::String(text) => text.inner().len(),
        LiteralValue::Bytes(bytes) => bytes.inner().len(),
        _ => 0,
    };
    1 + (bytes / WORD_BYTES) as u64
}

fn small_range(length: Option<&IdedExpr>) -> Option<u64> {
    match &length?.expr {
        Expr::Literal(LiteralValue::Int(length)) if *length.inner() <= RANGE_MAX => {
            Some(u64::try_from(*length.inner()).unwrap_or(0))
        }
        _ => None,
    }
}

fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}
