//! What is counted, as a scraper finds it.

use super::site::{CONFIG_MAPS, Site, config_map, site};
use serde_json::json;

async fn lines(site: &Site, path: &str, accept: &str) -> Vec<String> {
    let answer = site.get_as(path, accept).await;
    assert_eq!(answer.status, 200);
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn admission_is_timed() {
    let site = site().await;
    site.post(CONFIG_MAPS, &config_map("a", "1")).await.ok();
    let pod = json!({ "metadata": { "name": "a" }, "spec": {
        "priorityClassName": "nobody-knows",
        "containers": [{ "name": "a", "image": "a" }],
    } });
    let refused = site.post("/api/v1/namespaces/default/pods", &pod).await;
    assert_eq!(refused.status, 403);
    let lines = lines(&site, "/metrics", "").await;
    let count = |metric: &str, labels: &str| {
        let metric = format!("apiserver_admission_{metric}_admission_duration_seconds_count");
        let start = format!("{metric}{{{labels}}} ");
        let line = lines.iter().find_map(|line| line.strip_prefix(&start));
        line.map_or(0, |count| count.parse().unwrap())
    };
    let admit = "operation=\"CREATE\",rejected=\"false\",type=\"admit\"";
    assert!(count("controller", &format!("name=\"ServiceAccount\",{admit}")) > 0);
    assert!(count("step", admit) > 0);
    let validate = admit.replace("type=\"admit\"", "type=\"validate\"");
    assert!(count("step", &validate) > 0);
    assert!(count("controller", &format!("name=\"ResourceQuota\",{validate}")) > 0);
    let rejected = admit.replace("false", "true");
    assert_eq!(count("step", &rejected), 1);
}

#[tokio::test]
async fn requests_for_deprecated_apis_are_told() {
    let site = site().await;
    let told = |lines: Vec<String>| {
        let start = "apiserver_requested_deprecated_apis{";
        lines
            .into_iter()
            .find(|line| line.starts_with(start) && line.contains("componentstatuses"))
    };
    assert_eq!(told(lines(&site, "/metrics", "").await), None);
    site.get("/api/v1/componentstatuses").await.ok();
    assert_eq!(
        told(lines(&site, "/metrics", "").await).unwrap(),
        "apiserver_requested_deprecated_apis{group=\"\",removed_release=\"\",\
         resource=\"componentstatuses\",subresource=\"\",version=\"v1\"} 1"
    );
}

#[tokio::test]
async fn health_checks_are_counted() {
    let site = site().await;
    site.get("/livez?exclude=log").await;
    site.get("/livez").await;
    let lines = lines(&site, "/metrics/slis", "application/openmetrics-text").await;
    let has = |line: &str| lines.iter().any(|own| own == line);
    assert!(has("# TYPE kubernetes_healthchecks counter"));
    assert!(has(
        "kubernetes_healthcheck{name=\"ping\",type=\"livez\"} 1"
    ));
    let total = "kubernetes_healthchecks_total";
    assert!(has(&format!(
        "{total}{{name=\"ping\",status=\"success\",type=\"livez\"}} 2"
    )));
    assert!(has(&format!(
        "{total}{{name=\"log\",status=\"success\",type=\"livez\"}} 1"
    )));
    // Nobody serves yet in this test.
    let hook = "poststarthook/rbac/bootstrap-roles";
    assert!(has(&format!(
        "kubernetes_healthcheck{{name=\"{hook}\",type=\"livez\"}} 0"
    )));
    assert_eq!(lines.last().unwrap(), "# EOF");
}
