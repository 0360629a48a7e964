//! What is answered on the spot, and what has to wait.

use super::*;
use crate::dns::asked::Domain;
use crate::dns::message;
use crate::dns::resolvers::Resolvers;
use crate::dns::testing::{Fake, name};
use crate::network::view::View;
use coracle_client::clock::Clock;
use hickory_proto::rr::RecordType;
use serde_json::json;

fn responder(resolvers: Resolvers) -> Responder {
    let services = serde_json::from_value(json!([{
        "metadata": {"name": "out", "namespace": "shop"},
        "spec": {"type": "ExternalName", "externalName": "ok.example"},
    }]));
    let services: Vec<k8s_openapi::api::core::v1::Service> = services.unwrap();
    let view = View::of(&services, &[], &["shop"]);
    let zone = Zone::new(Domain::parse("cluster.local").unwrap(), view, 1);
    Responder::new(zone, Forwarder::new(resolvers, Clock::system()))
}

fn packet(text: &str) -> Vec<u8> {
    message::ask(5, &Query::query(name(text), RecordType::A), false, false)
}

#[tokio::test]
async fn what_others_know_waits_once() {
    let fake = Fake::start().await;
    let responder = responder(Resolvers::of(&[fake.address]));
    let ask = |text| responder.respond(&packet(text), Transport::Udp);
    let Response::Later(later) = ask("ok.example") else {
        panic!("nobody was asked yet");
    };
    let busy = Message::from_vec(&Responder::busy(&later)).unwrap();
    assert_eq!(busy.metadata.response_code, ResponseCode::ServFail);
    responder.wait(*later).await;
    assert!(matches!(ask("ok.example"), Response::Ready(_)));
    // An ExternalName leads to the same question.
    let Response::Ready(packet) = ask("out.shop.svc.cluster.local") else {
        panic!("it was asked");
    };
    assert_eq!(Message::from_vec(&packet).unwrap().answers.len(), 2);
    assert_eq!(fake.asked(), 1);
}

#[tokio::test]
async fn without_resolvers_what_is_not_the_clusters_fails() {
    let responder = responder(Resolvers::of(&[]));
    let Response::Later(later) = responder.respond(&packet("ok.example"), Transport::Udp) else {
        panic!("nobody was asked yet");
    };
    let message = Message::from_vec(&responder.wait(*later).await).unwrap();
    assert_eq!(message.metadata.response_code, ResponseCode::ServFail);
    assert!(matches!(
        responder.respond(&[0; 3], Transport::Udp),
        Response::Nothing
    ));
}
