use super::super::fixtures::{entry, ip, node, protocol, slice};
use super::super::plan::plan;
use super::super::state::{Changes, State};
use super::{Flow, Served, concerns};
use crate::network::services::steps::Target;
use crate::network::view::{Entry, Key};

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
    served.add(&entry(text, &slices), |_| true);
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
fn of_an_address_that_two_claim_the_connections_are_of_the_one_that_has_it() {
    let of = |ip: &str, endpoints: &str| {
        let text = format!("ip={ip} ports=dns/udp/53 external=1.2.3.4");
        entry(&text, &[slice("dns/udp/53", endpoints)])
    };
    let (a, b): (Key, Key) = ("default/a".into(), "default/b".into());
    let (winner, loser) = (of("10.43.0.1", "10.42.0.5"), of("10.43.0.2", "10.42.0.6"));
    let mut state = State::default();
    for (key, entry) in [(&a, &winner), (&b, &loser)] {
        state.update(key, plan(key, entry, &node()), &mut Changes::default());
    }
    let served = |state: &State, key: &Key, entry: &Entry| {
        let mut served = Served::default();
        served.add(entry, |way| state.holds(key, way));
        served
    };
    let (of_winner, of_loser) = (served(&state, &a, &winner), served(&state, &b, &loser));
    let to_winner = flow("udp", "1.2.3.4:53", "10.42.0.5:53");
    assert!(!of_winner.is_stale(&to_winner) && !of_loser.is_stale(&to_winner));
    let gone = flow("udp", "1.2.3.4:53", "10.42.0.9:53");
    assert!(of_winner.is_stale(&gone) && !of_loser.is_stale(&gone));
    assert!(of_loser.is_stale(&flow("udp", "10.43.0.2:53", "10.42.0.9:53")));
    // Closed by the first, it leads to the second.
    let closed = of("10.43.0.1", "");
    state.update(&a, plan(&a, &closed, &node()), &mut Changes::default());
    assert!(served(&state, &b, &loser).is_stale(&to_winner));
}

#[test]
fn a_service_without_endpoints_or_without_a_route_forgets_nothing() {
    let mut served = Served::default();
    let text = "ip=10.43.0.1 ports=dns/udp/53";
    served.add(&entry(text, &[]), |_| true);
    served.add(
        &entry(
            text,
            &[slice("dns/udp/53", "10.42.0.5 not-serving unready")],
        ),
        |_| true,
    );
    served.add(
        &entry(
            &format!("{text} by-others"),
            &[slice("dns/udp/53", "10.42.0.5")],
        ),
        |_| true,
    );
    assert!(served.is_empty());
    let concerned = |text| concerns(entry(text, &[]).service.as_deref().unwrap());
    assert!(concerned("ip=10.43.0.1 ports=web/tcp/80,dns/udp/53"));
    assert!(!concerned("ip=10.43.0.1 ports=web/tcp/80"));
}
