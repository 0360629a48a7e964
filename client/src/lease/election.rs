//! Leader election on a Lease.
//!
//! Follows upstream's: a holder that has not renewed for the lease's duration, by the watcher's
//! own monotonic clock, has lost it. Clocks of different machines are never compared.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use rand::RngExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Held, whole_seconds};
use crate::Client;
use crate::clock::Clock;

/// Upstream's jitter of the retry period, so that candidates do not march in step.
const JITTER_FACTOR: f64 = 1.2;

/// What is led, by whom, and how fast. The defaults are those of upstream's components.
#[derive(Clone, Debug)]
pub struct Election {
    pub namespace: String,
    pub name: String,
    /// Unique to this process.
    pub identity: String,
    /// How long the others wait for a holder that is silent.
    pub lease_duration: Duration,
    /// How long a holder that cannot renew goes on leading; less than `lease_duration`.
    pub renew_deadline: Duration,
    /// How long a holder waits until it renews.
    pub renew_period: Duration,
    /// Between two tries to get it, or to renew it after a failure.
    pub retry_period: Duration,
    /// Told of what becomes of it; clones share it.
    pub held: Held,
}

impl Election {
    pub fn new(name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: "kube-system".to_owned(),
            name: name.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            renew_period: Duration::from_secs(2),
            retry_period: Duration::from_secs(2),
            held: Held::default(),
        }
    }
}

/// Waits to become the leader and runs `work` while it is. The token that `work` gets is
/// cancelled when leadership is lost or `shutdown` is; then `work` must end. Returns when `work`
/// has: after a loss, the caller decides whether to stand again.
pub async fn lead<F, Fut>(
    client: Client,
    election: Election,
    clock: Clock,
    shutdown: CancellationToken,
    work: F,
) where
    F: FnOnce(CancellationToken) -> Fut,
    Fut: Future<Output = ()>,
{
    let api = Api::namespaced(client, &election.namespace);
    let mut candidate = Candidate {
        api,
        election,
        clock,
        seen: None,
    };
    tokio::select! {
        () = shutdown.cancelled() => return,
        () = candidate.acquire() => {}
    }
    tracing::info!(lease = candidate.election.name, "leading");
    let leading = shutdown.child_token();
    let renewing = async {
        tokio::select! {
            () = leading.cancelled() => {}
            () = candidate.renew_until_lost() => {
                tracing::warn!("leadership lost");
                leading.cancel();
            }
        }
    };
    // Renewing goes on while the work drains, and ends with it.
    let working = async {
        work(leading.clone()).await;
        leading.cancel();
    };
    tokio::join!(working, renewing);
    candidate.election.held.end();
    candidate.release().await;
}

/// Lets go what a process of this identity held when it was killed. Returns once that is done or
/// another holds it.
pub async fn let_go(client: Client, election: Election, clock: Clock) {
    let api: Api<Lease> = Api::namespaced(client, &election.namespace);
    let mut candidate = Candidate {
        api,
        election,
        clock,
        seen: None,
    };
    loop {
        match candidate.api.get_opt(&candidate.election.name).await {
            Ok(None) => return,
            Ok(Some(lease)) => {
                candidate.note(lease);
                return candidate.release().await;
            }
            Err(error) => tracing::debug!(error = %error, "cannot reach the lease"),
        }
        tokio::time::sleep(candidate.election.retry_period).await;
    }
}

struct Candidate {
    api: Api<Lease>,
    election: Election,
    clock: Clock,
    /// The lease as last read, and when this process saw it change.
    seen: Option<(Lease, Instant)>,
}

impl Candidate {
    async fn acquire(&mut self) {
        loop {
            match self.try_hold().await {
                Ok(true) => return self.election.held.renewed(),
                Ok(false) => {}
                Err(error) => tracing::debug!(error = %error, "cannot reach the lease"),
            }
            let period = self.election.retry_period;
            let jitter = rand::rng().random_range(1.0..1.0 + JITTER_FACTOR);
            tokio::time::sleep(period.mul_f64(jitter)).await;
        }
    }

