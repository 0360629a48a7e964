//! Health in upstream's words.

use super::*;
use expect_test::{Expect, expect};
use http_body_util::BodyExt;

async fn check(health: &Health, target: &str, expected: Expect) {
    check_with(health, None, target, expected).await;
}

async fn check_with(health: &Health, trouble: Option<&str>, target: &str, expected: Expect) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let text = match health.answer(path, &Query::parse(query), trouble.map(str::to_owned)) {
        None => "none of these".to_owned(),
        Some(response) => {
            let code = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            format!("{code} {}", String::from_utf8_lossy(&body))
        }
    };
    expected.assert_eq(&text);
}

#[tokio::test]
async fn all_is_well() {
    let health = Health::default();
    health.set_ready();
    check(&health, "/livez", expect!["200 ok"]).await;
    check(&health, "/readyz/etcd", expect!["200 ok"]).await;
    check(&health, "/readyz/nothing", expect!["none of these"]).await;
    check(&health, "/livez/shutdown", expect!["none of these"]).await;
    check(&health, "/readyz?exclude=nothing", expect!["200 ok"]).await;
    let target = "/readyz?verbose&exclude=ping&exclude=nothing&exclude=b";
    check(
        &health,
        target,
        expect![[r#"
            200 [+]ping excluded: ok
            [+]log ok
            [+]etcd ok
            [+]poststarthook/rbac/bootstrap-roles ok
            [+]poststarthook/scheduling/bootstrap-system-priority-classes ok
            [+]poststarthook/priority-and-fairness-config-producer ok
            [+]shutdown ok
            warn: some health checks cannot be excluded: no matches for "b","nothing"
            readyz check passed
        "#]],
    )
    .await;
}

/// A failure is told in full, asked for or not.
#[tokio::test]
async fn before_and_after() {
    let health = Health::default();
    let hook = "/readyz/poststarthook/rbac/bootstrap-roles";
    let withheld = expect!["500 internal server error: not finished\n"];
    check(&health, hook, withheld).await;
    health.set_ready();
    health.set_shutting_down();
    check(&health, "/livez", expect!["200 ok"]).await;
    check(&health, "/readyz?exclude=shutdown", expect!["200 ok"]).await;
    check(
        &health,
        "/readyz",
        expect![[r#"
            500 [+]ping ok
            [+]log ok
            [+]etcd ok
            [+]poststarthook/rbac/bootstrap-roles ok
            [+]poststarthook/scheduling/bootstrap-system-priority-classes ok
            [+]poststarthook/priority-and-fairness-config-producer ok
            [-]shutdown failed: reason withheld
            readyz check failed
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_disk_that_takes_no_writes_is_told_and_is_no_reason_to_start_anew() {
    let health = Health::default();
    health.set_ready();
    let full = Some("no space is left");
    check_with(&health, full, "/livez", expect!["200 ok"]).await;
    let told = expect!["500 internal server error: no space is left\n"];
    check_with(&health, full, "/healthz/etcd", told).await;
    check_with(&health, full, "/readyz?exclude=etcd", expect!["200 ok"]).await;
    check_with(
        &health,
        full,
        "/readyz",
        expect![[r#"
            500 [+]ping ok
            [+]log ok
            [-]etcd failed: reason withheld
            [+]poststarthook/rbac/bootstrap-roles ok
            [+]poststarthook/scheduling/bootstrap-system-priority-classes ok
            [+]poststarthook/priority-and-fairness-config-producer ok
            [+]shutdown ok
            readyz check failed
        "#]],
    )
    .await;
}
