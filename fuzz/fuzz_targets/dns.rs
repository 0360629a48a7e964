//! DNS packets: what is answered is an answer to its asker, no larger than it said that it can take,
//! and its header says what it holds; names of the cluster are taken apart whatever they are; only an
//! answer to the question counts as one.
#![no_main]
#![allow(dead_code)]

#[path = "../../agent/src/dns/asked.rs"]
mod asked;
#[path = "../../agent/src/dns/message.rs"]
mod message;

use asked::{Domain, Place};
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use libfuzzer_sys::fuzz_target;
use message::{Answer, Refused, Request, Transport};

const ADDRESSES: u8 = 200;

fuzz_target!(|data: &[u8]| {
    let domain = Domain::parse("cluster.local").unwrap();
    for transport in [Transport::Udp, Transport::Tcp] {
        match Request::read(data, transport) {
            Err(Refused::Silently) => assert!(data.len() < 12 || data[2] & 0x80 != 0),
            Err(Refused::With(packet)) => {
                let message = check(data, &packet, transport);
                assert!(u16::from(message.metadata.response_code) != 0);
                assert!(message.answers.is_empty());
            }
            Ok(request) => {
                let query = request.query.clone();
                if let Place::Cluster(labels) = domain.place(&query.name) {
                    let _ = labels.asked();
                }
                let address = |last| RData::A(A([10, 42, 0, last].into()));
                let record = |last| Record::from_rdata(query.name.clone(), 5, address(last));
                let packet = request.answer(&Answer {
                    answers: (0..ADDRESSES).map(record).collect(),
                    is_authoritative: true,
                    ..Answer::default()
                });
                let message = check(data, &packet, transport);
                let header = message.metadata;
                assert_eq!(message.queries, [query]);
                assert!(header.authoritative && header.recursion_available);
                assert_eq!(header.recursion_desired, data[2] & 1 != 0);
                let is_whole = message.answers.len() == usize::from(ADDRESSES);
                assert_eq!(header.truncation, !is_whole);
                assert!(is_whole || transport == Transport::Udp);
            }
        }
    }
    let query = Query::query(Name::root(), RecordType::A);
    if let [high, low, ..] = data {
        let _ = message::read_answer(data, u16::from_be_bytes([*high, *low]), &query);
        let _ = message::is_bare_error(data, u16::from_be_bytes([*high, *low]));
    }
});

/// An answer to what was asked, no larger than its asker said that it can take.
fn check(data: &[u8], packet: &[u8], transport: Transport) -> Message {
    let asked = Message::from_vec(data).ok();
    let can_take = asked.and_then(|asked| Some(asked.edns?.max_payload()));
    let bytes_max = match transport {
        Transport::Udp => can_take.unwrap_or(512).clamp(512, message::UDP_BYTES_MAX),
        Transport::Tcp => u16::MAX,
    };
    assert!(packet.len() <= bytes_max.into());
    assert!(data[2] & 0x80 == 0 && packet[2] & 0x80 != 0);
    assert_eq!(packet[..2], data[..2]);
    assert_eq!(packet[2] & 0x78, data[2] & 0x78);
    Message::from_vec(packet).expect("what is written can be read")
}
