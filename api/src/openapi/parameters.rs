//! The parameters of operations, from `facts/parameters.tsv`.

use super::operation::Style;
use crate::schema::unescape;
use serde_json::{Value, json};
use std::borrow::Cow;

/// A parameter of a path or a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter<'t> {
    pub name: &'t str,
    /// `path` or `query`.
    pub place: &'t str,
    kind: &'t str,
    /// Of the name under which v2 shares it; empty when each operation states it.
    suffix: &'t str,
    description: Cow<'t, str>,
}

impl Parameter<'_> {
    /// `name`: of which kind tells only the operation.
    pub fn name_of(kind: &str) -> Self {
        Self {
            name: "name",
            place: "path",
            kind: "string",
            suffix: "",
            description: format!("name of the {kind}").into(),
        }
    }

    /// As it stands in an operation or a path.
    pub fn write(&self, style: Style) -> Value {
        match style {
            Style::V2 if !self.suffix.is_empty() => {
                json!({ "$ref": format!("#/parameters/{}-{}", self.name, self.suffix) })
            }
            _ => self.whole(style),
        }
    }

    fn whole(&self, style: Style) -> Value {
        let mut parameter = json!({
            "name": self.name,
            "in": self.place,
            "description": self.description,
        });
        if self.place == "path" {
            parameter["required"] = true.into();
        }
        match style {
            Style::V2 => {
                parameter["type"] = self.kind.into();
                parameter["uniqueItems"] = true.into();
            }
            Style::V3 => {
                parameter["schema"] = json!({ "type": self.kind, "uniqueItems": true });
            }
        }
        parameter
    }
}

/// All parameters, each under its key.
#[derive(Debug)]
pub(super) struct Parameters<'t>(Vec<(&'t str, Parameter<'t>)>);

impl<'t> Parameters<'t> {
    /// From the text of the facts.
    pub fn parse(text: &'t str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let rows = lines.filter_map(|line| {
            let mut columns = line.split('\t');
            let mut next = || columns.next();
            let (key, place, kind, suffix) = (next()?, next()?, next()?, next()?);
            let parameter = Parameter {
                name: key.split(' ').next()?,
                place,
                kind,
                suffix,
                description: unescape(next()?).into(),
            };
            Some((key, parameter))
        });
        Self(rows.collect())
    }

    /// Those of these keys.
    pub fn of(&self, keys: &[&str]) -> Vec<Parameter<'_>> {
        let named = self.0.iter().filter(|row| keys.contains(&row.0));
        named.map(|row| row.1.clone()).collect()
    }

    /// Those whose key says that they are of `place`, a subresource.
    pub fn used_in(&self, place: &str) -> Vec<Parameter<'_>> {
        let used = |key: &str| key.split_once(' ').is_some_and(|(_, one)| one == place);
        let named = self.0.iter().filter(|row| used(row.0));
        named.map(|row| row.1.clone()).collect()
    }

    /// What v2 shares: name and parameter.
    pub fn shared(&self) -> impl Iterator<Item = (String, Value)> {
        let shared = self.0.iter().map(|row| &row.1);
        let shared = shared.filter(|one| !one.suffix.is_empty());
        shared.map(|one| {
            let name = format!("{}-{}", one.name, one.suffix);
            (name, one.whole(Style::V2))
        })
    }
}
