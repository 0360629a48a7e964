//! What becomes of a Secret with a token of the older kind. Pure.
//!
//! Source of the rules: upstream's loop of the same name. Days are in UTC, and sort as their texts.

use coracle_api::timestamp::{format_day, parse_day};
use coracle_client::informer::Filter;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
pub(super) const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const SINCE: &str = "since";

/// The Secrets of interest, as the loop that fills them follows them too.
pub(super) fn of_type() -> Filter {
    Filter::fields(format!("type={TYPE}"))
}

/// What is younger than these stays.
#[derive(Debug, PartialEq)]
pub(super) struct Limits {
    created: Timestamp,
    /// A day, of the last use as of the mark.
    used: String,
    pub(super) today: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Leave,
    Mark,
    Delete,
}

/// `None` until uses are noted for a whole period, counted from the end of the first day.
pub(super) fn limits(
    tracking: &BTreeMap<String, String>,
    period: Duration,
    now: Timestamp,
) -> Option<Limits> {
    let period = SignedDuration::try_from(period).ok()?;
    let first = parse_day(tracking.get(SINCE)?)?;
    let since = first.tomorrow().ok().and_then(midnight)?;
    let before = now.checked_sub(period).ok()?;
    (before >= since).then(|| Limits {
        created: before,
        used: format_day(before),
        today: format_day(now),
    })
}

fn midnight(day: Date) -> Option<Timestamp> {
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// The name of the account that the token is of.
pub(super) fn account(secret: &Secret) -> Option<&str> {
    annotation(secret, NAME).filter(|name| !name.is_empty())
}

pub(super) fn verdict(
    secret: &Secret,
    account: Option<&ServiceAccount>,
    is_mounted: impl FnOnce() -> bool,
    limits: &Limits,
) -> Verdict {
    let metadata = &secret.metadata;
    let created = metadata.creation_timestamp.as_ref();
    let is_old = created.is_some_and(|created| created.0 < limits.created);
    if secret.type_.as_deref() != Some(TYPE) || !is_old || metadata.deletion_timestamp.is_some() {
        return Verdict::Leave;
    }
    // Without the label it was not used since uses are noted; one that is no day says nothing.
    let is_unused = label(secret, LAST_USED)
        .is_none_or(|day| parse_day(day).is_some() && day < limits.used.as_str());
    let is_generated = account.is_some_and(|account| names(account, secret));
    if !is_unused || !is_generated || is_mounted() {
        return Verdict::Leave;
    }
    let marked = label(secret, INVALID_SINCE).filter(|day| parse_day(day).is_some());
    match marked {
        None => Verdict::Mark,
        Some(day) if day < limits.used.as_str() => Verdict::Delete,
        Some(_) => Verdict::Leave,
    }
}

/// It is the account that the token is of, and names it as one that was made for it.
fn names(account: &ServiceAccount, secret: &Secret) -> bool {
    let uid = annotation(secret, UID).unwrap_or_default();
    let is_it = uid.is_empty() || account.metadata.uid.as_deref() == Some(uid);
    let mut named = account.secrets.iter().flatten();
    is_it && named.any(|one| one.name.is_some() && one.name == secret.metadata.name)
}

fn annotation<'a>(secret: &'a Secret, name: &str) -> Option<&'a str> {
    let annotations = secret.metadata.annotations.as_ref()?;
    annotations.get(name).map(String::as_str)
}

fn label<'a>(secret: &'a Secret, name: &str) -> Option<&'a str> {
    let labels = secret.metadata.labels.as_ref()?;
    labels.get(name).map(String::as_str)
}

/// The Secrets that a pod names, in whatever volume or variable.
pub(super) fn secrets_of(pod: &Pod) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(spec) = serde_json::to_value(&pod.spec) {
        gather(&spec, &mut names);
    }
    names
}

fn gather(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(field, value)| gather_field(field, value, names)),
        Value::Array(items) => items.iter().for_each(|item| gather(item, names)),
        _ => {}
    }
}

fn gather_field(field: &str, value: &Value, names: &mut Vec<String>) {
    let mut add = |name: &Value| names.extend(name.as_str().map(str::to_owned));
    match field {
        "secretName" => add(value),
        // Of volumes of all kinds, of variables, and of what is projected.
        "secret" | "secretRef" | "secretKeyRef" | "nodePublishSecretRef" => {
            add(&value["name"]);
            add(&value["secretName"]);
        }
        "imagePullSecrets" => {
            let pulls = value.as_array().into_iter().flatten();
            pulls.for_each(|pull| add(&pull["name"]));
        }
        _ => gather(value, names),
    }
}

#[cfg(test)]
mod tests;
