//! After the cycle: reserve at its end, then off it permit, pre-bind, bind, post-bind; or undo all of it.
//!
//! A binding can be called off while it waits, up to Bind: then the pod makes room for another.
//! The pod is assumed on its node before this begins. Whatever fails, reservations are undone in
//! reverse order and the pod is taken off the node again.

use crate::framework::{Point, Profile, SharedPlugin, StepError};
use crate::laps::Stage;
use crate::metrics::Counting;
use crate::pod_info::PodInfo;
use lap::Lap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
pub use unbound::{Unbound, chain};
use under_way::{PREEMPTED, Revocable, UnderWay};

mod lap; // How long each step takes.
mod permit; // Whether the pod may be bound, and when.
mod unbound; // What is told of a binding that failed.
mod under_way; // Which bindings can still be called off.

/// Bindings under way at a time: enough to hide the API's latency, few enough to bound memory.
const BINDINGS_MAX: usize = 256;
/// Pods that wait for others at a time, such as provisioners. Each keeps some kilobytes; the rest
/// is tried again later.
const WAITS_MAX: usize = 4096;

/// The bounded places of bindings, and those of who waits for others meanwhile.
#[derive(Clone, Debug)]
pub struct Places {
    at_work: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    under_way: UnderWay,
    /// Ends every wait for others.
    stop: CancellationToken,
}

impl Places {
    pub fn new(stop: CancellationToken) -> Self {
        Self::of(stop, BINDINGS_MAX)
    }

    /// With places for so many bindings at a time.
    pub fn of(stop: CancellationToken, bindings: usize) -> Self {
        Self {
            stop,
            at_work: Arc::new(Semaphore::new(bindings)),
            waiting: Arc::new(Semaphore::new(WAITS_MAX)),
            under_way: UnderWay::default(),
        }
    }

    /// Waits for a place.
    pub async fn take(&self) -> Place {
        let places = self.clone();
        let held = Arc::clone(&self.at_work).acquire_owned().await.ok();
        Place {
            places,
            held,
            revocable: None,
            counting: None,
        }
    }

    /// True when the pod had a binding under way, and is not bound by it any more.
    pub fn call_off(&self, uid: &str) -> bool {
        self.under_way.call_off(uid)
    }

    #[cfg(test)]
    pub fn free(&self) -> [usize; 2] {
        [&self.at_work, &self.waiting].map(|places| places.available_permits())
    }
}

/// A place of a binding, free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Places,
    /// None while others are waited for.
    held: Option<OwnedSemaphorePermit>,
    /// Of the binding that has this place, once it began.
    revocable: Option<Revocable>,
    /// Where its steps are counted.
    counting: Option<Counting>,
}

impl Place {
    /// From now on the binding of this pod can be called off.
    pub fn begin(&mut self, pod: &PodInfo) {
        self.revocable = Some(self.places.under_way.begin(&pod.uid));
    }

    /// From now on its steps are counted there.
    pub fn count_in(&mut self, counting: Counting) {
        self.counting = Some(counting);
    }

    /// Counts something of the binding, once it began.
    pub fn counted(&self, count: impl FnOnce(&Counting)) {
        if let Some(counting) = &self.counting {
            count(counting);
        }
    }

    /// From now on it cannot; or why it ends here.
    fn seal(&self) -> Result<(), &'static str> {
        self.revocable.as_ref().map_or(Ok(()), Revocable::seal)
    }

    async fn called_off(revocable: Option<&Revocable>) {
        match revocable {
            Some(revocable) => revocable.called_off().cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Gives the place to others until `wait` is over; or why it is not waited for.
    async fn while_waiting<T>(&mut self, wait: impl Future<Output = T>) -> Result<T, &'static str> {
        let waiting = Arc::clone(&self.places.waiting).try_acquire_owned();
        let waiting = waiting.map_err(|_| "too many pods wait")?;
        self.held = None;
        let stop = self.places.stop.clone();
        let waited = tokio::select! {
            () = Self::called_off(self.revocable.as_ref()) => Err(PREEMPTED),
            waited = stop.run_until_cancelled(wait) => waited.ok_or("the scheduler stops"),
        };
        self.held = Arc::clone(&self.places.at_work).acquire_owned().await.ok();
        drop(waiting);
        waited
    }
}

