//! How one of several schedulers is chosen: `leaderElection`.

use super::document;
use coracle_api::field::{ErrorList, FieldError, Path};
use coracle_api::go_duration;
use std::time::Duration;

/// By so much upstream's retry period may be longer.
const JITTER_FACTOR: f64 = 1.2;

/// The defaults are upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    pub is_on: bool,
    pub namespace: String,
    pub name: String,
    pub lease_duration: Duration,
    pub renew_deadline: Duration,
    pub retry_period: Duration,
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            is_on: true,
            namespace: "kube-system".to_owned(),
            name: "kube-scheduler".to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

pub fn read(written: Option<&document::LeaderElection>, errors: &mut ErrorList) -> LeaderElection {
    let mut election = LeaderElection::default();
    let Some(written) = written else {
        return election;
    };
    let path = Path::root("leaderElection");
    let durations = [
        (
            "leaseDuration",
            &written.lease_duration,
            &mut election.lease_duration,
        ),
        (
            "renewDeadline",
            &written.renew_deadline,
            &mut election.renew_deadline,
        ),
        (
            "retryPeriod",
            &written.retry_period,
            &mut election.retry_period,
        ),
    ];
    for (name, text, duration) in durations {
        let Some(text) = text.as_deref() else {
            continue;
        };
        match go_duration::parse(text).map(u64::try_from) {
            Ok(Ok(nanoseconds)) if nanoseconds > 0 => {
                *duration = Duration::from_nanos(nanoseconds);
            }
            Ok(_) => {
                let why = "must be greater than zero";
                errors.push(FieldError::invalid(&path.child(name), text, why));
            }
            Err(why) => errors.push(FieldError::invalid(&path.child(name), text, why)),
        }
    }
    election.is_on = written.leader_elect.unwrap_or(true);
    let named = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(name) = named(&written.resource_name) {
        election.name = name;
    }
    if let Some(namespace) = named(&written.resource_namespace) {
        election.namespace = namespace;
    }
    if election.is_on {
        check(&election, written, &path, errors);
        if let Some(lock) = named(&written.resource_lock).filter(|lock| lock != "leases") {
            let why = "resourceLock value must be \"leases\"";
            errors.push(FieldError::invalid(&path.child("resourceLock"), lock, why));
        }
    }
    election
}

/// Whether the times go together.
fn check(
    election: &LeaderElection,
    written: &document::LeaderElection,
    path: &Path,
    errors: &mut ErrorList,
) {
    let mut refuse = |field: &str, shown: &Option<String>, why: &str| {
        let shown = shown.clone().unwrap_or_default();
        errors.push(FieldError::invalid(&path.child(field), shown, why));
    };
    let (lease, renew) = (&written.lease_duration, &written.renew_deadline);
    if election.lease_duration <= election.renew_deadline {
        refuse(
            "leaseDuration",
            lease,
            "must be greater than `RenewDeadline`",
        );
    }
    // Else it would be renewed after others may take it.
    if election.renew_deadline <= election.retry_period.mul_f64(JITTER_FACTOR) {
        refuse(
            "renewDeadline",
            renew,
            "must be greater than retryPeriod*JitterFactor",
        );
    }
    // A Lease is written in whole seconds.
    if election.lease_duration < Duration::from_secs(1) {
        refuse("leaseDuration", lease, "must be at least a second");
    }
}
