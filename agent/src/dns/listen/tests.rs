//! Real sockets: the cluster's names and those of others, over UDP and TCP.

use super::*;
use crate::dns::asked::Domain;
use crate::dns::forward::Forwarder;
use crate::dns::message;
use crate::dns::resolvers::Resolvers;
use crate::dns::testing::{Fake, free, name};
use crate::dns::zone::Zone;
use crate::network::view::View;
use coracle_client::clock::Clock;
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::RecordType;
use serde_json::json;

struct Served {
    address: SocketAddr,
    fake: Fake,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

async fn served() -> Served {
    let services = serde_json::from_value(json!([
        {
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"clusterIP": "10.43.0.20", "clusterIPs": ["10.43.0.20"], "ports": [{"port": 80}]},
        },
        {
            "metadata": {"name": "out", "namespace": "shop"},
            "spec": {"type": "ExternalName", "externalName": "ok.example"},
        },
        {
            "metadata": {"name": "lost", "namespace": "shop"},
            "spec": {"type": "ExternalName", "externalName": "none.example"},
        },
    ]));
    let services: Vec<k8s_openapi::api::core::v1::Service> = services.unwrap();
    let view = View::of(&services, &[], &["shop"]);
    let fake = Fake::start().await;
    let forwarder = Forwarder::new(Resolvers::of(&[fake.address]), Clock::system());
    let zone = Zone::new(Domain::parse("cluster.local").unwrap(), view, 1);
    let responder = Arc::new(Responder::new(zone, forwarder));
    let any = "127.0.0.1:0".parse().unwrap();
    let sockets = free(async || Sockets::bind(any).await).await;
    let (address, stop) = (sockets.address().unwrap(), CancellationToken::new());
    let task = tokio::spawn(sockets.serve(responder, stop.clone()));
    Served {
        address,
        fake,
        stop,
        task,
    }
}

fn asked(text: &str, kind: RecordType) -> (Query, Vec<u8>) {
    let query = Query::query(name(text), kind);
    let packet = message::ask(5, &query, false, false);
    (query, packet)
}

impl Served {
    async fn over_udp(&self, text: &str) -> Message {
        let (query, packet) = asked(text, RecordType::A);
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.send_to(&packet, self.address).await.unwrap();
        let mut buffer = [0; 4096];
        let received = timeout(Duration::from_secs(60), socket.recv(&mut buffer)).await;
        let length = received.unwrap().unwrap();
        message::read_answer(&buffer[..length], 5, &query).unwrap()
    }
}

fn addresses(message: &Message) -> Vec<String> {
    let answers = message.answers.iter();
    answers.map(|answer| answer.data.to_string()).collect()
}

#[tokio::test]
async fn names_are_answered_over_udp() {
    let served = served().await;
    let message = served.over_udp("web.shop.svc.cluster.local").await;
    assert_eq!(addresses(&message), ["10.43.0.20"]);
    assert!(message.metadata.authoritative && message.edns.is_some());
    let message = served.over_udp("no.shop.svc.cluster.local").await;
    assert_eq!(message.metadata.response_code, ResponseCode::NXDomain);
    assert_eq!(message.authorities[0].record_type(), RecordType::SOA);
    let message = served.over_udp("ok.example").await;
    assert_eq!(addresses(&message), ["203.0.113.7"]);
    assert!(!message.metadata.authoritative);
    served.over_udp("ok.example").await;
    assert_eq!(served.fake.asked(), 1);
    let message = served.over_udp("fail.example").await;
    assert_eq!(message.metadata.response_code, ResponseCode::ServFail);
    let message = served.over_udp("out.shop.svc.cluster.local").await;
    assert_eq!(addresses(&message), ["ok.example.", "203.0.113.7"]);
    let message = served.over_udp("lost.shop.svc.cluster.local").await;
    assert_eq!(addresses(&message), ["none.example."]);
    assert_eq!(message.metadata.response_code, ResponseCode::NoError);
}

#[tokio::test]
async fn a_connection_asks_one_question_after_the_other() {
    let served = served().await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    for (text, expected) in [
        ("web.shop.svc.cluster.local", 1),
        ("long.example", 200),
        ("web.shop.svc.cluster.local", 1),
    ] {
        let (query, packet) = asked(text, RecordType::A);
        stream.write_u16(packet.len() as u16).await.unwrap();
        stream.write_all(&packet).await.unwrap();
        let length = stream.read_u16().await.unwrap();
        let mut packet = vec![0; length.into()];
        stream.read_exact(&mut packet).await.unwrap();
        let message = message::read_answer(&packet, 5, &query).unwrap();
        assert_eq!(message.answers.len(), expected, "{text}");
    }
}

#[tokio::test]
async fn garbage_ends_its_connection_and_nothing_else() {
    let served = served().await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(&[0xff; 64]).await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for length in [0, 1, 11, 12, 13, 500, 1400] {
        let garbage = vec![0xc0; length];
        socket.send_to(&garbage, served.address).await.unwrap();
    }
    let message = served.over_udp("web.shop.svc.cluster.local").await;
    assert_eq!(addresses(&message), ["10.43.0.20"]);
}

#[tokio::test]
async fn the_address_is_free_again_when_it_ends() {
    let served = served().await;
    served.stop.cancel();
    served.task.await.unwrap();
    let udp = UdpSocket::bind(served.address).await;
    assert!(udp.is_ok(), "{udp:?}");
}
