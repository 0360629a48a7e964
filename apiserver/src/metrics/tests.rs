//! What requests leave in the text.

use super::*;
use http::Method;
use std::time::Duration;

#[test]
fn requests_are_counted_by_what_the_catalogue_knows() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(coracle_store::Config::new(directory.path().join("s"))).unwrap();
    let fairness = Fairness::new(10, store.clone());
    let metrics = Arc::new(Metrics::new("2026-06-01T00:00:00Z".parse().unwrap()));
    let ask = |path: &str, code, ms| {
        let info = RequestInfo::parse(&Method::GET, &path.parse().unwrap());
        let begun = metrics.begin(&info, false);
        begun.finish(code, Duration::from_millis(ms), Duration::ZERO, Some(2000));
    };
    ask("/api/v1/namespaces/a/pods/b", 200, 4);
    ask("/api/v1/namespaces/a/pods/c", 200, 30);
    ask("/apis/made.up/v1/things", 404, 1);
    ask("/apis/made.up/v1/others", 404, 1);
    let watch = RequestInfo::parse(&Method::GET, &"/api/v1/pods?watch=1".parse().unwrap());
    let running = metrics.long_running(&watch);
    let _ongoing = metrics.begin(&watch, false);
    running.sent(2, 3000);
    let text = metrics.text(&store, 2, &fairness);
    let has = |line: &str| assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    let pods = "component=\"apiserver\",group=\"\",resource=\"pods\",scope=\"resource\",\
                subresource=\"\",verb=\"GET\",version=\"v1\"";
    has(&format!(
        "apiserver_request_total{{code=\"200\",dry_run=\"\",{pods}}} 2"
    ));
    has(&format!("apiserver_response_sizes_sum{{{pods}}} 4000"));
    has("apiserver_watch_events_total{group=\"\",resource=\"pods\",version=\"v1\"} 2");
    let bucket = |bound: &str, count: u64| {
        let name = "apiserver_request_duration_seconds_bucket";
        has(&format!(
            "{name}{{dry_run=\"\",{pods},le=\"{bound}\"}} {count}"
        ));
    };
    bucket("0.005", 1);
    bucket("0.05", 2);
    bucket("+Inf", 2);
    has("apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1");
    has("coracle_node_tunnels 2");
    assert!(text.contains("resource=\"\",scope=\"\",subresource=\"\",verb=\"LIST\""));
    assert!(!text.contains("made.up") && !text.contains("things"));
    let long = text
        .lines()
        .find(|line| line.starts_with("apiserver_longrunning_requests{"));
    assert!(long.unwrap().ends_with("verb=\"WATCH\",version=\"v1\"} 1"));
    assert!(text.contains("\nprocess_resident_memory_bytes "));
    drop(running);
    assert!(
        metrics
            .text(&store, 0, &fairness)
            .contains("version=\"v1\"} 0")
    );
}
