//! Custom resources as owners and as dependents, of each other and of what is built in: each goes
//! when its owner does and not before, and so it is when their definition goes.

use crate::site::Site;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
    PropagationPolicy,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::slice::from_ref;

const GROUP: &str = "edge.example.com";
/// Keeps an object until the test lets it go.
const HOLD: &str = "edge.example.com/hold";

/// In a namespace, or in none.
const WIDGET: (&str, &str, &str) = ("Widget", "widgets", "Namespaced");
const FLEET: (&str, &str, &str) = ("Fleet", "fleets", "Cluster");
/// Defined late.
const GHOST: (&str, &str, &str) = ("Ghost", "ghosts", "Namespaced");

fn definition((kind, plural, scope): (&str, &str, &str)) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

fn resource((kind, plural, _): (&str, &str, &str)) -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{GROUP}/v1"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Everything that the story is about.
struct Kinds {
    definitions: Api<CustomResourceDefinition>,
    widgets: Api<DynamicObject>,
    elsewhere: Api<DynamicObject>,
    fleets: Api<DynamicObject>,
    maps: Api<ConfigMap>,
    events: Api<Event>,
}

impl Kinds {
    fn of(site: &Site) -> Self {
        let admin = &site.admin;
        let widget = resource(WIDGET);
        Self {
            definitions: Api::all(admin.clone()),
            widgets: Api::namespaced_with(admin.clone(), "default", &widget),
            elsewhere: Api::namespaced_with(admin.clone(), "elsewhere", &widget),
            fleets: Api::all_with(admin.clone(), &resource(FLEET)),
            maps: Api::namespaced(admin.clone(), "default"),
            events: Api::namespaced(admin.clone(), "default"),
        }
    }
}

fn custom((kind, _, _): (&str, &str, &str), name: &str, owners: &[Value]) -> Value {
    let api_version = format!("{GROUP}/v1");
    let metadata = json!({"name": name, "ownerReferences": owners});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

fn map(name: &str, owners: &[Value]) -> Value {
    let metadata = json!({"name": name, "ownerReferences": owners});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// Makes it, and says how dependents refer to it.
fn create<K>(site: &Site, api: &Api<K>, object: Value) -> Value
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let wanted: K = serde_json::from_value(object).expect("an object");
    let made = site.block_on(api.create(&PostParams::default(), &wanted));
    let made = serde_json::to_value(made.expect("it is made")).expect("an object");
    let of = |path: &str| made.pointer(path).cloned().unwrap_or_default();
    json!({
        "apiVersion": of("/apiVersion"), "kind": of("/kind"),
        "name": of("/metadata/name"), "uid": of("/metadata/uid"), "blockOwnerDeletion": true,
    })
}

fn delete<K>(site: &Site, api: &Api<K>, name: &str, propagation: PropagationPolicy)
where
    K: Clone + Debug + DeserializeOwned,
{
    let params = DeleteParams {
        propagation_policy: Some(propagation),
        ..DeleteParams::default()
    };
    let deleted = site.block_on(api.delete(name, &params));
    deleted.expect("it is deleted");
}

fn found<K>(site: &Site, api: &Api<K>, name: &str) -> Option<Value>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let found = site.block_on(api.get_opt(name)).ok().flatten();
    found.map(|found| serde_json::to_value(found).expect("an object"))
}

fn until_gone<K>(site: &mut Site, api: &Api<K>, name: &str)
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    site.until(&format!("{name} to go"), |site| {
        // A kind that is served no more answers as one that has no such object.
        let found = site.block_on(api.get_opt(name));
        match found.map_err(|error| error.to_string())? {
            None => Ok(()),
            Some(found) => Err(format!("{found:?}")),
        }
    });
}

/// The loops have seen all that was done before.
fn settle(site: &mut Site, kinds: &Kinds, name: &str) {
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": format!("never-{name}"),
    });
    create(site, &kinds.maps, map(name, &[owner]));
    until_gone(site, &kinds.maps, name);
}

