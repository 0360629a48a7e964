//! Whether a toleration bears a taint: the rule of the taints page of the Kubernetes docs.
//!
//! Plain text in, so that every client can ask with the types that it has.

/// A toleration as it is written; what is not there is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toleration<'a> {
    pub key: &'a str,
    pub operator: &'a str,
    pub value: &'a str,
    pub effect: &'a str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taint<'a> {
    pub key: &'a str,
    pub value: &'a str,
    pub effect: &'a str,
}

impl Toleration<'_> {
    /// An empty effect is for all effects, an empty key with `Exists` for all taints. `Lt` and `Gt`
    /// compare numbers (KEP-5471): the taint's value is below or above the toleration's.
    pub fn bears(&self, taint: Taint<'_>) -> bool {
        if !self.effect.is_empty() && self.effect != taint.effect {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        let numbers = || {
            Some((
                taint.value.parse::<i64>().ok()?,
                self.value.parse::<i64>().ok()?,
            ))
        };
        match self.operator {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
            "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
