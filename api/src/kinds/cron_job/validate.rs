//! What is wrong with a cron job.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::{checks, job};
use crate::object::Object;
use crate::{cron, json};
use serde_json::Value;

/// The time of a job is added to its name, in eleven characters.
const NAME_BYTES_MAX: usize = 52;
/// Of a part of the name of a time zone.
const ZONE_PART_BYTES_MAX: usize = 14;

pub fn create(object: &Object) -> ErrorList {
    let mut errors = spec(object, None);
    if object.name().len() > NAME_BYTES_MAX {
        let path = Path::root("metadata").child("name");
        let detail = "must be no more than 52 characters";
        errors.push(FieldError::invalid(&path, object.name(), detail));
    }
    errors
}

pub fn spec(object: &Object, old: Option<&Object>) -> ErrorList {
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let before = old.map(|old| old.get(&["spec"]).unwrap_or(&Value::Null));
    let mut errors = schedule(spec, before, &path.child("schedule"));
    checks::nonnegative(&mut errors, spec, "startingDeadlineSeconds", &path);
    let zone = json::get(spec, "timeZone");
    if before.is_none_or(|before| json::get(before, "timeZone") != zone)
        && let Some(zone) = zone.as_str()
    {
        errors.extend(time_zone(zone, &path.child("timeZone")));
    }
    checks::required_one_of(
        &mut errors,
        json::text(spec, "concurrencyPolicy"),
        &["Allow", "Forbid", "Replace"],
        &path.child("concurrencyPolicy"),
    );
    errors.extend(template(
        json::at(spec, &["jobTemplate", "spec"]),
        &path.child("jobTemplate").child("spec"),
    ));
    checks::nonnegative(&mut errors, spec, "successfulJobsHistoryLimit", &path);
    checks::nonnegative(&mut errors, spec, "failedJobsHistoryLimit", &path);
    errors
}

fn schedule(spec: &Value, before: Option<&Value>, path: &Path) -> ErrorList {
    let text = json::text(spec, "schedule");
    if text.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut errors = ErrorList::new();
    if let Err(error) = cron::parse(text) {
        errors.push(FieldError::invalid(path, text, error));
    }
    // A schedule of old may name its zone.
    let had_zone = before.is_some_and(|before| json::text(before, "schedule").contains("TZ"));
    let detail = match (text.contains("TZ"), had_zone) {
        (true, false) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        (true, true) if json::has(spec, "timeZone") => {
            "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        }
        _ => return errors,
    };
    errors.push(FieldError::invalid(path, text, detail));
    errors
}

fn time_zone(zone: &str, path: &Path) -> ErrorList {
    let invalid = |detail: String| FieldError::invalid(path, zone, detail);
    if zone.is_empty() {
        let detail = "timeZone must be nil or non-empty string";
        return vec![invalid(detail.to_owned())];
    }
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    let good = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.len() <= ZONE_PART_BYTES_MAX
            && !part.starts_with('-')
            && part.bytes().all(sign)
    };
    if !zone.split('/').all(good) {
        return vec![invalid(format!("unknown time zone {zone}"))];
    }
    let mut errors = ErrorList::new();
    if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in \
                      https://www.iana.org/time-zones";
        errors.push(invalid(detail.to_owned()));
    }
    errors.extend(cron::zone_error(zone).map(invalid));
    errors
}

/// The selector is made when a job is.
fn template(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = job::validate::template_spec(spec, path);
    if let Some(selector) = json::some(spec, "selector") {
        let detail = "`selector` will be auto-generated";
        let path = path.child("selector");
        errors.push(FieldError::invalid(&path, selector.clone(), detail));
    }
    if json::flag(spec, "manualSelector") {
        let path = path.child("manualSelector");
        errors.push(FieldError::not_supported(&path, true, &["nil", "false"]));
    }
    errors
}
