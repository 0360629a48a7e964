//! Amounts by the names of resources, such as `requests.cpu: 500m`.

use crate::quantity::{Format, Quantity};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// Sorted by name. Equal when names and values are, however they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, Quantity>);

impl Amounts {
    /// A resource list of an object; what is no quantity is left out.
    pub fn of(list: &Value) -> Self {
        let entries = list.as_object().into_iter().flatten();
        entries
            .filter_map(|(name, value)| Some((name.clone(), Quantity::from_value(value).ok()?)))
            .collect()
    }

    pub fn to_value(&self) -> Value {
        let entries = self.0.iter();
        let entries = entries.map(|(name, amount)| (name.clone(), amount.to_string().into()));
        Value::Object(entries.collect::<Map<_, _>>())
    }

    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn set(&mut self, name: impl Into<String>, amount: Quantity) {
        self.0.insert(name.into(), amount);
    }

    /// A number of things.
    pub fn set_count(&mut self, name: impl Into<String>, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.set(name, Quantity::from_units(count, Format::DecimalSi));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self
                .0
                .get(name)
                .map_or(*amount, |known| known.plus(*amount));
            self.0.insert(name.clone(), sum);
        }
    }

    /// The larger of each amount.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            if self.0.get(name).is_none_or(|known| amount > known) {
                self.0.insert(name.clone(), *amount);
            }
        }
    }

    /// What is more here than there; nothing is less than zero.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Self {
        let names = self.0.keys().chain(other.0.keys());
        let rest = |name: &str| {
            let own = self.get(name).unwrap_or(Quantity::ZERO);
            let rest = own.minus(other.get(name).unwrap_or(Quantity::ZERO));
            if rest > Quantity::ZERO {
                rest
            } else {
                Quantity::ZERO
            }
        };
        names.map(|name| (name.clone(), rest(name))).collect()
    }

    /// The amounts whose name passes.
    #[must_use]
    pub fn only(&self, passes: impl Fn(&str) -> bool) -> Self {
        let entries = self.iter().filter(|(name, _)| passes(name));
        entries
            .map(|(name, amount)| (name.to_owned(), amount))
            .collect()
    }

    #[must_use]
    pub fn without_zeros(&self) -> Self {
        self.only(|name| self.get(name).is_some_and(|amount| !amount.is_zero()))
    }

    /// Whether an amount of this name is more than there; what has no bound there is not.
    pub fn exceeds(&self, name: &str, bounds: &Self) -> bool {
        match (self.get(name), bounds.get(name)) {
            (Some(amount), Some(bound)) => amount > bound,
            _ => false,
        }
    }
}

impl FromIterator<(String, Quantity)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (String, Quantity)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl fmt::Display for Amounts {
    /// As messages show them: `cpu=1,memory=1Gi`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, amount)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{name}={amount}")?;
        }
        Ok(())
    }
}