/// Reserves what the pod needs. Belongs to its cycle: the next one finds what is left.
pub fn reserve(
    profile: &Profile,
    pod: &PodInfo,
    node: &str,
    place: &Place,
) -> Result<(), StepError> {
    let all = Lap::begin(Stage::Reserve);
    let mut plugins = profile.at(Point::Reserve);
    let mut asked = "";
    let reserve = || {
        plugins.try_for_each(|(_, plugin)| {
            asked = plugin.name();
            let own = Lap::begin(Stage::Reserve);
            let reserved = plugin.reserve(pod, node);
            place.lap(Some(plugin), own, &reserved);
            reserved
        })
    };
    let reserved = std::panic::catch_unwind(AssertUnwindSafe(reserve));
    let reserved = reserved.unwrap_or_else(|_| Err(StepError::failed(asked, "a plugin panicked")));
    place.lap(None, all, &reserved);
    reserved
}

/// Runs all steps after the cycle for a pod on a node, once it was tried to reserve what it needs.
pub async fn bind(
    profile: &Profile,
    pod: &PodInfo,
    node: &str,
    place: &mut Place,
    reserved: Result<(), StepError>,
) -> Result<(), Unbound> {
    let result = match reserved {
        Ok(()) => steps(profile, pod, node, place).await,
        Err(error) => Err(Unbound::at(Stage::Reserve, error)),
    };
    if result.is_err() {
        let all = Lap::begin(Stage::Unreserve);
        for (_, plugin) in profile.at(Point::Reserve).rev() {
            let own = Lap::begin(Stage::Unreserve);
            plugin.unreserve(pod, node);
            place.lap(Some(plugin), own, &Ok(()));
        }
        place.lap(None, all, &Ok(()));
    }
    result
}

async fn steps(
    profile: &Profile,
    pod: &PodInfo,
    node: &str,
    place: &mut Place,
) -> Result<(), Unbound> {
    let at = |step| move |error| Unbound::at(step, error);
    let permitted = permit::all(profile, pod, node, place).await;
    permitted.map_err(at(Stage::Permit))?;
    let all = Lap::begin(Stage::PreBind);
    let prepared = prepare(profile, pod, node, place).await;
    place.lap(None, all, &prepared);
    prepared.map_err(at(Stage::PreBind))?;
    place.seal().map_err(Unbound::CalledOff)?;
    let all = Lap::begin(Stage::Bind);
    let bound = write(profile, pod, node, place).await;
    place.lap(None, all, &bound);
    bound.map_err(at(Stage::Bind))?;
    let all = Lap::begin(Stage::PostBind);
    // Who reserved something is told of the end as well.
    let reserving = |place| profile.has(Point::Reserve, place);
    let others = profile.at(Point::PostBind);
    let others = others.filter(|(place, _)| !reserving(*place));
    for (_, plugin) in profile.at(Point::Reserve).chain(others) {
        let own = Lap::begin(Stage::PostBind);
        plugin.post_bind(pod, node);
        place.lap(Some(plugin), own, &Ok(()));
    }
    place.lap(None, all, &Ok(()));
    Ok(())
}

/// PreBind, and the wait for what it began.
async fn prepare(
    profile: &Profile,
    pod: &PodInfo,
    node: &str,
    place: &mut Place,
) -> Result<(), StepError> {
    for (_, plugin) in profile.at(Point::PreBind) {
        let own = Lap::begin(Stage::PreBind);
        let prepared = plugin.pre_bind(pod, node).await;
        place.lap(Some(plugin), own, &prepared);
        prepared?;
    }
    for (_, plugin) in profile.at(Point::PreBind) {
        if let Some(settled) = plugin.settle(pod, node) {
            let settled = place.while_waiting(settled).await;
            settled.unwrap_or_else(|why| Err(not_waited(plugin, why)))?;
        }
    }
    Ok(())
}

async fn write(
    profile: &Profile,
    pod: &PodInfo,
    node: &str,
    place: &Place,
) -> Result<(), StepError> {
    for (_, plugin) in profile.at(Point::Bind) {
        let own = Lap::begin(Stage::Bind);
        if let Some(bound) = plugin.bind(pod, node).await {
            place.lap(Some(plugin), own, &bound);
            return bound;
        }
    }
    Err(StepError::Refused {
        plugin: "Bind",
        why: "no plugin binds the pod".to_owned(),
    })
}

fn not_waited(plugin: &SharedPlugin, why: &str) -> StepError {
    StepError::failed(plugin.name(), why)
}

#[cfg(test)]
mod tests;
