//! Asks the node's own resolvers for what is not of the cluster, and keeps what they say.
//!
//! One question is under way once, however many wait for it: a resolver that sends it back here
//! waits with the others and makes no more of them.

use super::cache::{Cache, Key};
use super::message;
use super::resolvers::Resolvers;
use coracle_client::clock::Clock;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use hickory_proto::op::{Message, Query, ResponseCode};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout};

/// Less than the 5 s that C libraries wait for a resolver: a failure is heard, not guessed.
const ANSWER_MAX: Duration = Duration::from_secs(4);
/// One resolver, one time.
const TRY_MAX: Duration = Duration::from_millis(1500);
/// One that did not answer is asked last for this long.
const SILENCE: Duration = Duration::from_secs(10);
/// All resolvers failed faster than any answers.
const AT_ONCE_MAX: Duration = Duration::from_millis(50);
/// Questions under way: each is a socket and some kilobytes.
pub const UNDER_WAY_MAX: usize = 256;
const CACHE_BYTES_MAX: usize = 2 << 20;
/// More than was asked for, since some send more.
const PACKET_BYTES_MAX: usize = 4096;

type Asking = Shared<BoxFuture<'static, Option<Arc<Message>>>>;
/// A packet, and what it says.
type Answered = (Vec<u8>, Message);

#[derive(Debug)]
pub struct Forwarder {
    resolvers: Resolvers,
    clock: Clock,
    cache: Mutex<Cache>,
    under_way: Mutex<HashMap<Key, Asking>>,
    silent: Mutex<HashMap<SocketAddr, Instant>>,
}

/// A question to others.
#[derive(Clone, Debug)]
pub struct Question {
    pub query: Query,
    pub is_dnssec_ok: bool,
    pub is_checking_disabled: bool,
}

impl Question {
    fn key(&self) -> Key {
        Key::new(&self.query, self.is_dnssec_ok, self.is_checking_disabled)
    }
}

impl Forwarder {
    pub fn new(resolvers: Resolvers, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            resolvers,
            clock,
            cache: Mutex::new(Cache::new(CACHE_BYTES_MAX)),
            under_way: Mutex::default(),
            silent: Mutex::default(),
        })
    }

    /// Without asking anybody.
    pub fn cached(&self, question: &Question) -> Option<Message> {
        let now = self.clock.monotonic();
        let (packet, age) = self.cache.lock().get(&question.key(), now)?;
        let mut message = Message::from_vec(&packet).ok()?;
        let sections = [
            &mut message.answers,
            &mut message.authorities,
            &mut message.additionals,
        ];
        for record in sections.into_iter().flatten() {
            record.decrement_ttl(age);
        }
        Some(message)
    }

    /// None when nobody answers.
    pub async fn ask(self: &Arc<Self>, question: Question) -> Option<Message> {
        let key = question.key();
        let asking = {
            let mut under_way = self.under_way.lock();
            match under_way.get(&key) {
                Some(asking) => asking.clone(),
                None if under_way.len() >= UNDER_WAY_MAX => return None,
                None => {
                    let asking = self
                        .clone()
                        .answered(key.clone(), question)
                        .boxed()
                        .shared();
                    under_way.insert(key.clone(), asking.clone());
                    asking
                }
            }
        };
        // Whoever asks first may leave first: the answer is taken to its end in any case.
        let asking = tokio::spawn(asking);
        asking.await.ok()?.map(Arc::unwrap_or_clone)
    }

    async fn answered(self: Arc<Self>, key: Key, question: Question) -> Option<Arc<Message>> {
        let answer = timeout(ANSWER_MAX, self.ask_all(&question)).await;
        let answer = answer.ok().flatten();
        let message = answer.map(|(packet, message)| {
            let now = self.clock.monotonic();
            self.cache
                .lock()
                .put(key.clone(), packet.into(), &message, now);
            Arc::new(message)
        });
        self.under_way.lock().remove(&key);
        message
    }

    /// One resolver after the other, again and again until time is up. An error is the answer only
    /// when all have it.
    async fn ask_all(&self, question: &Question) -> Option<Answered> {
        let mut refused = None;
        let mut at_once = 0;
        loop {
            let resolvers = self.in_order();
            if resolvers.is_empty() {
                return None;
            }
            let begun = self.clock.monotonic();
            for resolver in &resolvers {
                let answer = exchange(*resolver, question).await;
                let mut silent = self.silent.lock();
                let Some((packet, message)) = answer else {
                    silent.insert(*resolver, self.clock.monotonic() + SILENCE);
                    continue;
                };
                silent.remove(resolver);
                match message.metadata.response_code {
                    ResponseCode::NoError | ResponseCode::NXDomain => {
                        return Some((packet, message));
                    }
                    _ => refused = refused.or(Some((packet, message))),
                }
            }
            if refused.is_some() {
                return refused;
            }
            // Without a way there, waiting helps nobody.
            let is_at_once = begun.elapsed() < AT_ONCE_MAX;
            at_once += u32::from(is_at_once);
            if at_once > 1 {
                return None;
            }
            tokio::time::sleep_until(begun + TRY_MAX / 3).await;
        }
    }

    fn in_order(&self) -> Vec<SocketAddr> {
        let now = self.clock.monotonic();
        let mut resolvers = self.resolvers.get(now).to_vec();
        let mut silent = self.silent.lock();
        silent.retain(|_, until| now < *until);
        resolvers.sort_by_key(|resolver| silent.contains_key(resolver));
        resolvers
    }
}

