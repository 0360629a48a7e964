//! One function a kind of value: text in, checked value or a `BadSetting` out.

use super::{BadSetting, DATA_DIR_DEFAULT, Taint};
use crate::cli::LoopArgs;
use coracle_agent::grpc::Endpoint;
use coracle_agent::runtime::Endpoints;
use coracle_api::names;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A network: its text as given, and the bounds of its addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Cidr {
    pub text: String,
    first: u128,
    last: u128,
    is_ipv4: bool,
}

impl Cidr {
    pub fn contains(&self, address: IpAddr) -> bool {
        let (number, is_ipv4) = match address {
            IpAddr::V4(v4) => (u128::from(u32::from(v4)), true),
            IpAddr::V6(v6) => (u128::from(v6), false),
        };
        is_ipv4 == self.is_ipv4 && (self.first..=self.last).contains(&number)
    }
}

pub fn directory(flag: &'static str, given: Option<&str>) -> Result<PathBuf, BadSetting> {
    let text = given.unwrap_or(DATA_DIR_DEFAULT);
    if text.is_empty() {
        return Err(BadSetting::new(
            flag,
            text,
            "must be the path of a directory",
        ));
    }
    let path = PathBuf::from(text);
    if path.exists() && !path.is_dir() {
        return Err(BadSetting::new(
            flag,
            text,
            "is a file; it must be a directory",
        ));
    }
    std::path::absolute(&path)
        .map_err(|error| BadSetting::new(flag, text, format!("cannot be resolved: {error}")))
}

pub fn listen(text: &str) -> Result<SocketAddr, BadSetting> {
    text.parse().map_err(|_| {
        BadSetting::new(
            "listen",
            text,
            "must be an address and a port, such as 0.0.0.0:6443",
        )
    })
}

pub fn address(flag: &'static str, given: Option<&str>) -> Result<Option<IpAddr>, BadSetting> {
    let Some(text) = given else { return Ok(None) };
    let bad = |expected: &str| BadSetting::new(flag, text, expected);
    let address: IpAddr = text
        .parse()
        .map_err(|_| bad("must be an IP address, such as 192.168.1.10"))?;
    if address.is_unspecified() || address.is_multicast() {
        return Err(bad("must be an address that other machines can reach"));
    }
    Ok(Some(address))
}

/// No two are of one IP family.
pub fn are_one_a_family<T>(all: &[T], is_ipv4: impl Fn(&T) -> bool) -> bool {
    match all {
        [] | [_] => true,
        [first, second] => is_ipv4(first) != is_ipv4(second),
        _ => false,
    }
}

/// One address, or one of each IP family with a comma between them.
pub fn addresses(flag: &'static str, given: Option<&str>) -> Result<Vec<IpAddr>, BadSetting> {
    let Some(text) = given else {
        return Ok(Vec::new());
    };
    let one = |one: &str| address(flag, Some(one.trim()));
    let all: Result<Vec<_>, _> = text.split(',').map(one).collect();
    let all: Vec<_> = all?.into_iter().flatten().collect();
    if are_one_a_family(&all, IpAddr::is_ipv4) {
        return Ok(all);
    }
    let expected = "must be one address, or one of IPv4 and one of IPv6 with a comma between them";
    Err(BadSetting::new(flag, text, expected))
}

pub fn names(flag: &'static str, given: &[String]) -> Result<Vec<String>, BadSetting> {
    for text in given {
        let is_name = names::dns_subdomain(text.trim_start_matches("*.")).is_empty();
        if text.parse::<IpAddr>().is_err() && !is_name {
            return Err(BadSetting::new(
                flag,
                text,
                "must be a DNS name or an IP address",
            ));
        }
    }
    Ok(given.to_vec())
}

pub fn cidr(flag: &'static str, given: Option<&str>, default: &str) -> Result<Cidr, BadSetting> {
    let text = given.unwrap_or(default);
    let bad = |expected: String| BadSetting::new(flag, text, expected);
    let form = || bad(format!("must be a network in CIDR form, such as {default}"));
    let (address, bits) = text.split_once('/').ok_or_else(form)?;
    let address: IpAddr = address.parse().map_err(|_| form())?;
    let bits: u32 = bits.parse().map_err(|_| form())?;
    let (value, width, is_ipv4) = match address {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32, true),
        IpAddr::V6(v6) => (u128::from(v6), 128, false),
    };
    if bits > width {
        return Err(form());
    }
    // A network smaller than this has no room for a cluster.
    if width - bits < 8 {
        return Err(bad(format!("is too small: at most /{}", width - 8)));
    }
    let host_mask = u128::MAX.checked_shr(128 - (width - bits)).unwrap_or(0);
    if value & host_mask != 0 {
        return Err(bad("must be the first address of the network".to_owned()));
    }
    Ok(Cidr {
        text: text.to_owned(),
        first: value,
        last: value | host_mask,
        is_ipv4,
    })
}

