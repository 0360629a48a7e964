//! The loop dies at every one of its calls, and hears late and twice: what becomes of pods and
//! claims is the same each time.

use super::whole::{SET, images, is_complete, put_set, run_pods};
use super::*;
use crate::fake_api::eventually;
use crate::fake_cluster::{Calls, Death, FakeCluster, spawn_mortal};

/// Comes up with three, is updated, and goes down to one; what was asked for that.
async fn live(death: Option<Death>) -> Calls {
    let cluster = FakeCluster::new();
    let change = |what: &dyn Fn(&mut Value)| put_set(&cluster, what);
    change(&|set| set["spec"]["replicas"] = json!(3));
    let living = spawn_mortal(&cluster, run, death);
    let until = async |what: &str, image: &str, replicas: i64| {
        let what = format!("{what}, {death:?}");
        let reached = || {
            run_pods(&cluster);
            let wanted = vec![json!(image); replicas as usize];
            images(&cluster) == wanted && is_complete(&cluster.api.get(SET).unwrap(), replicas)
        };
        eventually(&what, reached).await;
    };
    until("three", "new", 3).await;
    change(&|set| set["spec"]["template"]["spec"]["containers"][0]["image"] = json!("next"));
    until("all updated", "next", 3).await;
    change(&|set| set["spec"]["replicas"] = json!(1));
    until("one", "next", 1).await;
    let of = |collection: &str| {
        let changes = cluster.api.changes(collection).into_iter();
        let changes = changes.filter(|(kind, _)| *kind != "MODIFIED");
        let told = changes.map(|(kind, name)| format!("{kind} {name}"));
        told.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        of("/api/v1/pods"),
        "ADDED web-0, ADDED web-1, ADDED web-2, \
         DELETED web-2, ADDED web-2, DELETED web-1, ADDED web-1, DELETED web-0, ADDED web-0, \
         DELETED web-2, DELETED web-1",
        "{death:?}"
    );
    assert_eq!(
        of("/api/v1/persistentvolumeclaims"),
        "ADDED data-web-0, ADDED data-web-1, ADDED data-web-2",
        "{death:?}"
    );
    let revisions = of("/apis/apps/v1/controllerrevisions");
    assert_eq!(revisions.matches("ADDED").count(), 2, "{death:?}");
    living.calls.clone()
}

#[tokio::test(start_paused = true)]
async fn wherever_it_dies_no_pod_is_made_or_lost_out_of_order() {
    let calls = live(None).await;
    let writes = calls.writes();
    assert!(writes > 20, "the script has that many steps: {writes}");
    for death in calls.deaths(1) {
        live(Some(death)).await;
    }
}
