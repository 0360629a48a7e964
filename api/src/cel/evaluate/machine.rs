//! The walk over an expression's tree, with what it has cost so far.
//!
//! Errors are values until they reach the top: `&&`, `||` and the loops of macros go on past one
//! where another operand decides. What ran out of its budget ends at once.

use super::access::Asking;
use super::value::{Key, Made, Text, Val};
use super::{COST_OF_ONE_MAX, Fault, Given, Program};
use cel::IdedExpr;
use cel::common::ast::{CallExpr, EntryExpr, Expr, ListExpr, MapExpr, SelectExpr, StructExpr};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes and elements that cost a unit to look at, as upstream.
const PER_UNIT: usize = 10;
/// What it costs to make them, as upstream.
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const STRUCT_COST: u64 = 40;

/// Names of types that stand for themselves.
const TYPES: [&str; 9] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "uint",
];

pub type Outcome<'a> = Result<Val<'a>, Fault>;

/// A local variable. That of a loop's result may be an error.
pub type Local<'a> = (&'a str, Outcome<'a>);

#[derive(Debug)]
pub struct Machine<'a> {
    pub given: Given<'a>,
    /// What was made of the policy's variables.
    known: Vec<Option<Outcome<'a>>>,
    pub locals: Vec<Local<'a>>,
    /// Where the locals of the expression at hand begin.
    base: usize,
    program: Option<&'a Program>,
    spent: u64,
    /// What is left for all.
    left: u64,
}

impl<'a> Machine<'a> {
    pub fn new(given: Given<'a>, cost_max: u64) -> Self {
        Self {
            known: vec![None; given.variables.len()],
            given,
            locals: Vec::new(),
            base: 0,
            program: None,
            spent: 0,
            left: cost_max,
        }
    }

    pub fn left(&self) -> u64 {
        self.left
    }

    /// An expression, for whoever calls or for one that names a variable.
    pub fn run(&mut self, program: &'a Program) -> Outcome<'a> {
        let base = std::mem::replace(&mut self.base, self.locals.len());
        let spent = std::mem::replace(&mut self.spent, 0);
        let outer = self.program.replace(program);
        let outcome = self.eval(program.root());
        self.locals.truncate(self.base);
        self.base = base;
        self.spent = spent;
        self.program = outer;
        outcome
    }

    pub fn spend(&mut self, cost: u64) -> Result<(), Fault> {
        self.spent = self.spent.saturating_add(cost);
        match self.left.checked_sub(cost) {
            Some(left) => self.left = left,
            None => {
                self.left = 0;
                return Err(Fault::Spent);
            }
        }
        if self.spent > COST_OF_ONE_MAX {
            return Err(Fault::Limit);
        }
        Ok(())
    }

    /// For looking at so many bytes or elements.
    pub fn spend_on(&mut self, size: usize) -> Result<(), Fault> {
        self.spend(size.div_ceil(PER_UNIT) as u64)
    }

    /// A pattern that was compiled with the expression.
    pub fn pattern(&self, text: &str) -> Option<&'a regex::Regex> {
        self.program?.patterns.get(text)
    }

    pub fn eval(&mut self, node: &'a IdedExpr) -> Outcome<'a> {
        match &node.expr {
            Expr::Literal(literal) => Ok(Val::literal(literal)),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loops) => self.run_loop(loops),
            Expr::List(list) => self.make_list(list),
            Expr::Map(map) => self.make_map(map),
            Expr::Struct(made) => self.make_struct(made),
            Expr::Unspecified => Err(Fault::new("unspecified expression")),
        }
    }

