//! Devices that several claims may have, and devices that share counters.

use super::*;

fn shared(policy: Value) -> Vec<Value> {
    let mut memory = json!({"value": "8Gi"});
    if !policy.is_null() {
        memory["requestPolicy"] = policy;
    }
    let device =
        json!([{"name": "x", "allowMultipleAllocations": true, "capacity": {"memory": memory}}]);
    vec![slice("p", device, json!({}))]
}

fn wanting(memory: &str) -> Value {
    let capacity = json!({"requests": {"memory": memory}});
    claim(
        "c",
        json!([ask("r", json!({"capacity": capacity}))]),
        json!({}),
    )
}

fn consumed(world: &World) -> String {
    let results = match world.results() {
        Err(error) => return error.to_string(),
        Ok(results) => results,
    };
    let each = results.iter().flat_map(|one| {
        let devices = one.devices.as_ref().unwrap();
        let each = devices.results.iter().flatten();
        each.map(|it| {
            let consumed = it.consumed_capacity.as_ref().unwrap();
            let share = it.share_id.as_deref().unwrap();
            format!("{} {share} {}", it.device, consumed["memory"].0)
        })
    });
    each.collect::<Vec<_>>().join("; ")
}

#[test]
fn shares_of_a_device_are_no_more_than_it_has() {
    let three = |memory| vec![wanting(memory), wanting(memory), wanting(memory)];
    let world = World::new(shared(json!(null)), three("2Gi"));
    assert_eq!(
        consumed(&world),
        "x share-1 2Gi; x share-2 2Gi; x share-3 2Gi"
    );
    let world = World::new(shared(json!(null)), three("3Gi"));
    assert_eq!(consumed(&world), "cannot allocate all claims");
    let others = json!({"shareID": "s", "consumedCapacity": {"memory": "7Gi"}});
    let world = World::new(shared(json!(null)), vec![wanting("2Gi")]).with("p", "x", others);
    assert_eq!(consumed(&world), "cannot allocate all claims");
    let others = json!({"shareID": "s", "consumedCapacity": {"memory": "6Gi"}});
    let world = World::new(shared(json!(null)), vec![wanting("2Gi")]).with("p", "x", others);
    assert_eq!(consumed(&world), "x share-1 2Gi");
}

#[test]
fn who_asks_for_nothing_takes_the_default_or_all() {
    let one = || vec![claim("c", json!([ask("r", json!({}))]), json!({}))];
    let world = World::new(shared(json!(null)), one());
    assert_eq!(consumed(&world), "x share-1 8Gi");
    let world = World::new(shared(json!({"default": "1Gi"})), one());
    assert_eq!(consumed(&world), "x share-1 1Gi");
}

#[test]
fn requests_are_rounded_up_by_the_policy() {
    let said =
        |policy: Value, memory: &str| consumed(&World::new(shared(policy), vec![wanting(memory)]));
    let range =
        || json!({"default": "1Gi", "validRange": {"min": "1Gi", "max": "4Gi", "step": "1Gi"}});
    assert_eq!(said(range(), "512Mi"), "x share-1 1Gi");
    assert_eq!(said(range(), "1500Mi"), "x share-1 2Gi");
    assert_eq!(said(range(), "4Gi"), "x share-1 4Gi");
    assert_eq!(said(range(), "5Gi"), "cannot allocate all claims");
    let values = || json!({"default": "1Gi", "validValues": ["1Gi", "4Gi"]});
    assert_eq!(said(values(), "2Gi"), "x share-1 4Gi");
    assert_eq!(said(values(), "5Gi"), "cannot allocate all claims");
}

#[test]
fn a_device_for_one_must_have_as_much_as_is_asked_for() {
    let device = json!([{"name": "x", "capacity": {"memory": {"value": "8Gi"}}}]);
    let said = |capacity: Value| {
        let request = ask("r", json!({"capacity": {"requests": capacity}}));
        let one = claim("c", json!([request]), json!({}));
        World::new(vec![slice("p", device.clone(), json!({}))], vec![one]).said()
    };
    assert_eq!(said(json!({"memory": "8Gi"})), "r=p/x");
    assert_eq!(said(json!({"memory": "9Gi"})), "cannot allocate all claims");
    assert_eq!(said(json!({"cores": "1"})), "cannot allocate all claims");
}

/// A GPU of 8Gi, whole or in halves.
fn partitions() -> Vec<Value> {
    let part = |name: &str, memory: &str| {
        json!({"name": name, "consumesCounters": [
            {"counterSet": "gpu", "counters": {"memory": {"value": memory}}}]})
    };
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 2});
    let counters = json!([{"name": "gpu", "counters": {"memory": {"value": "8Gi"}}}]);
    vec![
        slice(
            "counters",
            json!([]),
            json!({"pool": pool, "sharedCounters": counters}),
        ),
        slice(
            "devices",
            json!([
                part("whole", "8Gi"),
                part("left", "4Gi"),
                part("right", "4Gi")
            ]),
            json!({"pool": pool}),
        ),
    ]
}

#[test]
fn parts_of_a_device_and_the_whole_keep_each_other_away() {
    let said = |count: i64| {
        let one = claim("c", json!([ask("r", json!({"count": count}))]), json!({}));
        World::new(partitions(), vec![one])
    };
    assert_eq!(said(1).said(), "r=p/whole");
    assert_eq!(said(2).said(), "r=p/left r=p/right");
    assert_eq!(said(3).said(), "cannot allocate all claims");
    assert_eq!(said(1).with("p", "left", json!({})).said(), "r=p/right");
    assert_eq!(
        said(1).with("p", "whole", json!({})).said(),
        "cannot allocate all claims"
    );
}

#[test]
fn counters_that_are_not_there_make_a_pool_invalid() {
    let mut slices = partitions();
    slices[1]["spec"]["devices"][0]["consumesCounters"][0]["counterSet"] = "other".into();
    let one = claim("c", json!([ask("r", json!({}))]), json!({}));
    assert_eq!(
        World::new(slices, vec![one]).said(),
        "invalid resource pools were encountered"
    );
}
