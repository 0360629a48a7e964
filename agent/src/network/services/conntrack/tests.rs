use super::super::fixtures::{entry, ip, protocol, slice};
use super::{Flow, Served, concerns};
use crate::network::services::steps::Target;

fn target(text: &str) -> Target {
    let (address, port) = text.rsplit_once(':').unwrap();
    Target {
        address: ip(address),
        port: port.parse().unwrap(),
    }
}

fn flow(name: &str, destination: &str, answers: &str) -> Flow {
    Flow {
        protocol: protocol(name),
        destination: target(destination),
        answers: target(answers),
    }
}

#[test]
fn connections_to_endpoints_that_do_not_serve_are_stale() {
    let slices = [
        slice(
            "dns/udp/53",
            "10.42.0.5 here\n10.42.0.6 unready terminating\n10.42.0.7 unready not-serving",
        ),
        slice("web/tcp/80", "10.42.0.5 here"),
        slice("x/sctp/9", "10.42.0.5 here"),
    ];
    let text =
        "ip=10.43.0.1 ports=dns/udp/53/30053,web/tcp/80,x/sctp/9 external=1.2.3.4 balancer=5.6.7.8";
    let mut served = Served::default();
    served.add(&entry(text, &slices));
    let is_stale = |name, destination, answers| served.is_stale(&flow(name, destination, answers));
    for way in [
        "10.43.0.1:53",
        "1.2.3.4:53",
        "5.6.7.8:53",
        "192.168.1.10:30053",
    ] {
        assert!(!is_stale("udp", way, "10.42.0.5:53"), "{way}");
        // It ends, but still answers.
        assert!(!is_stale("udp", way, "10.42.0.6:53"), "{way}");
        assert!(is_stale("udp", way, "10.42.0.7:53"), "{way}");
        assert!(is_stale("udp", way, "10.42.0.5:54"), "{way}");
        // It came before there was an endpoint, and was sent nowhere.
        assert!(is_stale("udp", way, way), "{way}");
    }
    assert!(is_stale("sctp", "10.43.0.1:9", "10.42.0.9:9"));
    assert!(!is_stale("tcp", "10.43.0.1:80", "10.42.0.9:80"));
    assert!(!is_stale("udp", "10.43.0.1:80", "10.42.0.9:80"));
    assert!(!is_stale("udp", "10.43.0.2:53", "10.42.0.9:53"));
    assert!(!is_stale("udp", "fd00::1:30053", "fd00::9:53"));
}

#[test]
fn a_service_without_endpoints_or_without_a_route_forgets_nothing() {
    let mut served = Served::default();
    let text = "ip=10.43.0.1 ports=dns/udp/53";
    served.add(&entry(text, &[]));
    served.add(&entry(
        text,
        &[slice("dns/udp/53", "10.42.0.5 not-serving unready")],
    ));
    served.add(&entry(
        &format!("{text} by-others"),
        &[slice("dns/udp/53", "10.42.0.5")],
    ));
    assert!(served.is_empty());
    let concerned = |text| concerns(entry(text, &[]).service.as_deref().unwrap());
    assert!(concerned("ip=10.43.0.1 ports=web/tcp/80,dns/udp/53"));
    assert!(!concerned("ip=10.43.0.1 ports=web/tcp/80"));
}
