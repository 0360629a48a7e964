//! The functions that expressions may call: a table of facts, `facts/cel.tsv`.

use super::types::Type;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

static FACTS: &str = include_str!("../../facts/cel.tsv");

/// One way to call a function.
#[derive(Clone, Debug)]
pub struct Overload {
    /// The first argument stands before the name.
    pub is_member: bool,
    pub arguments: Vec<Type>,
    pub result: Type,
}

/// The overloads of each function as text. Some 20 KB, from the first expression on.
static ROWS: LazyLock<BTreeMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut rows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let lines = FACTS.lines().filter(|line| !line.starts_with('#'));
    for (name, rest) in lines.filter_map(|line| line.split_once('\t')) {
        rows.entry(name).or_default().push(rest);
    }
    rows
});

/// The overloads of each function, as text until somebody asks.
#[derive(Debug, Default)]
pub struct Functions {
    /// Those that have been asked for.
    parsed: RefCell<BTreeMap<&'static str, Rc<[Overload]>>>,
}

impl Functions {
    /// `None` for a function that there is not.
    pub fn find(&self, name: &str) -> Option<Rc<[Overload]>> {
        let (name, rows) = ROWS.get_key_value(name)?;
        let mut parsed = self.parsed.borrow_mut();
        let overloads = parsed.entry(name).or_insert_with(|| {
            let rows = rows.iter().map(|row| parse(row));
            rows.map(|row| row.expect("the facts are part of the program and tested"))
                .collect()
        });
        Some(Rc::clone(overloads))
    }

    #[cfg(test)]
    pub fn names() -> impl Iterator<Item = &'static str> {
        ROWS.keys().copied()
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
