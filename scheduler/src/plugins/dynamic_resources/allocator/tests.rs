//! Slices, classes and claims in; the devices that the claims get on node `a`, out.
//!
//! The scenarios are those that upstream's allocator is tested with, said anew.

use super::*;
use crate::node_info::NodeInfo;
use crate::plugins::dynamic_resources::expressions::Expressions;
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceSelector, ResourceClaim, ResourceSlice,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::cell::Cell;
use std::sync::Arc;

mod capacities; // Shares, capacities and counters.

fn read<K: DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// Of driver `d` and node `a`, alone in its pool; `more` overrides the spec.
fn slice(name: &str, devices: Value, more: Value) -> Value {
    let mut spec = json!({"driver": "d", "nodeName": "a", "devices": devices,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
        if value.is_null() {
            spec.as_object_mut().unwrap().remove(key);
        }
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn device(name: &str, attributes: Value) -> Value {
    json!({"name": name, "attributes": attributes})
}

fn plain(names: &[&str]) -> Value {
    names.iter().map(|name| device(name, json!({}))).collect()
}

fn ask(name: &str, more: Value) -> Value {
    let mut exactly = json!({"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1});
    for (key, value) in more.as_object().unwrap() {
        exactly[key] = value.clone();
    }
    json!({"name": name, "exactly": exactly})
}

fn claim(name: &str, requests: Value, more: Value) -> Value {
    let mut devices = json!({"requests": requests});
    for (key, value) in more.as_object().unwrap() {
        devices[key] = value.clone();
    }
    let meta = json!({"name": name, "namespace": "default", "uid": name});
    json!({"metadata": meta, "spec": {"devices": devices}})
}

fn selectors(expression: &str) -> Value {
    json!([{"cel": {"expression": expression}}])
}

struct World {
    slices: Vec<Value>,
    claims: Vec<Value>,
    /// What others have.
    taken: Vec<Value>,
}

impl World {
    fn new(slices: Vec<Value>, claims: Vec<Value>) -> Self {
        Self {
            slices,
            claims,
            taken: Vec::new(),
        }
    }

    fn with(mut self, pool: &str, device: &str, more: Value) -> Self {
        let mut one = json!({"request": "r", "driver": "d", "pool": pool, "device": device});
        for (key, value) in more.as_object().unwrap() {
            one[key] = value.clone();
        }
        self.taken.push(one);
        self
    }

    fn results(&self) -> Result<Vec<AllocationResult>, AllocateError> {
        self.results_unless(&|| false)
    }

    fn results_unless(
        &self,
        is_late: &dyn Fn() -> bool,
    ) -> Result<Vec<AllocationResult>, AllocateError> {
        let classes = json!([
            {"metadata": {"name": "any"}, "spec": {}},
            {"metadata": {"name": "big"}, "spec": {
                "selectors": selectors("device.attributes['d'].size == 'big'"),
                "config": [{"opaque": {"driver": "d", "parameters": {"of": "class"}}}]}},
        ]);
        let classes: Vec<k8s_openapi::api::resource::v1::DeviceClass> =
            serde_json::from_value(classes).unwrap();
        let classes = classes.into_iter().map(|class| {
            let name = class.metadata.name.clone().unwrap();
            (name, Arc::new(class))
        });
        let taken: AllocationResult =
            serde_json::from_value(json!({"devices": {"results": self.taken}})).unwrap();
        let mut slices: Vec<Arc<ResourceSlice>> = self.slices.iter().cloned().map(read).collect();
        slices.sort_by_key(|slice| slice.metadata.name.clone());
        let claims: Vec<Arc<ResourceClaim>> = self.claims.iter().cloned().map(read).collect();
        let stock = Stock::new(slices, classes.collect(), [taken].iter());
        let all = json!([
            self.claims,
            selectors("device.attributes['d'].size == 'big'")
        ]);
        let mut found: Vec<DeviceSelector> = Vec::new();
        expressions(&all, &mut found);
        let compiled = Expressions::default().compile(found.iter());
        let node = json!({"metadata": {"name": "a", "labels": {"zone": "east"}}});
        let node = NodeInfo::of(&serde_json::from_value(node).unwrap());
        let shares = Cell::new(0);
        let share_id = || {
            shares.set(shares.get() + 1);
            format!("share-{}", shares.get())
        };
        let tools = Tools {
            share_id: &share_id,
            is_late,
        };
        allocate(&stock, &compiled, &claims, &node, tools)
    }

    /// `r=pool/device ...`, a claim after the other, or why not.
    fn said(&self) -> String {
        match self.results() {
            Err(error) => error.to_string(),
            Ok(results) => {
                let each = results.iter().map(|one| {
                    let devices = one.devices.as_ref().unwrap();
                    let each = devices.results.iter().flatten();
                    let each = each.map(|it| format!("{}={}/{}", it.request, it.pool, it.device));
                    each.collect::<Vec<_>>().join(" ")
                });
                each.collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// Every selector that is somewhere in there.
fn expressions(value: &Value, found: &mut Vec<DeviceSelector>) {
    if let Ok(selector) = serde_json::from_value::<DeviceSelector>(value.clone())
        && selector.cel.is_some()
    {
        found.push(selector);
        return;
    }
    match value {
        Value::Array(all) => all.iter().for_each(|one| expressions(one, found)),
        Value::Object(all) => all.values().for_each(|one| expressions(one, found)),
        _ => {}
    }
}

fn sizes() -> Vec<Value> {
    vec![slice(
        "p",
        json!([
            device(
                "s1",
                json!({"size": {"string": "small"}, "slot": {"int": 1}})
            ),
            device("b1", json!({"size": {"string": "big"}, "slot": {"int": 1}})),
            device("b2", json!({"size": {"string": "big"}, "slot": {"int": 2}})),
        ]),
        json!({}),
    )]
}

#[test]
fn the_first_device_that_class_and_request_select_is_taken() {
    let said =
        |request: Value| World::new(sizes(), vec![claim("c", json!([request]), json!({}))]).said();
    assert_eq!(said(ask("r", json!({}))), "r=p/s1");
    assert_eq!(said(ask("r", json!({"deviceClassName": "big"}))), "r=p/b1");
    let second = json!({"deviceClassName": "big",
        "selectors": selectors("device.attributes['d'].slot == 2")});
    assert_eq!(said(ask("r", second)), "r=p/b2");
    assert_eq!(said(ask("r", json!({"count": 3}))), "r=p/s1 r=p/b1 r=p/b2");
    assert_eq!(
        said(ask("r", json!({"count": 4}))),
        "cannot allocate all claims"
    );
    let never = json!({"selectors": selectors("device.driver == 'other'")});
    assert_eq!(said(ask("r", never)), "cannot allocate all claims");
}

#[test]
fn what_others_have_is_not_taken() {
    let one = || vec![claim("c", json!([ask("r", json!({}))]), json!({}))];
    let world = World::new(sizes(), one());
    assert_eq!(world.with("p", "s1", json!({})).said(), "r=p/b1");
    let world = World::new(sizes(), one()).with("p", "s1", json!({"adminAccess": true}));
    assert_eq!(
        world.said(),
        "r=p/s1",
        "who looks after a device does not have it"
    );
    let admin = claim(
        "c",
        json!([ask("r", json!({"adminAccess": true}))]),
        json!({}),
    );
    let world = World::new(sizes(), vec![admin]).with("p", "s1", json!({}));
    assert_eq!(world.said(), "r=p/s1");
}

#[test]
fn two_claims_of_a_pod_get_different_devices_even_if_the_first_must_give_way() {
    let big = || json!({"deviceClassName": "big"});
    let claims = vec![
        claim("one", json!([ask("r", big())]), json!({})),
        claim(
            "two",
            json!([ask(
                "r",
                json!({"selectors": selectors("device.attributes['d'].slot == 1 && device.attributes['d'].size == 'big'")})
            )]),
            json!({}),
        ),
    ];
    assert_eq!(World::new(sizes(), claims).said(), "r=p/b2; r=p/b1");
}

#[test]
fn all_devices_are_taken_or_none() {
    let all = || json!({"allocationMode": "All", "deviceClassName": "big"});
    let one = || vec![claim("c", json!([ask("r", all())]), json!({}))];
    assert_eq!(World::new(sizes(), one()).said(), "r=p/b1 r=p/b2");
    let world = World::new(sizes(), one()).with("p", "b2", json!({}));
    assert_eq!(world.said(), "cannot allocate all claims");
    let world = World::new(vec![slice("p", plain(&[]), json!({}))], one());
    assert_eq!(
        world.said(),
        "cannot allocate all claims",
        "there must be one"
    );
    let half = json!({"pool": {"name": "p", "generation": 1, "resourceSliceCount": 2}});
    let world = World::new(vec![slice("p", plain(&["x"]), half)], one());
    assert_eq!(
        world.said(),
        "claim default/c, request r: asks for all devices, but resource pool d/p is currently \
         being updated"
    );
}

#[test]
fn the_first_alternative_that_can_be_met_is_chosen() {
    let alternatives = |count: i64| {
        json!([{"name": "r", "firstAvailable": [
            {"name": "many", "deviceClassName": "big", "count": count},
            {"name": "one", "deviceClassName": "any", "count": 1}]}])
    };
    let said = |count| World::new(sizes(), vec![claim("c", alternatives(count), json!({}))]).said();
    assert_eq!(said(2), "r/many=p/b1 r/many=p/b2");
    assert_eq!(said(3), "r/one=p/s1");
    assert_eq!(said(33), "r/one=p/s1", "more than a claim may have");
}

#[test]
fn no_claim_has_more_devices_than_one_may() {
    let said = |count| {
        let many = claim("c", json!([ask("r", json!({"count": count}))]), json!({}));
        World::new(sizes(), vec![many]).said()
    };
    assert_eq!(said(32), "cannot allocate all claims");
    assert_eq!(
        said(33),
        "claim default/c: number of requested devices 33 exceeds the claim limit of 32"
    );
}

#[test]
fn constraints_tie_devices_together_or_keep_them_apart() {
    let two = || json!([ask("r", json!({"count": 2}))]);
    let said = |constraint: Value| {
        let more = json!({"constraints": [constraint]});
        World::new(sizes(), vec![claim("c", two(), more)]).said()
    };
    assert_eq!(said(json!({"matchAttribute": "d/size"})), "r=p/b1 r=p/b2");
    assert_eq!(said(json!({"matchAttribute": "d/slot"})), "r=p/s1 r=p/b1");
    assert_eq!(
        said(json!({"distinctAttribute": "d/slot"})),
        "r=p/s1 r=p/b2"
    );
    assert_eq!(
        said(json!({"matchAttribute": "d/none"})),
        "cannot allocate all claims"
    );
    assert_eq!(
        said(json!({"matchAttribute": "d/none", "requests": ["other"]})),
        "r=p/s1 r=p/b1",
        "it is for another request"
    );
    let all = claim(
        "c",
        json!([ask("r", json!({"allocationMode": "All"}))]),
        json!({"constraints": [{"matchAttribute": "d/size"}]}),
    );
    assert_eq!(
        World::new(sizes(), vec![all]).said(),
        "claim default/c, request r: cannot add device d/p/b1 because a claim constraint would \
         not be satisfied"
    );
}

#[test]
fn a_pool_is_what_was_published_last_and_is_whole() {
    let one = || vec![claim("c", json!([ask("r", json!({}))]), json!({}))];
    let pool = |generation: i64, count: i64| json!({"pool": {"name": "p", "generation": generation, "resourceSliceCount": count}});
    let world = World::new(
        vec![
            slice("old", plain(&["x"]), pool(1, 1)),
            slice("new", plain(&["y"]), pool(2, 1)),
        ],
        one(),
    );
    assert_eq!(world.said(), "r=p/y");
    let world = World::new(vec![slice("new", plain(&["y"]), pool(2, 2))], one());
    assert_eq!(
        world.said(),
        "cannot allocate all claims",
        "a slice is missing"
    );
    let mut elsewhere = pool(2, 2);
    elsewhere["nodeName"] = "b".into();
    let slices = vec![
        slice("here", plain(&["y"]), pool(2, 2)),
        slice("there", plain(&["z"]), elsewhere.clone()),
    ];
    assert_eq!(World::new(slices, one()).said(), "r=p/y");
    elsewhere["pool"]["generation"] = 3.into();
    let slices = vec![
        slice("here", plain(&["y"]), pool(2, 2)),
        slice("there", plain(&["z"]), elsewhere),
    ];
    assert_eq!(
        World::new(slices, one()).said(),
        "cannot allocate all claims",
        "the pool has moved"
    );
    let twice = vec![slice("p", plain(&["x", "x"]), json!({}))];
    assert_eq!(
        World::new(twice, one()).said(),
        "invalid resource pools were encountered"
    );
}

#[test]
fn devices_are_for_the_nodes_that_slices_or_they_themselves_name() {
    let one = || vec![claim("c", json!([ask("r", json!({}))]), json!({}))];
    let zone = |zone: &str| {
        json!({"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "zone", "operator": "In", "values": [zone]}]}]})
    };
    let said = |more: Value| World::new(vec![slice("p", plain(&["x"]), more)], one()).said();
    let nothing = "cannot allocate all claims";
    assert_eq!(said(json!({"nodeName": "b"})), nothing);
    assert_eq!(said(json!({"nodeName": null, "allNodes": true})), "r=p/x");
    assert_eq!(
        said(json!({"nodeName": null, "nodeSelector": zone("east")})),
        "r=p/x"
    );
    assert_eq!(
        said(json!({"nodeName": null, "nodeSelector": zone("west")})),
        nothing
    );
    let each =
        json!([{"name": "far", "nodeName": "b"}, {"name": "near", "nodeSelector": zone("east")}]);
    let own = json!({"nodeName": null, "perDeviceNodeSelection": true});
    assert_eq!(
        World::new(vec![slice("p", each, own)], one()).said(),
        "r=p/near"
    );
}

#[test]
fn results_say_where_devices_can_be_used() {
    let selector = |more: Value| {
        let one = claim("c", json!([ask("r", json!({}))]), json!({}));
        let world = World::new(vec![slice("p", plain(&["x"]), more)], vec![one]);
        serde_json::to_value(&world.results().unwrap()[0].node_selector).unwrap()
    };
    let name = json!({"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["a"]}]}]});
    assert_eq!(selector(json!({})), name);
    assert_eq!(
        selector(json!({"nodeName": null, "allNodes": true})),
        json!(null)
    );
    let zone = json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["east"]}]}]});
    assert_eq!(
        selector(json!({"nodeName": null, "nodeSelector": zone})),
        zone
    );
}

#[test]
fn taints_keep_devices_from_who_does_not_tolerate_them() {
    let taint = |effect: &str| {
        let taint = json!({"key": "sick", "value": "yes", "effect": effect});
        json!([{"name": "x", "taints": [taint]}])
    };
    let said = |effect: &str, tolerations: Value| {
        let one = claim(
            "c",
            json!([ask("r", json!({"tolerations": tolerations}))]),
            json!({}),
        );
        World::new(vec![slice("p", taint(effect), json!({}))], vec![one]).said()
    };
    let nothing = "cannot allocate all claims";
    assert_eq!(said("NoSchedule", json!([])), nothing);
    assert_eq!(said("NoExecute", json!([])), nothing);
    assert_eq!(said("None", json!([])), "r=p/x");
    let exists = json!([{"key": "sick", "operator": "Exists"}]);
    assert_eq!(said("NoSchedule", exists), "r=p/x");
    let equal = json!([{"key": "sick", "operator": "Equal", "value": "no"}]);
    assert_eq!(said("NoSchedule", equal), nothing);
}

#[test]
fn configuration_of_classes_comes_before_that_of_the_claim() {
    let requests = json!([
        ask("r", json!({"deviceClassName": "big"})),
        ask("s", json!({"deviceClassName": "big"}))
    ]);
    let own = json!({"config": [{"requests": ["s"],
        "opaque": {"driver": "d", "parameters": {"of": "claim"}}}]});
    let world = World::new(sizes(), vec![claim("c", requests, own)]);
    let results = world.results().unwrap();
    let config = serde_json::to_value(&results[0].devices.as_ref().unwrap().config).unwrap();
    assert_eq!(
        config,
        json!([
            {"source": "FromClass", "requests": ["r", "s"],
                "opaque": {"driver": "d", "parameters": {"of": "class"}}},
            {"source": "FromClaim", "requests": ["s"],
                "opaque": {"driver": "d", "parameters": {"of": "claim"}}},
        ])
    );
}

#[test]
fn what_is_wrong_with_an_expression_is_told_with_its_place() {
    let said = |expression: &str| {
        let request = ask("r", json!({"selectors": selectors(expression)}));
        World::new(sizes(), vec![claim("c", json!([request]), json!({}))]).said()
    };
    assert_eq!(
        said("device.attributes['d'].none == 1"),
        "claim default/c: selector #0: CEL runtime error: no such key: none"
    );
    assert!(
        said("device.attributes[").starts_with("claim default/c: selector #0: CEL compile error: ")
    );
}

#[test]
fn a_search_ends_when_its_time_is_over() {
    // Each device matches, and never are there enough: every choice would be tried.
    let names: Vec<String> = (0..24).map(|place| format!("x{place}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let more = json!({"constraints": [{"matchAttribute": "d/none"}]});
    let request = ask("r", json!({"count": 12}));
    let world = World::new(
        vec![slice("p", plain(&names), json!({}))],
        vec![
            claim("one", json!([request]), json!({})),
            claim("two", json!([ask("r", json!({}))]), more),
        ],
    );
    let steps = Cell::new(0);
    let is_late = || {
        steps.set(steps.get() + 1);
        steps.get() > 1000
    };
    assert_eq!(world.results_unless(&is_late), Err(AllocateError::Late));
}
