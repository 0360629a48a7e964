//! What is answered to whom.

use super::*;

fn pages() -> Pages {
    Pages {
        component: "kube-scheduler",
        watchdog: Watchdog::default(),
        health: vec![
            ("/healthz", vec![Check::ping()]),
            (
                "/readyz",
                vec![Check::new("late", || Err("not yet".to_owned()))],
            ),
        ],
        metrics: Box::new(|text| text.sample("a_total", &[], 1)),
        resources: Some(Box::new(|| Box::pin(async { Err("not now".to_owned()) }))),
        configuration: "{}".to_owned(),
    }
}

fn door() -> Door {
    Door {
        authentication: None,
        authorization: None,
        always_allowed: vec!["/healthz".to_owned(), "/open/*".to_owned()],
        pages: pages(),
        results: Results::default(),
        started: Timestamp::from_second(1_900_000_000).unwrap(),
    }
}

#[test]
fn each_page_is_at_its_path() {
    let of = |path: &str| {
        let answer = pages().answer(path, "", &Results::default());
        (answer.status.as_u16(), answer.text)
    };
    assert_eq!(of("/healthz"), (200, "ok".to_owned()));
    assert_eq!(of("/healthz/ping"), (200, "ok".to_owned()));
    assert_eq!(of("/healthzz").0, 404);
    assert_eq!(of("/readyz").0, 500);
    let why = "internal server error: not yet\n".to_owned();
    assert_eq!(of("/readyz/late"), (500, why));
    assert_eq!(of("/configz"), (200, "{}".to_owned()));
    assert!(of("/metrics").1.ends_with("a_total 1\n"));
    assert_eq!(of("/livez"), (404, "404 page not found\n".to_owned()));
}

#[tokio::test]
async fn without_an_api_server_to_ask_health_is_all_that_is_told() {
    let door = door();
    let refused = async |path: &str, groups: &[&str]| {
        let request = Request::get(path).body(()).unwrap();
        let mut caller = door.caller(&request, None).await.unwrap();
        assert_eq!(caller.name, ANONYMOUS);
        caller.groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let refusal = door.refusal(&request, &caller).await;
        refusal.map(|answer| answer.text)
    };
    assert_eq!(refused("/healthz", &[]).await, None);
    assert_eq!(refused("/open/a", &[]).await, None);
    assert_eq!(refused("/metrics", &[MASTERS]).await, None);
    let text = refused("/metrics", &["system:authenticated"])
        .await
        .unwrap();
    let told = r#"forbidden: User \"system:anonymous\" cannot get path \"/metrics\""#;
    assert!(text.contains(told), "{text}");
    assert!(refused("/healthz/ping", &[]).await.is_some());
}

#[tokio::test]
async fn what_checks_said_is_counted_where_all_are_asked() {
    let door = door();
    for path in ["/healthz", "/readyz", "/readyz", "/readyz/late"] {
        door.page(path, "").await;
    }
    door.page("/healthz", "exclude=ping").await;
    let told = door.page("/metrics/slis", "").await;
    assert_eq!((told.status, told.kind), (StatusCode::OK, EXPOSITION));
    let samples = told.text.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(
        samples.collect::<Vec<_>>(),
        [
            r#"kubernetes_healthcheck{name="late",type="readyz"} 0"#,
            r#"kubernetes_healthcheck{name="ping",type="healthz"} 1"#,
            r#"kubernetes_healthchecks_total{name="late",status="error",type="readyz"} 2"#,
            r#"kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1"#,
            "process_start_time_seconds 1900000000",
        ]
    );
}

#[tokio::test]
async fn what_pods_ask_for_is_an_error_while_the_server_does_not_tell() {
    let mut door = door();
    let told = door.page("/metrics/resources", "").await;
    assert_eq!(told.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(told.text, "not now\n");
    door.pages.resources = None;
    let told = door.page("/metrics/resources", "").await;
    assert_eq!(told.status, StatusCode::NOT_FOUND);
}
