//! What the expressions of a schema may cost together, by upstream's estimates and bounds.

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use serde_json::Value;
use std::cell::{Cell, RefCell};

/// Of one expression, for all the values of an object that it looks at.
const EXPRESSION_MAX: u64 = 10_000_000;
const SCHEMA_MAX: u64 = 100_000_000;
/// So many of the dearest expressions are told of, of those that count.
const DEAREST_MAX: usize = 4;
const COUNTS_FROM: u64 = SCHEMA_MAX / 100;

/// The costs of one schema, as far as it has been looked at.
#[derive(Debug)]
pub struct Costs {
    /// Each expression for itself may cost what it does: the schema has been stored as it is.
    is_stored: bool,
    total: Cell<u64>,
    dearest: RefCell<Vec<(u64, Path)>>,
}

impl Costs {
    pub fn new(is_stored: bool) -> Self {
        Self {
            is_stored,
            total: Cell::new(0),
            dearest: RefCell::default(),
        }
    }

    /// Counts an expression; `what` is told of it when it costs too much.
    pub fn add(&self, cost: u64, what: &str, path: &Path) -> Option<FieldError> {
        self.total.set(self.total.get().saturating_add(cost));
        if cost >= COUNTS_FROM {
            let mut dearest = self.dearest.borrow_mut();
            dearest.push((cost, path.clone()));
            dearest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            dearest.truncate(DEAREST_MAX);
        }
        let is_over = !self.is_stored && cost > EXPRESSION_MAX;
        is_over.then(|| FieldError::forbidden(path, exceeded(what, cost, EXPRESSION_MAX)))
    }

    /// What is wrong with all together; the schema is at `path`.
    pub fn of_all(&self, path: &Path) -> ErrorList {
        if self.total.get() <= SCHEMA_MAX {
            return ErrorList::new();
        }
        let each = "contributed to estimated rule cost total exceeding cost limit for entire \
                    OpenAPIv3 schema";
        let dearest = self.dearest.borrow();
        let mut errors: ErrorList = dearest
            .iter()
            .map(|(_, path)| FieldError::forbidden(path, each))
            .collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = exceeded(what, self.total.get(), SCHEMA_MAX);
        errors.push(FieldError::forbidden(path, detail));
        errors
    }
}

fn exceeded(what: &str, cost: u64, most: u64) -> String {
    let factor = cost as f64 / most as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// As many values as there may be below each value of a schema; `None` where there is no bound.
pub fn elements_max(schema: &Value) -> Option<u64> {
    let bound = |field: &str| {
        let most = json::int(schema, field)?;
        Some(u64::try_from(most).unwrap_or(0))
    };
    match json::text(schema, "type") {
        "array" => bound("maxItems"),
        "object" if json::has(schema, "additionalProperties") => bound("maxProperties"),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests;
