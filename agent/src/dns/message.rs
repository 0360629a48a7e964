//! From a packet to a question, and from what was found to a packet. Pure.
//!
//! Invariants: nothing is said to what is no question, so that two servers never talk to each
//! other; an answer is never larger than its asker can take; a packet cannot make more memory be
//! taken than some times its length.

use hickory_proto::op::{
    Edns, Message, MessageType, Metadata, OpCode, Query, ResponseCode, emit_message_parts,
};
use hickory_proto::rr::{DNSClass, Record};
use hickory_proto::serialize::binary::BinEncoder;
use std::iter;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    Udp,
    Tcp,
}

/// Of the third byte; a question has 0.
const OP_CODE: u8 = 0x78;
const HEADER_BYTES: usize = 12;
/// The smallest question and the smallest record there can be.
const QUERY_BYTES_MIN: usize = 5;
const RECORD_BYTES_MIN: usize = 11;
/// OPT, a signature, and some more.
const ADDITIONALS_MAX: u16 = 4;
/// What everybody can take, and what passes every link as one packet.
const UDP_BYTES_MIN: u16 = 512;
pub const UDP_BYTES_MAX: u16 = 1232;
const OPT_BYTES: usize = 11;

/// A question, and how its answer is to look.
#[derive(Clone, Debug)]
pub struct Request {
    metadata: Metadata,
    pub query: Query,
    has_edns: bool,
    pub is_dnssec_ok: bool,
    bytes_max: u16,
}

#[derive(Debug)]
pub enum Refused {
    /// Is answered with nothing at all.
    Silently,
    With(Vec<u8>),
}

/// What an answer holds.
#[derive(Debug, Default)]
pub struct Answer {
    pub code: ResponseCode,
    pub is_authoritative: bool,
    /// Checked by the resolver that it is from.
    pub is_authentic: bool,
    pub answers: Vec<Record>,
    pub authorities: Vec<Record>,
    pub additionals: Vec<Record>,
}

impl Answer {
    pub fn error(code: ResponseCode) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }
}

fn count(packet: &[u8], place: usize) -> u16 {
    u16::from_be_bytes([packet[place], packet[place + 1]])
}

impl Request {
    pub fn read(packet: &[u8], transport: Transport) -> Result<Self, Refused> {
        if packet.len() < HEADER_BYTES || packet[2] & 0x80 != 0 {
            return Err(Refused::Silently);
        }
        if packet[2] & OP_CODE != 0 {
            return Err(refuse(packet, ResponseCode::NotImp));
        }
        let is_sound = count(packet, 4) == 1
            && count(packet, 6) == 0
            && count(packet, 8) == 0
            && count(packet, 10) <= ADDITIONALS_MAX;
        if !is_sound {
            return Err(refuse(packet, ResponseCode::FormErr));
        }
        let read = Message::from_vec(packet);
        let mut message = read.map_err(|_| refuse(packet, ResponseCode::FormErr))?;
        let query = message.queries.pop();
        let query = query.ok_or_else(|| refuse(packet, ResponseCode::FormErr))?;
        let edns = message.edns.as_ref();
        let can_take = edns.map_or(UDP_BYTES_MIN, Edns::max_payload);
        let request = Self {
            metadata: message.metadata,
            query,
            has_edns: edns.is_some(),
            is_dnssec_ok: edns.is_some_and(|edns| edns.flags().dnssec_ok),
            bytes_max: match transport {
                Transport::Udp => can_take.clamp(UDP_BYTES_MIN, UDP_BYTES_MAX),
                Transport::Tcp => u16::MAX,
            },
        };
        if edns.is_some_and(|edns| edns.version() != 0) {
            return Err(Refused::With(request.error(ResponseCode::BADVERS)));
        }
        if request.query.query_class != DNSClass::IN {
            return Err(Refused::With(request.error(ResponseCode::Refused)));
        }
        Ok(request)
    }

    pub fn is_checking_disabled(&self) -> bool {
        self.metadata.checking_disabled
    }

    fn error(&self, code: ResponseCode) -> Vec<u8> {
        self.answer(&Answer::error(code))
    }

