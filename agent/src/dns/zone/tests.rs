//! Questions and answers of a small cluster.

use super::*;
use crate::dns::testing::name;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn service(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

fn external(name: &str, to: &str) -> Value {
    service(name, json!({"type": "ExternalName", "externalName": to}))
}

fn slice(name: &str, service: &str, kind: &str, ports: Value, endpoints: Value) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "shop",
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": kind, "ports": ports, "endpoints": endpoints,
    })
}

fn services() -> Value {
    let http = json!([
        {"name": "http", "port": 80, "protocol": "TCP"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    ]);
    let dns = json!({
        "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {"clusterIP": "10.43.0.10", "clusterIPs": ["10.43.0.10"]},
    });
    json!([
        dns,
        service(
            "web",
            json!({"clusterIP": "10.43.0.20", "clusterIPs": ["10.43.0.20"], "ports": http})
        ),
        service(
            "both",
            json!({
                "clusterIP": "10.43.0.21", "clusterIPs": ["10.43.0.21", "fd43::21"],
                "ports": [{"port": 80}],
            })
        ),
        service(
            "bare",
            json!({"clusterIP": "10.43.0.22", "clusterIPs": ["10.43.0.22"]})
        ),
        service("waiting", json!({"clusterIP": "", "ports": [{"port": 80}]})),
        service(
            "db",
            json!({"clusterIP": "None", "clusterIPs": ["None"], "ports": [{"name": "sql", "port": 5432}]})
        ),
        service(
            "empty",
            json!({"clusterIP": "None", "clusterIPs": ["None"]})
        ),
        external("out", "example.com"),
        external("near", "web.shop.svc.cluster.local"),
        external("chain", "near.shop.svc.cluster.local."),
        external("round", "round.shop.svc.cluster.local"),
        external("nowhere", "no.shop.svc.cluster.local"),
        external("pod", "1-2-3-4.shop.pod.cluster.local"),
        external("server", "ns.dns.cluster.local"),
        external("number", "192.168.1.1"),
    ])
}

fn slices() -> Value {
    let sql = json!([{"name": "sql", "port": 5432, "protocol": "TCP"}]);
    json!([
        slice(
            "db-4",
            "db",
            "IPv4",
            sql.clone(),
            json!([
                {"addresses": ["10.42.0.5"], "hostname": "db-0", "conditions": {"ready": true}},
                {"addresses": ["10.42.1.6"], "conditions": {}},
                {"addresses": ["10.42.1.7"], "hostname": "db-2", "conditions": {"ready": false}},
            ])
        ),
        slice(
            "db-6",
            "db",
            "IPv6",
            sql,
            json!([
                {"addresses": ["fd42::5"], "hostname": "db-0", "conditions": {"ready": true}},
            ])
        ),
        slice(
            "web-1",
            "web",
            "IPv4",
            json!([{"name": "http", "port": 8080}]),
            json!([
                {"addresses": ["10.42.0.9"], "conditions": {"ready": true}},
            ])
        ),
        slice(
            "lost",
            "unknown",
            "IPv4",
            json!([]),
            json!([
                {"addresses": ["10.42.0.10"], "conditions": {"ready": true}},
            ])
        ),
    ])
}

fn view() -> View {
    let services: Vec<_> = serde_json::from_value(services()).unwrap();
    let slices: Vec<_> = serde_json::from_value(slices()).unwrap();
    View::of(&services, &slices, &["shop", "kube-system"])
}

fn zone(view: View) -> Zone {
    Zone::new(Domain::parse("cluster.local").unwrap(), view, 7)
}

fn lines(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| {
        format!(
            "{} {} {} {}",
            record.name,
            record.ttl,
            record.record_type(),
            record.data
        )
    };
    let mut lines: Vec<_> = records.iter().map(line).collect();
    // Answers take turns.
    lines.sort();
    lines
}

fn say(found: Found) -> String {
    match found {
        Found::Records {
            answers,
            additionals,
        } => {
            let mut text = lines(&answers);
            text.extend(lines(&additionals).iter().map(|line| format!("+ {line}")));
            text.join("\n")
        }
        Found::Alias { answers, target } => {
            format!("{}\nask {target}", lines(&answers).join("\n"))
        }
        other => format!("{other:?}"),
    }
}

fn check(text: &str, kind: RecordType, expected: &Expect) {
    expected.assert_eq(&say(zone(view()).find(&name(text), kind)));
}

const A: RecordType = RecordType::A;
const AAAA: RecordType = RecordType::AAAA;
const SRV: RecordType = RecordType::SRV;

#[test]
fn a_service_has_its_address() {
    check(
        "web.shop.svc.cluster.local",
        A,
        &expect!["web.shop.svc.cluster.local. 5 A 10.43.0.20"],
    );
    check(
        "Web.SHOP.svc.cluster.local",
        A,
        &expect!["Web.SHOP.svc.cluster.local. 5 A 10.43.0.20"],
    );
    check("web.shop.svc.cluster.local", AAAA, &expect!["NoData"]);
    check(
        "both.shop.svc.cluster.local",
        AAAA,
        &expect!["both.shop.svc.cluster.local. 5 AAAA fd43::21"],
    );
    check(
        "bare.shop.svc.cluster.local",
        A,
        &expect!["bare.shop.svc.cluster.local. 5 A 10.43.0.22"],
    );
    check("waiting.shop.svc.cluster.local", A, &expect!["NoData"]);
    check(
        "_http._tcp.web.shop.svc.cluster.local",
        A,
        &expect!["_http._tcp.web.shop.svc.cluster.local. 5 A 10.43.0.20"],
    );
    for kind in [
        RecordType::TXT,
        RecordType::MX,
        RecordType::HTTPS,
        RecordType::CNAME,
    ] {
        check("web.shop.svc.cluster.local", kind, &expect!["NoData"]);
    }
}

#[test]
fn a_headless_service_has_those_of_its_ready_endpoints() {
    check(
        "db.shop.svc.cluster.local",
        A,
        &expect![[r#"
        db.shop.svc.cluster.local. 5 A 10.42.0.5
        db.shop.svc.cluster.local. 5 A 10.42.1.6"#]],
    );
    check(
        "db.shop.svc.cluster.local",
        AAAA,
        &expect!["db.shop.svc.cluster.local. 5 AAAA fd42::5"],
    );
    check(
        "db-0.db.shop.svc.cluster.local",
        A,
        &expect!["db-0.db.shop.svc.cluster.local. 5 A 10.42.0.5"],
    );
    check(
        "10-42-1-6.db.shop.svc.cluster.local",
        A,
        &expect!["10-42-1-6.db.shop.svc.cluster.local. 5 A 10.42.1.6"],
    );
    // One with a host name has no other; one that is not ready has none.
    check("10-42-0-5.db.shop.svc.cluster.local", A, &expect!["NoName"]);
    check("db-2.db.shop.svc.cluster.local", A, &expect!["NoName"]);
    check(
        "10-42-0-9.web.shop.svc.cluster.local",
        A,
        &expect!["10-42-0-9.web.shop.svc.cluster.local. 5 A 10.42.0.9"],
    );
    check("empty.shop.svc.cluster.local", A, &expect!["NoName"]);
}

#[test]
fn ports_are_found_by_name() {
    check(
        "_http._tcp.web.shop.svc.cluster.local",
        SRV,
        &expect![[r#"
        _http._tcp.web.shop.svc.cluster.local. 5 SRV 0 100 80 web.shop.svc.cluster.local.
        + web.shop.svc.cluster.local. 5 A 10.43.0.20"#]],
    );
    check(
        "web.shop.svc.cluster.local",
        SRV,
        &expect![[r#"
        web.shop.svc.cluster.local. 5 SRV 0 50 53 web.shop.svc.cluster.local.
        web.shop.svc.cluster.local. 5 SRV 0 50 80 web.shop.svc.cluster.local.
        + web.shop.svc.cluster.local. 5 A 10.43.0.20"#]],
    );
    check(
        "_sql._tcp.db.shop.svc.cluster.local",
        SRV,
        &expect![[r#"
        _sql._tcp.db.shop.svc.cluster.local. 5 SRV 0 33 5432 10-42-1-6.db.shop.svc.cluster.local.
        _sql._tcp.db.shop.svc.cluster.local. 5 SRV 0 33 5432 db-0.db.shop.svc.cluster.local.
        + 10-42-1-6.db.shop.svc.cluster.local. 5 A 10.42.1.6
        + db-0.db.shop.svc.cluster.local. 5 A 10.42.0.5
        + db-0.db.shop.svc.cluster.local. 5 AAAA fd42::5"#]],
    );
    check(
        "_http._udp.web.shop.svc.cluster.local",
        SRV,
        &expect!["NoName"],
    );
    check(
        "_nope._tcp.db.shop.svc.cluster.local",
        SRV,
        &expect!["NoName"],
    );
    check("bare.shop.svc.cluster.local", SRV, &expect!["NoData"]);
}

#[test]
fn an_external_name_leads_on() {
    check(
        "out.shop.svc.cluster.local",
        A,
        &expect![[r#"
        out.shop.svc.cluster.local. 5 CNAME example.com.
        ask example.com."#]],
    );
    check(
        "out.shop.svc.cluster.local",
        RecordType::CNAME,
        &expect!["out.shop.svc.cluster.local. 5 CNAME example.com."],
    );
    check("out.shop.svc.cluster.local", SRV, &expect!["NoData"]);
    check(
        "_http._tcp.out.shop.svc.cluster.local",
        A,
        &expect!["NoName"],
    );
    check(
        "chain.shop.svc.cluster.local",
        A,
        &expect![[r#"
        chain.shop.svc.cluster.local. 5 CNAME near.shop.svc.cluster.local.
        near.shop.svc.cluster.local. 5 CNAME web.shop.svc.cluster.local.
        web.shop.svc.cluster.local. 5 A 10.43.0.20"#]],
    );
    check(
        "pod.shop.svc.cluster.local",
        A,
        &expect![[r#"
        1-2-3-4.shop.pod.cluster.local. 5 A 1.2.3.4
        pod.shop.svc.cluster.local. 5 CNAME 1-2-3-4.shop.pod.cluster.local."#]],
    );
    check(
        "server.shop.svc.cluster.local",
        A,
        &expect![[r#"
        ns.dns.cluster.local. 5 A 10.43.0.10
        server.shop.svc.cluster.local. 5 CNAME ns.dns.cluster.local."#]],
    );
    check("near.shop.svc.cluster.local", AAAA, &expect!["NoData"]);
    check("round.shop.svc.cluster.local", A, &expect!["NoData"]);
    check("nowhere.shop.svc.cluster.local", A, &expect!["NoData"]);
    check("number.shop.svc.cluster.local", A, &expect!["NoName"]);
}

#[test]
fn pods_have_names_by_their_addresses() {
    check(
        "1-2-3-4.shop.pod.cluster.local",
        A,
        &expect!["1-2-3-4.shop.pod.cluster.local. 5 A 1.2.3.4"],
    );
    check(
        "fd00--1.shop.pod.cluster.local",
        AAAA,
        &expect!["fd00--1.shop.pod.cluster.local. 5 AAAA fd00::1"],
    );
    check("1-2-3-4.shop.pod.cluster.local", AAAA, &expect!["NoData"]);
    check("web-0.shop.pod.cluster.local", A, &expect!["NoName"]);
    check("1-2-3-4.no.pod.cluster.local", A, &expect!["NoName"]);
}

#[test]
fn the_domain_tells_of_itself() {
    check(
        "dns-version.cluster.local",
        RecordType::TXT,
        &expect!["dns-version.cluster.local. 28800 TXT 1.1.0"],
    );
    check("dns-version.cluster.local", A, &expect!["NoData"]);
    check(
        "cluster.local",
        RecordType::NS,
        &expect![[r#"
        cluster.local. 5 NS ns.dns.cluster.local.
        + ns.dns.cluster.local. 5 A 10.43.0.10"#]],
    );
    check(
        "ns.dns.cluster.local",
        A,
        &expect!["ns.dns.cluster.local. 5 A 10.43.0.10"],
    );
    check(
        "cluster.local",
        RecordType::SOA,
        &expect![
            "cluster.local. 5 SOA ns.dns.cluster.local. hostmaster.cluster.local. 7 7200 1800 86400 5"
        ],
    );
    for text in [
        "cluster.local",
        "svc.cluster.local",
        "pod.cluster.local",
        "shop.svc.cluster.local",
    ] {
        check(text, A, &expect!["NoData"]);
    }
    check("no.svc.cluster.local", A, &expect!["NoName"]);
    check("web.no.svc.cluster.local", A, &expect!["NoName"]);
    check("unknown.shop.svc.cluster.local", A, &expect!["NoName"]);
    check("*.shop.svc.cluster.local", A, &expect!["NoName"]);
    check("cluster.local", RecordType::AXFR, &expect!["Refused"]);
}

#[test]
fn addresses_have_names() {
    let ptr = RecordType::PTR;
    check(
        "20.0.43.10.in-addr.arpa",
        ptr,
        &expect!["20.0.43.10.in-addr.arpa. 5 PTR web.shop.svc.cluster.local."],
    );
    check(
        "5.0.42.10.in-addr.arpa",
        ptr,
        &expect!["5.0.42.10.in-addr.arpa. 5 PTR db-0.db.shop.svc.cluster.local."],
    );
    check(
        "6.1.42.10.in-addr.arpa",
        ptr,
        &expect!["6.1.42.10.in-addr.arpa. 5 PTR 10-42-1-6.db.shop.svc.cluster.local."],
    );
    check(
        "9.0.42.10.in-addr.arpa",
        ptr,
        &expect!["9.0.42.10.in-addr.arpa. 5 PTR 10-42-0-9.web.shop.svc.cluster.local."],
    );
    check("99.0.42.10.in-addr.arpa", ptr, &expect!["Elsewhere"]);
    check("20.0.43.10.in-addr.arpa", A, &expect!["Elsewhere"]);
    check("example.com", A, &expect!["Elsewhere"]);
}

#[test]
fn what_is_not_known_yet_is_not_denied() {
    let zone = zone(View::new());
    for text in ["web.shop.svc.cluster.local", "shop.svc.cluster.local"] {
        assert_eq!(zone.find(&name(text), A), Found::Unknown);
    }
    assert_eq!(zone.find(&name("cluster.local"), A), Found::NoData);
}

#[test]
fn answers_take_turns() {
    let zone = zone(view());
    let first = |_| match zone.find(&name("db.shop.svc.cluster.local"), A) {
        Found::Records { answers, .. } => answers[0].data.to_string(),
        other => panic!("{other:?}"),
    };
    let firsts: HashSet<String> = (0..2).map(first).collect();
    assert_eq!(firsts.len(), 2);
}

/// Three labels of 63, and what is left: 253 characters, the most that a name may have.
#[test]
fn the_longest_name_is_answered() {
    let label = "x".repeat(63);
    let tail = "svc.cluster.local";
    let rest = "y".repeat(253 - 3 * 64 - tail.len() - 1);
    let text = format!("{label}.{label}.{label}.{rest}.{tail}");
    assert_eq!(text.len(), 253);
    check(&text, A, &expect!["NoName"]);
    let text = format!("{label}.{label}.{label}.{}", "z".repeat(61));
    check(&text, A, &expect!["Elsewhere"]);
}
