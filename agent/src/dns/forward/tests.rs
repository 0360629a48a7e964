//! Questions to other resolvers, which answer, fail, or keep silent.

use super::*;
use crate::dns::testing::{Fake, name};
use hickory_proto::rr::RecordType;

fn question(text: &str) -> Question {
    Question {
        query: Query::query(name(text), RecordType::A),
        is_dnssec_ok: false,
        is_checking_disabled: false,
    }
}

fn forwarder(resolvers: &[SocketAddr]) -> Arc<Forwarder> {
    Forwarder::new(Resolvers::of(resolvers), Clock::system())
}

fn code(message: &Message) -> ResponseCode {
    message.metadata.response_code
}

#[tokio::test]
async fn an_answer_is_asked_for_once_and_kept() {
    let fake = Fake::start().await;
    let forwarder = forwarder(&[fake.address]);
    assert!(forwarder.cached(&question("ok.example")).is_none());
    let asking = (0..20).map(|_| forwarder.ask(question("ok.example")));
    for message in futures::future::join_all(asking).await {
        assert_eq!(message.unwrap().answers.len(), 1);
    }
    assert_eq!(fake.asked(), 1);
    let kept = forwarder.cached(&question("OK.example")).unwrap();
    assert!(kept.answers[0].ttl <= 60);
    assert!(forwarder.under_way.lock().is_empty());
}

#[tokio::test]
async fn what_does_not_fit_is_asked_for_over_tcp() {
    let fake = Fake::start().await;
    let forwarder = forwarder(&[fake.address]);
    let message = forwarder.ask(question("long.example")).await.unwrap();
    assert!(!message.metadata.truncation);
    assert_eq!(message.answers.len(), 200);
}

/// They know no EDNS, and say so each in a way of its own.
#[tokio::test]
async fn an_old_resolver_is_asked_again_without_what_it_does_not_know() {
    for text in ["bare.example", "old.example"] {
        let fake = Fake::start().await;
        let forwarder = forwarder(&[fake.address]);
        let message = forwarder.ask(question(text)).await.unwrap();
        assert_eq!(code(&message), ResponseCode::NoError, "{text}");
        assert_eq!(message.answers.len(), 1);
        assert_eq!(fake.asked(), 2);
    }
}

#[tokio::test]
async fn one_that_is_silent_is_passed_over_and_asked_last_from_then_on() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (silent, fake) = (socket.local_addr().unwrap(), Fake::start().await);
    let forwarder = forwarder(&[silent, fake.address]);
    assert!(forwarder.ask(question("ok.example")).await.is_some());
    assert_eq!(forwarder.in_order(), [fake.address, silent]);
}

#[tokio::test]
async fn an_error_is_the_answer_when_all_have_it() {
    let (first, second) = (Fake::start().await, Fake::start().await);
    let forwarder = forwarder(&[first.address, second.address]);
    let message = forwarder.ask(question("fail.example")).await.unwrap();
    assert_eq!(code(&message), ResponseCode::ServFail);
    assert_eq!((first.asked(), second.asked()), (1, 1));
    assert!(forwarder.cached(&question("fail.example")).is_none());
    let message = forwarder.ask(question("none.example")).await.unwrap();
    assert_eq!(code(&message), ResponseCode::NXDomain);
    assert_eq!((first.asked(), second.asked()), (2, 1));
}

#[tokio::test]
async fn nobody_there_is_told_soon() {
    // The port is nobody else's, and hears none but itself.
    let deaf = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = deaf.local_addr().unwrap();
    deaf.connect(address).await.unwrap();
    let begun = Instant::now();
    assert!(
        forwarder(&[address])
            .ask(question("ok.example"))
            .await
            .is_none()
    );
    assert!(forwarder(&[]).ask(question("ok.example")).await.is_none());
    assert!(begun.elapsed() < ANSWER_MAX);
}

/// The node's resolver may send what it does not know to the cluster's DNS, which is this node.
#[tokio::test]
async fn a_question_that_comes_back_makes_no_more_of_them() {
    let round = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let forwarder = forwarder(&[round.local_addr().unwrap()]);
    let back = forwarder.clone();
    let asked = tokio::spawn(async move { back.ask(question("round.example")).await });
    let mut buffer = [0; 512];
    round.recv(&mut buffer).await.unwrap();
    let again = forwarder.ask(question("round.example"));
    assert!(timeout(Duration::from_millis(300), again).await.is_err());
    assert_eq!(forwarder.under_way.lock().len(), 1);
    asked.abort();
}
