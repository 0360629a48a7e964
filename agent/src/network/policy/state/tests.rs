//! What follows from changes, in a model of the kernel that takes them as it does.

use super::*;
use crate::network::policy::decode;
use crate::network::policy::plan::Span;
use crate::network::policy::record::NamedPort;
use crate::network::view::Protocol;

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The kernel, as far as pods' chains go.
#[derive(Debug, Default, Eq, PartialEq)]
struct Model {
    /// Direction, and lines as text, for comparing; empty chains have none.
    chains: BTreeMap<u32, Rules>,
    entries: BTreeSet<Entry>,
}

type Rules = Option<(Direction, Vec<Rule>)>;

#[derive(Clone, Debug, Eq, PartialEq)]
struct Rule {
    who: Who,
    spans: Box<[Span]>,
}

/// A packet that begins a connection.
#[derive(Clone, Copy, Debug)]
struct Packet {
    from: IpAddr,
    to: IpAddr,
    protocol: Protocol,
    port: u16,
}

impl Model {
    fn take(&mut self, changes: &Changes) {
        for chain in &changes.chains {
            let lines = chain.lines.iter();
            let lines = lines.map(|line| Rule {
                who: line.who,
                spans: line.spans.clone(),
            });
            let rules = Some((chain.direction, lines.collect()));
            self.chains.insert(chain.number, rules);
        }
        for entry in &changes.going {
            assert!(self.entries.remove(entry), "{entry:?} is not there");
        }
        for entry in &changes.coming {
            assert!(self.entries.insert(entry.clone()), "{entry:?} is there");
            if let Entry::Link(direction, link, number) = entry {
                let chain = self.chains.get(number).and_then(Option::as_ref);
                assert_eq!(chain.map(|(of, _)| *of), Some(*direction), "{link}");
                let of_link = |entry: &&Entry| matches!(entry, Entry::Link(of, other, _) if of == direction && other == link);
                assert_eq!(self.entries.iter().filter(of_link).count(), 1, "{link}");
            }
        }
        for number in &changes.emptied {
            let is_led_to =
                |entry: &Entry| matches!(entry, Entry::Link(_, _, chain) if chain == number);
            assert!(!self.entries.iter().any(is_led_to), "{number}");
            self.chains.insert(*number, None);
        }
        for number in &changes.deleted {
            assert_eq!(self.chains.remove(number), Some(None), "{number}");
        }
    }

    fn passes(&self, direction: Direction, link: &str, packet: Packet) -> bool {
        let chain = self.entries.iter().find_map(|entry| match entry {
            Entry::Link(of, other, number) if *of == direction && **other == *link => Some(number),
            _ => None,
        });
        let Some(chain) = chain else {
            return true;
        };
        let itself = Entry::Itself(link.into(), packet.to);
        if packet.from == packet.to && self.entries.contains(&itself) {
            return true;
        }
        let peer = match direction {
            Direction::Ingress => packet.from,
            Direction::Egress => packet.to,
        };
        let (_, rules) = self.chains[chain].as_ref().unwrap();
        rules.iter().any(|rule| {
            let is_meant = match rule.who {
                Who::Everyone => true,
                Who::Peers(group) => self.entries.contains(&Entry::Peer(group, peer)),
                Who::PeerPorts(group) => self.entries.contains(&Entry::PeerPort(
                    group,
                    peer,
                    packet.protocol,
                    packet.port,
                )),
                Who::Blocks { number, .. } => self.entries.iter().any(|entry| {
                    matches!(entry, Entry::Block(of, block)
                        if *of == number && block.first <= peer && peer <= block.last)
                }),
            };
            let at_port = rule.spans.is_empty()
                || rule.spans.iter().any(|span| {
                    span.protocol == packet.protocol
                        && (span.first..=span.last).contains(&packet.port)
                });
            is_meant && at_port
        })
    }

