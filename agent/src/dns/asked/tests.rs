//! Names and what they ask for.

use super::*;

fn name(text: &str) -> Name {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let labels = labels.map(|label| label.replace("DOT", ".").into_bytes());
    Name::from_labels(labels).unwrap()
}

fn asked(text: &str) -> String {
    let domain = Domain::parse("cluster.local.").unwrap();
    match domain.place(&name(text)) {
        Place::Cluster(labels) => format!("{:?}", labels.asked()),
        Place::Reverse(address) => format!("Reverse {address}"),
        Place::Elsewhere => "Elsewhere".to_owned(),
    }
}

#[test]
fn shapes_of_names_are_those_of_the_specification() {
    let service = |before: &str| format!("{before}.web.shop.svc.cluster.local");
    let plain = ServiceName {
        namespace: "shop",
        service: "web",
        ..ServiceName::default()
    };
    let expect = |asked| format!("{asked:?}");
    for (text, expected) in [
        ("cluster.local", expect(Asked::Apex)),
        ("CLUSTER.Local", expect(Asked::Apex)),
        ("svc.cluster.local", expect(Asked::Group)),
        ("pod.cluster.local", expect(Asked::Group)),
        ("dns-version.cluster.local", expect(Asked::Version)),
        ("ns.dns.cluster.local", expect(Asked::NameServer)),
        ("shop.svc.cluster.local", expect(Asked::Namespace("shop"))),
        ("shop.pod.cluster.local", expect(Asked::Namespace("shop"))),
        ("Web.shop.SVC.cluster.local", expect(Asked::Service(plain))),
        (
            &service("db-0"),
            expect(Asked::Service(ServiceName {
                endpoint: Some("db-0"),
                ..plain
            })),
        ),
        (
            &service("_http._tcp"),
            expect(Asked::Service(ServiceName {
                port: "http",
                protocol: "tcp",
                ..plain
            })),
        ),
        (&service("a._http._tcp"), expect(Asked::Nothing)),
        (&service("b.a._http._tcp"), expect(Asked::Nothing)),
        (
            "1-2-3-4.shop.pod.cluster.local",
            expect(Asked::Pod {
                namespace: "shop",
                name: "1-2-3-4",
            }),
        ),
        ("web.shop.cluster.local", expect(Asked::Nothing)),
        ("*.shop.svc.cluster.local", expect(Asked::Nothing)),
        ("w/x.shop.svc.cluster.local", expect(Asked::Nothing)),
        ("aDOTb.shop.svc.cluster.local", expect(Asked::Nothing)),
        ("example.com", "Elsewhere".to_owned()),
        ("local", "Elsewhere".to_owned()),
        ("xcluster.local", "Elsewhere".to_owned()),
        (".", "Elsewhere".to_owned()),
        ("10.0.43.10.in-addr.arpa", "Reverse 10.43.0.10".to_owned()),
        ("43.10.in-addr.arpa", "Elsewhere".to_owned()),
        ("x.0.43.10.in-addr.arpa", "Elsewhere".to_owned()),
        ("1.10.0.43.10.in-addr.arpa", "Elsewhere".to_owned()),
        ("in-addr.arpa", "Elsewhere".to_owned()),
    ] {
        assert_eq!(asked(text), expected, "{text}");
    }
    let nibbles = "a.0.0.0.".to_owned() + &"0.".repeat(24) + "3.4.d.f.ip6.arpa";
    assert_eq!(asked(&nibbles), "Reverse fd43::a");
}

#[test]
fn addresses_are_labels_and_back() {
    for (address, label) in [
        ("10.42.0.5", "10-42-0-5"),
        ("fd00::1", "fd00--1"),
        ("fd00::", "fd00--0"),
        ("::1", "--1"),
        ("fd00:1:2:3:4:5:6:7", "fd00-1-2-3-4-5-6-7"),
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(dashed(address), label);
        assert_eq!(undashed(label), Some(address));
    }
    for label in ["db-0", "1-2-3", "1-2-3-4-5", "1-2-3-400", "", "a-b-c-d"] {
        assert_eq!(undashed(label), None, "{label}");
    }
}

#[test]
fn a_name_is_no_longer_than_it_may_be() {
    let domain = Domain::parse(&format!("{}.local", "d".repeat(63))).unwrap();
    let long = "a".repeat(63);
    assert!(domain.below(&[&long, "shop", "svc"]).is_some());
    assert!(domain.below(&[&long, &long, &long, "svc"]).is_none());
    assert!(Domain::parse("").is_none());
}
