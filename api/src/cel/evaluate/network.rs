//! Addresses, ranges of addresses and URLs, and what else is made of a string.

use super::Fault;
use super::amounts::Semver;
use super::machine::Machine;
use super::value::{Key, Text, Val};
use crate::quantity::Quantity;
use crate::url::{self, Url};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

type Found<'a> = Result<Option<Val<'a>>, Fault>;

/// An address with the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    length: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Cidr {
    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX
                    .checked_shl(32 - u32::from(self.length))
                    .unwrap_or(0);
                IpAddr::from((address.to_bits() & mask).to_be_bytes())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.length))
                    .unwrap_or(0);
                IpAddr::from((address.to_bits() & mask).to_be_bytes())
            }
        };
        Self { address, ..self }
    }

    fn has(self, address: IpAddr) -> bool {
        let other = Self { address, ..self };
        self.address.is_ipv4() == address.is_ipv4() && self.masked() == other.masked()
    }

    fn has_all(self, other: Self) -> bool {
        other.length >= self.length && self.has(other.address)
    }
}

/// Functions of a string that make something else of it.
pub fn of_text<'a>(
    machine: &mut Machine<'a>,
    name: &str,
    text: &Text<'a>,
    rest: &[Val<'a>],
) -> Found<'a> {
    machine.spend_on(text.len())?;
    let normalizes = matches!(rest, [Val::Bool(true)]);
    let version = || match normalizes {
        true => Semver::normalized(text),
        false => Semver::parse(text),
    };
    Ok(Some(match (name, rest) {
        ("ip", []) => Val::Ip(address(text).map_err(Fault::new)?),
        ("isIP", []) => Val::Bool(address(text).is_ok()),
        ("cidr", []) => Val::Cidr(range(text).map_err(Fault::new)?),
        ("isCIDR", []) => Val::Bool(range(text).is_ok()),
        ("url", []) => Val::Url(Rc::new(parsed(text).map_err(Fault::new)?)),
        ("isURL", []) => Val::Bool(parsed(text).is_ok()),
        ("quantity", []) => {
            let quantity = Quantity::parse(text);
            Val::Quantity(quantity.map_err(|error| Fault::new(error.to_string()))?)
        }
        ("isQuantity", []) => Val::Bool(Quantity::parse(text).is_ok()),
        ("semver", [] | [Val::Bool(_)]) => Val::Semver(Rc::new(version().map_err(Fault::new)?)),
        ("isSemver", [] | [Val::Bool(_)]) => Val::Bool(version().is_ok()),
        _ => return Ok(None),
    }))
}

fn address(text: &str) -> Result<IpAddr, String> {
    if text.contains('%') {
        return Err(format!(
            "IP address {text:?} with zone value is not allowed"
        ));
    }
    let parsed = text.parse::<IpAddr>().map_err(|_| {
        format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): \
             unable to parse IP"
        )
    })?;
    match parsed {
        IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        parsed => Ok(parsed),
    }
}

fn range(text: &str) -> Result<Cidr, String> {
    let why = |why: &str| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({text:?}): \
             {why}"
        )
    };
    let (before, bits) = text.rsplit_once('/').ok_or_else(|| why("no '/'"))?;
    let address: IpAddr = before.parse().map_err(|_| why("unable to parse IP"))?;
    if matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some()) {
        return Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"));
    }
    let is_number = !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && (bits == "0" || !bits.starts_with('0'));
    let length = bits.parse::<u8>().ok().filter(|_| is_number);
    let most = if address.is_ipv4() { 32 } else { 128 };
    match length {
        None => Err(why("bad bits after slash")),
        Some(length) if length > most => Err(why("prefix length out of range")),
        Some(length) => Ok(Cidr { address, length }),
    }
}

pub fn is_canonical<'a>(text: &str) -> Result<Val<'a>, Fault> {
    let address = address(text).map_err(Fault::new)?;
    Ok(Val::Bool(address.to_string() == text))
}

