//! Whether a write fits, and what the quotas stand at after it.

use super::{Evaluator, Quota, Surroundings};
use crate::amounts::Amounts;
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

/// The changes that the write makes. A quota that is not yet in force, because nobody has counted
/// for it, is not asked. The error is in upstream's words.
pub fn check(
    request: &Request<'_>,
    quotas: &[Quota],
    around: &Surroundings<'_>,
) -> Result<Vec<Charge>, String> {
    let evaluator = request.evaluator;
    let concerned = concerned(request, quotas, around)?;
    if concerned.is_empty() {
        return Ok(Vec::new());
    }
    let usage = evaluator.usage(request.new, around);
    let negative = usage.only(|name| usage.get(name).is_some_and(|one| one.is_negative()));
    if !negative.is_empty() {
        let names: Vec<&str> = negative.names().collect();
        let names = names.join(",");
        return Err(format!("quota usage is negative for resource(s): {names}"));
    }
    let more = request
        .old
        .map(|old| usage.beyond(&evaluator.usage(old, around)));
    let more = more.as_ref().unwrap_or(&usage).without_zeros();
    let whole = usage.without_zeros();
    let deltas = concerned.into_iter().map(|place| {
        let had = request
            .old
            .is_none_or(|old| quotas[place].is_about(evaluator, old));
        // New to this quota: all of it.
        (place, if had { &more } else { &whole })
    });
    let is_report = request.subresource == "status";
    let mut charges = Vec::new();
    for (place, delta) in deltas {
        let quota = &quotas[place];
        let delta = delta.only(|name| quota.hard.has(name));
        if !delta.is_empty() {
            let used = charge(quota, &delta, is_report)?;
            charges.push(Charge { quota: place, used });
        }
    }
    Ok(charges)
}

/// The quotas in force that count the object, by their places.
fn concerned(
    request: &Request<'_>,
    quotas: &[Quota],
    around: &Surroundings<'_>,
) -> Result<Vec<usize>, String> {
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
    Ok(concerned)
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
