//! What a rule does with a packet that met its conditions.

use super::super::datum::{Datum, Family};
use super::super::field::{self, expression};
use super::super::wire::Writer;
use super::{KEY, Rule, TARGET, encode};
use std::net::IpAddr;

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Verdict {
    /// Ends this base chain; those of later priorities follow.
    Accept,
    Drop,
    /// Back to the rule behind the jump; the policy, in a base chain.
    Return,
    /// To the next rule.
    Continue,
    Jump(String),
    /// Without coming back.
    Goto(String),
}

impl Verdict {
    /// The nested attribute NFTA_DATA_VERDICT.
    pub(in super::super) fn encode(&self, writer: &mut Writer) {
        let (code, chain) = match self {
            Self::Drop => (0, None),
            Self::Accept => (1, None),
            Self::Continue => (-1, None),
            Self::Jump(chain) => (-3, Some(chain)),
            Self::Goto(chain) => (-4, Some(chain)),
            Self::Return => (-5, None),
        };
        writer.nested(2, |verdict| {
            verdict.raw(1, &i32::to_be_bytes(code));
            if let Some(chain) = chain {
                verdict.text(2, chain);
            }
        });
    }
}

/// Of a translation: how the port is chosen when it is to change.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Nat {
    pub random_fully: bool,
    /// The same client gets the same address each time.
    pub persistent: bool,
}

impl Nat {
    fn flags(self) -> u32 {
        u32::from(self.random_fully) << 4 | u32::from(self.persistent) << 3
    }
}

/// What the registers of the target hold, by `find_target` or `random_target`: the data of the map.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    /// Data of the kinds `[Ip4]` or `[Ip6]`.
    Address(Family),
    /// `[Ip4, Port]` or `[Ip6, Port]`.
    Socket(Family),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reject {
    /// For TCP alone.
    TcpReset,
    /// By ICMP of the packet's family.
    PortUnreachable,
    HostUnreachable,
    AdminProhibited,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    Packet,
    /// All packets of the connection see it.
    Connection,
}

const DESTINATION: u32 = 1;
const SOURCE: u32 = 0;

impl Rule {
    pub fn verdict(mut self, verdict: &Verdict) -> Self {
        expression(&mut self.expressions, "immediate", |data| {
            data.u32(1, 0);
            data.nested(2, |inner| verdict.encode(inner));
        });
        self
    }

    pub fn accept(self) -> Self {
        self.verdict(&Verdict::Accept)
    }

    pub fn drop(self) -> Self {
        self.verdict(&Verdict::Drop)
    }

    pub fn jump(self, chain: impl Into<String>) -> Self {
        self.verdict(&Verdict::Jump(chain.into()))
    }

    pub fn goto(self, chain: impl Into<String>) -> Self {
        self.verdict(&Verdict::Goto(chain.into()))
    }

    /// To this address, and port when there is one. In a chain of the type Nat.
    pub fn dnat(mut self, address: IpAddr, port: Option<u16>, nat: Nat) -> Self {
        let target = self.put_target(address, port);
        self.translate(DESTINATION, target, nat)
    }

    pub fn dnat_to_target(self, target: Target, nat: Nat) -> Self {
        self.translate(DESTINATION, target, nat)
    }

    pub fn snat(mut self, address: IpAddr, nat: Nat) -> Self {
        let target = self.put_target(address, None);
        self.translate(SOURCE, target, nat)
    }

    fn put_target(&mut self, address: IpAddr, port: Option<u16>) -> Target {
        let family = Family::of(address);
        self.immediate(TARGET, &Datum::from(address));
        if let Some(port) = port {
            let register = TARGET + family.kind().padded_width() / 4;
            self.immediate(register, &Datum::Port(port));
        }
        match port {
            Some(_) => Target::Socket(family),
            None => Target::Address(family),
        }
    }

    fn translate(mut self, direction: u32, target: Target, nat: Nat) -> Self {
        let (Target::Address(family) | Target::Socket(family)) = target;
        let port = TARGET + family.kind().padded_width() / 4;
        expression(&mut self.expressions, "nat", |data| {
            data.u32(1, direction);
            data.u32(2, family.number().into());
            data.u32(3, TARGET);
            if matches!(target, Target::Socket(_)) {
                data.u32(5, port);
            }
            if nat.flags() != 0 {
                data.u32(7, nat.flags());
            }
        });
        self
    }

    /// From the address of the link that the packet leaves by.
    pub fn masquerade(mut self, nat: Nat) -> Self {
        expression(&mut self.expressions, "masq", |data| {
            if nat.flags() != 0 {
                data.u32(1, nat.flags());
            }
        });
        self
    }

    /// To this host, at another port when there is one.
    pub fn redirect(mut self, port: Option<u16>, nat: Nat) -> Self {
        if let Some(port) = port {
            self.immediate(TARGET, &Datum::Port(port));
        }
        expression(&mut self.expressions, "redir", |data| {
            if port.is_some() {
                data.u32(1, TARGET);
            }
            if nat.flags() != 0 {
                data.u32(3, nat.flags());
            }
        });
        self
    }

    pub fn reject(mut self, reject: Reject) -> Self {
        let (kind, code) = match reject {
            Reject::TcpReset => (1, 0),
            Reject::PortUnreachable => (2, 1),
            Reject::HostUnreachable => (2, 2),
            Reject::AdminProhibited => (2, 3),
        };
        expression(&mut self.expressions, "reject", |data| {
            data.u32(1, kind);
            data.raw(2, &[code]);
        });
        self
    }

    /// Sets the bits of `mask` to those of `value`, and leaves the others.
    pub fn set_mark(mut self, mark: Mark, mask: u32, value: u32) -> Self {
        let (name, key) = match mark {
            Mark::Packet => ("meta", field::META_MARK),
            Mark::Connection => ("ct", field::CT_KEY_MARK),
        };
        let writer = &mut self.expressions;
        expression(writer, name, |data| {
            data.u32(2, key);
            data.u32(1, KEY);
        });
        let flip = value & mask;
        encode::bitwise(writer, KEY, &(!mask).to_ne_bytes(), &flip.to_ne_bytes());
        let source = match mark {
            Mark::Packet => 3,
            Mark::Connection => 4,
        };
        expression(writer, name, |data| {
            data.u32(2, key);
            data.u32(source, KEY);
        });
        self
    }
}
