//! Validation of priority levels: limits, queues, and what the mandatory ones must be.

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::kinds::{checks, flow_control};
use crate::object::Object;
use serde_json::Value;

/// The one level whose requests never wait.
const EXEMPT: &str = "exempt";
const QUEUES_MAX: i64 = 10_000_000;
/// A hash has 64 bits; with fewer than the last four the deal is even enough.
const HASH_BITS_MAX: i64 = 60;
/// Of a version of old, in which no share and the default share looked alike.
const ROUND_TRIP: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// What is wrong with a priority level, its status aside.
pub fn level(object: &Object) -> ErrorList {
    let mut errors = ErrorList::new();
    if object.annotation(ROUND_TRIP).is_some() {
        let path = Path::root("metadata").child("annotations");
        let detail = format!("annotation '{ROUND_TRIP}' is forbidden");
        errors.push(FieldError::forbidden(&path, detail));
    }
    let path = Path::root("spec");
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    errors.extend(by_type(spec, object.name(), &path));
    errors.extend(mandatory(spec, object.name(), &path));
    errors
}

fn by_type(spec: &Value, name: &str, path: &Path) -> ErrorList {
    let kind = json::text(spec, "type");
    let mut errors = ErrorList::new();
    if (name == EXEMPT) != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    }
    let [exempt, limited] = ["exempt", "limited"].map(|name| json::some(spec, name));
    match kind {
        "Exempt" => {
            if limited.is_some() {
                let detail = "must be nil if the type is not Limited";
                errors.push(FieldError::forbidden(&path.child("limited"), detail));
            }
            if let Some(exempt) = exempt {
                errors.extend(shares(exempt, &path.child("exempt")));
                errors.extend(lendable(exempt, &path.child("exempt")));
            }
        }
        "Limited" => {
            if exempt.is_some() {
                let detail = "must be nil if the type is Limited";
                errors.push(FieldError::forbidden(&path.child("exempt"), detail));
            }
            match limited {
                Some(limited) => errors.extend(of_limited(limited, &path.child("limited"))),
                None => errors.push(FieldError::required(
                    &path.child("limited"),
                    "must not be empty when type is Limited",
                )),
            }
        }
        other => checks::one_of(
            &mut errors,
            other,
            &["Exempt", "Limited"],
            &path.child("type"),
        ),
    }
    errors
}

fn shares(level: &Value, path: &Path) -> ErrorList {
    let shares = json::int(level, "nominalConcurrencyShares").unwrap_or(0);
    if shares >= 0 {
        return ErrorList::new();
    }
    let path = path.child("nominalConcurrencyShares");
    vec![FieldError::invalid(
        &path,
        shares,
        "must be a non-negative integer",
    )]
}

fn lendable(level: &Value, path: &Path) -> ErrorList {
    let percent = json::int(level, "lendablePercent").unwrap_or(0);
    if (0..=100).contains(&percent) {
        return ErrorList::new();
    }
    let path = path.child("lendablePercent");
    let detail = "must be between 0 and 100, inclusive";
    vec![FieldError::invalid(&path, percent, detail)]
}

fn of_limited(limited: &Value, path: &Path) -> ErrorList {
    let mut errors = shares(limited, path);
    let response = json::get(limited, "limitResponse");
    errors.extend(limit_response(response, &path.child("limitResponse")));
    errors.extend(lendable(limited, path));
    let borrowing = json::int(limited, "borrowingLimitPercent").unwrap_or(0);
    if borrowing < 0 {
        let path = path.child("borrowingLimitPercent");
        let detail = "if specified, must be a non-negative integer";
        errors.push(FieldError::invalid(&path, borrowing, detail));
    }
    errors
}

fn limit_response(response: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let queuing = path.child("queuing");
    match (
        json::text(response, "type"),
        json::some(response, "queuing"),
    ) {
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(FieldError::forbidden(&queuing, detail));
        }
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(&queuing, detail));
        }
        ("Queue", Some(queues)) => errors.extend(queues_of(queues, &queuing)),
        (kind, _) => checks::one_of(&mut errors, kind, &["Queue", "Reject"], &path.child("type")),
    }
    errors
}

fn queues_of(queuing: &Value, path: &Path) -> ErrorList {
    const POSITIVE: &str = "must be positive";
    let number = |name: &str| json::int(queuing, name).unwrap_or(0);
    let (queues, hand) = (number("queues"), number("handSize"));
    let mut errors = ErrorList::new();
    let mut wrong = |name: &str, detail: String| {
        errors.push(FieldError::invalid(&path.child(name), number(name), detail));
    };
    if number("queueLengthLimit") <= 0 {
        wrong("queueLengthLimit", POSITIVE.to_owned());
    }
    if queues <= 0 {
        wrong("queues", POSITIVE.to_owned());
    } else if queues > QUEUES_MAX {
        wrong("queues", format!("must not be greater than {QUEUES_MAX}"));
    }
    if hand <= 0 {
        wrong("handSize", POSITIVE.to_owned());
    } else if hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        wrong("handSize", detail);
    } else if entropy_bits(queues, hand) > HASH_BITS_MAX {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {HASH_BITS_MAX}"
        );
        wrong("handSize", detail);
    }
    errors
}

/// About how many bits of a hash it takes to deal such a hand.
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most 24 bits times a hand of 10^7"
)]
#[expect(clippy::cast_precision_loss, reason = "both numbers are small")]
fn entropy_bits(deck: i64, hand: i64) -> i64 {
    ((deck as f64).log2() * hand as f64).ceil() as i64
}

fn mandatory(spec: &Value, name: &str, path: &Path) -> ErrorList {
    let Some(fixed) = flow_control::fixed_spec("PriorityLevelConfiguration", name) else {
        return ErrorList::new();
    };
    let (mut found, mut fixed) = (spec.clone(), fixed.clone());
    let mut but = "";
    if name == EXEMPT {
        // How much of it others may borrow is the operator's to say.
        for spec in [&mut found, &mut fixed] {
            spec.as_object_mut().map(|spec| spec.remove("exempt"));
        }
        but = " except the 'spec.exempt' field";
    }
    if json::same(&found, &fixed) {
        return ErrorList::new();
    }
    let detail = format!("spec of '{name}'{but} must equal the fixed value");
    let error = FieldError::invalid(path, spec.clone(), detail);
    vec![error.as_go("io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec")]
}