    pub fn local(&self, name: &str) -> Option<&Local<'a>> {
        let own = self.locals[self.base..].iter().rev();
        own.clone().find(|(own, _)| *own == name)
    }

    fn name(&mut self, name: &'a str) -> Outcome<'a> {
        self.spend(1)?;
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, value)) = self.local(name) {
            return value.clone();
        }
        let mut given = self.given.names.iter();
        if let Some((_, value)) = given.find(|(own, _)| *own == name) {
            return Ok(value.clone());
        }
        match name {
            "variables" => Ok(Val::Variables),
            "authorizer" if self.given.access.is_some() => Ok(Asking::anyone()),
            name if TYPES.contains(&name) => Ok(Val::Type(name.into())),
            name => Err(Fault::new(format!("no such attribute(s): {name}"))),
        }
    }

    /// A name with dots, which is no selection.
    fn dotted(&self, select: &SelectExpr) -> Option<Val<'a>> {
        let Expr::Ident(outer) = &select.operand.expr else {
            return match &select.operand.expr {
                Expr::Select(inner) => {
                    let is_protobuf = inner.field == "protobuf"
                        && matches!(&inner.operand.expr, Expr::Ident(name) if name == "google");
                    let name = format!("google.protobuf.{}", select.field);
                    is_protobuf.then(|| Val::Type(name.into()))
                }
                _ => None,
            };
        };
        if self.local(outer).is_some() {
            return None;
        }
        match (&**outer, &*select.field) {
            ("authorizer", "requestResource") => {
                let access = self.given.access?;
                Some(Asking::about(access.request_resource()))
            }
            ("kubernetes", name) => Some(Val::Type(format!("kubernetes.{name}").into())),
            ("net", name) => Some(Val::Type(format!("net.{name}").into())),
            _ => None,
        }
    }

    fn select(&mut self, select: &'a SelectExpr) -> Outcome<'a> {
        if let Some(named) = self.dotted(select) {
            self.spend(1)?;
            return Ok(named);
        }
        let operand = self.eval(&select.operand)?;
        self.spend(1)?;
        let field = select.field.as_str();
        if select.test {
            return Ok(Val::Bool(self.has(&operand, field)?));
        }
        match operand {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => self.optional_field(&inner, field),
            operand => match self.field(&operand, field)? {
                Some(value) => Ok(value),
                None => Err(Fault::new(format!("no such key: {field}"))),
            },
        }
    }

    fn has(&mut self, operand: &Val<'a>, field: &'a str) -> Result<bool, Fault> {
        match operand {
            Val::Optional(None) => Ok(false),
            Val::Optional(Some(inner)) => self.has(inner, field),
            Val::Variables => {
                let mut all = self.given.variables.iter();
                Ok(all.any(|one| one.name == field))
            }
            operand => Ok(self.field(operand, field)?.is_some()),
        }
    }

    fn field(&mut self, operand: &Val<'a>, field: &'a str) -> Result<Option<Val<'a>>, Fault> {
        if matches!(operand, Val::Variables) {
            return self.variable(field).map(Some);
        }
        let found = operand.table().and_then(|table| table.field(field));
        Ok(found.or_else(|| operand.missing()))
    }

    pub fn optional_field(&mut self, operand: &Val<'a>, field: &'a str) -> Outcome<'a> {
        let found = self.field(operand, field)?;
        Ok(Val::Optional(found.map(Rc::new)))
    }

    fn variable(&mut self, name: &str) -> Outcome<'a> {
        let all = self.given.variables;
        let Some(index) = all.iter().position(|one| one.name == name) else {
            return Err(Fault::new(format!("no such key: {name}")));
        };
        if let Some(known) = &self.known[index] {
            return known.clone();
        }
        let composited = |why: String| Fault::new(format!("composited variable {name:?} {why}"));
        let outcome = match &all[index].program {
            Ok(program) => self.run(program).map_err(|fault| match fault {
                Fault::Error(why) => composited(format!("fails to evaluate: {why}")),
                other => other,
            }),
            Err(why) => Err(composited(format!("fails to compile: {why}"))),
        };
        self.known[index] = Some(outcome.clone());
        outcome
    }

    fn make_list(&mut self, list: &'a ListExpr) -> Outcome<'a> {
        self.spend(LIST_COST)?;
        let mut all = Vec::with_capacity(list.elements.len());
        for (index, element) in list.elements.iter().enumerate() {
            let value = self.eval(element)?;
            match value {
                Val::Optional(inner) if list.optional_indices.contains(&index) => {
                    all.extend(inner.map(|inner| (*inner).clone()));
                }
                value => all.push(value),
            }
        }
        Ok(Val::own_list(all))
    }

    fn make_map(&mut self, map: &'a MapExpr) -> Outcome<'a> {
        self.spend(MAP_COST)?;
        let mut all = BTreeMap::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(Fault::overload());
            };
            let key = self.eval(&entry.key)?;
            let value = self.eval(&entry.value)?;
            let Some(value) = given(value, entry.optional) else {
                continue;
            };
            let key = Key::of(&key).ok_or_else(Fault::overload)?;
            all.insert(key, value);
        }
        Ok(Val::Map(Rc::new(all)))
    }

    fn make_struct(&mut self, made: &'a StructExpr) -> Outcome<'a> {
        self.spend(STRUCT_COST)?;
        let mut fields = BTreeMap::new();
        for entry in &made.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                return Err(Fault::overload());
            };
            let value = self.eval(&field.value)?;
            if let Some(value) = given(value, field.optional) {
                fields.insert(field.field.as_str(), value);
            }
        }
        let of = made.type_name.as_str();
        Ok(Val::Made(Rc::new(Made { of, fields })))
    }

    /// Two conditions: one that decides alone does so whatever becomes of the other.
    pub fn both(&mut self, call: &'a CallExpr, decides: bool) -> Outcome<'a> {
        let [left, right] = &call.args[..] else {
            return Err(Fault::overload());
        };
        let mut fault = None;
        for operand in [left, right] {
            match self.eval(operand) {
                Ok(Val::Bool(is_true)) if is_true == decides => return Ok(Val::Bool(decides)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => fault = fault.or_else(|| Some(Fault::overload())),
                Err(other) if other.is_final() => return Err(other),
                Err(other) => fault = fault.or(Some(other)),
            }
        }
        match fault {
            Some(fault) => Err(fault),
            None => Ok(Val::Bool(!decides)),
        }
    }

    pub fn truth(&mut self, node: &'a IdedExpr) -> Result<bool, Fault> {
        match self.eval(node)? {
            Val::Bool(is_true) => Ok(is_true),
            _ => Err(Fault::overload()),
        }
    }

    /// A text that was made, for its length.
    pub fn made_text(&mut self, text: impl AsRef<str>) -> Outcome<'a> {
        self.spend_on(text.as_ref().len())?;
        Ok(Val::Text(Text::Own(text.as_ref().into())))
    }
}

/// An entry's value; of an optional one what it holds.
fn given(value: Val<'_>, is_optional: bool) -> Option<Val<'_>> {
    match value {
        Val::Optional(inner) if is_optional => inner.map(|inner| (*inner).clone()),
        value => Some(value),
    }
}
