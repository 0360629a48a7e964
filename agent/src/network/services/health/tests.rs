use super::super::fixtures::{entry, node, slice};
use super::{Checked, Health, checked};
use crate::network::view::{Entry, Key, Service, ServiceKind};
use coracle_client::clock::Clock;
use expect_test::expect;
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;

fn balanced(text: &str, endpoints: &str) -> Entry {
    let mut entry = entry(
        text,
        &[
            slice("http/tcp/8080", endpoints),
            slice("x/tcp/9", endpoints),
        ],
    );
    let mut service = Service::clone(entry.service.as_deref().unwrap());
    service.kind = ServiceKind::LoadBalancer;
    entry.service = Some(Arc::new(service));
    entry
}

const TEXT: &str = "ip=10.43.0.1 ports=http/tcp/80,x/tcp/9 external-local health=30123";

fn health() -> Health {
    Health::new(Clock::starting_at(
        "2026-01-02T03:04:05.6Z".parse().unwrap(),
    ))
}

#[test]
fn ready_addresses_of_this_node_are_counted_once() {
    let endpoints =
        "10.42.0.5 here\n10.42.0.6 here\n10.42.0.7 here unready terminating\n10.42.1.8 there";
    let found = checked(&balanced(TEXT, endpoints), &node());
    assert_eq!(
        found,
        Some(Checked {
            port: 30123,
            endpoints: 2
        })
    );
    for none in [
        "ip=10.43.0.1 ports=http/tcp/80 health=30123",
        "ip=10.43.0.1 ports=http/tcp/80 external-local",
    ] {
        assert_eq!(checked(&balanced(none, endpoints), &node()), None, "{none}");
    }
    assert_eq!(
        checked(&entry(TEXT, &[]), &node()),
        None,
        "no load balancer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_answers_by_its_endpoints_here() {
    let health = health();
    let key: Key = "default/web".into();
    assert_eq!(health.of_service(&key), None);
    assert!(health.set(
        &key,
        Some(Checked {
            port: 30123,
            endpoints: 2
        })
    ));
    assert!(!health.set(
        &key,
        Some(Checked {
            port: 30123,
            endpoints: 1
        })
    ));
    let answer = health.of_service(&key).unwrap();
    assert_eq!((answer.status, answer.weight), (StatusCode::OK, Some(1)));
    expect![[r#"
        {
        	"service": {
        		"namespace": "default",
        		"name": "web"
        	},
        	"localEndpoints": 1,
        	"serviceProxyHealthy": true
        }"#]]
    .assert_eq(&answer.body);
    health.set(
        &key,
        Some(Checked {
            port: 30123,
            endpoints: 0,
        }),
    );
    let answer = health.of_service(&key).unwrap();
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(health.set(&key, None));
}

#[tokio::test(start_paused = true)]
async fn the_node_answers_whether_it_follows_and_stays() {
    let health = health();
    let status = |path| health.of_node(path).unwrap().status;
    assert_eq!(status("/livez"), StatusCode::OK);
    assert_eq!(status("/healthz"), StatusCode::SERVICE_UNAVAILABLE);
    expect![[r#"{"lastUpdated":"0001-01-01T00:00:00Z","currentTime":"2026-01-02T03:04:05.6Z","nodeEligible":false,"healthy":true}"#]].assert_eq(&health.of_node("/healthz").unwrap().body);
    health.set_eligible(true);
    health.done();
    assert_eq!(status("/healthz"), StatusCode::OK);
    expect![[r#"{"lastUpdated":"2026-01-02T03:04:05.6Z","currentTime":"2026-01-02T03:04:05.6Z","healthy":true,"status":{"IPv4":{"lastUpdated":"2026-01-02T03:04:05.6Z","healthy":true},"IPv6":{"lastUpdated":"2026-01-02T03:04:05.6Z","healthy":true}}}"#]].assert_eq(&health.of_node("/livez").unwrap().body);
    health.wait();
    tokio::time::advance(Duration::from_secs(59)).await;
    health.wait();
    assert_eq!(status("/healthz"), StatusCode::OK);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(status("/healthz"), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(status("/livez"), StatusCode::SERVICE_UNAVAILABLE);
    expect![[r#"{"lastUpdated":"2026-01-02T03:04:05.6Z","currentTime":"2026-01-02T03:05:05.6Z","nodeEligible":true,"healthy":false,"status":{"IPv4":{"lastUpdated":"2026-01-02T03:04:05.6Z","healthy":false},"IPv6":{"lastUpdated":"2026-01-02T03:04:05.6Z","healthy":false}}}"#]].assert_eq(&health.of_node("/healthz").unwrap().body);
    health.done();
    assert_eq!(status("/livez"), StatusCode::OK);
    assert_eq!(health.of_node("/"), None);
}
