//! What requests leave in the text.

use super::*;
use crate::admission::plugin::Plugin;
use expect_test::expect;
use http::Method;
use std::time::Duration;

fn row(info: &RequestInfo) -> Option<&'static Resource> {
    coracle_api::catalogue::find(&info.group, &info.version, &info.resource)
}

#[test]
fn requests_are_counted_by_what_the_catalogue_knows() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(coracle_store::Config::new(directory.path().join("s"))).unwrap();
    let fairness = Fairness::new(10, store.clone());
    let metrics = Arc::new(Metrics::new("2026-06-01T00:00:00Z".parse().unwrap()));
    let ask = |path: &str, code, ms| {
        let info = RequestInfo::parse(&Method::GET, &path.parse().unwrap());
        let begun = metrics.begin(&info, row(&info), false);
        begun.finish(code, Duration::from_millis(ms), Duration::ZERO, Some(2000));
    };
    ask("/api/v1/namespaces/a/pods/b", 200, 4);
    ask("/api/v1/namespaces/a/pods/c", 200, 30);
    ask("/apis/made.up/v1/things", 404, 1);
    ask("/apis/made.up/v1/others", 404, 1);
    let watch = RequestInfo::parse(&Method::GET, &"/api/v1/pods?watch=1".parse().unwrap());
    let running = metrics.long_running(&watch, row(&watch).unwrap());
    let _ongoing = metrics.begin(&watch, row(&watch), false);
    running.sent(2, 3000);
    let text = metrics.text(Format::Prometheus, &store, 2, &fairness);
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
            .text(Format::Prometheus, &store, 0, &fairness)
            .contains("version=\"v1\"} 0")
    );
}

fn text_in(accept: &str) -> String {
    let (format, content_type) = text::negotiate(accept);
    let mut text = Text::new(format);
    text.family("things_total", "counter", "Things.");
    text.sample("things_total", &[("of", "a\"b")], 3);
    text.family("attempts", "counter", "Attempts.");
    text.sample("attempts", &[], 1);
    text.family("lengths", "histogram", "Lengths.");
    text.histogram("lengths", &[], [(1.0, 2)].into_iter(), 2.5, 2);
    format!("{content_type}\n{}", text.into_string())
}

#[test]
fn the_format_is_what_the_client_takes_best() {
    let prometheus = expect![[r##"
        text/plain; version=0.0.4; charset=utf-8; escaping=underscores
        # HELP things_total Things.
        # TYPE things_total counter
        things_total{of="a\"b"} 3
        # HELP attempts Attempts.
        # TYPE attempts counter
        attempts 1
        # HELP lengths Lengths.
        # TYPE lengths histogram
        lengths_bucket{le="1"} 2
        lengths_bucket{le="+Inf"} 2
        lengths_sum 2.5
        lengths_count 2
    "##]];
    prometheus.assert_eq(&text_in("text/html"));
    prometheus.assert_eq(&text_in(
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain",
    ));
    let open = expect![[r##"
        application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8
        # HELP things Things.
        # TYPE things counter
        things_total{of="a\"b"} 3
        # HELP attempts Attempts.
        # TYPE attempts unknown
        attempts 1
        # HELP lengths Lengths.
        # TYPE lengths histogram
        lengths_bucket{le="1.0"} 2
        lengths_bucket{le="+Inf"} 2
        lengths_sum 2.5
        lengths_count 2
        # EOF
    "##]];
    open.assert_eq(&text_in(
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
         text/plain;version=0.0.4;q=0.4,*/*;q=0.1",
    ));
}

#[test]
fn admission_is_timed_by_plugin_and_by_step() {
    use crate::admission::Operation;
    use admission::Step;
    let times = Times::default();
    let took = |plugin, is_rejected, ms| {
        let took = Duration::from_millis(ms);
        times.add(plugin, Step::Admit, Operation::Create, is_rejected, took);
    };
    took(Some(Plugin::Priority), false, 4);
    took(Some(Plugin::Priority), true, 30);
    took(None, true, 40);
    let mut text = Text::default();
    times.text(&mut text);
    let text = text.into_string();
    let has = |line: &str| assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    let name = "apiserver_admission_controller_admission_duration_seconds";
    has(&format!(
        "{name}_bucket{{name=\"Priority\",operation=\"CREATE\",rejected=\"false\",type=\"admit\",\
         le=\"0.005\"}} 1"
    ));
    has(&format!(
        "{name}_count{{name=\"Priority\",operation=\"CREATE\",rejected=\"true\",type=\"admit\"}} 1"
    ));
    has(
        "apiserver_admission_step_admission_duration_seconds_sum{operation=\"CREATE\",\
         rejected=\"true\",type=\"admit\"} 0.04",
    );
}

#[test]
fn attempts_to_come_in_are_counted_and_timed_by_how_they_ended() {
    use crate::authenticate::User;
    let access = access::Access::default();
    access.unrecognized(true, Duration::from_millis(2));
    access.unrecognized(true, Duration::from_millis(22));
    access.unrecognized(false, Duration::from_millis(1));
    let names = [
        "admin",
        "system:serviceaccount:kube-system:default",
        "jane@example.com",
        "system:anonymous",
        "jane",
    ];
    for name in names {
        access.recognized(&User::named(name), Duration::from_millis(5));
    }
    let mut text = Text::default();
    access.text(&mut text);
    let text = text.into_string();
    let told = |name: &str| -> Vec<&str> {
        let start = format!("{name}{{");
        let own = text.lines().filter(|line| line.starts_with(&start));
        own.map(|line| &line[name.len()..]).collect()
    };
    let attempts = [
        "{result=\"error\"} 2",
        "{result=\"failure\"} 1",
        "{result=\"success\"} 5",
    ];
    assert_eq!(told("authentication_attempts"), attempts);
    assert_eq!(told("authentication_duration_seconds_count"), attempts);
    assert_eq!(
        told("authentication_duration_seconds_sum"),
        [
            "{result=\"error\"} 0.024",
            "{result=\"failure\"} 0.001",
            "{result=\"success\"} 0.025",
        ]
    );
    let buckets = told("authentication_duration_seconds_bucket");
    assert!(buckets.contains(&"{result=\"error\",le=\"0.004\"} 1"));
    assert!(buckets.contains(&"{result=\"error\",le=\"16.384\"} 2"));
    assert_eq!(
        told("authenticated_user_requests"),
        [
            "{username=\"admin\"} 1",
            "{username=\"system:serviceaccount:kube-system:default\"} 1",
            "{username=\"email_id\"} 1",
            "{username=\"other\"} 2",
        ]
    );
}
