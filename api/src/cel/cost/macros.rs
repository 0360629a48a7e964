//! What those macros cost that the parser leaves as calls: what upstream's would expand to.

use super::{
    CALL_COST, Coster, Entries, Known, LIST_COST, MAP_COST, NAME_COST, Node, Size, any_of,
    functions, of_type, sum,
};
use crate::cel::extents::Place;
use crate::cel::identifier;
use crate::cel::types::Type;
use cel::IdedExpr;
use cel::common::ast::CallExpr;

/// `@result == 1`
const IS_ONE_COST: u64 = NAME_COST + 1;
/// `@result + 1`
const COUNT_COST: u64 = NAME_COST + CALL_COST;
/// `@not_strictly_false(@result)`
const HOLDS_COST: u64 = NAME_COST + CALL_COST;
/// Where the range of a binding is an empty list.
const BIND_COST: u64 = LIST_COST;

impl<'x> Coster<'x> {
    /// `None` for what is no such macro.
    pub(super) fn expanded(&mut self, node: &IdedExpr, call: &CallExpr) -> Option<Node<'x>> {
        let target = call.target.as_deref()?;
        let name = |node: &IdedExpr| identifier(node).map(str::to_owned);
        match (&*call.func_name, &call.args[..]) {
            ("bind", [variable, value, result]) if identifier(target) == Some("cel") => {
                let value = self.node(value);
                let local = (name(variable)?, value.known);
                let result = self.within([local], |coster| coster.node(result));
                let cost = sum([BIND_COST, value.cost, result.cost]);
                Some(self.made(node, cost, unplaced(result.known)))
            }
            (macro_name @ ("optMap" | "optFlatMap"), [variable, result]) => {
                let is_flat = macro_name == "optFlatMap";
                Some(self.optional(node, target, name(variable)?, result, is_flat))
            }
            (name @ ("all" | "exists" | "existsOne" | "exists_one"), [first, second, holds]) => {
                let (range, holds) =
                    self.looped(target, [first, second], |coster| coster.node(holds).cost)?;
                let (each, result) = match name {
                    "all" => (HOLDS_COST + NAME_COST, NAME_COST),
                    "exists" => (HOLDS_COST + CALL_COST + NAME_COST, NAME_COST),
                    _ => (COUNT_COST, IS_ONE_COST),
                };
                let rounds = range.size().max.saturating_mul(holds.saturating_add(each));
                let cost = sum([range.cost, rounds, result]);
                Some(self.made(node, cost, Known::default()))
            }
            ("sortBy", [variable, key]) => Some(self.sorted(node, target, name(variable)?, key)),
            (name, arguments) if name.starts_with("transform") => {
                self.transformed(node, name, target, arguments)
            }
            _ => None,
        }
    }

    /// A range, and what is made of its elements.
    fn looped<T>(
        &mut self,
        range: &IdedExpr,
        [first, second]: [&IdedExpr; 2],
        act: impl FnOnce(&mut Self) -> T,
    ) -> Option<(Node<'x>, T)> {
        let (first, second) = (identifier(first)?, identifier(second)?);
        let range = self.node(range);
        let variables = self.elements(&range, first, Some(second));
        let made = self.within(variables, act);
        Some((range, made))
    }

    /// `target.hasValue() ? optional.of(cel.bind(x, target.value(), …)) : optional.none()`
    fn optional(
        &mut self,
        node: &IdedExpr,
        target: &IdedExpr,
        variable: String,
        result: &IdedExpr,
        is_flat: bool,
    ) -> Node<'x> {
        let target = self.node(target);
        let held = Known {
            size: target.of.optional_of().and_then(of_type),
            ..Known::default()
        };
        let result = self.within([(variable, held)], |coster| coster.node(result));
        let asked = target.cost.saturating_add(CALL_COST);
        let bound = sum([BIND_COST, asked, result.cost]);
        let made = if is_flat {
            bound
        } else {
            bound.saturating_add(CALL_COST)
        };
        let of_none = of_type(&self.checked.type_of(node.id)).unwrap_or(Size::UNKNOWN);
        let size = if is_flat {
            of_none.or(result.size())
        } else {
            of_none
        };
        let known = Known {
            size: Some(size),
            ..Known::default()
        };
        self.made(node, asked.saturating_add(made), known)
    }

    /// `cel.bind(i, target, i.@sortByAssociatedKeys(i.map(x, key)))`
    fn sorted(
        &mut self,
        node: &IdedExpr,
        target: &IdedExpr,
        variable: String,
        key: &IdedExpr,
    ) -> Node<'x> {
        let range = self.node(target);
        let variables = self.elements(&range, &variable, None);
        let key = self.within(variables, |coster| coster.node(key));
        let each = sum([NAME_COST, CALL_COST, LIST_COST, key.cost]);
        let rounds = range.size().max.saturating_mul(each);
        let keys = sum([NAME_COST, LIST_COST, rounds, NAME_COST]);
        let of_keys = if key.of.is_dyn() {
            Type::String
        } else {
            key.of
        };
        let sort = functions::sorted(range.size(), Some(&Type::list(of_keys)));
        let cost = sum([BIND_COST, range.cost, NAME_COST, keys, sort.cost]);
        let known = Known {
            size: sort.size,
            ..Known::default()
        };
        self.made(node, cost, known)
    }

    fn transformed(
        &mut self,
        node: &IdedExpr,
        name: &str,
        target: &IdedExpr,
        arguments: &[IdedExpr],
    ) -> Option<Node<'x>> {
        let (variables, filter, result) = match arguments {
            [first, second, result] => ([first, second], None, result),
            [first, second, filter, result] => ([first, second], Some(filter), result),
            _ => return None,
        };
        // Adding a list to the result, or inserting into it.
        let (start, own) = match name {
            "transformList" => (LIST_COST, NAME_COST + CALL_COST + LIST_COST),
            "transformMap" => (MAP_COST, NAME_COST + CALL_COST + NAME_COST),
            "transformMapEntry" => (MAP_COST, NAME_COST + CALL_COST),
            _ => return None,
        };
        let (range, (filter, result)) = self.looped(target, variables, |coster| {
            let filter = filter.map_or(0, |filter| coster.node(filter).cost);
            (filter, coster.node(result))
        })?;
        let each = sum([filter, own, result.cost]);
        let rounds = range.size().max.saturating_mul(each);
        let entries = (name == "transformList").then(|| Entries {
            is_list: true,
            keys: Size::exactly(1),
            values: any_of([&result].into_iter()).or(Size::exactly(0)),
        });
        let known = Known {
            size: Some(range.size()),
            entries,
            place: Place::Nowhere,
        };
        let cost = sum([range.cost, start, rounds, NAME_COST]);
        Some(self.made(node, cost, known))
    }
}

fn unplaced(known: Known<'_>) -> Known<'_> {
    Known {
        place: Place::Nowhere,
        ..known
    }
}