/// Without the question, by one that could not read it.
struct BareError;

type Heard = Result<Answered, BareError>;

/// With EDNS, and once without it where that seems not to be known.
async fn exchange(resolver: SocketAddr, question: &Question) -> Option<Answered> {
    match ask_one(resolver, question, true).await? {
        Ok((packet, message)) if is_understood(&message) => Some((packet, message)),
        _ => ask_one(resolver, question, false).await?.ok(),
    }
}

fn is_understood(message: &Message) -> bool {
    let code = message.metadata.response_code;
    !matches!(code, ResponseCode::FormErr | ResponseCode::NotImp)
}

/// Over UDP, and again over TCP where that holds too little.
async fn ask_one(resolver: SocketAddr, question: &Question, has_edns: bool) -> Option<Heard> {
    let id = rand::random();
    let (query, is_checking_disabled) = (&question.query, question.is_checking_disabled);
    let asked = if has_edns {
        message::ask(id, query, question.is_dnssec_ok, is_checking_disabled)
    } else {
        message::ask_plainly(id, query, is_checking_disabled)
    };
    let heard = timeout(TRY_MAX, over_udp(resolver, &asked, id, query)).await;
    let part = match heard.ok()?.ok()? {
        Ok(answer) if answer.1.metadata.truncation => answer,
        heard => return Some(heard),
    };
    let whole = timeout(TRY_MAX, over_tcp(resolver, &asked)).await;
    let whole = whole.ok().and_then(Result::ok).and_then(|packet| {
        let message = message::read_answer(&packet, id, query)?;
        Some((packet, message))
    });
    // What fitted is better than nothing; it says itself that it is not all.
    Some(Ok(whole.unwrap_or(part)))
}

async fn over_udp(resolver: SocketAddr, asked: &[u8], id: u16, query: &Query) -> io::Result<Heard> {
    let any = match resolver {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    // The kernel hands over what comes from there alone.
    socket.connect(resolver).await?;
    socket.send(asked).await?;
    let mut packet = vec![0; PACKET_BYTES_MAX];
    loop {
        let length = socket.recv(&mut packet).await?;
        if let Some(message) = message::read_answer(&packet[..length], id, query) {
            packet.truncate(length);
            return Ok(Ok((packet, message)));
        }
        if message::is_bare_error(&packet[..length], id) {
            return Ok(Err(BareError));
        }
    }
}

async fn over_tcp(resolver: SocketAddr, asked: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(resolver).await?;
    let length = u16::try_from(asked.len()).map_err(io::Error::other)?;
    let framed = [&length.to_be_bytes()[..], asked].concat();
    stream.write_all(&framed).await?;
    let length = stream.read_u16().await?;
    let mut packet = vec![0; length.into()];
    stream.read_exact(&mut packet).await?;
    Ok(packet)
}

#[cfg(test)]
mod tests;
