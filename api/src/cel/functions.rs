//! The functions that expressions may call: a table of facts, `facts/cel.tsv`.

use super::types::Type;
use std::collections::BTreeMap;

static FACTS: &str = include_str!("../../facts/cel.tsv");

/// One way to call a function.
#[derive(Clone, Debug)]
pub struct Overload {
    /// The first argument stands before the name.
    pub is_member: bool,
    pub arguments: Vec<Type>,
    pub result: Type,
}

/// The overloads of each function, as text until somebody asks.
#[derive(Debug)]
pub struct Functions(BTreeMap<&'static str, Vec<&'static str>>);

impl Functions {
    pub fn new() -> Self {
        let mut functions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let lines = FACTS.lines().filter(|line| !line.starts_with('#'));
        for (name, rest) in lines.filter_map(|line| line.split_once('\t')) {
            functions.entry(name).or_default().push(rest);
        }
        Self(functions)
    }

    /// `None` for a function that there is not.
    pub fn find(&self, name: &str) -> Option<Vec<Overload>> {
        let rows = self.0.get(name)?;
        let overloads = rows
            .iter()
            .map(|row| parse(row).expect("the facts are part of the program and tested"));
        Some(overloads.collect())
    }

    #[cfg(test)]
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().copied()
    }
}

fn parse(row: &str) -> Option<Overload> {
    let mut columns = row.split('\t');
    let is_member = columns.next()? == ".";
    let arguments = columns.next()?.split(' ').filter(|text| !text.is_empty());
    let arguments: Option<Vec<Type>> = arguments.map(Type::parse).collect();
    Some(Overload {
        is_member,
        arguments: arguments?,
        result: Type::parse(columns.next()?)?,
    })
}