    /// Without what waits to be deleted.
    fn settled(&self) -> (Vec<&Rules>, &BTreeSet<Entry>) {
        let chains = self.chains.values().filter(|chain| chain.is_some());
        (chains.collect(), &self.entries)
    }
}

#[derive(Default)]
pub struct Bench {
    pub state: State,
    model: Model,
}

impl Bench {
    pub fn policy(&mut self, key: &str, spec: &str) {
        let spec = serde_yaml_ng::from_str(spec).unwrap();
        let policy = decode::policy(namespace(key), spec);
        self.state.set_policy(&key.into(), Some(policy.unwrap()));
    }

    pub fn namespace(&mut self, name: &str, labels: &str) {
        self.state.set_namespace(name, Some(self::labels(labels)));
    }

    /// `a=b,c=d` are labels, `http/TCP/80` is a port.
    pub fn pod(&mut self, key: &str, address: &str, labels: &str) {
        self.state.set_pod(&key.into(), Some(pod(address, labels)));
    }

    pub fn here(&mut self, link: &str, key: &str, address: &str, labels: &str) {
        let here = Here {
            key: key.into(),
            pod: pod(address, labels),
        };
        self.state.set_here(&link.into(), Some(here));
    }

    /// Takes in what changed, and looks whether all of it from nothing is the same.
    fn settle(&mut self) -> Changes {
        let changes = self.state.flush();
        self.model.take(&changes);
        let mut anew = Model::default();
        let chains = self.model.chains.iter();
        let stale = chains.filter(|(_, chain)| chain.is_none());
        let stale: Vec<u32> = stale.map(|(number, _)| *number).collect();
        anew.take(&self.state.written.whole(stale));
        assert_eq!(anew.settled(), self.model.settled());
        assert!(self.state.flush().is_empty());
        changes
    }

    #[track_caller]
    fn check(&self, direction: Direction, link: &str, packet: &str, passes: bool) {
        let (from, rest) = packet.split_once(" to ").unwrap();
        let mut words = rest.split(' ');
        let mut word = || words.next().unwrap();
        let packet = Packet {
            from: ip(from),
            to: ip(word()),
            protocol: match word() {
                "tcp" => Protocol::Tcp,
                "udp" => Protocol::Udp,
                _ => Protocol::Sctp,
            },
            port: word().parse().unwrap(),
        };
        let found = self.model.passes(direction, link, packet);
        assert_eq!(found, passes, "{direction:?} {packet:?}");
    }

    #[track_caller]
    fn enters(&self, link: &str, packet: &str, passes: bool) {
        self.check(Direction::Ingress, link, packet, passes);
    }

    #[track_caller]
    fn leaves(&self, link: &str, packet: &str, passes: bool) {
        self.check(Direction::Egress, link, packet, passes);
    }
}

fn labels(text: &str) -> Labels {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    Labels::of(pairs)
}

fn pod(address: &str, text: &str) -> Pod {
    let ports = text.split(',').filter_map(|part| {
        let mut words = part.split('/');
        Some(coracle_api::policy_feed::NamedPort {
            name: words.next()?.to_owned(),
            protocol: words.next()?.to_owned(),
            port: words.next()?.parse().ok()?,
        })
    });
    let ports: Vec<_> = ports.collect();
    Pod {
        labels: labels(text),
        addresses: [ip(address)].into(),
        ports: decode::named_ports(&ports),
        ..Pod::default()
    }
}

const FROM_FRONT: &str = "
podSelector: { matchLabels: { app: db } }
ingress:
- from: [{ namespaceSelector: { matchLabels: { tier: front } }, podSelector: { matchLabels: { app: web } } }]
  ports: [{ port: 5432 }]
";