    /// The packet. What does not fit is left out, and the packet says so.
    pub fn answer(&self, answer: &Answer) -> Vec<u8> {
        let mut packet = Vec::with_capacity(UDP_BYTES_MIN.into());
        let mut metadata = Metadata::response_from_request(&self.metadata);
        metadata.response_code = answer.code;
        metadata.authoritative = answer.is_authoritative;
        metadata.authentic_data = answer.is_authentic;
        metadata.recursion_available = true;
        let mut encoder = BinEncoder::new(&mut packet);
        let opt_bytes = if self.has_edns { OPT_BYTES } else { 0 };
        encoder.set_max_size(self.bytes_max - opt_bytes as u16);
        let written = emit_message_parts(
            &metadata,
            &mut iter::once(&self.query),
            &mut answer.answers.iter(),
            &mut answer.authorities.iter(),
            &mut answer.additionals.iter(),
            None,
            None,
            &mut encoder,
        );
        // A record that did not fit leaves its beginning behind.
        encoder.trim();
        if written.is_err() {
            return refusal(self.metadata.id, 0, ResponseCode::ServFail);
        }
        if self.has_edns {
            self.add_opt(&mut packet, answer.code);
        }
        packet
    }

    /// RFC 6891: the root's name, type 41, what we take, the upper half of the code, version 0.
    fn add_opt(&self, packet: &mut Vec<u8>, code: ResponseCode) {
        let dnssec_ok = if self.is_dnssec_ok { 0x80 } else { 0 };
        let [high, low] = UDP_BYTES_MAX.to_be_bytes();
        packet.extend([0, 0, 41, high, low, code.high(), 0, dnssec_ok, 0, 0, 0]);
        let additionals = count(packet, 10) + 1;
        packet[10..12].copy_from_slice(&additionals.to_be_bytes());
    }
}

/// To what cannot be read whole: its header alone.
fn refuse(packet: &[u8], code: ResponseCode) -> Refused {
    let op_code = packet[2] & OP_CODE;
    Refused::With(refusal(count(packet, 0), op_code, code))
}

fn refusal(id: u16, op_code: u8, code: ResponseCode) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    let mut packet = vec![high, low, 0x80 | op_code, 0x80 | code.low()];
    packet.resize(HEADER_BYTES, 0);
    packet
}

/// A question of ours to another resolver.
pub fn ask(id: u16, query: &Query, is_dnssec_ok: bool, is_checking_disabled: bool) -> Vec<u8> {
    let mut edns = Edns::new();
    edns.set_max_payload(UDP_BYTES_MAX);
    edns.set_dnssec_ok(is_dnssec_ok);
    question(id, query, is_checking_disabled, Some(edns))
}

/// The same to one that knows no EDNS (RFC 6891, 7).
pub fn ask_plainly(id: u16, query: &Query, is_checking_disabled: bool) -> Vec<u8> {
    question(id, query, is_checking_disabled, None)
}

fn question(id: u16, query: &Query, is_checking_disabled: bool, edns: Option<Edns>) -> Vec<u8> {
    let mut message = Message::new(id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.metadata.checking_disabled = is_checking_disabled;
    message.queries.push(query.clone());
    message.edns = edns;
    message
        .to_vec()
        .expect("a name that was read can be written")
}

/// What one says that could not read the question: an error without it.
pub fn is_bare_error(packet: &[u8], id: u16) -> bool {
    let is_answer = packet.len() >= HEADER_BYTES && packet[2] & 0x80 != 0;
    is_answer && count(packet, 0) == id && count(packet, 4) == 0 && packet[3] & 0x0f != 0
}

/// What another resolver answered to `ask`. None when it is no answer to it.
pub fn read_answer(packet: &[u8], id: u16, query: &Query) -> Option<Message> {
    if packet.len() < HEADER_BYTES || packet[2] & 0x80 == 0 || count(packet, 0) != id {
        return None;
    }
    let records: usize = [6, 8, 10]
        .map(|place| count(packet, place).into())
        .iter()
        .sum();
    let bytes_min = QUERY_BYTES_MIN + records * RECORD_BYTES_MIN;
    if count(packet, 4) != 1 || packet.len() - HEADER_BYTES < bytes_min {
        return None;
    }
    let message = Message::from_vec(packet).ok()?;
    let asked = message.queries.first()?;
    let is_ours = asked.name == query.name
        && asked.query_type == query.query_type
        && asked.query_class == query.query_class;
    is_ours.then_some(message)
}

#[cfg(test)]
mod tests;
