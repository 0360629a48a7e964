//! Packets: questions, answers that are too large, and what is no question.

use super::*;
use hickory_proto::rr::rdata::{A, TXT};
use hickory_proto::rr::{Name, RData, RecordType};
use proptest::prelude::*;

fn question(edns: Option<Edns>) -> Vec<u8> {
    let mut message = Message::new(77, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    let name = Name::from_ascii("Web.shop.svc.cluster.local.").unwrap();
    message.queries.push(Query::query(name, RecordType::A));
    message.edns = edns;
    message.to_vec().unwrap()
}

fn records(count: usize) -> Vec<Record> {
    let name = Name::from_ascii("Web.shop.svc.cluster.local.").unwrap();
    let one = |number: usize| {
        let address = [10, 42, (number / 256) as u8, (number % 256) as u8];
        Record::from_rdata(name.clone(), 5, RData::A(A(address.into())))
    };
    (0..count).map(one).collect()
}

fn answered(packet: &[u8], transport: Transport, count: usize) -> (usize, Message) {
    let request = Request::read(packet, transport).unwrap();
    let answer = Answer {
        answers: records(count),
        is_authoritative: true,
        ..Answer::default()
    };
    let packet = request.answer(&answer);
    (packet.len(), Message::from_vec(&packet).unwrap())
}

#[test]
fn an_answer_repeats_the_question_as_it_was_asked() {
    let (_, message) = answered(&question(None), Transport::Udp, 1);
    assert_eq!(message.metadata.id, 77);
    assert!(message.metadata.authoritative && message.metadata.recursion_available);
    assert!(message.metadata.recursion_desired && !message.metadata.truncation);
    assert_eq!(
        message.queries[0].name.to_ascii(),
        "Web.shop.svc.cluster.local."
    );
    assert_eq!(message.answers.len(), 1);
    assert!(message.edns.is_none());
}

#[test]
fn an_answer_is_no_larger_than_its_asker_can_take() {
    let edns = |payload| {
        let mut edns = Edns::new();
        edns.set_max_payload(payload);
        edns.set_dnssec_ok(true);
        question(Some(edns))
    };
    for (packet, bytes_max) in [
        (question(None), 512),
        (edns(300), 512),
        (edns(1000), 1000),
        (edns(65535), 1232),
    ] {
        let (length, message) = answered(&packet, Transport::Udp, 500);
        assert!(
            length <= bytes_max && length > bytes_max - 32,
            "{length} {bytes_max}"
        );
        assert!(message.metadata.truncation);
        assert_eq!(
            message.edns.is_some(),
            bytes_max != 512 || packet.len() > 50
        );
    }
    let (length, message) = answered(&edns(1232), Transport::Tcp, 500);
    assert!(length > 1232 && !message.metadata.truncation);
    assert_eq!(message.answers.len(), 500);
    let edns = message.edns.unwrap();
    assert!(edns.flags().dnssec_ok && edns.max_payload() == UDP_BYTES_MAX);
    // More than a packet can hold at all.
    let (length, message) = answered(&question(None), Transport::Tcp, 10_000);
    assert!(length <= 65535 && message.metadata.truncation);
}

fn code(packet: &[u8]) -> Option<ResponseCode> {
    match Request::read(packet, Transport::Udp) {
        Ok(_) => Some(ResponseCode::NoError),
        Err(Refused::Silently) => None,
        Err(Refused::With(packet)) => {
            let message = Message::from_vec(&packet).unwrap();
            assert_eq!(message.metadata.message_type, MessageType::Response);
            Some(message.metadata.response_code)
        }
    }
}

#[test]
fn what_is_no_question_is_told_so_or_nothing() {
    let good = question(None);
    assert_eq!(code(&good), Some(ResponseCode::NoError));
    let with = |place: usize, byte: u8| {
        let mut packet = good.clone();
        packet[place] = byte;
        packet
    };
    // An answer, which is never answered.
    assert_eq!(code(&with(2, 0x81)), None);
    assert_eq!(code(&good[..11]), None);
    assert_eq!(code(&[]), None);
    // A notification, two questions, none, an answer in it.
    assert_eq!(code(&with(2, 0x20)), Some(ResponseCode::NotImp));
    assert_eq!(code(&with(5, 2)), Some(ResponseCode::FormErr));
    assert_eq!(code(&with(5, 0)), Some(ResponseCode::FormErr));
    assert_eq!(code(&with(7, 1)), Some(ResponseCode::FormErr));
    // More sections than bytes.
    assert_eq!(code(&with(10, 0xff)), Some(ResponseCode::FormErr));
    assert_eq!(code(&with(11, 4)), Some(ResponseCode::FormErr));
    // Cut in the name.
    assert_eq!(code(&good[..20]), Some(ResponseCode::FormErr));
    // A pointer to itself.
    assert_eq!(
        code(&[&good[..12], &[0xc0, 12, 0, 1, 0, 1]].concat()),
        Some(ResponseCode::FormErr)
    );
    // Another class.
    assert_eq!(code(&with(good.len() - 1, 3)), Some(ResponseCode::Refused));
    let mut edns = Edns::new();
    edns.set_version(1);
    let told = code(&question(Some(edns))).unwrap();
    assert_eq!(u16::from(told), u16::from(ResponseCode::BADVERS));
}

#[test]
fn only_an_answer_to_the_question_counts() {
    let name = Name::from_ascii("example.com.").unwrap();
    let query = Query::query(name, RecordType::A);
    let asked = ask(9, &query, true, false);
    let request = Request::read(&asked, Transport::Udp).unwrap();
    assert!(request.is_dnssec_ok && !request.is_checking_disabled());
    let answer = request.answer(&Answer::default());
    assert!(read_answer(&answer, 9, &query).is_some());
    assert!(read_answer(&answer, 10, &query).is_none());
    assert!(read_answer(&asked, 9, &query).is_none());
    let mut other = query.clone();
    other.name = Name::from_ascii("example.org.").unwrap();
    assert!(read_answer(&answer, 9, &other).is_none());
    let mut lies = answer.clone();
    lies[6] = 0xff;
    assert!(read_answer(&lies, 9, &query).is_none());
}

#[test]
fn texts_of_others_pass_unharmed() {
    let request = Request::read(&question(None), Transport::Tcp).unwrap();
    let text = TXT::new(vec!["v=spf1 -all".to_owned(), "x".repeat(255)]);
    let name = request.query.name.clone();
    let record = Record::from_rdata(name, 60, RData::TXT(text));
    let answer = Answer {
        answers: vec![record.clone()],
        ..Answer::default()
    };
    let message = Message::from_vec(&request.answer(&answer)).unwrap();
    assert_eq!(message.answers, [record]);
}

proptest! {
    #[test]
    fn no_packet_breaks_it(packet in proptest::collection::vec(any::<u8>(), 0..600)) {
        for transport in [Transport::Udp, Transport::Tcp] {
            match Request::read(&packet, transport) {
                Ok(request) => {
                    let answer = request.answer(&Answer { answers: records(3), ..Answer::default() });
                    prop_assert_eq!(&answer[..2], &packet[..2]);
                }
                Err(Refused::With(answer)) => prop_assert_eq!(&answer[..2], &packet[..2]),
                Err(Refused::Silently) => {}
            }
        }
    }

    /// One byte of a real question is another one.
    #[test]
    fn no_change_breaks_it(place in 0usize..44, byte in any::<u8>()) {
        let mut packet = question(Some(Edns::new()));
        let place = place % packet.len();
        packet[place] = byte;
        let _ = code(&packet);
        let query = Query::query(Name::root(), RecordType::A);
        packet[2] |= 0x80;
        let _ = read_answer(&packet, u16::from_be_bytes([packet[0], packet[1]]), &query);
    }
}