#[test]
fn peers_are_meant_by_their_labels_and_those_of_their_namespace() {
    let mut bench = Bench::default();
    bench.namespace("shop", "tier=back");
    bench.namespace("front", "tier=front");
    bench.here("l1", "shop/db", "10.0.0.1", "app=db");
    bench.pod("front/web", "10.0.1.1", "app=web");
    bench.pod("front/job", "10.0.1.2", "app=job");
    bench.pod("shop/web", "10.0.1.3", "app=web");
    bench.settle();
    bench.enters("l1", "10.0.1.2 to 10.0.0.1 tcp 80", true);
    bench.policy("shop/db", FROM_FRONT);
    bench.settle();
    let all = |bench: &Bench, passing: [bool; 3]| {
        for (number, passes) in (1..).zip(passing) {
            let packet = format!("10.0.1.{number} to 10.0.0.1 tcp 5432");
            bench.enters("l1", &packet, passes);
            bench.enters("l1", &packet.replace("5432", "5433"), false);
            bench.enters("l1", &packet.replace("tcp", "udp"), false);
            bench.leaves("l1", &format!("10.0.0.1 to 10.0.1.{number} tcp 1"), true);
        }
    };
    all(&bench, [true, false, false]);
    bench.pod("front/job", "10.0.1.2", "app=web");
    bench.settle();
    all(&bench, [true, true, false]);
    bench.namespace("shop", "tier=front");
    bench.namespace("front", "tier=old");
    bench.settle();
    all(&bench, [false, false, true]);
    bench.state.set_pod(&"shop/web".into(), None);
    bench.settle();
    all(&bench, [false, false, false]);
    // The pod itself is another one by its labels.
    bench.pod("shop/db", "10.0.0.1", "app=other");
    bench.settle();
    bench.enters("l1", "10.0.1.2 to 10.0.0.1 tcp 80", true);
    bench.pod("shop/db", "10.0.0.1", "app=db");
    bench.settle();
    bench.enters("l1", "10.0.1.2 to 10.0.0.1 tcp 80", false);
    bench.state.set_policy(&"shop/db".into(), None);
    let changes = bench.settle();
    assert_eq!(changes.emptied.len(), 1);
    assert!(bench.model.entries.is_empty());
    bench.enters("l1", "10.0.1.2 to 10.0.0.1 tcp 80", true);
    for _ in 0..2 {
        assert!(bench.state.has_stale() && !bench.model.chains.is_empty());
        let swept = bench.state.sweep();
        bench.model.take(&swept);
    }
    assert!(!bench.state.has_stale() && bench.model.chains.is_empty());
}

#[test]
fn a_pod_that_comes_or_goes_changes_elements_alone() {
    let mut bench = Bench::default();
    bench.namespace("shop", "");
    bench.policy(
        "shop/db",
        "{ podSelector: {}, ingress: [{ from: [{ podSelector: {} }] }] }",
    );
    bench.here("l1", "shop/db", "10.0.0.1", "app=db");
    bench.settle();
    bench.here("l2", "shop/other", "10.0.0.2", "app=other");
    let changes = bench.settle();
    assert!(changes.chains.is_empty());
    assert_eq!(
        changes.coming.len(),
        3,
        "link, itself and peer: {changes:?}"
    );
    bench.pod("shop/far", "10.0.1.1", "");
    let changes = bench.settle();
    assert_eq!(changes.coming, [Entry::Peer(1, ip("10.0.1.1"))]);
    bench.state.set_here(&"l2".into(), None);
    let changes = bench.settle();
    assert_eq!((changes.going.len(), changes.emptied.len()), (3, 0));
    // What nobody asks about is no change.
    bench.pod("elsewhere/far", "10.0.2.1", "");
    assert!(bench.settle().is_empty());
}

