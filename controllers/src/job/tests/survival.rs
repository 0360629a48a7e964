//! The loop dies at any point of any pass, again and again, while pods succeed and fail: in the
//! end each pod is counted exactly once, and no pod too many was made.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Case {
    indexed: bool,
    completions: i32,
    parallelism: i32,
    /// Which pod finishes and how, and where the pass after it dies.
    steps: Vec<(u8, bool, u8)>,
}

fn case() -> impl Strategy<Value = Case> {
    let steps = prop::collection::vec((any::<u8>(), any::<bool>(), 0..6_u8), 10..120);
    (any::<bool>(), 1..8_i32, 1..5_i32, steps).prop_map(
        |(indexed, completions, parallelism, steps)| Case {
            indexed,
            completions,
            parallelism,
            steps,
        },
    )
}

struct World {
    job: Job,
    pods: Vec<Arc<Pod>>,
    made: usize,
    succeeded: i32,
    failed: i32,
}

impl World {
    fn new(case: &Case) -> Self {
        let mode = if case.indexed { "indexed" } else { "" };
        let fixture = parse(&format!(
            "job completions={} parallelism={} backoff=9999 {mode}",
            case.completions, case.parallelism
        ));
        Self {
            job: serde_json::from_value(fixture.job).unwrap(),
            pods: Vec::new(),
            made: 0,
            succeeded: 0,
            failed: 0,
        }
    }

    /// One of the pods at work ends, long ago for the back-off.
    fn end_one(&mut self, which: u8, succeeds: bool) {
        let active: Vec<usize> = (0..self.pods.len())
            .filter(|slot| crate::pods::is_active(&self.pods[*slot]))
            .collect();
        if active.is_empty() {
            return;
        }
        let slot = active[usize::from(which) % active.len()];
        let pod = Arc::make_mut(&mut self.pods[slot]);
        let (phase, code) = if succeeds {
            self.succeeded += 1;
            ("Succeeded", 0)
        } else {
            self.failed += 1;
            ("Failed", 1)
        };
        let status = json!({"phase": phase, "containerStatuses": [{
            "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "finishedAt": at(900_000)}},
        }]});
        pod.status = serde_json::from_value(status).unwrap();
    }

    fn release(&mut self, uid: &str) {
        let same = |pod: &&mut Arc<Pod>| pod.metadata.uid.as_deref() == Some(uid);
        if let Some(pod) = self.pods.iter_mut().find(same) {
            Arc::make_mut(pod).metadata.finalizers = None;
        }
    }

    /// A pass that dies at a point; the last one is its end. Nothing is remembered.
    fn pass(&mut self, dies_at: u8) {
        let job = self.job.clone();
        if spec::is_finished(&job) {
            return;
        }
        let spec = Spec::of(&job).unwrap();
        let fixture = Fixture {
            job: Value::Null,
            pods: self.pods.clone(),
            satisfied: true,
            backoff: Record::default(),
        };
        let (mut pass, action) = plan(observe(&fixture, &job, &spec), now());
        if dies_at == 0 {
            return;
        }
        self.act(&pass, &action);
        if dies_at == 1 {
            return;
        }
        pass.acted(&action, granted(&action), now());
        let mut counting = pass.count_finished(now());
        self.job.status = Some(track::normalized(pass.status.clone()));
        if dies_at == 2 {
            return;
        }
        let half = counting.release.len() / 2;
        for (number, pod) in counting.release.iter().enumerate() {
            if dies_at == 3 && number == half {
                return;
            }
            let uid = seen::uid(pod);
            counting.tracked.remove(uid);
            self.release(uid);
        }
        if dies_at == 4 {
            return;
        }
        let mut status = self.job.status.clone().unwrap();
        track::settle(&mut status, &counting.tracked);
        track::finish(&mut status, pass.end.as_ref(), pass.terminating, now());
        self.job.status = Some(track::normalized(status));
    }

    fn act(&mut self, pass: &Pass<'_>, action: &Action) {
        match action {
            Action::Create(indexes) => {
                for index in indexes {
                    self.made += 1;
                    let mut pod = template::pod(pass, *index);
                    pod.metadata.uid = Some(format!("uid-{}", self.made));
                    pod.metadata.name = Some(format!("pod-{}", self.made));
                    self.pods.push(Arc::new(pod));
                }
            }
            Action::End(gone) => assert!(gone.is_empty(), "no pod is stopped here: {gone:?}"),
            Action::Remove(gone) => panic!("a pod too many: {gone:?}"),
            _ => {}
        }
    }

    fn status(&self) -> k8s_openapi::api::batch::v1::JobStatus {
        self.job.status.clone().unwrap_or_default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn each_pod_is_counted_once(case in case()) {
        let mut world = World::new(&case);
        for (which, succeeds, dies_at) in &case.steps {
            world.pass(*dies_at);
            world.end_one(*which, *succeeds);
            let status = world.status();
            prop_assert!(status.succeeded.unwrap_or(0) <= world.succeeded);
            prop_assert!(status.failed.unwrap_or(0) <= world.failed);
        }
        // Then it is left in peace.
        for _ in 0..4 * case.completions {
            world.pass(u8::MAX);
            world.end_one(0, true);
        }
        world.pass(u8::MAX);
        let status = world.status();
        prop_assert!(spec::is_finished(&world.job), "{:?}", status);
        prop_assert_eq!(status.failed.unwrap_or(0), world.failed);
        prop_assert_eq!(status.succeeded.unwrap_or(0), case.completions);
        prop_assert_eq!(world.succeeded, case.completions, "none too many was run");
        prop_assert!(world.pods.iter().all(|pod| !seen::has_finalizer(pod)));
        if case.indexed {
            let all = intervals::Intervals::default().with(0..case.completions).to_string();
            prop_assert_eq!(status.completed_indexes, Some(all));
        }
    }
}
