//! Whole rollouts against a simulated ReplicaSet loop and pods that become available in any
//! order: the limits hold at every step, and the end is reached.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Case {
    replicas: i32,
    surge: String,
    unavailable: String,
    recreate: bool,
    /// Sizes of the sets of earlier, unfinished rollouts.
    old: Vec<i32>,
    /// Which sets' pods get on in each step.
    luck: Vec<bool>,
}

fn limit() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..4_u8).prop_map(|n| n.to_string()),
        (0..=100_u8).prop_map(|n| format!("{n}%"))
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let old = prop::collection::vec(0..8_i32, 0..4);
    let luck = prop::collection::vec(any::<bool>(), 1..40);
    (0..12_i32, limit(), limit(), any::<bool>(), old, luck).prop_map(
        |(replicas, surge, unavailable, recreate, old, luck)| Case {
            replicas,
            surge,
            unavailable,
            recreate,
            old,
            luck,
        },
    )
}

fn start(case: &Case) -> plan::Observed {
    let strategy = if case.recreate { "recreate" } else { "" };
    let mut text = format!(
        "deployment replicas={} template=new surge={} unavailable={} {strategy}",
        case.replicas, case.surge, case.unavailable,
    );
    for (number, size) in case.old.iter().enumerate() {
        write!(text, "\nrs v{number} size={size} revision={}", number + 1).unwrap();
    }
    parse(&text)
}

/// Does what the server and the ReplicaSets' loop would: pods that are not available go first.
fn apply(observed: &mut plan::Observed, plan: plan::Plan, made: &mut i64) -> bool {
    let before = observed.deployment.status.clone();
    let mut moved = plan.create.is_some() || !plan.update.is_empty() || !plan.delete.is_empty();
    observed.sets.retain(|set| {
        !plan
            .delete
            .iter()
            .any(|gone| gone.metadata.uid == set.metadata.uid)
    });
    for (old, new) in plan.update {
        let slot = observed
            .sets
            .iter_mut()
            .find(|set| set.metadata.uid == old.metadata.uid);
        *slot.unwrap() = Arc::new(new);
    }
    if let Some(mut set) = plan.create {
        *made += 1;
        set.metadata.uid = Some(format!("made-{made}"));
        let time = Timestamp::from_second(NOW_S + *made).unwrap();
        set.metadata.creation_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
        observed.sets.push(Arc::new(set));
    }
    for set in &mut observed.sets {
        let set = Arc::make_mut(set);
        let size = sets::size(set);
        let status = set.status.get_or_insert_default();
        moved |= status.replicas != size;
        status.replicas = size;
        status.available_replicas = status.available_replicas.map(|count| count.min(size));
        status.observed_generation = Some(1);
    }
    moved |= plan.deployment.status != before;
    observed.deployment = Arc::new(plan.deployment);
    moved
}

/// True when any pod became available.
fn get_on(observed: &mut plan::Observed, lucky: impl Fn(usize) -> bool) -> bool {
    let before = available(observed);
    for (number, set) in observed.sets.iter_mut().enumerate() {
        let set = Arc::make_mut(set);
        let size = sets::size(set);
        if lucky(number) {
            set.status.get_or_insert_default().available_replicas = Some(size);
        }
    }
    available(observed) != before
}

fn available(observed: &plan::Observed) -> i32 {
    observed.sets.iter().map(|set| status::available(set)).sum()
}

fn total(observed: &plan::Observed) -> i32 {
    observed.sets.iter().map(|set| sets::size(set)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn every_rollout_keeps_its_limits_and_ends(case in case()) {
        let mut observed = start(&case);
        let now = now();
        let mut made = 0;
        let most = (case.replicas + spec::max_surge(&observed.deployment)).max(total(&observed));
        let least = case.replicas - spec::max_unavailable(&observed.deployment);
        for step in 0..400 {
            let before = available(&observed);
            let plan = plan::plan(&observed, now);
            let moved = apply(&mut observed, plan, &mut made);
            prop_assert!(total(&observed) <= most, "too many pods: {observed:?}");
            // Recreate gives no such promise.
            if !case.recreate && before >= least {
                prop_assert!(available(&observed) >= least, "too few available");
            }
            let luck = case.luck.get(step).copied();
            let lucky = |number| luck.is_none_or(|luck| luck ^ (number % 2 == 0));
            let got_on = get_on(&mut observed, lucky);
            if !moved && !got_on && luck.is_none() {
                break;
            }
        }
        let status = observed.deployment.status.clone().unwrap_or_default();
        prop_assert!(rollout::is_complete(&observed.deployment, &status), "{status:?}");
        let sizes: i32 = total(&observed);
        prop_assert_eq!(sizes, case.replicas);
        prop_assert_eq!(made, 1, "one template is one set");
    }
}
