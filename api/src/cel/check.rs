//! Gives the type of an expression, or tells all that is wrong with it.
//!
//! Follows upstream's checker step by step: which overload of a function is meant, what the
//! parameters of its type stand for, what is said where. Never evaluates. What a macro expands to
//! the parser has put there; those that it does not know have their rules in `macros`.

mod literals; // Arguments that can be checked as they stand.
mod macros; // Macros that the parser leaves as calls.
mod notes; // What was found of each part.

pub use notes::Checked;

use super::environment::Environment;
use super::functions::{Functions, Overload};
use super::types::{Bindings, Type, most_general};
use super::{OPTIONAL_SELECT, PROBLEMS_MAX};
use cel::IdedExpr;
use notes::Notes;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr,
    StructExpr,
};

const AND: &str = "_&&_";
const OR: &str = "_||_";
/// Names with dots have no more parts: `google.protobuf.Duration`, `authorizer.requestResource`.
const NAME_PARTS_MAX: usize = 4;

/// One thing wrong, at the node of that number.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    pub id: u64,
    pub message: String,
}

/// What is wrong: the first that were found, in that order, and how many there are.
#[derive(Debug, Default)]
pub struct Problems {
    pub all: Vec<Problem>,
    pub count: usize,
}

impl Problems {
    fn add(&mut self, id: u64, message: impl FnOnce() -> String) {
        if self.all.len() < PROBLEMS_MAX {
            let message = message();
            self.all.push(Problem { id, message });
        }
        self.count += 1;
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The type of the result and of all parts, or what is wrong.
pub fn check(root: &IdedExpr, environment: &Environment) -> Result<Checked, Problems> {
    let mut checker = Checker {
        environment,
        functions: Functions::default(),
        bindings: Bindings::default(),
        scope: Vec::new(),
        problems: Problems::default(),
        literals: Vec::new(),
        is_over: false,
        notes: environment.extents().map(|_| Notes::default()),
    };
    let result = checker.check(root);
    if checker.problems.is_empty() {
        literals::check(root, environment.budget(), &mut checker.problems);
        checker.alike();
    }
    let result = checker.bindings.resolved(&result, true);
    checker.bounded(root.id, Type::Dyn);
    if !checker.problems.is_empty() {
        environment.budget().add(checker.bindings.steps());
        return Err(checker.problems);
    }
    Ok(Checked {
        of: result,
        notes: checker.notes.unwrap_or_default(),
        bindings: checker.bindings,
    })
}

struct Checker<'e> {
    environment: &'e Environment,
    functions: Functions,
    bindings: Bindings,
    /// Variables that the expression itself introduces, the innermost last.
    scope: Vec<(String, Type)>,
    problems: Problems,
    /// The elements of each list, and the keys and the values of each map: nodes and types.
    literals: Vec<Vec<(u64, Type)>>,
    /// Types were too large to go on.
    is_over: bool,
    /// `None` where nobody asks what it costs.
    notes: Option<Notes>,
}

impl Checker<'_> {
    /// Elements that go with each other have to be of one type for all that.
    fn alike(&mut self) {
        for elements in std::mem::take(&mut self.literals) {
            let mut types = elements
                .into_iter()
                .map(|(id, of)| (id, self.bindings.resolved(&of, true)))
                .collect::<Vec<_>>()
                .into_iter();
            let Some((_, first)) = types.next() else {
                continue;
            };
            if let Some((id, other)) = types.find(|(_, of)| *of != first) {
                self.mismatch(id, &first, &other);
            }
        }
    }