/// One network, or one of each IP family with a comma between them.
pub fn cidrs(
    flag: &'static str,
    given: Option<&str>,
    default: &str,
) -> Result<Vec<Cidr>, BadSetting> {
    let text = given.unwrap_or(default);
    let networks = text
        .split(',')
        .map(|one| cidr(flag, Some(one.trim()), default))
        .collect::<Result<Vec<_>, _>>()?;
    if are_one_a_family(&networks, |network| network.is_ipv4) {
        return Ok(networks);
    }
    let expected = "must be one network, or one of IPv4 and one of IPv6 with a comma between them";
    Err(BadSetting::new(flag, text, expected))
}

pub fn overlap(a: &Cidr, b: &Cidr) -> bool {
    a.is_ipv4 == b.is_ipv4 && a.first <= b.last && b.first <= a.last
}

/// Durations as Go writes them: `40s`, `1m30s`, `24h`, `500ms`.
pub fn duration(flag: &'static str, text: &str) -> Result<Duration, BadSetting> {
    let bad = || BadSetting::new(flag, text, "must be a duration, such as 40s, 5m or 24h");
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest == "0" {
        return Ok(total);
    }
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let count: u64 = rest[..digits].parse().map_err(|_| bad())?;
        let unit_end = rest[digits..]
            .find(|c: char| c.is_ascii_digit())
            .map_or(rest.len(), |offset| digits + offset);
        let unit_ms = match &rest[digits..unit_end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(bad()),
        };
        let part_ms = count.checked_mul(unit_ms).ok_or_else(bad)?;
        total = total
            .checked_add(Duration::from_millis(part_ms))
            .ok_or_else(bad)?;
        rest = &rest[unit_end..];
    }
    Ok(total)
}

/// Shorter than this and a node's lease, renewed every 10 s, would run out between two renewals.
const GRACE_PERIOD_MIN: Duration = Duration::from_secs(2);

pub fn grace_period(given: Option<&str>) -> Result<Duration, BadSetting> {
    let flag = "node-monitor-grace-period";
    let text = given.unwrap_or("40s");
    let period = duration(flag, text)?;
    if period < GRACE_PERIOD_MIN {
        return Err(BadSetting::new(flag, text, "must be at least 2s"));
    }
    Ok(period)
}

/// A year, as upstream's.
pub fn clean_up_period(args: &LoopArgs) -> Result<Duration, BadSetting> {
    let flag = "legacy-service-account-token-clean-up-period";
    let given = args.legacy_service_account_token_clean_up_period.as_deref();
    let text = given.unwrap_or("8760h");
    match duration(flag, text)? {
        Duration::ZERO => Err(BadSetting::new(flag, text, "must be more than nothing")),
        period => Ok(period),
    }
}

/// A count of at least one.
pub fn count(flag: &'static str, given: Option<&str>, default: u32) -> Result<u32, BadSetting> {
    let Some(text) = given else {
        return Ok(default);
    };
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(BadSetting::new(
            flag,
            text,
            "must be a number of at least 1",
        )),
    }
}

/// A count, or 0 for none.
pub fn bound(flag: &'static str, given: Option<&str>, default: u32) -> Result<u32, BadSetting> {
    let Some(text) = given else {
        return Ok(default);
    };
    let expected = "must be a number, 0 for no bound";
    text.parse()
        .map_err(|_| BadSetting::new(flag, text, expected))
}

pub fn file(flag: &'static str, text: &str) -> Result<PathBuf, BadSetting> {
    let expected = "must be the path of a file";
    if text.is_empty() || Path::new(text).is_dir() {
        return Err(BadSetting::new(flag, text, expected));
    }
    std::path::absolute(text)
        .map_err(|error| BadSetting::new(flag, text, format!("cannot be resolved: {error}")))
}

