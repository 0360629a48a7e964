//! Extension points around a bind are called in order and undone in reverse.

use super::*;
use crate::framework::Permission;
use crate::framework::{Plugin, Points};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

async fn bind(
    profile: &Profile,
    pod: &PodInfo,
    node: &str,
    place: &mut Place,
) -> Result<(), Unbound> {
    let reserved = reserve(profile, pod, node, place);
    super::bind(profile, pod, node, place, reserved).await
}

fn places() -> Places {
    Places::new(CancellationToken::new())
}

type Story = Arc<Mutex<Vec<String>>>;

/// Writes down what it is asked, and does as its script says.
#[derive(Debug)]
struct Scribe {
    name: &'static str,
    story: Story,
    fails_at: &'static str,
    waits: Mutex<u32>,
    /// Settled once this is told.
    settles: Option<Arc<tokio::sync::Notify>>,
}

impl Scribe {
    fn note(&self, what: &str) -> Result<(), StepError> {
        self.story.lock().push(format!("{} {what}", self.name));
        if what == self.fails_at {
            let why = "as told".to_owned();
            return Err(StepError::Refused {
                plugin: self.name,
                why,
            });
        }
        Ok(())
    }
}

impl Plugin for Scribe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn reserve(&self, _pod: &PodInfo, _node: &str) -> Result<(), StepError> {
        self.note("reserve")
    }

    fn unreserve(&self, _pod: &PodInfo, _node: &str) {
        drop(self.note("unreserve"));
    }

    fn permit(&self, _pod: &PodInfo, _node: &str) -> Permission {
        let mut waits = self.waits.lock();
        if *waits > 0 {
            *waits -= 1;
            return Permission::Wait(Duration::from_secs(60));
        }
        match self.note("permit") {
            Ok(()) => Permission::Allow,
            Err(error) => Permission::Deny(error.to_string()),
        }
    }

    fn settle<'a>(
        &'a self,
        _pod: &'a PodInfo,
        _node: &'a str,
    ) -> Option<BoxFuture<'a, Result<(), StepError>>> {
        let settles = self.settles.as_ref()?;
        drop(self.note("waits"));
        Some(Box::pin(async {
            settles.notified().await;
            self.note("settled")
        }))
    }

    fn bind<'a>(
        &'a self,
        _pod: &'a PodInfo,
        _node: &'a str,
    ) -> BoxFuture<'a, Option<Result<(), StepError>>> {
        Box::pin(async { (self.name == "b").then(|| self.note("bind")) })
    }
}

