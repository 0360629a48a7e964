//! What an expression costs at most when it is evaluated, as upstream estimates it.
//!
//! Its units, and which expressions it takes for which extents of their variables, are part of the
//! API: so what looks odd here is upstream's. Of ranges of costs only the upper end is kept. Walks a
//! checked expression once; each node has a cost, and a size as far as one is known.

mod functions; // Calls that cost more than one, or whose result has a known size.
mod macros; // What macros expand to that the parser leaves as calls.

use super::check::Checked;
use super::extents::{Extents, Place};
use super::functions::Functions;
use super::types::Type;
use super::{OPTIONAL_SELECT, call_name};
use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr,
    StructExpr,
};

const NAME_COST: u64 = 1;
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const STRUCT_COST: u64 = 40;
const CALL_COST: u64 = 1;
/// Of each character of a string that is walked once.
const CHARACTER_COST: f64 = 0.1;
/// Of each character of a pattern, for each unit that the text costs.
const PATTERN_COST: f64 = 0.25;

/// Characters, bytes, items or entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    min: u64,
    max: u64,
}

/// Of the entries of a list or a map.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    keys: Size,
    values: Size,
}

/// What is known of a value beside its cost.
#[derive(Clone, Debug, Default)]
struct Known<'x> {
    size: Option<Size>,
    entries: Option<Entries>,
    place: Place<'x>,
}

/// A part of the expression.
#[derive(Clone, Debug)]
struct Node<'x> {
    cost: u64,
    of: Type,
    known: Known<'x>,
    /// The value of a literal.
    int: Option<i64>,
}

impl Size {
    const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    fn exactly(size: u64) -> Self {
        Self {
            min: size,
            max: size,
        }
    }

    fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    fn or(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// What so much costs at most.
    fn cost(self, factor: f64) -> u64 {
        scaled(self.max, factor)
    }
}

impl Entries {
    fn or(self, other: Self) -> Self {
        Self {
            is_list: self.is_list,
            keys: self.keys.or(other.keys),
            values: self.values.or(other.values),
        }
    }
}

impl Node<'_> {
    fn size(&self) -> Size {
        self.known.size.unwrap_or(Size::UNKNOWN)
    }
}

/// Rounded up.
fn scaled(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).ceil() as u64
}

fn sum(costs: impl IntoIterator<Item = u64>) -> u64 {
    costs.into_iter().fold(0, u64::saturating_add)
}

/// Recurses as deep as the expression.
pub fn cost(root: &IdedExpr, checked: &Checked, extents: &Extents, functions: &Functions) -> u64 {
    let mut coster = Coster {
        checked,
        extents,
        functions,
        locals: Vec::new(),
    };
    coster.node(root).cost
}

struct Coster<'x> {
    checked: &'x Checked,
    extents: &'x Extents,
    functions: &'x Functions,
    /// Variables that the expression itself introduces, the innermost last.
    locals: Vec<(String, Known<'x>)>,
}

