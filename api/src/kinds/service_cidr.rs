//! Service CIDRs: the networks that Services get their addresses from.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::row::{self, Names, column};
use crate::kinds::{checks, prepare};
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::{Value, json};

pub const ROW: Resource = Resource {
    subresources: &[row::STATUS],
    ..row::cluster(
        "networking.k8s.io",
        "v1",
        Names {
            kind: "ServiceCIDR",
            plural: "servicecidrs",
            singular: "servicecidr",
            schema: "io.k8s.api.networking.v1.ServiceCIDR",
        },
        &ServiceCidr,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("CIDRs", "string", "One network a family."),
    row::AGE,
];

/// One a family.
const CIDRS_MAX: usize = 2;

#[derive(Debug)]
struct ServiceCidr;

impl Rules for ServiceCidr {
    fn default(&self, object: &mut Object) {
        json::default_in(object.root_mut(), "status", json!({}));
    }

    fn prepare_create(&self, object: &mut Object) {
        object.set(&["status"], json!({}));
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, part: Part<'_>) {
        match part {
            Part::Status => {
                let status = new.get(&["status"]).cloned();
                prepare::keep_all(new, old);
                prepare::put(new, &["status"], status);
            }
            Part::Main | Part::Other(_) => prepare::keep(new, old, &["status"]),
        }
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        cidrs(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, part: Part<'_>) -> ErrorList {
        if part == Part::Status {
            return ErrorList::new();
        }
        update(new, old)
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        let cidrs: Vec<&str> = object
            .list(&["spec", "cidrs"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        vec![
            object.name().into(),
            cidrs.join(",").into(),
            print::age_of(object, now),
        ]
    }
}

fn path() -> Path {
    Path::root("spec").child("cidrs")
}

fn cidrs(object: &Object) -> ErrorList {
    let all = object.list(&["spec", "cidrs"]);
    let path = path();
    if all.is_empty() {
        return vec![FieldError::required(&path, "at least one CIDR required")];
    }
    if all.len() > CIDRS_MAX {
        let value = Value::from(all);
        // Upstream shows the spec.
        let shown = format!("{{\"CIDRs\":{value}}}");
        let error = FieldError::invalid(&path, value, "may only hold up to 2 values");
        return vec![error.shown_as(shown)];
    }
    let mut errors = ErrorList::new();
    for (index, cidr) in all.iter().enumerate() {
        let cidr = cidr.as_str().unwrap_or("");
        let details = names::canonical_cidr(cidr);
        checks::each(&mut errors, &path.index(index), cidr, details);
    }
    if let [first, second] = all
        && let (Some(a), Some(b)) = (is_v6(first), is_v6(second))
        && a == b
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                      2001:db8::/64";
        errors.push(FieldError::invalid(&path, Value::from(all), detail));
    }
    errors
}

/// `None` for what is no network at all.
fn is_v6(cidr: &Value) -> Option<bool> {
    let canonical = names::in_canonical_range(cidr.as_str()?)?;
    Some(canonical.contains(':'))
}

/// What is there stays; a second family may be added.
fn update(new: &Object, old: &Object) -> ErrorList {
    let [now, before] = [new, old].map(|object| object.list(&["spec", "cidrs"]));
    let path = path();
    let changed = |index: usize| {
        (now[index] != before[index])
            .then(|| FieldError::invalid(&path.index(index), now[index].clone(), names::IMMUTABLE))
    };
    match (before.len(), now.len()) {
        (a, b) if a == b => (0..a).filter_map(changed).collect(),
        (1, 2) => {
            let mut errors: ErrorList = changed(0).into_iter().collect();
            errors.extend(cidrs(new));
            errors
        }
        _ => {
            let value = new.get(&["spec", "cidrs"]).cloned().unwrap_or_default();
            vec![FieldError::invalid(&path, value, names::IMMUTABLE)]
        }
    }
}

#[cfg(test)]
mod tests;
