//! One packet in, one packet out. What the cluster knows is answered on the spot; what others are
//! to be asked is given back, to be waited for elsewhere.

use super::forward::{Forwarder, Question};
use super::message::{Answer, Refused, Request, Transport};
use super::zone::{Found, Zone};
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, Record};
use std::sync::Arc;

#[derive(Debug)]
pub struct Responder {
    zone: Zone,
    forwarder: Arc<Forwarder>,
}

#[derive(Debug)]
pub enum Response {
    /// It is no question.
    Nothing,
    Ready(Vec<u8>),
    /// `Responder::wait` has the rest.
    Later(Box<Later>),
}

/// A question that others are asked, and what its answer begins with.
#[derive(Debug)]
pub struct Later {
    request: Request,
    question: Question,
    before: Vec<Record>,
}

impl Responder {
    pub fn new(zone: Zone, forwarder: Arc<Forwarder>) -> Self {
        Self { zone, forwarder }
    }

    pub fn respond(&self, packet: &[u8], transport: Transport) -> Response {
        let request = match Request::read(packet, transport) {
            Ok(request) => request,
            Err(Refused::Silently) => return Response::Nothing,
            Err(Refused::With(packet)) => return Response::Ready(packet),
        };
        let found = self
            .zone
            .find(&request.query.name, request.query.query_type);
        let answer = match found {
            Found::Elsewhere => {
                let query = request.query.clone();
                return self.elsewhere(request, query, Vec::new());
            }
            Found::Alias { answers, target } => {
                let query = aimed_at(&request.query, target);
                return self.elsewhere(request, query, answers);
            }
            Found::Records {
                answers,
                additionals,
            } => Answer {
                answers,
                additionals,
                is_authoritative: true,
                ..Answer::default()
            },
            Found::NoData => self.negative(ResponseCode::NoError),
            Found::NoName => self.negative(ResponseCode::NXDomain),
            Found::Refused => Answer::error(ResponseCode::Refused),
            Found::Unknown => Answer::error(ResponseCode::ServFail),
        };
        Response::Ready(request.answer(&answer))
    }

    fn negative(&self, code: ResponseCode) -> Answer {
        Answer {
            code,
            is_authoritative: true,
            authorities: vec![self.zone.authority()],
            ..Answer::default()
        }
    }

    fn elsewhere(&self, request: Request, query: Query, before: Vec<Record>) -> Response {
        let question = Question {
            query,
            is_dnssec_ok: request.is_dnssec_ok,
            is_checking_disabled: request.is_checking_disabled(),
        };
        if let Some(message) = self.forwarder.cached(&question) {
            return Response::Ready(request.answer(&of_others(before, message)));
        }
        Response::Later(Box::new(Later {
            request,
            question,
            before,
        }))
    }

    pub async fn wait(&self, later: Later) -> Vec<u8> {
        let answer = match self.forwarder.ask(later.question).await {
            Some(message) => of_others(later.before, message),
            None => Answer::error(ResponseCode::ServFail),
        };
        later.request.answer(&answer)
    }

    /// There is no time for another question to others.
    pub fn busy(later: &Later) -> Vec<u8> {
        later.request.answer(&Answer::error(ResponseCode::ServFail))
    }
}

fn aimed_at(query: &Query, target: Name) -> Query {
    let mut aimed = query.clone();
    aimed.name = target;
    aimed
}

/// What an ExternalName leads to may not be there; the name itself is.
fn of_others(before: Vec<Record>, message: Message) -> Answer {
    let code = match message.metadata.response_code {
        ResponseCode::NXDomain if !before.is_empty() => ResponseCode::NoError,
        code => code,
    };
    let is_ours = !before.is_empty();
    let mut answers = before;
    answers.extend(message.answers);
    Answer {
        code,
        is_authoritative: message.metadata.authoritative && !is_ours,
        is_authentic: message.metadata.authentic_data && !is_ours,
        answers,
        authorities: message.authorities,
        additionals: message.additionals,
    }
}

#[cfg(test)]
mod tests;