fn define(site: &mut Site, kinds: &Kinds, which: (&str, &str, &str)) {
    create(site, &kinds.definitions, definition(which));
    let served = Api::<DynamicObject>::all_with(site.admin.clone(), &resource(which));
    site.until("the kind to be served", |site| {
        let listed = site.block_on(served.list(&ListParams::default()));
        listed.map(|_| ()).map_err(|error| error.to_string())
    });
}

pub fn run(seed: u64) {
    let mut site = Site::new(seed);
    let kinds = Kinds::of(&site);
    let elsewhere = json!({"metadata": {"name": "elsewhere"}});
    create::<Namespace>(&site, &Api::all(site.admin.clone()), elsewhere);
    define(&mut site, &kinds, WIDGET);
    define(&mut site, &kinds, FLEET);
    foreground(&mut site, &kinds);
    background(&mut site, &kinds);
    orphans(&mut site, &kinds);
    absent(&mut site, &kinds);
    across_namespaces(&mut site, &kinds);
    before_definition(&mut site, &kinds);
    without_definition(&mut site, &kinds);
}

/// The owner stays for as long as one that blocks it.
fn foreground(site: &mut Site, kinds: &Kinds) {
    let owner = create(site, &kinds.widgets, custom(WIDGET, "front", &[]));
    let own = [owner];
    let mut held = custom(WIDGET, "held", &own);
    held["metadata"]["finalizers"] = json!([HOLD]);
    create(site, &kinds.widgets, held);
    create(site, &kinds.maps, map("plain", &own));
    delete(site, &kinds.widgets, "front", PropagationPolicy::Foreground);
    until_gone(site, &kinds.maps, "plain");
    site.until("the held one to be deleted", |site| {
        let held = found(site, &kinds.widgets, "held").ok_or("it is gone")?;
        let at = &held["metadata"]["deletionTimestamp"];
        at.is_string().then_some(()).ok_or_else(|| held.to_string())
    });
    settle(site, kinds, "after-front");
    let front = found(site, &kinds.widgets, "front").expect("it waits");
    let finalizers = json!(["foregroundDeletion"]);
    assert_eq!(front["metadata"]["finalizers"], finalizers);
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let params = PatchParams::default();
    let released = site.block_on(kinds.widgets.patch("held", &params, &release));
    released.expect("it is released");
    until_gone(site, &kinds.widgets, "held");
    until_gone(site, &kinds.widgets, "front");
}

/// From one without a namespace over one with, to what is built in, and from that back.
fn background(site: &mut Site, kinds: &Kinds) {
    let fleet = create(site, &kinds.fleets, custom(FLEET, "fleet", &[]));
    let widget = create(site, &kinds.widgets, custom(WIDGET, "ship", &[fleet]));
    let base = create(site, &kinds.maps, map("cargo", &[widget]));
    create(site, &kinds.widgets, custom(WIDGET, "crate", &[base]));
    create(site, &kinds.widgets, custom(WIDGET, "free", &[]));
    settle(site, kinds, "before-fleet");
    for name in ["ship", "crate"] {
        assert!(found(site, &kinds.widgets, name).is_some(), "{name}");
    }
    delete(site, &kinds.fleets, "fleet", PropagationPolicy::Background);
    until_gone(site, &kinds.widgets, "ship");
    until_gone(site, &kinds.maps, "cargo");
    until_gone(site, &kinds.widgets, "crate");
    assert!(found(site, &kinds.widgets, "free").is_some());
}

fn orphans(site: &mut Site, kinds: &Kinds) {
    let owner = create(site, &kinds.widgets, custom(WIDGET, "parent", &[]));
    create(
        site,
        &kinds.widgets,
        custom(WIDGET, "child", from_ref(&owner)),
    );
    create(site, &kinds.maps, map("ward", &[owner]));
    delete(site, &kinds.widgets, "parent", PropagationPolicy::Orphan);
    until_gone(site, &kinds.widgets, "parent");
    settle(site, kinds, "after-parent");
    let child = found(site, &kinds.widgets, "child").expect("it stays");
    let ward = found(site, &kinds.maps, "ward").expect("it stays");
    for left in [child, ward] {
        let owners = left["metadata"]["ownerReferences"].as_array();
        assert!(owners.is_none_or(Vec::is_empty), "{left}");
    }
}

