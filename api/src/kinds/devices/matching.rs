//! Whether an expression of a class or a request selects a device.
//!
//! Errors are worded as upstream's evaluator words them. Pure.

use super::{RESULT_MUST, VARIABLE, device};
use crate::cel::evaluate::{
    COST_OF_ONE_MAX, Evaluation, Fault, Given, Key, Program, SHALLOW_DEPTH_MAX, Semver, Text, Val,
    on_deep_stack,
};
use crate::cel::types::Type;
use crate::quantity::Quantity;
use std::collections::BTreeMap;
use std::rc::Rc;

/// An expression over one device that can be evaluated.
#[derive(Debug)]
pub struct Expression(Program);

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Attribute<'a> {
    Bool(bool),
    Int(i64),
    Text(&'a str),
    Version(&'a str),
    /// None that can be read.
    Unknown,
}

/// What expressions see of a device. A name without a domain is in that of the driver.
#[derive(Clone, Debug, Default)]
pub struct Device<'a> {
    pub driver: &'a str,
    pub allows_multiple: bool,
    pub attributes: Vec<(&'a str, Attribute<'a>)>,
    pub capacity: Vec<(&'a str, Quantity)>,
}

impl Expression {
    /// The error is what upstream's compiler says.
    pub fn compile(text: &str) -> Result<Self, String> {
        let program = Program::compile(text, &device());
        let program = program.map_err(|error| format!("compilation failed: {error}"))?;
        match &program.compiled.of {
            Type::Bool | Type::Any => Ok(Self(program)),
            other => Err(format!("{RESULT_MUST}{other}")),
        }
    }

    pub fn matches(&self, device: &Device<'_>) -> Result<bool, String> {
        if self.0.depth() <= SHALLOW_DEPTH_MAX {
            return self.evaluate(device);
        }
        on_deep_stack(|| self.evaluate(device))
            .unwrap_or_else(|error| Err(format!("no thread to evaluate it on: {error}")))
    }

    fn evaluate(&self, device: &Device<'_>) -> Result<bool, String> {
        let given = Given {
            names: vec![(VARIABLE, device.value()?)],
            ..Given::default()
        };
        let mut evaluation = Evaluation::new(given, COST_OF_ONE_MAX);
        match evaluation.evaluate(&self.0) {
            Ok(Val::Bool(is_selected)) => Ok(is_selected),
            Ok(other) => Err(format!(
                "CEL result of type {} could not be converted to bool",
                other.type_name()
            )),
            Err(Fault::Spent) => Err(Fault::Limit.to_string()),
            Err(fault) => Err(fault.to_string()),
        }
    }
}

type Domains<'a> = BTreeMap<Key<'a>, BTreeMap<Key<'a>, Val<'a>>>;

impl<'a> Device<'a> {
    fn value(&self) -> Result<Val<'a>, String> {
        let mut attributes = Domains::default();
        for (name, attribute) in &self.attributes {
            let value = attribute.value();
            let value = value.map_err(|why| format!("attribute {name}: {why}"))?;
            self.add(&mut attributes, name, value);
        }
        let mut capacity = Domains::default();
        for (name, amount) in &self.capacity {
            self.add(&mut capacity, name, Val::Quantity(*amount));
        }
        let fields = [
            ("driver", Val::Text(Text::There(self.driver))),
            ("allowMultipleAllocations", Val::Bool(self.allows_multiple)),
            ("attributes", domains(attributes)),
            ("capacity", domains(capacity)),
        ];
        let fields = fields.map(|(name, value)| (key(name), value));
        Ok(Val::Map(Rc::new(fields.into())))
    }

    fn add(&self, to: &mut Domains<'a>, name: &'a str, value: Val<'a>) {
        let (domain, name) = name.split_once('/').unwrap_or((self.driver, name));
        to.entry(key(domain)).or_default().insert(key(name), value);
    }
}

impl<'a> Attribute<'a> {
    fn value(self) -> Result<Val<'a>, String> {
        Ok(match self {
            Self::Bool(is_true) => Val::Bool(is_true),
            Self::Int(number) => Val::Int(number),
            Self::Text(text) => Val::Text(Text::There(text)),
            Self::Version(text) => Val::Semver(Rc::new(
                Semver::parse(text).map_err(|why| format!("parse semantic version: {why}"))?,
            )),
            Self::Unknown => return Err("unsupported attribute value".to_owned()),
        })
    }
}

fn key(text: &str) -> Key<'_> {
    Key::Text(Text::There(text))
}

fn domains(all: Domains<'_>) -> Val<'_> {
    let all = all.into_iter();
    let all = all.map(|(domain, names)| (domain, Val::Map(Rc::new(names))));
    Val::Domains(Rc::new(all.collect()))
}

#[cfg(test)]
mod tests;
