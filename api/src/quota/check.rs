//! Whether a write fits, and what the quotas stand at after it.

use super::{Amounts, Evaluator, Quota, Surroundings};
use crate::object::Object;

/// A write that may be charged.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub evaluator: &'a Evaluator,
    /// Empty for the object itself.
    pub subresource: &'a str,
    pub new: &'a Object,
    /// Absent on create.
    pub old: Option<&'a Object>,
}

/// What a quota's usage becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Its place among the quotas.
    pub quota: usize,
    pub used: Amounts,
}

/// The changes that the write makes, or why it may not be done, in upstream's words. A quota that
/// is not yet in force, because nobody has counted for it, is not asked.
pub fn check(
    request: &Request<'_>,
    quotas: &[Quota],
    around: &Surroundings<'_>,
) -> Result<Vec<Charge>, String> {
    let evaluator = request.evaluator;
    let mut concerned = Vec::new();
    for (place, quota) in quotas.iter().enumerate() {
        let restricted = quota.hard.names();
        let restricted = restricted.filter(|name| evaluator.counts(name, around.classes));
        let restricted: Vec<&str> = restricted.collect();
        if restricted.is_empty() || !quota.is_about(evaluator, request.new) {
            continue;
        }
        let said = evaluator.missing(request.new, restricted.iter().copied());
        said.map_err(|why| format!("failed quota: {}: {why}", quota.name))?;
        if restricted.iter().any(|name| !quota.used.has(name)) {
            let names = restricted.join(",");
            return Err(format!(
                "status unknown for quota: {}, resources: {names}",
                quota.name
            ));
        }
        concerned.push(place);
    }
    if concerned.is_empty() {
        return Ok(Vec::new());
    }
    let usage = evaluator.usage(request.new, around);
    let negative = usage.only(|name| usage.get(name).is_some_and(|one| one.is_negative()));
    if !negative.is_empty() {
        let names: Vec<&str> = negative.names().collect();
        return Err(format!(
            "quota usage is negative for resource(s): {}",
            names.join(",")
        ));
    }
    let more = request
        .old
        .map(|old| usage.beyond(&evaluator.usage(old, around)));
    let mut charges = Vec::new();
    for place in concerned {
        let quota = &quotas[place];
        let had = request.old.filter(|old| quota.is_about(evaluator, old));
        let delta = match (&more, had) {
            (Some(more), Some(_)) => more,
            // New to this quota: all of it.
            _ => &usage,
        };
        let delta = delta.without_zeros().only(|name| quota.hard.has(name));
        if !delta.is_empty() {
            let used = charge(quota, &delta, request.subresource == "status")?;
            charges.push(Charge { quota: place, used });
        }
    }
    Ok(charges)
}

/// What is only reported has happened already: it is charged and never refused.
fn charge(quota: &Quota, delta: &Amounts, is_report: bool) -> Result<Amounts, String> {
    let mut used = quota.used.clone();
    used.add(delta);
    let exceeded = |name: &str| delta.has(name) && used.exceeds(name, &quota.hard);
    let requested = delta.only(exceeded);
    if requested.is_empty() || is_report {
        return Ok(used);
    }
    Err(format!(
        "exceeded quota: {}, requested: {requested}, used: {}, limited: {}",
        quota.name,
        quota.used.only(exceeded),
        quota.hard.only(exceeded),
    ))
}
