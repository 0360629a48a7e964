//! Whole stories of sites, with both loops running in paused time.

use expect_test::{Expect, expect};

mod site;

async fn check(script: &str, expected: Expect) {
    expected.assert_eq(&site::play(script).await);
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_loses_its_pods_when_they_bear_it_no_longer() {
    check(
        "0 node a
         0 node b
         0 pod stays on=b for=5
         1 pod short on=a for=5
         1 pod long on=a for=300
         1 pod forever on=a for=ever
         1 pod never on=a
         11 silence a
         400 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   event (RegisteredNode) Node b event: Registered Node b in Controller
            1   node a Ready=True
            1   node b Ready=True
            1   pod stays Ready=True
            2   pod forever Ready=True
            2   pod long Ready=True
            2   pod never Ready=True
            2   pod short Ready=True
            51  event (NodeNotReady) Node a status is now: NodeNotReady
            51  event (NodeNotReady) Node is not ready
            51  event (NodeNotReady) Node is not ready
            51  event (NodeNotReady) Node is not ready
            51  event (NodeNotReady) Node is not ready
            51  event (TaintManagerEviction) Marking for deletion Pod default/never
            51  node a Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            51  pod forever Ready=False
            51  pod long Ready=False
            51  pod never is gone
            51  pod short Ready=False
            56  event (TaintManagerEviction) Marking for deletion Pod default/short
            56  pod short is gone
            351 event (TaintManagerEviction) Marking for deletion Pod default/long
            351 pod long is gone
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_heals_in_time_keeps_its_pods() {
    check(
        "0 node a
         0 node b
         1 pod web on=a for=300
         11 silence a
         200 heal a
         700 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   event (RegisteredNode) Node b event: Registered Node b in Controller
            1   node a Ready=True
            1   node b Ready=True
            2   pod web Ready=True
            51  event (NodeNotReady) Node a status is now: NodeNotReady
            51  event (NodeNotReady) Node is not ready
            51  node a Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            51  pod web Ready=False
            201 event (TaintManagerEviction) Cancelling deletion of Pod default/web
            201 node a Ready=True
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_pod_moves_when_every_node_is_lost() {
    check(
        "0 node a
         0 node b
         1 pod one on=a
         1 pod two on=b for=20
         11 silence b
         21 silence a
         100 heal a
         200 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   event (RegisteredNode) Node b event: Registered Node b in Controller
            1   node a Ready=True
            1   node b Ready=True
            2   pod one Ready=True
            2   pod two Ready=True
            51  event (NodeNotReady) Node b status is now: NodeNotReady
            51  event (NodeNotReady) Node is not ready
            51  node b Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            51  pod two Ready=False
            61  event (NodeNotReady) Node a status is now: NodeNotReady
            61  event (NodeNotReady) Node is not ready
            61  event (TaintManagerEviction) Cancelling deletion of Pod default/two
            61  node a Ready=Unknown unreachable:NoSchedule
            61  node b Ready=Unknown unreachable:NoSchedule
            61  pod one Ready=False
            101 node a Ready=True
            111 node b Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            131 event (TaintManagerEviction) Marking for deletion Pod default/two
            131 pod two is gone
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_node_alone_keeps_its_pods_whatever_happens() {
    check(
        "0 node a
         1 pod web on=a
         11 silence a
         500 heal a
         520 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   node a Ready=True
            2   pod web Ready=True
            51  event (NodeNotReady) Node a status is now: NodeNotReady
            51  event (NodeNotReady) Node is not ready
            51  node a Ready=Unknown unreachable:NoSchedule
            51  pod web Ready=False
            501 node a Ready=True
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_grants_every_node_its_grace_again() {
    check(
        "0 node a
         0 node b
         1 pod web on=a for=30
         11 silence a
         40 restart
         100 restart
         160 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   event (RegisteredNode) Node b event: Registered Node b in Controller
            1   node a Ready=True
            1   node b Ready=True
            2   pod web Ready=True
            41  event (RegisteredNode) Node a event: Registered Node a in Controller
            41  event (RegisteredNode) Node b event: Registered Node b in Controller
            81  event (NodeNotReady) Node a status is now: NodeNotReady
            81  event (NodeNotReady) Node is not ready
            81  node a Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            81  pod web Ready=False
            101 event (RegisteredNode) Node a event: Registered Node a in Controller
            101 event (RegisteredNode) Node b event: Registered Node b in Controller
            131 event (TaintManagerEviction) Marking for deletion Pod default/web
            131 pod web is gone
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_unwell_node_is_told_from_a_silent_one() {
    check(
        "0 node a
         0 node b
         1 pod web on=a for=60
         20 unwell a
         40 silence a
         90 unwell a
         140 remove a
         150 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   event (RegisteredNode) Node b event: Registered Node b in Controller
            1   node a Ready=True
            1   node b Ready=True
            2   pod web Ready=True
            21  node a Ready=False not-ready:NoSchedule not-ready:NoExecute
            71  event (NodeNotReady) Node is not ready
            71  node a Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            71  pod web Ready=False
            81  event (TaintManagerEviction) Marking for deletion Pod default/web
            81  pod web is gone
            91  node a Ready=False not-ready:NoSchedule not-ready:NoExecute
            131 node a Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            141 event (RemovingNode) Node a event: Removing Node a from Controller
            141 node a is gone
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_never_reports_gets_its_time_to_start() {
    check(
        "0 node a
         5 node late unreported
         100 remove late
         110 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   node a Ready=True
            6   event (RegisteredNode) Node late event: Registered Node late in Controller
            6   node late
            66  node late Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            101 event (RemovingNode) Node late event: Removing Node late from Controller
            101 node late is gone
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_zone_loses_one_node_in_ten_seconds() {
    check(
        "0 node a zone=z
         0 node b zone=z
         0 node c zone=z
         0 node d zone=z
         0 node e zone=z
         11 silence a
         11 silence b
         90 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   event (RegisteredNode) Node b event: Registered Node b in Controller
            1   event (RegisteredNode) Node c event: Registered Node c in Controller
            1   event (RegisteredNode) Node d event: Registered Node d in Controller
            1   event (RegisteredNode) Node e event: Registered Node e in Controller
            1   node a Ready=True
            1   node b Ready=True
            1   node c Ready=True
            1   node d Ready=True
            1   node e Ready=True
            51  event (NodeNotReady) Node a status is now: NodeNotReady
            51  event (NodeNotReady) Node b status is now: NodeNotReady
            51  node a Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            51  node b Ready=Unknown unreachable:NoSchedule
            61  node b Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_asked_again() {
    check(
        "0 node a
         0 node b
         1 pod web on=a
         11 silence a
         49 refuse 409 500 409
         60 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   event (RegisteredNode) Node b event: Registered Node b in Controller
            1   node a Ready=True
            1   node b Ready=True
            2   pod web Ready=True
            51  event (NodeNotReady) Node a status is now: NodeNotReady
            51  event (NodeNotReady) Node is not ready
            51  event (TaintManagerEviction) Marking for deletion Pod default/web
            51  node a Ready=Unknown unreachable:NoSchedule unreachable:NoExecute
            51  pod web is gone
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn anybodys_taint_moves_pods() {
    check(
        "0 node a
         1 pod short on=a for=20
         1 pod web on=a for=60
         10 taint a maintenance:NoSchedule
         20 taint a maintenance:NoExecute
         30 pod web on=a for=ever
         50 untaint a
         60 taint a maintenance:NoExecute
         61 pod late on=a
         70 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   node a Ready=True
            2   pod short Ready=True
            2   pod web Ready=True
            11  node a Ready=True maintenance:NoSchedule
            21  node a Ready=True maintenance:NoExecute
            31  event (TaintManagerEviction) Cancelling deletion of Pod default/web
            41  event (TaintManagerEviction) Marking for deletion Pod default/short
            41  pod short is gone
            51  node a Ready=True
            61  node a Ready=True maintenance:NoExecute
            62  event (TaintManagerEviction) Marking for deletion Pod default/late
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_has_its_own_time() {
    check(
        "0 node a
         0 taint a maintenance:NoExecute
         1 pod web on=a for=20
         11 gone web
         11 pod web on=a for=20
         40 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   node a Ready=True maintenance:NoExecute
            2   pod web Ready=True
            12  event (TaintManagerEviction) Cancelling deletion of Pod default/web
            32  event (TaintManagerEviction) Marking for deletion Pod default/web
            32  pod web is gone
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_node_stops_no_time() {
    check(
        "0 node a
         0 taint a maintenance:NoExecute
         1 pod web on=a for=20
         11 remove a
         40 end",
        expect![[r#"
            1   event (RegisteredNode) Node a event: Registered Node a in Controller
            1   node a Ready=True maintenance:NoExecute
            2   pod web Ready=True
            12  event (RemovingNode) Node a event: Removing Node a from Controller
            12  node a is gone
            22  event (TaintManagerEviction) Marking for deletion Pod default/web
            22  pod web is gone
        "#]],
    )
    .await;
}

/// Heartbeats of a healthy site cost reads of what the informers bring, and no request.
#[tokio::test(start_paused = true)]
async fn a_healthy_site_of_hundreds_is_left_alone() {
    let mut script = String::new();
    for number in 0..300 {
        script += &format!("{} node n{number}\n", number / 30);
    }
    script += "120 end";
    assert_eq!(site::writes(&script).await, 0);
}
