//! Macros that the parser leaves as calls: bindings, optionals, and loops over two variables.

use super::Checker;
use crate::cel::types::Type;
use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr};

impl Checker<'_> {
    /// `None` for what is no macro.
    pub(super) fn macro_call(&mut self, node: &IdedExpr, call: &CallExpr) -> Option<Type> {
        let target = call.target.as_deref()?;
        match (call.func_name.as_str(), &call.args[..]) {
            ("bind", [name, value, result])
                if self.environment.has_bind() && is_named(target, "cel") =>
            {
                let name = self.name_of(name)?;
                let of = self.check(value);
                Some(self.within(vec![(name, of)], |checker| checker.check(result)))
            }
            (name @ ("optMap" | "optFlatMap"), [variable, result]) => {
                let variable = self.name_of(variable)?;
                let of = self.held(node.id, target);
                let result = self.within(vec![(variable, of)], |checker| checker.check(result));
                if name == "optMap" {
                    return Some(Type::optional(result));
                }
                let wanted = Type::optional(self.bindings.fresh());
                if self.bindings.assign(&result, &wanted) {
                    return Some(result);
                }
                let none = Type::optional(Type::Dyn);
                Some(self.no_choice(node.id, &[Type::Bool, result, none]))
            }
            ("all" | "exists" | "existsOne" | "exists_one", [first, second, holds]) => {
                let variables = self.pair(target, first, second)?;
                self.within(variables, |checker| checker.asserted(holds, &Type::Bool));
                Some(Type::Bool)
            }
            ("sortBy", [variable, key]) => {
                let name = self.name_of(variable)?;
                let range = self.check(target);
                let variables = self.range(target, &range, &name, &None);
                self.within(variables, |checker| checker.check(key));
                Some(self.bindings.resolved(&range, false))
            }
            (name, arguments) if name.starts_with("transform") => {
                self.transform(node.id, name, target, arguments)
            }
            _ => None,
        }
    }

    /// What macros make of conditions is a choice, of which the arguments are told.
    fn no_choice(&mut self, id: u64, arguments: &[Type]) -> Type {
        let signature = self.signature(arguments, false);
        let message = format!("found no matching overload for '_?_:_' applied to '{signature}'");
        self.problem(id, message)
    }

    fn transform(
        &mut self,
        id: u64,
        name: &str,
        target: &IdedExpr,
        arguments: &[IdedExpr],
    ) -> Option<Type> {
        if !matches!(name, "transformList" | "transformMap" | "transformMapEntry") {
            return None;
        }
        let (first, second, filter, result) = match arguments {
            [first, second, result] => (first, second, None, result),
            [first, second, filter, result] => (first, second, Some(filter), result),
            _ => return None,
        };
        let variables = self.pair(target, first, second)?;
        let key = variables.first().map_or(Type::Dyn, |(_, of)| of.clone());
        let (holds, of) = self.within(variables, |checker| {
            let holds = filter.map(|filter| checker.check(filter));
            (holds, checker.check(result))
        });
        let made = match name {
            "transformList" => Type::list(of),
            "transformMap" => Type::map(key, of),
            _ => of,
        };
        match holds {
            Some(holds) if !self.bindings.assign(&holds, &Type::Bool) => {
                Some(self.no_choice(id, &[holds, made.clone(), made]))
            }
            _ => Some(made),
        }
    }

    /// What an optional holds on which a macro is called.
    fn held(&mut self, id: u64, target: &IdedExpr) -> Type {
        let of = self.check(target);
        let of = self.bindings.resolved(&of, false);
        if of.is_dyn() || of.is_error() {
            return Type::Dyn;
        }
        match of.optional_of() {
            Some(inner) => inner.clone(),
            None => {
                let signature = format!("{}.()", of.shown());
                for function in ["hasValue", "value"] {
                    let message = format!(
                        "found no matching overload for '{function}' applied to '{signature}'"
                    );
                    self.problem(id, message);
                }
                Type::Error
            }
        }
    }

    fn pair(
        &mut self,
        target: &IdedExpr,
        first: &IdedExpr,
        second: &IdedExpr,
    ) -> Option<Vec<(String, Type)>> {
        let (first, second) = (self.name_of(first)?, self.name_of(second)?);
        let range = self.check(target);
        Some(self.range(target, &range, &first, &Some(second)))
    }

    fn name_of(&mut self, node: &IdedExpr) -> Option<String> {
        match &node.expr {
            Expr::Ident(name) => Some(name.clone()),
            _ => {
                self.problem(node.id, "argument must be a simple name".to_owned());
                None
            }
        }
    }
}

fn is_named(node: &IdedExpr, name: &str) -> bool {
    matches!(&node.expr, Expr::Ident(own) if own == name)
}