fn parsed(text: &str) -> Result<Url, String> {
    if text.is_empty() {
        return Err(
            "URL parse error during conversion from string: parse \"\": empty url".to_owned(),
        );
    }
    if !url::is_of_request(text) {
        return Err(format!(
            "URL parse error during conversion from string: parse {text:?}: invalid URI for request"
        ));
    }
    url::parse(text).map_err(|why| format!("URL parse error during conversion from string: {why}"))
}

/// Of what was made of a string; `None` where there is no such function.
pub fn call<'a>(machine: &mut Machine<'a>, name: &str, arguments: &[Val<'a>]) -> Found<'a> {
    Ok(match arguments {
        [Val::Ip(address)] => of_address(name, *address),
        [Val::Cidr(range), rest @ ..] => of_range(name, *range, rest)?,
        [Val::Url(url)] => of_url(machine, name, url)?,
        _ => None,
    })
}

fn of_address<'a>(name: &str, address: IpAddr) -> Option<Val<'a>> {
    let is_link_local = match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    let is_broadcast = matches!(address, IpAddr::V4(four) if four.is_broadcast());
    let is_one_of_all = !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local
        && !is_broadcast;
    Some(match name {
        "family" => Val::Int(if address.is_ipv4() { 4 } else { 6 }),
        "isUnspecified" => Val::Bool(address.is_unspecified()),
        "isLoopback" => Val::Bool(address.is_loopback()),
        "isLinkLocalUnicast" => Val::Bool(is_link_local),
        "isLinkLocalMulticast" => Val::Bool(match address {
            IpAddr::V4(four) => four.octets()[..3] == [224, 0, 0],
            IpAddr::V6(six) => six.segments()[0] & 0xff0f == 0xff02,
        }),
        "isGlobalUnicast" => Val::Bool(is_one_of_all),
        _ => return None,
    })
}

fn of_range<'a>(name: &str, of: Cidr, rest: &[Val<'a>]) -> Found<'a> {
    Ok(Some(match (name, rest) {
        ("ip", []) => Val::Ip(of.address),
        ("masked", []) => Val::Cidr(of.masked()),
        ("prefixLength", []) => Val::Int(of.length.into()),
        ("containsIP", [Val::Ip(one)]) => Val::Bool(of.has(*one)),
        ("containsIP", [Val::Text(text)]) => Val::Bool(of.has(address(text).map_err(Fault::new)?)),
        ("containsCIDR", [Val::Cidr(other)]) => Val::Bool(of.has_all(*other)),
        ("containsCIDR", [Val::Text(text)]) => {
            Val::Bool(of.has_all(range(text).map_err(Fault::new)?))
        }
        _ => return Ok(None),
    }))
}

fn of_url<'a>(machine: &mut Machine<'a>, name: &str, url: &Url) -> Found<'a> {
    let port_at = match url.host.rfind(']') {
        Some(end) => url.host[end..].find(':').map(|at| end + at),
        None => url.host.rfind(':'),
    };
    let (host, port) = match port_at {
        Some(at) => (&url.host[..at], &url.host[at + 1..]),
        None => (url.host.as_str(), ""),
    };
    let host = host
        .strip_prefix('[')
        .map_or(host, |host| host.trim_end_matches(']'));
    Ok(Some(match name {
        "getScheme" => url.scheme.as_str().into(),
        "getHost" => url.host.as_str().into(),
        "getHostname" => host.into(),
        "getPort" => port.into(),
        "getEscapedPath" => url.path.as_str().into(),
        "getQuery" => {
            machine.spend_on(url.query.len())?;
            query(&url.query)
        }
        _ => return Ok(None),
    }))
}

fn query<'a>(text: &str) -> Val<'a> {
    let mut all: BTreeMap<Key<'a>, Vec<Val<'a>>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        // One that is no escape is left out, as upstream.
        if let (Some(name), Some(value)) = (unescaped(name), unescaped(value)) {
            let key = Key::Text(Text::Own(name.into()));
            all.entry(key).or_default().push(Val::own_text(value));
        }
    }
    let lists = all
        .into_iter()
        .map(|(key, values)| (key, Val::own_list(values)));
    Val::Map(Rc::new(lists.collect()))
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