/// Loops, and what else there is.
pub fn disabled(given: &[String], parts: &[&'static str]) -> Result<BTreeSet<String>, BadSetting> {
    let known: Vec<&str> = parts
        .iter()
        .copied()
        .chain(coracle_controllers::LOOPS.iter().map(|entry| entry.name))
        .collect();
    for text in given {
        if !known.contains(&text.as_str()) {
            let expected = format!("must be one of {}", known.join(", "));
            return Err(BadSetting::new("disable", text, expected));
        }
    }
    Ok(given.iter().cloned().collect())
}

pub fn boolean(flag: &'static str, text: &str) -> Result<bool, BadSetting> {
    text.parse()
        .map_err(|_| BadSetting::new(flag, text, "must be true or false"))
}

/// Names of issuers: URLs, or texts without a colon; each once.
pub fn issuers(flag: &'static str, given: &[String]) -> Result<Vec<String>, BadSetting> {
    for (place, text) in given.iter().enumerate() {
        let expected = if text.is_empty() {
            "must not be empty"
        } else if given[..place].contains(text) {
            "is named twice"
        } else if text.contains(':') && coracle_api::url::parse(text).is_err() {
            "contains a ':' but is not a valid URL"
        } else {
            continue;
        };
        return Err(BadSetting::new(flag, text, expected));
    }
    Ok(given.to_vec())
}

pub fn https_url(flag: &'static str, text: &str) -> Result<String, BadSetting> {
    let parsed = coracle_api::url::parse(text);
    let is_good = parsed.is_ok_and(|url| url.scheme == "https" && !url.host.is_empty());
    if !is_good {
        return Err(BadSetting::new(flag, text, "must be an https URL"));
    }
    Ok(text.to_owned())
}

pub fn server_url(text: &str) -> Result<String, BadSetting> {
    let bad = || BadSetting::new("server", text, "must be a URL such as https://gateway:6443");
    let url: http::Uri = text.parse().map_err(|_| bad())?;
    let has_host = url.host().is_some_and(|host| !host.is_empty());
    if url.scheme_str() != Some("https") || !has_host || !matches!(url.path(), "" | "/") {
        return Err(bad());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Never shows the token itself: it is a secret.
pub fn token(flag: &'static str, text: &str) -> Result<String, BadSetting> {
    if coracle_agent::enrol::parse_token(text).is_none() {
        let expected = "must be a token as `coracle token create` prints it";
        return Err(BadSetting::new(flag, "(not shown)", expected));
    }
    Ok(text.to_owned())
}

pub fn node_name(text: &str) -> Result<String, BadSetting> {
    if names::dns_subdomain(text).is_empty() {
        return Ok(text.to_owned());
    }
    let expected = "must be a DNS name: lower case letters, digits, '-' and '.', such as gateway-1";
    Err(BadSetting::new("node-name", text, expected))
}

pub fn label(text: &str) -> Result<(String, String), BadSetting> {
    let bad = || BadSetting::new("node-label", text, "must be KEY=VALUE, such as site=north");
    let (key, value) = text.split_once('=').ok_or_else(bad)?;
    if !names::qualified_name(key).is_empty() || !names::label_value(value).is_empty() {
        return Err(bad());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// -1 is upstream's word for no bound.
pub fn pids(text: &str) -> Result<i64, BadSetting> {
    match text.parse::<i64>() {
        Ok(-1) => Ok(0),
        Ok(count @ 1..) => Ok(count),
        _ => {
            let expected = "must be a number of processes, or -1 for no bound";
            Err(BadSetting::new("pod-max-pids", text, expected))
        }
    }
}

pub fn sysctl_pattern(text: &str) -> Result<String, BadSetting> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
    let name = text.strip_suffix('*').unwrap_or(text);
    let expected = "must be a sysctl of pods' network or IPC namespaces, such as net.core.somaxconn \
                    or kernel.msg*";
    if !name.chars().all(is_letter) || coracle_agent::check_sysctl_pattern(text).is_err() {
        return Err(BadSetting::new("allowed-unsafe-sysctls", text, expected));
    }
    Ok(text.to_owned())
}

pub fn taint(text: &str) -> Result<Taint, BadSetting> {
    let expected = "must be KEY=VALUE:EFFECT or KEY:EFFECT, with the effect NoSchedule, \
                    PreferNoSchedule or NoExecute";
    let bad = || BadSetting::new("node-taint", text, expected);
    let (pair, effect) = text.rsplit_once(':').ok_or_else(bad)?;
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let is_effect = matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute");
    let is_name = names::qualified_name(key).is_empty() && names::label_value(value).is_empty();
    if !is_effect || !is_name {
        return Err(bad());
    }
    Ok(Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effect.to_owned(),
    })
}

/// Of a runtime beside the agent, and of its images.
pub fn container_runtime(
    runtime: Option<&str>,
    images: Option<&str>,
) -> Result<Option<Endpoints>, BadSetting> {
    const IMAGES: &str = "image-service-endpoint";
    let socket = |flag, text: &str| match Endpoint::parse(text) {
        Ok(endpoint @ Endpoint::Unix(_)) => Ok(endpoint),
        _ => {
            let expected = "must be a socket, such as unix:///run/containerd/containerd.sock";
            Err(BadSetting::new(flag, text, expected))
        }
    };
    let Some(runtime) = runtime else {
        return match images {
            None => Ok(None),
            Some(text) => {
                let expected = "needs --container-runtime-endpoint";
                Err(BadSetting::new(IMAGES, text, expected))
            }
        };
    };
    let runtime = socket("container-runtime-endpoint", runtime)?;
    let images = images.map(|text| socket(IMAGES, text)).transpose()?;
    Ok(Some(Endpoints {
        images: images.unwrap_or_else(|| runtime.clone()),
        runtime,
    }))
}
