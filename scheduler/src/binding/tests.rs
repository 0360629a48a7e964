//! Extension points around a bind are called in order and undone in reverse.

use super::*;
use crate::framework::{Plugin, Points};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use std::sync::Arc;

type Story = Arc<Mutex<Vec<String>>>;

/// Writes down what it is asked, and does as its script says.
#[derive(Debug)]
struct Scribe {
    name: &'static str,
    story: Story,
    fails_at: &'static str,
    waits: Mutex<u32>,
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
    for (fails_at, last) in [
        ("reserve", "b reserve"),
        ("permit", "b permit"),
        ("bind", "b bind"),
    ] {
        let (profile, story) = tell(fails_at, 0);
        assert!(bind(&profile, &pod, "n").await.is_err());
        let story = story.lock().join(", ");
        assert!(
            story.ends_with(&format!("{last}, b unreserve, a unreserve")),
            "{story}"
        );
    }
    let (profile, story) = tell("", 0);
    bind(&profile, &pod, "n").await.unwrap();
    assert_eq!(
        story.lock().join(", "),
        "a reserve, b reserve, a permit, b permit, b bind"
    );
}

#[tokio::test(start_paused = true)]
async fn permit_may_wait_but_not_for_ever() {
    let pod = PodInfo::new(Arc::new(Pod::default()));
    let (profile, _) = tell("", 3);
    bind(&profile, &pod, "n").await.unwrap();
    let (profile, _) = tell("", 30);
    assert!(bind(&profile, &pod, "n").await.is_err());
}