#[test]
fn what_a_node_says_of_its_own_pods_goes_before_what_others_say() {
    let mut bench = Bench::default();
    bench.policy("shop/db", "{ podSelector: { matchLabels: { app: db } }, ingress: [{ from: [{ podSelector: { matchLabels: { app: web } } }] }] }");
    bench.here("l1", "shop/db", "10.0.0.1", "app=db");
    // The server still tells of the pod that had the address before.
    bench.pod("shop/old", "10.0.0.9", "app=web");
    bench.settle();
    bench.enters("l1", "10.0.0.9 to 10.0.0.1 tcp 1", true);
    bench.here("l9", "shop/new", "10.0.0.9", "app=new");
    bench.settle();
    bench.enters("l1", "10.0.0.9 to 10.0.0.1 tcp 1", false);
    bench.state.set_pod(&"shop/old".into(), None);
    bench.settle();
    bench.enters("l1", "10.0.0.9 to 10.0.0.1 tcp 1", false);
    // Of another pod of the same name that is told of, nothing is taken over.
    let mut other = pod("10.0.0.8", "app=web");
    other.uid = uuid::Uuid::from_u128(7);
    bench.state.set_pod(&"shop/new".into(), Some(other));
    bench.settle();
    bench.enters("l1", "10.0.0.9 to 10.0.0.1 tcp 1", false);
    bench.enters("l1", "10.0.0.8 to 10.0.0.1 tcp 1", true);
}

#[test]
fn what_was_told_last_of_a_pod_counts_while_it_runs() {
    let mut bench = Bench::default();
    bench.policy("shop/db", "{ podSelector: { matchLabels: { app: db } }, ingress: [{ from: [{ podSelector: { matchLabels: { app: web } } }], ports: [{ port: http }] }] }");
    bench.here("l1", "shop/db", "10.0.0.1", "app=new");
    bench.here("l2", "shop/web", "10.0.0.2", "app=new");
    bench.pod("shop/db", "10.0.0.1", "app=db,http/TCP/80");
    bench.pod("shop/web", "10.0.0.2", "app=web");
    let check = |bench: &mut Bench| {
        bench.settle();
        bench.enters("l1", "10.0.0.2 to 10.0.0.1 tcp 80", true);
        bench.enters("l1", "10.0.0.2 to 10.0.0.1 tcp 81", false);
        bench.enters("l1", "10.0.0.3 to 10.0.0.1 tcp 80", false);
    };
    check(&mut bench);
    // Deleted by force, and one of them made anew elsewhere.
    bench.state.set_pod(&"shop/db".into(), None);
    let mut other = pod("10.0.1.2", "app=other");
    other.uid = uuid::Uuid::from_u128(7);
    bench.state.set_pod(&"shop/web".into(), Some(other));
    check(&mut bench);
    bench.state.set_pod(&"shop/web".into(), None);
    check(&mut bench);
}

#[test]
fn names_of_ports_are_resolved_for_each_pod() {
    let mut bench = Bench::default();
    bench.namespace("shop", "");
    let spec = "
podSelector: {}
policyTypes: [Ingress, Egress]
ingress: [{ ports: [{ port: http }] }]
egress: [{ ports: [{ port: http }] }]
";
    bench.policy("shop/a", spec);
    bench.here("l1", "shop/one", "10.0.0.1", "http/TCP/80");
    bench.here("l2", "shop/two", "10.0.0.2", "http/TCP/8080");
    bench.here("l3", "shop/none", "10.0.0.3", "");
    bench.settle();
    for (number, port) in [(1, 80), (2, 8080)] {
        for asked in [80, 8080] {
            let packet = format!("10.0.0.3 to 10.0.0.{number} tcp {asked}");
            bench.enters(&format!("l{number}"), &packet, asked == port);
            bench.leaves("l3", &packet, asked == port);
        }
    }
    bench.enters("l3", "10.0.0.1 to 10.0.0.3 tcp 80", false);
    // No pod has it: where else it may lead nobody says.
    bench.leaves("l3", "10.0.0.3 to 1.2.3.4 tcp 80", false);
    bench.leaves("l3", "10.0.0.3 to 10.0.0.3 tcp 1", true);
}

