//! Whole rollouts and scalings against simulated nodes, with passes that are cut off anywhere:
//! the promises hold at every step, and the end is reached.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Case {
    parallel: bool,
    replicas: i32,
    start: i32,
    /// How many pods there are at first, at the old revision.
    before: i32,
    /// How many steps each pass gets to do, and the ordinal that gets on after it.
    luck: Vec<(usize, i32)>,
}

fn case() -> impl Strategy<Value = Case> {
    let luck = prop::collection::vec((0..4_usize, 0..9_i32), 1..40);
    (any::<bool>(), 0..6_i32, 0..3_i32, 0..7_i32, luck).prop_map(
        |(parallel, replicas, start, before, luck)| Case {
            parallel,
            replicas,
            start,
            before,
            luck,
        },
    )
}

fn start(case: &Case) -> Fixture {
    let parallel = if case.parallel { "parallel" } else { "" };
    let (replicas, start) = (case.replicas, case.start);
    let mut text = format!("sts replicas={replicas} start={start} {parallel}");
    for ordinal in 0..case.before {
        text += &format!("\npod web-{ordinal} old ready");
    }
    parse(&text)
}

fn is_available(pod: &Pod) -> bool {
    crate::pods::is_ready(pod) && !crate::pods::is_deleting(pod)
}

/// Does the first so many steps; true when any of them was to be done.
fn apply(fixture: &mut Fixture, plan: Plan, steps_max: usize) -> bool {
    let outdated = plan.outdated.into_iter().map(Step::Delete);
    let steps: Vec<Step> = plan.phases.into_iter().flatten().chain(outdated).collect();
    let moved = !steps.is_empty();
    for step in steps.into_iter().take(steps_max) {
        match step {
            Step::Create { pod, .. } => {
                let words = ["pending", identity::revision_of(&pod)];
                fixture.pods.push(super::pod(name(&*pod), &words, &[]));
            }
            Step::Delete(gone) => {
                for pod in &mut fixture.pods {
                    if pod.metadata.uid == gone.metadata.uid {
                        let meta = &mut Arc::make_mut(pod).metadata;
                        meta.deletion_timestamp =
                            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
                    }
                }
            }
            Step::Keep { .. } => {}
        }
    }
    moved
}

/// The pod of this ordinal comes up, or is gone; true when there was anything to get on with.
fn get_on(fixture: &mut Fixture, ordinal: i32) -> bool {
    let wanted = format!("web-{ordinal}");
    let Some(at) = fixture.pods.iter().position(|pod| name(&**pod) == wanted) else {
        return false;
    };
    let pod = fixture.pods[at].clone();
    if crate::pods::is_deleting(&pod) {
        fixture.pods.remove(at);
        return true;
    }
    let words = ["ready", identity::revision_of(&pod)];
    fixture.pods[at] = super::pod(&wanted, &words, &[]);
    !is_available(&pod)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn every_change_keeps_its_order_and_ends(case in case()) {
        let mut fixture = start(&case);
        for step in 0..400 {
            let (_, plan) = plan_of(&fixture);
            let luck = case.luck.get(step).copied();
            let moved = apply(&mut fixture, plan, luck.map_or(usize::MAX, |(steps, _)| steps));
            if !case.parallel {
                let away = fixture.pods.iter().filter(|pod| !is_available(pod)).count();
                prop_assert!(away <= 1, "more than one is on its way: {:?}", fixture.pods);
            }
            let got_on = match luck {
                Some((_, ordinal)) => get_on(&mut fixture, ordinal),
                None => (0..20).fold(false, |any, ordinal| get_on(&mut fixture, ordinal) | any),
            };
            if !moved && !got_on && luck.is_none() {
                break;
            }
        }
        let mut names: Vec<String> = fixture.pods.iter().map(|pod| name(&**pod).into()).collect();
        names.sort();
        let wanted = (case.start..case.start + case.replicas).map(|n| format!("web-{n}"));
        prop_assert_eq!(names, wanted.collect::<Vec<_>>());
        prop_assert!(fixture.pods.iter().all(|pod| identity::revision_of(pod) == "new"));
        let (_, plan) = plan_of(&fixture);
        let mut status = plan.status;
        status::complete(&mut status, fixture.set.spec.as_ref().unwrap());
        prop_assert_eq!(status.current_revision.as_deref(), Some("new"));
    }
}
