//! How long answers are kept, and how many.

use super::*;
use hickory_proto::op::{MessageType, OpCode};
use hickory_proto::rr::rdata::{A, SOA};
use hickory_proto::rr::{Name, Record, RecordType};

fn name(number: usize) -> Name {
    Name::from_ascii(format!("n{number}.example.com.")).unwrap()
}

fn query(number: usize) -> Query {
    Query::query(name(number), RecordType::A)
}

fn positive(ttls: &[u32]) -> Message {
    let mut message = Message::new(1, MessageType::Response, OpCode::Query);
    let record = |ttl: &u32| Record::from_rdata(name(0), *ttl, RData::A(A([1, 2, 3, 4].into())));
    message.answers = ttls.iter().map(record).collect();
    message
}

fn negative(code: ResponseCode, bounds: Option<(u32, u32)>) -> Message {
    let mut message = positive(&[]);
    message.metadata.response_code = code;
    if let Some((ttl, minimum)) = bounds {
        let soa = SOA::new(name(0), name(0), 1, 1, 1, 1, minimum);
        message.authorities = vec![Record::from_rdata(name(0), ttl, RData::SOA(soa))];
    }
    message
}

#[test]
fn an_answer_is_kept_as_long_as_it_may_be() {
    let seconds = |message: &Message| life(message).as_secs();
    assert_eq!(seconds(&positive(&[300, 60, 90])), 60);
    assert_eq!(seconds(&positive(&[0])), 0);
    assert_eq!(seconds(&positive(&[100_000])), 3600);
    assert_eq!(
        seconds(&negative(ResponseCode::NXDomain, Some((300, 30)))),
        30
    );
    assert_eq!(
        seconds(&negative(ResponseCode::NoError, Some((20, 30)))),
        20
    );
    assert_eq!(
        seconds(&negative(ResponseCode::NXDomain, Some((9000, 9000)))),
        1800
    );
    assert_eq!(seconds(&negative(ResponseCode::NXDomain, None)), 0);
    assert_eq!(
        seconds(&negative(ResponseCode::ServFail, Some((300, 30)))),
        0
    );
    let mut cut = positive(&[300]);
    cut.metadata.truncation = true;
    assert_eq!(seconds(&cut), 0);
}

#[tokio::test(start_paused = true)]
async fn it_is_shown_with_its_age_until_its_time_is_over() {
    let mut cache = Cache::new(10_000);
    let key = Key::new(&query(1), false, false);
    cache.put(
        key.clone(),
        vec![1, 2, 3].into(),
        &positive(&[60]),
        Instant::now(),
    );
    tokio::time::advance(Duration::from_secs(20)).await;
    let (packet, age) = cache.get(&key, Instant::now()).unwrap();
    assert_eq!((&*packet, age), (&[1u8, 2, 3][..], 20));
    let mut upper = query(1);
    upper.name = Name::from_ascii("N1.EXAMPLE.com.").unwrap();
    assert!(
        cache
            .get(&Key::new(&upper, false, false), Instant::now())
            .is_some()
    );
    assert!(
        cache
            .get(&Key::new(&query(1), true, false), Instant::now())
            .is_none()
    );
    tokio::time::advance(Duration::from_secs(40)).await;
    assert!(cache.get(&key, Instant::now()).is_none());
}

#[tokio::test(start_paused = true)]
async fn the_oldest_goes_when_there_is_no_room() {
    let mut cache = Cache::new(4000);
    let packet: Arc<[u8]> = vec![0; 100].into();
    for number in 0..1000 {
        // The first is stored again and again, and is never old.
        for number in [number, 0] {
            let key = Key::new(&query(number), false, false);
            cache.put(key, packet.clone(), &positive(&[60]), Instant::now());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(cache.bytes <= 4000);
        assert!(cache.order.len() <= 2 * cache.entries.len() + 65);
    }
    let has = |number| {
        cache
            .get(&Key::new(&query(number), false, false), Instant::now())
            .is_some()
    };
    assert!(has(0) && has(999) && !has(900));
    let bytes: usize = cache
        .entries
        .iter()
        .map(|(key, one)| weight(key, &one.packet))
        .sum();
    assert_eq!(bytes, cache.bytes);
}

#[test]
fn a_huge_answer_is_not_kept() {
    let mut cache = Cache::new(1 << 20);
    let key = Key::new(&query(1), false, false);
    let now = coracle_client::clock::Clock::system().monotonic();
    cache.put(key.clone(), vec![0; 20_000].into(), &positive(&[60]), now);
    assert!(cache.get(&key, now).is_none());
}