fn tell(fails_at: &'static str, waits: u32) -> (Profile, Story) {
    let story = Story::default();
    let scribe = |name, fails_at| -> (SharedPlugin, i64) {
        let waits = Mutex::new(waits);
        (
            Arc::new(Scribe {
                name,
                story: Arc::clone(&story),
                fails_at,
                waits,
                settles: None,
            }),
            1,
        )
    };
    let plugins = vec![scribe("a", ""), scribe("b", fails_at)];
    (Profile::new("test", plugins), story)
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_undone_in_reverse_order() {
    let pod = PodInfo::new(Arc::new(Pod::default()));
    let mut place = places().take().await;
    for (fails_at, last) in [
        ("reserve", "b reserve"),
        ("permit", "b permit"),
        ("bind", "b bind"),
    ] {
        let (profile, story) = tell(fails_at, 0);
        assert!(bind(&profile, &pod, "n", &mut place).await.is_err());
        let story = story.lock().join(", ");
        assert!(
            story.ends_with(&format!("{last}, b unreserve, a unreserve")),
            "{story}"
        );
    }
    let (profile, story) = tell("", 0);
    bind(&profile, &pod, "n", &mut place).await.unwrap();
    assert_eq!(
        story.lock().join(", "),
        "a reserve, b reserve, a permit, b permit, b bind"
    );
}

#[tokio::test(start_paused = true)]
async fn permit_may_wait_but_not_for_ever() {
    let pod = PodInfo::new(Arc::new(Pod::default()));
    let mut place = places().take().await;
    let (profile, _) = tell("", 3);
    bind(&profile, &pod, "n", &mut place).await.unwrap();
    let (profile, _) = tell("", 30);
    assert!(bind(&profile, &pod, "n", &mut place).await.is_err());
}

/// More pods wait than there are places, and one that waits for nobody is bound all the same.
#[tokio::test(start_paused = true)]
async fn who_waits_for_others_has_no_place_meanwhile() {
    let (places, settles) = (places(), Arc::new(tokio::sync::Notify::new()));
    let story = Story::default();
    let scribe = Scribe {
        name: "b",
        story: Arc::clone(&story),
        fails_at: "",
        waits: Mutex::new(0),
        settles: Some(Arc::clone(&settles)),
    };
    let slow = Profile::new("test", vec![(Arc::new(scribe) as SharedPlugin, 1)]);
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..2 * BINDINGS_MAX {
        let (slow, mut place) = (slow.clone(), places.take().await);
        waiting.spawn(async move {
            let pod = PodInfo::new(Arc::new(Pod::default()));
            bind(&slow, &pod, "n", &mut place).await
        });
    }
    let all_wait = || {
        let story = story.lock();
        story.iter().filter(|line| *line == "b waits").count() == 2 * BINDINGS_MAX
    };
    while !all_wait() {
        tokio::task::yield_now().await;
    }
    assert_eq!(places.free(), [BINDINGS_MAX, WAITS_MAX - 2 * BINDINGS_MAX]);
    let pod = PodInfo::new(Arc::new(Pod::default()));
    let (quick, _) = tell("", 0);
    bind(&quick, &pod, "n", &mut places.take().await)
        .await
        .unwrap();
    assert!(!story.lock().iter().any(|line| line == "b bind"));
    for _ in 0..2 * BINDINGS_MAX {
        settles.notify_one();
        tokio::task::yield_now().await;
    }
    while let Some(bound) = waiting.join_next().await {
        settles.notify_one();
        bound.unwrap().unwrap();
    }
    assert_eq!(places.free(), [BINDINGS_MAX, WAITS_MAX]);
}

#[tokio::test]
async fn too_many_who_wait_are_tried_again_later() {
    let places = Places {
        waiting: Arc::new(Semaphore::new(0)),
        ..places()
    };
    let pod = PodInfo::new(Arc::new(Pod::default()));
    let (profile, story) = tell("", 1);
    let refused = bind(&profile, &pod, "n", &mut places.take().await).await;
    assert_eq!(
        refused.unwrap_err().told(),
        "waiting on permit for pod: too many pods wait"
    );
    assert!(story.lock().last().unwrap().ends_with("a unreserve"));
}

#[tokio::test]
async fn nobody_is_waited_for_once_the_scheduler_stops() {
    let stop = CancellationToken::new();
    let places = Places::new(stop.clone());
    let story = Story::default();
    let scribe = Scribe {
        name: "b",
        story: Arc::clone(&story),
        fails_at: "",
        waits: Mutex::new(0),
        settles: Some(Arc::default()),
    };
    let slow = Profile::new("test", vec![(Arc::new(scribe) as SharedPlugin, 1)]);
    let pod = PodInfo::new(Arc::new(Pod::default()));
    let mut place = places.take().await;
    let (refused, ()) = tokio::join!(bind(&slow, &pod, "n", &mut place), async {
        while !story.lock().iter().any(|line| line == "b waits") {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    });
    assert_eq!(
        refused.unwrap_err().told(),
        r#"running PreBind plugin "b": the scheduler stops"#
    );
    assert_eq!(story.lock().last().unwrap(), "b unreserve");
    drop(place);
    assert_eq!(places.free(), [BINDINGS_MAX, WAITS_MAX]);
}

/// A pod that waits makes room at once, and one that is being bound is beyond that.
#[tokio::test(start_paused = true)]
async fn a_binding_is_called_off_while_it_waits() {
    let pod = PodInfo::new(Arc::new(Pod::default()));
    let places = Places::new(CancellationToken::new());
    let mut place = places.take().await;
    assert!(!places.call_off(&pod.uid), "it has not begun");

    place.begin(&pod);
    let (profile, story) = tell("", 3);
    let bound = bind(&profile, &pod, "n", &mut place);
    let refused = async {
        tokio::task::yield_now().await;
        assert!(places.call_off(&pod.uid));
    };
    let (bound, ()) = tokio::join!(bound, refused);
    assert_eq!(
        bound.unwrap_err().told(),
        "waiting on permit for pod: preempted"
    );
    assert!(story.lock().last().unwrap().ends_with("a unreserve"));

    place.begin(&pod);
    assert!(places.call_off(&pod.uid), "before its first step");
    let (profile, story) = tell("", 0);
    assert!(bind(&profile, &pod, "n", &mut place).await.is_err());
    assert!(!story.lock().iter().any(|line| line == "b bind"));

    place.begin(&pod);
    bind(&profile, &pod, "n", &mut place).await.unwrap();
    assert!(!places.call_off(&pod.uid), "it is bound");
}
