//! Addresses and domains of the cluster's DNS.

use super::*;

fn args(servers: &[&str], domain: Option<&str>) -> DnsArgs {
    DnsArgs {
        cluster_dns: servers.iter().map(|text| (*text).to_owned()).collect(),
        cluster_domain: domain.map(str::to_owned),
    }
}

fn networks() -> Vec<parse::Cidr> {
    parse::cidrs("service-cidr", Some("10.43.0.0/16,fd43::/112"), "").unwrap()
}

#[test]
fn a_server_takes_addresses_of_its_services() {
    let taken = server(
        &args(&["10.43.0.53", "fd43::53"], Some("edge.example.")),
        &networks(),
    );
    let taken = taken.unwrap();
    assert_eq!(taken.addresses.len(), 2);
    assert_eq!(taken.domain, "edge.example");
    let default = server(&args(&[], None), &networks()).unwrap();
    assert!(default.addresses.is_empty());
    assert_eq!(default.domain, "cluster.local");
    for bad in [
        &["10.44.0.10"][..],
        &["10.43.0.10", "10.43.0.11"],
        &["x"],
        &["10.43.0.10", "fd43::a", "fd43::b"],
    ] {
        assert!(server(&args(bad, None), &networks()).is_err(), "{bad:?}");
    }
    assert!(server(&args(&[], Some("no_name")), &networks()).is_err());
}

#[test]
fn a_node_takes_any_address() {
    let taken = agent(&args(&["169.254.20.10"], Some("other.local"))).unwrap();
    assert_eq!(taken.servers, ["169.254.20.10".parse::<IpAddr>().unwrap()]);
    assert_eq!(taken.domain.as_deref(), Some("other.local"));
}
