//! All places of a server taken from one address, in every way there is; who asks from elsewhere
//! is answered all the same, and nothing stays.

use crate::lab::{Cluster, Lab, now, wait};
use nix::sched::{CloneFlags, setns};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Few, so that a build stays short; twice as many as there are places.
const CONNECTIONS: usize = 240;
/// What one of kubectl's calls may take beside a flood.
const CALL_MAX: Duration = Duration::from_secs(10);
/// Descriptors that a server may have more than before: connections of its own loops begun anew.
const SPARE: usize = 16;

#[allow(clippy::disallowed_methods)] // Only tests read it.
fn connections() -> usize {
    let given = std::env::var("CORACLE_OVERLOAD_CONNECTIONS").ok();
    given.map_or(CONNECTIONS, |text| text.parse().expect("a number"))
}

/// Whoever floods the server, from an address that is no machine's of the cluster.
struct Flood {
    namespace: String,
    address: String,
    tls: Arc<ClientConfig>,
    token: String,
}

impl Flood {
    fn new(lab: &Lab, cluster: &Cluster) -> Self {
        let (_, namespace) = lab.outside();
        let bind = [
            "create",
            "clusterrolebinding",
            "flood",
            "--clusterrole=cluster-admin",
        ];
        cluster.kubectl(&[&bind[..], &["--serviceaccount=default:default"]].concat());
        let token = wait("a token", || {
            cluster.try_kubectl(&["create", "token", "default"]).ok()
        });
        let jsonpath = "jsonpath={.data.ca\\.crt}";
        let ca = [
            "get",
            "configmap",
            "-n",
            "kube-system",
            "kube-root-ca.crt",
            "-o",
            jsonpath,
        ];
        let ca = wait("the CA", || cluster.try_kubectl(&ca).ok());
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            namespace,
            address: format!("{}:6443", cluster.host.address),
            tls: Arc::new(tls),
            token: token.trim().to_owned(),
        }
    }

    /// Opens them one after the other in a thread of its own, which alone is in that network.
    fn open<T: Send>(&self, count: usize, begin: impl Fn(TcpStream) -> T + Sync) -> Vec<T> {
        let opening = || {
            let network = File::open(format!("/run/netns/{}", self.namespace)).unwrap();
            setns(network, CloneFlags::CLONE_NEWNET).unwrap();
            let connect = |_| TcpStream::connect(&self.address).unwrap();
            (0..count).map(connect).map(&begin).collect()
        };
        std::thread::scope(|scope| scope.spawn(opening).join().unwrap())
    }

    /// Sends a request and reads so much of the answer; whoever was shown out meanwhile is too.
    fn ask(&self, tcp: TcpStream, request: &str, answer_bytes: usize) -> Stream {
        let name = ServerName::try_from("kubernetes").unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.tls), name).unwrap();
        let mut stream = StreamOwned::new(connection, tcp);
        let token = &self.token;
        let (line, rest) = request.split_once("\r\n").unwrap();
        let head = format!("{line}\r\nHost: kubernetes\r\nAuthorization: Bearer {token}\r\n{rest}");
        let asked = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.flush());
        if asked.is_ok() {
            drop(stream.read_exact(&mut vec![0; answer_bytes]));
        }
        stream
    }
}

/// Reads, writes and a lease, each in time.
#[track_caller]
fn others_go_on(cluster: &Cluster, what: &str) {
    let renewal = format!("{{\"spec\":{{\"holderIdentity\":\"{what}\"}}}}");
    let renew = ["patch", "lease", "quiet", "--type=merge", "-p", &renewal];
    for call in [
        &["get", "namespaces"][..],
        &renew,
        &["get", "--raw", "/readyz"],
    ] {
        let begun = now();
        cluster.kubectl(call);
        assert!(
            begun.elapsed() < CALL_MAX,
            "{what}: {call:?} took {:?}",
            begun.elapsed()
        );
    }
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count()
}

fn resident_kib(pid: u32) -> u64 {
    let process = procfs::process::Process::new(pid.cast_signed()).unwrap();
    process.status().unwrap().vmrss.unwrap()
}

#[allow(clippy::print_stdout)] // Figures for docs/overload.md.
#[test]
fn who_asks_from_elsewhere_is_answered_while_all_places_are_taken() {
    let (mut lab, count) = (Lab::new(), connections());
    let places = (count / 2).to_string();
    let cluster = lab.server("gate", &["--max-connections", &places]);
    let pid = lab.process(cluster.process).pid();
    cluster.apply("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: quiet}}");
    let large = "x".repeat(100_000);
    for name in ["a", "b", "c", "d", "e", "f"] {
        cluster.kubectl(&[
            "create",
            "configmap",
            name,
            &format!("--from-literal=text={large}"),
        ]);
    }
    let flood = Flood::new(&lab, &cluster);
    others_go_on(&cluster, "nobody");
    let (before, memory) = (descriptors(pid), resident_kib(pid));

    let half_open = flood.open(count, |tcp| tcp);
    others_go_on(&cluster, "handshakes");
    let get = "GET /version HTTP/1.1\r\n\r\n";
    let idle = flood.open(count, |tcp| flood.ask(tcp, get, 15));
    others_go_on(&cluster, "idle");
    let watch = "GET /api/v1/configmaps?watch=1 HTTP/1.1\r\n\r\n";
    let watching = flood.open(count, |tcp| flood.ask(tcp, watch, 15));
    others_go_on(&cluster, "watchers");
    let list = "GET /api/v1/configmaps HTTP/1.1\r\n\r\n";
    let slow = flood.open(count, |tcp| flood.ask(tcp, list, 15));
    others_go_on(&cluster, "readers");
    let post = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nContent-Type: \
                application/json\r\nContent-Length: 1000000\r\n\r\n{";
    let writing = flood.open(count, |tcp| flood.ask(tcp, post, 0));
    others_go_on(&cluster, "writers");

    let (during, full) = (descriptors(pid), resident_kib(pid));
    assert!(
        during < before + count / 2 + SPARE,
        "{before} before, {during} during the flood"
    );
    drop((half_open, idle, watching, slow, writing));
    wait("connections that ended leave nothing", || {
        (descriptors(pid) <= before + SPARE).then_some(())
    });
    others_go_on(&cluster, "after");
    let after = resident_kib(pid);
    println!("{count} of each kind: resident {memory} KiB before, {full} during, {after} after");
}
