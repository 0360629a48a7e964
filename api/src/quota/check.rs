//! Whether a write fits, and what the quotas stand at after it.

use super::{Amounts, Evaluator, Limited, Quota, Scope, Surroundings};
use crate::object::Object;
use std::collections::BTreeSet;

/// A write that may be charged.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub evaluator: &'a Evaluator,
    pub group: &'a str,
    pub plural: &'a str,
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

/// Why a write may not be done, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{0}")]
    Forbidden(String),
    /// No quota covers a scope that must be covered, which upstream tells as a failure of its own.
    #[error("insufficient quota to match these scopes: [{0}]")]
    Uncovered(String),
}

/// The changes that the write makes. A quota that is not yet in force, because nobody has counted
/// for it, is not asked. `limited` is what may not be used without a quota.
pub fn check(
    request: &Request<'_>,
    quotas: &[Quota],
    limited: &[Limited],
    around: &Surroundings<'_>,
) -> Result<Vec<Charge>, Refused> {
    let evaluator = request.evaluator;
    let concerned = concerned(request, quotas, around).map_err(Refused::Forbidden)?;
    if concerned.is_empty() && limited.is_empty() {
        return Ok(Vec::new());
    }
    let usage = evaluator.usage(request.new, around);
    let negative = usage.only(|name| usage.get(name).is_some_and(|one| one.is_negative()));
    if !negative.is_empty() && !concerned.is_empty() {
        let names: Vec<&str> = negative.names().collect();
        let names = names.join(",");
        let why = format!("quota usage is negative for resource(s): {names}");
        return Err(Refused::Forbidden(why));
    }
    let more = request
        .old
        .map(|old| usage.beyond(&evaluator.usage(old, around)));
    let more = more.as_ref().unwrap_or(&usage).without_zeros();
    let whole = usage.without_zeros();
    let deltas = concerned.iter().map(|(place, _)| {
        let had = request
            .old
            .is_none_or(|old| quotas[*place].is_about(evaluator, old));
        // New to this quota: all of it.
        (*place, if had { &more } else { &whole })
    });
    let deltas: Vec<(usize, &Amounts)> = deltas.filter(|(_, delta)| !delta.is_empty()).collect();
    let adds_nothing = if concerned.is_empty() {
        more.is_empty()
    } else {
        deltas.is_empty()
    };
    if adds_nothing {
        return Ok(Vec::new());
    }
    let covered = concerned.iter().flat_map(|(_, names)| names);
    let covered: BTreeSet<&str> = covered.copied().collect();
    check_covered(request, quotas, limited, &usage, &covered)?;
    let is_report = request.subresource == "status";
    let mut charges = Vec::new();
    for (place, delta) in deltas {
        let quota = &quotas[place];
        let delta = delta.only(|name| quota.hard.has(name));
        if !delta.is_empty() {
            let used = charge(quota, &delta, is_report).map_err(Refused::Forbidden)?;
            charges.push(Charge { quota: place, used });
        }
    }
    Ok(charges)
}

/// The quotas in force that count the object, by their places, with their resources that do.
fn concerned<'q>(
    request: &Request<'_>,
    quotas: &'q [Quota],
    around: &Surroundings<'_>,
) -> Result<Vec<(usize, Vec<&'q str>)>, String> {
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
        concerned.push((place, restricted));
    }
    Ok(concerned)
}

/// What is limited even without a quota needs one that covers it.
fn check_covered(
    request: &Request<'_>,
    quotas: &[Quota],
    limited: &[Limited],
    usage: &Amounts,
    covered: &BTreeSet<&str>,
) -> Result<(), Refused> {
    let (evaluator, object) = (request.evaluator, request.new);
    let own = limited
        .iter()
        .filter(|one| one.group == request.group && one.plural == request.plural);
    let names: BTreeSet<&str> = own.flat_map(|one| one.names_in(usage)).collect();
    let uncovered: Vec<&str> = names.difference(covered).copied().collect();
    if !uncovered.is_empty() {
        let names = uncovered.join(",");
        let why = format!("insufficient quota to consume: {names}");
        return Err(Refused::Forbidden(why));
    }
    let is_in = |scope: &&Scope| evaluator.is_in(scope, object);
    let of_quotas = quotas.iter().flat_map(|quota| &quota.scopes).filter(is_in);
    let of_quotas: BTreeSet<&str> = of_quotas.map(|scope| scope.name.as_str()).collect();
    let needed = limited.iter().flat_map(|one| &one.scopes).filter(is_in);
    let uncovered = needed.filter(|scope| !of_quotas.contains(scope.name.as_str()));
    let uncovered: Vec<String> = uncovered.map(Scope::to_string).collect();
    if uncovered.is_empty() {
        Ok(())
    } else {
        Err(Refused::Uncovered(uncovered.join(" ")))
    }
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