    fn check(&mut self, node: &IdedExpr) -> Type {
        if self.is_over {
            return Type::Error;
        }
        let found = match &node.expr {
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => self.identifier(node.id, name),
            Expr::Select(select) => self.select(node, select),
            Expr::Call(call) => self.call(node, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(made) => self.structure(node.id, made),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::Unspecified => Type::Error,
        };
        let found = self.bounded(node.id, found);
        if let Some(notes) = &mut self.notes {
            notes.types.insert(node.id, found.clone());
        }
        found
    }

    /// The type, if it is none that takes too long to look at.
    fn bounded(&mut self, id: u64, found: Type) -> Type {
        if self.is_over || !(self.bindings.is_over() || found.is_large()) {
            return found;
        }
        self.is_over = true;
        self.problem(id, "type of expression is too large".to_owned())
    }

    fn problem(&mut self, id: u64, message: String) -> Type {
        self.problems.add(id, || message);
        Type::Error
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Type {
        let message = format!("undeclared reference to '{name}' (in container '')");
        self.problem(id, message)
    }

    fn mismatch(&mut self, id: u64, expected: &Type, found: &Type) -> Type {
        let (expected, found) = (expected.shown(), found.shown());
        self.problem(
            id,
            format!("expected type '{expected}' but found '{found}'"),
        )
    }

    fn variable(&self, name: &str) -> Option<Type> {
        let own = self.scope.iter().rev().find(|(known, _)| known == name);
        own.map(|(_, of)| of.clone())
            .or_else(|| self.environment.variable(name))
    }

    fn identifier(&mut self, id: u64, name: &str) -> Type {
        match self.variable(name) {
            Some(found) => found,
            None => self.undeclared(id, name),
        }
    }

    /// Checks with variables that are there for no longer.
    fn within<T>(&mut self, variables: Vec<(String, Type)>, act: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.scope.len();
        self.scope.extend(variables);
        let result = act(self);
        self.scope.truncate(depth);
        result
    }

    fn select(&mut self, node: &IdedExpr, select: &SelectExpr) -> Type {
        // Names with dots are variables too.
        if let Some(name) = qualified_name(node)
            && let Some(found) = self.variable(&name)
        {
            if let Some(notes) = &mut self.notes {
                notes.names.insert(node.id);
            }
            return found;
        }
        let found = self.field(node.id, &select.operand, &select.field, false);
        if select.test { Type::Bool } else { found }
    }

    /// `is_optional` where the field may be missing.
    fn field(&mut self, id: u64, operand: &IdedExpr, field: &str, is_optional: bool) -> Type {
        let operand = self.check(operand);
        let operand = self.bindings.resolved(&operand, false);
        let (target, is_optional) = match operand.optional_of() {
            Some(inner) => (inner.clone(), true),
            None => (operand, is_optional),
        };
        let found = match &target {
            Type::Map(_, value) => Type::clone(value),
            Type::Struct(name) => match self.environment.field(name, field) {
                Some(Some(found)) => found,
                Some(None) => self.problem(id, format!("undefined field '{field}'")),
                None => self.problem(id, format!("unexpected failed resolution of '{name}'")),
            },
            Type::Parameter(_) => {
                self.bindings.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn() && !other.is_error() {
                    let shown = other.shown();
                    self.problem(
                        id,
                        format!("type '{shown}' does not support field selection"),
                    );
                }
                Type::Dyn
            }
        };
        let found = self.bindings.resolved(&found, false);
        if is_optional {
            Type::optional(found)
        } else {
            found
        }
    }

    fn call(&mut self, node: &IdedExpr, call: &CallExpr) -> Type {
        if call.func_name == OPTIONAL_SELECT {
            return self.optional_select(node.id, call);
        }
        if let Some(result) = self.macro_call(node, call) {
            return result;
        }
        let known = self.literals.len();
        let arguments: Vec<Type> = call.args.iter().map(|one| self.check(one)).collect();
        if call.func_name == "format" {
            // What is formatted may be of any types.
            self.literals.truncate(known);
        }
        let Some(target) = call.target.as_deref() else {
            return match self.functions.find(&call.func_name) {
                Some(overloads) => self.resolve(
                    node.id,
                    (&call.func_name, &call.args),
                    &overloads,
                    arguments,
                    false,
                ),
                None => self.undeclared(node.id, &call.func_name),
            };
        };
        // Either the function of a package, or one of the target.
        if let Some(package) = qualified_name(target) {
            let name = format!("{package}.{}", call.func_name);
            if let Some(overloads) = self.functions.find(&name)
                && self.environment.may_call(&name)
            {
                return self.resolve(node.id, (&name, &call.args), &overloads, arguments, false);
            }
        }
        let mut all = vec![self.check(target)];
        all.extend(arguments);
        match self.functions.find(&call.func_name) {
            Some(overloads) => self.resolve(
                node.id,
                (&call.func_name, &call.args),
                &overloads,
                all,
                true,
            ),
            None => self.undeclared(node.id, &call.func_name),
        }
    }

    fn optional_select(&mut self, id: u64, call: &CallExpr) -> Type {
        let [operand, field] = &call.args[..] else {
            let count = call.args.len();
            let why = format!("incorrect signature. argument count: {count}");
            return self.problem(id, format!("unsupported optional field selection: {why}"));
        };
        match &field.expr {
            Expr::Literal(LiteralValue::String(name)) => {
                let name = name.inner().to_owned();
                self.field(id, operand, &name, true)
            }
            _ => self.problem(field.id, "unsupported optional field selection".to_owned()),
        }
    }

    /// The result of the overloads that the arguments fit, of a call of a name with nodes.
    fn resolve(
        &mut self,
        id: u64,
        (name, nodes): (&str, &[IdedExpr]),
        overloads: &[Overload],
        arguments: Vec<Type>,
        is_member: bool,
    ) -> Type {
        if matches!(name, AND | OR) {
            return self.logical(nodes, &arguments);
        }
        let mut result: Option<Type> = None;
        let rows = overloads.iter().enumerate();
        for (row, overload) in rows.filter(|(_, one)| one.is_member == is_member) {
            let fresh = self.instantiated(overload);
            if !self.bindings.assign_all(&arguments, &fresh.arguments) {
                continue;
            }
            if let Some(notes) = &mut self.notes {
                notes.overloads.entry(id).or_default().push(row);
            }
            let found = self.bindings.resolved(&fresh.result, false);
            result = Some(match result {
                None => found,
                Some(before) if !before.is_dyn() && found != before => Type::Dyn,
                Some(before) => before,
            });
        }
        result.unwrap_or_else(|| {
            let signature = self.signature(&arguments, is_member);
            let message =
                format!("found no matching overload for '{name}' applied to '{signature}'");
            self.problem(id, message)
        })
    }

    fn logical(&mut self, nodes: &[IdedExpr], arguments: &[Type]) -> Type {
        let mut result = Type::Bool;
        for (argument, of) in nodes.iter().zip(arguments) {
            if !self.bindings.assign(of, &Type::Bool) {
                let of = self.bindings.resolved(of, false);
                result = self.mismatch(argument.id, &Type::Bool, &of);
            }
        }
        result
    }

    fn signature(&self, arguments: &[Type], is_member: bool) -> String {
        let mut shown: Vec<String> = arguments
            .iter()
            .map(|one| self.bindings.resolved(one, true).shown())
            .collect();
        let target = if is_member && !shown.is_empty() {
            format!("{}.", shown.remove(0))
        } else {
            String::new()
        };
        format!("{target}({})", shown.join(", "))
    }

    /// The overload with parameters of its own.
    fn instantiated(&mut self, overload: &Overload) -> Overload {
        let mut known: Vec<(Type, Type)> = Vec::new();
        let mut all = overload.arguments.clone();
        all.push(overload.result.clone());
        for one in &mut all {
            *one = one.instantiated(&mut |parameter| {
                if let Some((_, fresh)) = known.iter().find(|(old, _)| old == parameter) {
                    return fresh.clone();
                }
                let fresh = self.bindings.fresh();
                known.push((parameter.clone(), fresh.clone()));
                fresh
            });
        }
        Overload {
            is_member: overload.is_member,
            result: all.pop().unwrap_or(Type::Dyn),
            arguments: all,
        }
    }

    fn list(&mut self, list: &ListExpr) -> Type {
        let mut joined = None;
        let mut elements = Vec::new();
        for (index, element) in list.elements.iter().enumerate() {
            let mut of = self.check(element);
            if list.optional_indices.contains(&index) {
                of = self.unwrapped(element.id, of);
            }
            elements.push((element.id, of.clone()));
            joined = Some(self.joined(joined, of));
        }
        self.literals.push(elements);
        Type::list(joined.unwrap_or_else(|| self.bindings.fresh()))
    }

    fn map(&mut self, map: &MapExpr) -> Type {
        let (mut keys, mut values) = (None, None);
        let (mut all_keys, mut all_values) = (Vec::new(), Vec::new());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let key = self.check(&entry.key);
            all_keys.push((entry.key.id, key.clone()));
            keys = Some(self.joined(keys, key));
            let mut value = self.check(&entry.value);
            if entry.optional {
                value = self.unwrapped(entry.value.id, value);
            }
            all_values.push((entry.value.id, value.clone()));
            values = Some(self.joined(values, value));
        }
        self.literals.extend([all_keys, all_values]);
        let key = keys.unwrap_or_else(|| self.bindings.fresh());
        let value = values.unwrap_or_else(|| self.bindings.fresh());
        Type::map(key, value)
    }

    /// What an optional that stands for an element or a field holds.
    fn unwrapped(&mut self, id: u64, of: Type) -> Type {
        if let Some(inner) = of.optional_of() {
            return inner.clone();
        }
        if !of.is_dyn() {
            self.mismatch(id, &Type::optional(of.clone()), &of);
        }
        of
    }

    /// The type of elements that may be of several; who must be of one is looked at in the end.
    fn joined(&mut self, before: Option<Type>, of: Type) -> Type {
        let Some(before) = before else {
            return of;
        };
        if self.bindings.assign(&before, &of) {
            return most_general(&before, &of).clone();
        }
        Type::Dyn
    }

    fn structure(&mut self, id: u64, made: &StructExpr) -> Type {
        let name = made.type_name.as_str();
        let Some(result) = self.environment.made(name) else {
            return self.undeclared(id, name);
        };
        for entry in &made.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                continue;
            };
            let mut value = self.check(&field.value);
            let wanted = match self.environment.field(name, &field.field) {
                Some(Some(wanted)) => wanted,
                _ => self.problem(entry.id, format!("undefined field '{}'", field.field)),
            };
            if field.optional {
                value = self.unwrapped(field.value.id, value);
            }
            if !self.bindings.assign(&wanted, &value) {
                let (name, wanted, value) = (&field.field, wanted.shown(), value.shown());
                let message = format!(
                    "expected type of field '{name}' is '{wanted}' but provided type is '{value}'"
                );
                self.problem(entry.id, message);
            }
        }
        result
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Type {
        let range = self.check(&loops.iter_range);
        let gathered = self.check(&loops.accu_init);
        let variables = self.range(&loops.iter_range, &range, &loops.iter_var, &loops.iter_var2);
        let accumulator = vec![(loops.accu_var.clone(), gathered.clone())];
        let result = self.within(accumulator, |checker| {
            checker.within(variables, |checker| {
                checker.asserted(&loops.loop_cond, &Type::Bool);
                checker.asserted(&loops.loop_step, &gathered);
            });
            checker.check(&loops.result)
        });
        self.bindings.resolved(&result, false)
    }