impl<'x> Coster<'x> {
    fn node(&mut self, node: &IdedExpr) -> Node<'x> {
        match &node.expr {
            Expr::Literal(literal) => self.literal(node, literal),
            Expr::Ident(name) => self.identifier(node, name),
            Expr::Select(select) => self.select(node, select),
            Expr::Call(call) => self.call(node, call),
            Expr::List(list) => self.list(node, list),
            Expr::Map(map) => self.map(node, map),
            Expr::Struct(made) => self.structure(node, made),
            Expr::Comprehension(one) => self.comprehension(node, one),
            Expr::Unspecified => self.made(node, 0, Known::default()),
        }
    }

    /// A node with what is known of it. Its size is that of what it is a part of, or of its type,
    /// where no other is known.
    fn made(&self, node: &IdedExpr, cost: u64, mut known: Known<'x>) -> Node<'x> {
        let of = self.checked.type_of(node.id);
        let of_place = known.place.most().map(Size::up_to);
        known.size = known.size.or(of_place).or_else(|| of_type(&of));
        Node {
            cost,
            of,
            known,
            int: None,
        }
    }

    fn within<T>(
        &mut self,
        locals: impl IntoIterator<Item = (String, Known<'x>)>,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = self.locals.len();
        self.locals.extend(locals);
        let result = act(self);
        self.locals.truncate(outer);
        result
    }

    fn literal(&self, node: &IdedExpr, literal: &LiteralValue) -> Node<'x> {
        let length = match literal {
            LiteralValue::String(text) => text.inner().chars().count(),
            LiteralValue::Bytes(bytes) => bytes.inner().len(),
            _ => 1,
        };
        let size = Some(Size::exactly(length as u64));
        let known = Known {
            size,
            ..Known::default()
        };
        let int = match literal {
            LiteralValue::Int(int) => Some(*int.inner()),
            _ => None,
        };
        let made = self.made(node, 0, known);
        Node { int, ..made }
    }

    fn identifier(&self, node: &IdedExpr, name: &str) -> Node<'x> {
        let local = self.locals.iter().rev().find(|(known, _)| known == name);
        let Some((_, known)) = local else {
            return self.variable(node, name);
        };
        // What it is a part of says more than what it was made of.
        let own = known.size;
        let place = Known {
            size: None,
            ..known.clone()
        };
        let mut made = self.made(node, NAME_COST, place);
        made.known.size = made.known.size.or(own);
        made
    }

    fn variable(&self, node: &IdedExpr, name: &str) -> Node<'x> {
        let place = self.extents.variable(name);
        let known = Known {
            place,
            ..Known::default()
        };
        self.made(node, NAME_COST, known)
    }

    fn select(&mut self, node: &IdedExpr, select: &SelectExpr) -> Node<'x> {
        if self.checked.is_name(node.id) {
            return self.variable(node, &select.field);
        }
        let operand = self.node(&select.operand);
        if select.test {
            return self.made(node, operand.cost, Known::default());
        }
        let is_looked_up = matches!(operand.of, Type::Map(..) | Type::Struct(_));
        let own = if is_looked_up { NAME_COST } else { 0 };
        let place = operand.known.place.field(self.extents, &select.field);
        let known = Known {
            place,
            ..Known::default()
        };
        self.made(node, operand.cost.saturating_add(own), known)
    }

    fn call(&mut self, node: &IdedExpr, call: &CallExpr) -> Node<'x> {
        if let Some(expanded) = self.expanded(node, call) {
            return expanded;
        }
        let arguments: Vec<Node<'x>> = call.args.iter().map(|one| self.node(one)).collect();
        let sum_of = |all: &[Node<'_>]| sum(all.iter().map(|one| one.cost));
        match (&*call.func_name, &arguments[..]) {
            (OPTIONAL_SELECT, [operand, _]) => {
                let cost = operand.cost.saturating_add(CALL_COST);
                return self.made(node, cost, Known::default());
            }
            ("dyn", [of]) => {
                let known = Known {
                    place: Place::Nowhere,
                    ..of.known.clone()
                };
                return self.made(node, of.cost.saturating_add(CALL_COST), known);
            }
            ("_&&_" | "_||_", all) => return self.made(node, sum_of(all), Known::default()),
            ("_?_:_", [condition, a, b]) => {
                let cost = condition.cost.saturating_add(a.cost.max(b.cost));
                return self.made(node, cost, either(a, b));
            }
            _ => {}
        }
        let name = call_name(call, self.functions);
        // What stands before the name of a package's function is the package.
        let target = call.target.as_deref().filter(|_| name == call.func_name);
        let target = target.map(|target| self.node(target));
        let asked = functions::Call {
            name: &name,
            target: target.as_ref(),
            arguments: &arguments,
        };
        let of_target = target.as_ref().map_or(0, |target| target.cost);
        let before = sum_of(&arguments).saturating_add(of_target);
        self.overloads(node, &asked, before)
    }

    /// What the dearest of the overloads costs that may be meant.
    fn overloads(&self, node: &IdedExpr, call: &functions::Call<'_, 'x>, before: u64) -> Node<'x> {
        let rows = self.functions.find(call.name);
        let chosen = self.checked.overloads(node.id).iter();
        let chosen = chosen.filter_map(|index| rows.as_ref()?.get(*index));
        let (mut most, mut known) = (0, Known::default());
        for overload in chosen {
            let found = call.cost(&overload.arguments, self.extents);
            most = most.max(found.cost);
            let size = [known.size, found.size].into_iter().flatten();
            known.size = size.reduce(Size::or);
            known.entries = known.entries.or(found.entries);
            if let ("_[_]", Some(container), [of, _]) =
                (call.name, overload.arguments.first(), call.arguments)
                && matches!(container, Type::List(_) | Type::Map(..))
            {
                known.size = of.known.entries.map(|entries| entries.values);
                known.place = of.known.place.values(self.extents);
            }
            known.size = self.made(node, 0, known.clone()).known.size;
        }
        self.made(node, before.saturating_add(most), known)
    }

    fn list(&mut self, node: &IdedExpr, list: &ListExpr) -> Node<'x> {
        let all: Vec<Node<'_>> = list.elements.iter().map(|one| self.node(one)).collect();
        let cost = sum(all.iter().map(|one| one.cost)).saturating_add(LIST_COST);
        let known = Known {
            size: Some(Size::exactly(all.len() as u64)),
            entries: Some(Entries {
                is_list: true,
                keys: Size::exactly(1),
                values: any_of(all.iter()),
            }),
            place: Place::Nowhere,
        };
        self.made(node, cost, known)
    }

    fn map(&mut self, node: &IdedExpr, map: &MapExpr) -> Node<'x> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for entry in &map.entries {
            if let EntryExpr::MapEntry(entry) = &entry.expr {
                keys.push(self.node(&entry.key));
                values.push(self.node(&entry.value));
            }
        }
        let cost = sum(keys.iter().chain(&values).map(|one| one.cost));
        let known = Known {
            size: Some(Size::exactly(keys.len() as u64)),
            entries: Some(Entries {
                is_list: false,
                keys: any_of(keys.iter()),
                values: any_of(values.iter()),
            }),
            place: Place::Nowhere,
        };
        self.made(node, cost.saturating_add(MAP_COST), known)
    }

    fn structure(&mut self, node: &IdedExpr, made: &StructExpr) -> Node<'x> {
        let mut cost = STRUCT_COST;
        for entry in &made.entries {
            if let EntryExpr::StructField(field) = &entry.expr {
                cost = cost.saturating_add(self.node(&field.value).cost);
            }
        }
        self.made(node, cost, Known::default())
    }

    fn comprehension(&mut self, node: &IdedExpr, one: &ComprehensionExpr) -> Node<'x> {
        let range = self.node(&one.iter_range);
        let start = self.node(&one.accu_init);
        let accumulator = (one.accu_var.clone(), start.known.clone());
        let variables = self.elements(&range, &one.iter_var, one.iter_var2.as_deref());
        let (condition, step, result) = self.within([accumulator], |coster| {
            let (condition, step) = coster.within(variables, |coster| {
                (coster.node(&one.loop_cond), coster.node(&one.loop_step))
            });
            (condition, step, coster.node(&one.result))
        });
        let count = range.size();
        let each = step.cost.saturating_add(condition.cost);
        let rounds = count.max.saturating_mul(each);
        let cost = sum([range.cost, start.cost, result.cost, rounds]);
        let mut known = Known::default();
        match &one.accu_init.expr {
            Expr::Literal(_) => known.size = start.known.size,
            Expr::List(_) | Expr::Map(_) => {
                known.size = Some(count);
                known.entries = step.known.entries;
            }
            _ => {}
        }
        self.made(node, cost, known)
    }

    /// The variables of a loop over a range.
    fn elements(
        &self,
        range: &Node<'x>,
        first: &str,
        second: Option<&str>,
    ) -> Vec<(String, Known<'x>)> {
        let Known { entries, place, .. } = range.known;
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(range.of, Type::List(_)),
        };
        let known = |size: Option<Size>, place: Place<'x>| Known {
            size,
            entries: None,
            place,
        };
        let of_keys = entries.map(|entries| entries.keys);
        let of_values = entries.map(|entries| entries.values);
        let values = known(of_values, place.values(self.extents));
        match second {
            Some(second) => {
                let keys = if is_list {
                    place.indices(self.extents)
                } else {
                    place.keys(self.extents)
                };
                vec![
                    (first.to_owned(), known(of_keys, keys)),
                    (second.to_owned(), values),
                ]
            }
            None if is_list => vec![(first.to_owned(), values)],
            None => vec![(first.to_owned(), known(of_keys, place.keys(self.extents)))],
        }
    }
}

/// What is known of one of two values.
fn either<'x>(a: &Node<'_>, b: &Node<'_>) -> Known<'x> {
    let entries = a.known.entries.zip(b.known.entries);
    Known {
        size: Some(a.size().or(b.size())),
        entries: entries.map(|(a, b)| a.or(b)),
        place: Place::Nowhere,
    }
}

/// The size of any of some values; that of none is nothing.
fn any_of<'n>(all: impl Iterator<Item = &'n Node<'n>>) -> Size {
    let any = all.map(Node::size).reduce(Size::or);
    any.unwrap_or(Size::exactly(0))
}

/// Values of such a type all have one size.
fn of_type(of: &Type) -> Option<Size> {
    let is_scalar = match of.optional_of().unwrap_or(of) {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        inner => inner.optional_of().is_some_and(|of| of_type(of).is_some()),
    };
    is_scalar.then_some(Size::exactly(1))
}

#[cfg(test)]
mod tests;