    /// Returns once the lease was not renewed within the deadline, or another holds it.
    async fn renew_until_lost(&mut self) {
        loop {
            tokio::time::sleep(self.election.renew_period).await;
            let deadline = self.election.renew_deadline;
            let retry_period = self.election.retry_period;
            let renewed = tokio::time::timeout(deadline, async {
                loop {
                    match self.try_hold().await {
                        Ok(held) => return held,
                        Err(error) => tracing::debug!(error = %error, "cannot renew the lease"),
                    }
                    tokio::time::sleep(retry_period).await;
                }
            });
            if !matches!(renewed.await, Ok(true)) {
                return;
            }
            self.election.held.renewed();
        }
    }

    /// One try to take or renew the lease; true when it is held then.
    async fn try_hold(&mut self) -> Result<bool, kube::Error> {
        let Some(current) = self.api.get_opt(&self.election.name).await? else {
            let lease = self.lease(None);
            return match self.api.create(&PostParams::default(), &lease).await {
                Ok(created) => {
                    self.note(created);
                    Ok(true)
                }
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
                Err(error) => Err(error),
            };
        };
        self.note(current.clone());
        if !self.may_take(&current) {
            return Ok(false);
        }
        let mut next = self.lease(current.spec.as_ref());
        next.metadata = current.metadata;
        match self
            .api
            .replace(&self.election.name, &PostParams::default(), &next)
            .await
        {
            Ok(written) => {
                self.note(written);
                Ok(true)
            }
            // Somebody else was faster; the next try reads who.
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn note(&mut self, lease: Lease) {
        if !matches!(&self.seen, Some((seen, _)) if seen.spec == lease.spec) {
            self.seen = Some((lease, Instant::now()));
        }
    }

    fn may_take(&self, lease: &Lease) -> bool {
        let spec = lease.spec.as_ref();
        let holder = spec
            .and_then(|spec| spec.holder_identity.as_deref())
            .unwrap_or_default();
        if holder.is_empty() || holder == self.election.identity {
            return true;
        }
        let seconds = spec
            .and_then(|spec| spec.lease_duration_seconds)
            .unwrap_or(0);
        let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        matches!(&self.seen, Some((_, since)) if since.elapsed() > duration)
    }

    fn lease(&self, old: Option<&LeaseSpec>) -> Lease {
        let identity = &self.election.identity;
        let same = old.is_some_and(|old| old.holder_identity.as_ref() == Some(identity));
        let transitions = old.and_then(|old| old.lease_transitions).unwrap_or(0);
        let now = self.clock.micro_time();
        let acquired = old
            .filter(|_| same)
            .and_then(|old| old.acquire_time.clone());
        Lease {
            metadata: ObjectMeta {
                name: Some(self.election.name.clone()),
                namespace: Some(self.election.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(identity.clone()),
                lease_duration_seconds: Some(whole_seconds(self.election.lease_duration)),
                acquire_time: Some(acquired.unwrap_or_else(|| now.clone())),
                renew_time: Some(now),
                lease_transitions: Some(match old {
                    Some(_) if !same => transitions.saturating_add(1),
                    _ => transitions,
                }),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Lets the next one in at once. Best effort: a lease that is not released runs out.
    async fn release(&mut self) {
        let Some((mut lease, _)) = self.seen.take() else {
            return;
        };
        let Some(spec) = lease.spec.as_mut() else {
            return;
        };
        if spec.holder_identity.as_ref() != Some(&self.election.identity) {
            return;
        }
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(self.clock.micro_time());
        spec.acquire_time = spec.renew_time.clone();
        let params = PostParams::default();
        let write = self.api.replace(&self.election.name, &params, &lease);
        match tokio::time::timeout(self.election.renew_deadline, write).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(error = %error, "lease not released"),
            Err(_) => tracing::debug!("lease not released in time"),
        }
    }
}
