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
        configuration: Some("{}".to_owned()),
    }
}

fn door() -> Door {
    Door {
        authentication: None,
        authorization: None,
        always_allowed: vec!["/healthz".to_owned(), "/open/*".to_owned()],
        pages: pages(),
    }
}

#[test]
fn each_page_is_at_its_path() {
    let of = |path: &str| {
        let answer = pages().answer(path, "");
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