#[test]
fn the_nodes_own_names_are_a_pod_as_there_is_one_elsewhere() {
    let mut bench = Bench::default();
    bench.namespace("kube-system", "kubernetes.io/metadata.name=kube-system");
    bench.namespace("shop", "");
    bench.state.set_names(&[ip("10.43.0.10"), ip("fd43::a")]);
    bench.here("l1", "shop/one", "10.0.0.1", "");
    bench.policy("shop/deny", "{ podSelector: {}, policyTypes: [Egress] }");
    bench.settle();
    for address in ["10.43.0.10", "fd43::a"] {
        bench.leaves("l1", &format!("10.0.0.1 to {address} udp 53"), false);
    }
    let spec = "
podSelector: {}
policyTypes: [Egress]
egress:
- to:
  - namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: kube-system } }
    podSelector: { matchLabels: { k8s-app: kube-dns } }
  ports: [{ port: 53, protocol: UDP }, { port: dns-tcp }]
";
    bench.policy("shop/names", spec);
    bench.settle();
    for address in ["10.43.0.10", "fd43::a"] {
        bench.leaves("l1", &format!("10.0.0.1 to {address} udp 53"), true);
        bench.leaves("l1", &format!("10.0.0.1 to {address} tcp 53"), true);
        bench.leaves("l1", &format!("10.0.0.1 to {address} tcp 54"), false);
    }
    // Lists of the server do not speak of it; its namespace counts as everyone's.
    let policies = BTreeSet::from(["shop/deny", "shop/names"].map(Key::from));
    let namespaces = BTreeSet::from([Box::from("shop")]);
    bench.state.retain(&policies, &namespaces, &BTreeSet::new());
    bench.settle();
    bench.leaves("l1", "10.0.0.1 to 10.43.0.10 udp 53", false);
    bench.namespace("kube-system", "kubernetes.io/metadata.name=kube-system");
    bench.settle();
    bench.leaves("l1", "10.0.0.1 to 10.43.0.10 udp 53", true);
    bench.state.set_names(&[]);
    bench.settle();
    bench.leaves("l1", "10.0.0.1 to 10.43.0.10 udp 53", false);
    assert!(bench.state.known.pods.is_empty());
}

#[test]
fn blocks_come_and_go_with_their_rules() {
    let mut bench = Bench::default();
    bench.here("l1", "shop/one", "10.0.0.1", "");
    let spec = "
podSelector: {}
ingress:
- from: [{ ipBlock: { cidr: 192.0.2.0/24, except: [192.0.2.128/25] } }, { ipBlock: { cidr: 'fd00::/8' } }]
";
    bench.policy("shop/a", spec);
    let changes = bench.settle();
    let blocks = |changes: &[Entry]| {
        let blocks = changes.iter();
        blocks
            .filter(|entry| matches!(entry, Entry::Block(..)))
            .count()
    };
    assert_eq!(blocks(&changes.coming), 2);
    bench.enters("l1", "192.0.2.127 to 10.0.0.1 tcp 1", true);
    bench.enters("l1", "192.0.2.128 to 10.0.0.1 tcp 1", false);
    bench.enters("l1", "fd12::1 to fd34::1 tcp 1", true);
    // Another policy with the same blocks shares them.
    bench.policy(
        "shop/b",
        &spec
            .replace("ingress:", "policyTypes: [Egress]\negress:")
            .replace("from", "to"),
    );
    assert_eq!(blocks(&bench.settle().coming), 0);
    bench.state.set_policy(&"shop/a".into(), None);
    assert_eq!(blocks(&bench.settle().going), 0);
    bench.state.set_policy(&"shop/b".into(), None);
    assert_eq!(blocks(&bench.settle().going), 2);
}

