//! DNS packets: what is answered is an answer to its asker, no larger than it can take; names of
//! the cluster are taken apart whatever they are; only an answer to the question counts as one.
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

fuzz_target!(|data: &[u8]| {
    let domain = Domain::parse("cluster.local").unwrap();
    for (transport, bytes_max) in [(Transport::Udp, 1232), (Transport::Tcp, 65535)] {
        let packet = match Request::read(data, transport) {
            Err(Refused::Silently) => continue,
            Err(Refused::With(packet)) => packet,
            Ok(request) => {
                let name = &request.query.name;
                if let Place::Cluster(labels) = domain.place(name) {
                    let _ = labels.asked();
                }
                let address = |last| RData::A(A([10, 42, 0, last].into()));
                let record = |last| Record::from_rdata(name.clone(), 5, address(last));
                request.answer(&Answer {
                    answers: (0..=255).map(record).collect(),
                    ..Answer::default()
                })
            }
        };
        assert!(data[2] & 0x80 == 0 && packet[2] & 0x80 != 0);
        assert_eq!(packet[..2], data[..2]);
        assert!(packet.len() <= bytes_max);
        Message::from_vec(&packet).expect("what is written can be read");
    }
    let query = Query::query(Name::root(), RecordType::A);
    if let [high, low, ..] = data {
        let _ = message::read_answer(data, u16::from_be_bytes([*high, *low]), &query);
    }
});