    /// The variables of a loop over a range.
    fn range(
        &mut self,
        node: &IdedExpr,
        range: &Type,
        first: &str,
        second: &Option<String>,
    ) -> Vec<(String, Type)> {
        let range = self.bindings.resolved(range, false);
        let (one, two) = match &range {
            Type::List(item) if second.is_some() => (Type::Int, Type::clone(item)),
            Type::List(item) => (Type::clone(item), Type::Error),
            Type::Map(key, value) => (Type::clone(key), Type::clone(value)),
            Type::Dyn | Type::Error | Type::Parameter(_) => {
                self.bindings.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let shown = other.shown();
                let message = format!(
                    "expression of type '{shown}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.problem(node.id, message);
                (Type::Error, Type::Error)
            }
        };
        let second = second.iter().map(|name| (name.clone(), two.clone()));
        std::iter::once((first.to_owned(), one))
            .chain(second)
            .collect()
    }

    /// The node is of a type that may stand where another is wanted.
    fn asserted(&mut self, node: &IdedExpr, wanted: &Type) -> Type {
        let of = self.check(node);
        if !self.bindings.assign(wanted, &of) {
            let wanted = self.bindings.resolved(wanted, false);
            self.mismatch(node.id, &wanted, &of);
        }
        of
    }
}

fn of_literal(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// `a.b.c`, when that is what the node is, and of no more parts than a name may have.
fn qualified_name(node: &IdedExpr) -> Option<String> {
    let mut parts = Vec::new();
    let mut node = node;
    while parts.len() < NAME_PARTS_MAX {
        match &node.expr {
            Expr::Ident(name) => {
                parts.push(name.as_str());
                parts.reverse();
                return Some(parts.join("."));
            }
            Expr::Select(select) if !select.test => {
                parts.push(&select.field);
                node = &select.operand;
            }
            _ => return None,
        }
    }
    None
}