#[test]
fn a_former_agents_chains_are_emptied_and_taken_over() {
    let mut bench = Bench::default();
    bench.here("l1", "shop/one", "10.0.0.1", "");
    bench.policy(
        "shop/a",
        "{ podSelector: {}, policyTypes: [Ingress, Egress] }",
    );
    let changes = bench.state.whole([1, 2, 3, 7]);
    assert_eq!(changes.chains.len(), 2);
    assert_eq!(changes.emptied, [3, 7]);
    // A new one gets a number that is not deleted yet.
    bench.here("l2", "shop/two", "10.0.0.2", "a=b");
    bench.policy(
        "shop/b",
        "{ podSelector: { matchLabels: { a: b } }, ingress: [{}] }",
    );
    let changes = bench.state.flush();
    assert_eq!(changes.chains[0].number, 3);
    // Another is emptied meanwhile.
    bench.state.set_policy(&"shop/b".into(), None);
    assert_eq!(bench.state.flush().emptied, [3]);
    assert_eq!(bench.state.sweep().deleted, [0; 0]);
    assert_eq!(bench.state.sweep().deleted, [3, 7]);
    assert!(!bench.state.has_stale());
}

/// The same in any order of what is told, over and over.
#[test]
fn changes_lead_to_what_all_of_it_would_be() {
    let specs = [
        FROM_FRONT,
        "podSelector: {}",
        "{ podSelector: {}, policyTypes: [Egress], egress: [{ to: [{ namespaceSelector: {} }], ports: [{ port: http }] }] }",
        "{ podSelector: { matchLabels: { app: web } }, ingress: [{ from: [{ podSelector: {} }, { ipBlock: { cidr: 10.0.0.0/8 } }] }] }",
    ];
    let mut bench = Bench::default();
    let mut seed = 1_u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    for _ in 0..2000 {
        let (app, tier) = (
            ["web", "db", "job"][draw(3) as usize],
            ["front", "back"][draw(2) as usize],
        );
        let place = ["shop", "front"][draw(2) as usize];
        let (number, is_there) = (draw(4), draw(3) > 0);
        let text = format!("app={app},http/TCP/{}", 80 + draw(2));
        let key = format!("{place}/{number}");
        match draw(5) {
            0 if is_there => bench.namespace(place, &format!("tier={tier}")),
            0 => _ = bench.state.set_namespace(place, None),
            1 if is_there => bench.pod(&key, &format!("10.0.1.{}", draw(3)), &text),
            1 => _ = bench.state.set_pod(&Key::from(&*key), None),
            2 | 3 if is_there => {
                bench.here(
                    &format!("l{number}"),
                    &key,
                    &format!("10.0.1.{number}"),
                    &text,
                );
            }
            2 | 3 => bench.state.set_here(&format!("l{number}").into(), None),
            _ if is_there => bench.policy(&key, specs[draw(4) as usize]),
            _ => _ = bench.state.set_policy(&Key::from(&*key), None),
        }
        if draw(3) == 0 {
            bench.settle();
        }
    }
    bench.settle();
}

#[test]
fn a_thousand_pods_are_kept_in_little() {
    let mut bench = Bench::default();
    for number in 0..1000 {
        let labels = format!(
            "app.kubernetes.io/name=web-frontend,app.kubernetes.io/instance=shop-production,\
             pod-template-hash=7d9c5b8f6{},apps.kubernetes.io/pod-index={number},http/TCP/8080",
            number % 10
        );
        let address = format!("10.42.{}.{}", number / 250, number % 250);
        bench.pod(
            &format!("production/web-frontend-{number}"),
            &address,
            &labels,
        );
    }
    let known = &bench.state.known;
    let each = |(key, pod): (&Key, &Pod)| {
        let index = size_of::<(IpAddr, Key)>() + size_of::<(Key, Pod)>();
        let ports: usize = pod
            .ports
            .iter()
            .map(|port| size_of::<NamedPort>() + port.name.len())
            .sum();
        index + key.len() + 16 + pod.labels.byte_count() + size_of_val(&*pod.addresses) + ports
    };
    let bytes: usize = known.pods.iter().map(each).sum();
    assert!(bytes < 500_000, "{bytes} bytes");
}