/// Of owners that never were, and of one that has a successor of its name. One that is there holds.
fn absent(site: &mut Site, kinds: &Kinds) {
    let there = create(site, &kinds.widgets, custom(WIDGET, "there", &[]));
    let mut never = there.clone();
    never["uid"] = json!("00000000-0000-0000-0000-000000000001");
    create(site, &kinds.maps, map("of-predecessor", &[never.clone()]));
    create(
        site,
        &kinds.widgets,
        custom(WIDGET, "also", &[never.clone()]),
    );
    create(site, &kinds.maps, map("shared", &[never, there.clone()]));
    until_gone(site, &kinds.maps, "of-predecessor");
    until_gone(site, &kinds.widgets, "also");
    site.until("the reference to go", |site| {
        let shared = found(site, &kinds.maps, "shared").ok_or("it is gone")?;
        let owners = &shared["metadata"]["ownerReferences"];
        (*owners == json!([there]))
            .then_some(())
            .ok_or_else(|| owners.to_string())
    });
}

/// An owner of another namespace is none, and somebody is told.
fn across_namespaces(site: &mut Site, kinds: &Kinds) {
    let far = create(site, &kinds.elsewhere, custom(WIDGET, "far", &[]));
    create(site, &kinds.maps, map("astray", from_ref(&far)));
    create(site, &kinds.widgets, custom(WIDGET, "lost", &[far]));
    until_gone(site, &kinds.maps, "astray");
    until_gone(site, &kinds.widgets, "lost");
    assert!(found(site, &kinds.elsewhere, "far").is_some());
    // One without a namespace cannot be owned by one with.
    let of_far = found(site, &kinds.elsewhere, "far").expect("it is there");
    let owner = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
        "name": "far", "uid": of_far["metadata"]["uid"],
    });
    create(site, &kinds.fleets, custom(FLEET, "above", &[owner]));
    settle(site, kinds, "after-far");
    assert!(found(site, &kinds.fleets, "above").is_some());
    // The loop may have died before it told of one of them; of one at least it has.
    let events = site.block_on(kinds.events.list(&ListParams::default()));
    let events = events.expect("the events").items;
    let reasons: Vec<_> = events
        .iter()
        .filter_map(|event| event.reason.as_deref())
        .collect();
    assert!(reasons.contains(&"OwnerRefInvalidNamespace"), "{reasons:?}");
}

/// With a definition all of its objects go, and what they owned. The loop must see the last of them
/// go, as of a kind that nobody serves nothing is known: it lives on here.
fn without_definition(site: &mut Site, kinds: &Kinds) {
    site.live_unharmed();
    let base = create(site, &kinds.maps, map("harbour", &[]));
    let owner = create(site, &kinds.widgets, custom(WIDGET, "last", &[base]));
    create(site, &kinds.maps, map("left", from_ref(&owner)));
    settle(site, kinds, "before-definition");
    let name = format!("widgets.{GROUP}");
    delete(
        site,
        &kinds.definitions,
        &name,
        PropagationPolicy::Background,
    );
    until_gone(site, &kinds.definitions, &name);
    until_gone(site, &kinds.maps, "left");
    create(site, &kinds.maps, map("of-last", &[owner]));
    until_gone(site, &kinds.maps, "of-last");
    assert!(found(site, &kinds.maps, "harbour").is_some());
}

/// What is owned by a kind that nobody serves stays, until the kind is served and has no such object.
fn before_definition(site: &mut Site, kinds: &Kinds) {
    let ghost = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": GHOST.0, "name": "ghost",
        "uid": "00000000-0000-0000-0000-000000000002",
    });
    create(site, &kinds.maps, map("haunted", &[ghost]));
    settle(site, kinds, "after-haunted");
    assert!(found(site, &kinds.maps, "haunted").is_some());
    define(site, kinds, GHOST);
    until_gone(site, &kinds.maps, "haunted");
}
