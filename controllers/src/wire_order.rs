//! The order in which upstream writes ports and subsets: by a hash (FNV-1a of 128 bits) of how Go
//! would print them.
//!
//! Nothing else depends on it, but whoever keeps another order rewrites what upstream wrote, and
//! the other way round. The text is that of `%#v` of the library spew, version 1.

use std::fmt::{self, Write as _};

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, ObjectReference};
use k8s_openapi::api::discovery::v1::EndpointPort as SlicePort;

/// A key that sorts as upstream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Order(u128);

impl Order {
    fn of(text: &str) -> Self {
        const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = (1 << 88) + 0x13b;
        let step = |hash: u128, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        Self(text.bytes().fold(OFFSET, step))
    }

    pub(crate) fn of_slice_port(port: &SlicePort) -> Self {
        Self::of(&text(|to| slice_port(to, port)))
    }

    pub(crate) fn of_port(port: &EndpointPort) -> Self {
        Self::of(&text(|to| {
            to.write_str("(v1.EndpointPort)")?;
            endpoint_port(to, port)
        }))
    }

    pub(crate) fn of_subset(one: &EndpointSubset) -> Self {
        Self::of(&text(|to| subset(to, one)))
    }
}

fn text(print: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    print(&mut text).expect("a string takes everything");
    text
}

fn slice_port(to: &mut String, port: &SlicePort) -> fmt::Result {
    to.write_str("(v1.EndpointPort){")?;
    pointer(to, "Name", "string", port.name.as_ref())?;
    pointer(to, " Protocol", "v1.Protocol", port.protocol.as_ref())?;
    pointer(to, " Port", "int32", port.port.as_ref())?;
    pointer(to, " AppProtocol", "string", port.app_protocol.as_ref())?;
    to.write_char('}')
}

fn endpoint_port(to: &mut String, port: &EndpointPort) -> fmt::Result {
    let (name, protocol) = (or_empty(&port.name), or_empty(&port.protocol));
    write!(to, "{{Name:(string){name} Port:(int32){} ", port.port)?;
    write!(to, "Protocol:(v1.Protocol){protocol}")?;
    pointer(to, " AppProtocol", "string", port.app_protocol.as_ref())?;
    to.write_char('}')
}

fn subset(to: &mut String, subset: &EndpointSubset) -> fmt::Result {
    to.write_str("(v1.EndpointSubset){Addresses:([]v1.EndpointAddress)")?;
    list(to, subset.addresses.as_deref(), address)?;
    to.write_str(" NotReadyAddresses:([]v1.EndpointAddress)")?;
    list(to, subset.not_ready_addresses.as_deref(), address)?;
    to.write_str(" Ports:([]v1.EndpointPort)")?;
    list(to, subset.ports.as_deref(), endpoint_port)?;
    to.write_char('}')
}

fn address(to: &mut String, address: &EndpointAddress) -> fmt::Result {
    let (ip, hostname) = (&address.ip, or_empty(&address.hostname));
    write!(to, "{{IP:(string){ip} Hostname:(string){hostname}")?;
    pointer(to, " NodeName", "string", address.node_name.as_ref())?;
    to.write_str(" TargetRef:(*v1.ObjectReference)")?;
    match &address.target_ref {
        None => to.write_str("<nil>")?,
        Some(target) => reference(to, target)?,
    }
    to.write_char('}')
}

fn reference(to: &mut String, target: &ObjectReference) -> fmt::Result {
    for (name, kind, value) in [
        ("{Kind", "string", &target.kind),
        (" Namespace", "string", &target.namespace),
        (" Name", "string", &target.name),
        (" UID", "types.UID", &target.uid),
        (" APIVersion", "string", &target.api_version),
        (" ResourceVersion", "string", &target.resource_version),
        (" FieldPath", "string", &target.field_path),
    ] {
        write!(to, "{name}:({kind}){}", or_empty(value))?;
    }
    to.write_char('}')
}

fn pointer(
    to: &mut String,
    name: &str,
    kind: &str,
    value: Option<&impl fmt::Display>,
) -> fmt::Result {
    write!(to, "{name}:(*{kind})")?;
    match value {
        Some(value) => write!(to, "{value}"),
        None => to.write_str("<nil>"),
    }
}

/// An empty list cannot be told from none: upstream's are none.
fn list<T>(
    to: &mut String,
    items: Option<&[T]>,
    print: impl Fn(&mut String, &T) -> fmt::Result,
) -> fmt::Result {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return to.write_str("<nil>");
    };
    for (index, item) in items.iter().enumerate() {
        to.write_char(if index == 0 { '[' } else { ' ' })?;
        print(to, item)?;
    }
    to.write_char(']')
}

fn or_empty(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests;
