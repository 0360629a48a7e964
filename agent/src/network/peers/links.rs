//! A word when links, addresses or routes changed in a way that routes to other nodes may depend
//! on. That of pods' links is none.

use super::kernel::PROTOCOL;
use crate::network::link::{is_of_pod, name};
use futures::StreamExt;
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::AddressScope;
use std::sync::Arc;
use tokio::sync::Notify;

/// Ends its task when it is dropped.
#[derive(Debug)]
pub struct Changes {
    changed: Arc<Notify>,
    _tasks: tokio::task::JoinSet<()>,
}

impl Changes {
    /// At least once after a change. Safe to cancel.
    pub async fn next(&mut self) {
        self.changed.notified().await;
    }
}

/// Without them changes are seen at the next look.
pub fn changes() -> Changes {
    let changed = Arc::new(Notify::new());
    let mut tasks = tokio::task::JoinSet::new();
    let groups = [
        MulticastGroup::Link,
        MulticastGroup::Ipv4Ifaddr,
        MulticastGroup::Ipv6Ifaddr,
        MulticastGroup::Ipv4Route,
        MulticastGroup::Ipv6Route,
    ];
    match rtnetlink::new_multicast_connection(&groups) {
        Ok((connection, handle, mut words)) => {
            let changed = changed.clone();
            tasks.spawn(async move {
                // The connection ends with its last handle.
                let _handle = handle;
                let hearing = async {
                    while let Some((word, _)) = words.next().await {
                        if matters(&word.payload) {
                            changed.notify_one();
                        }
                    }
                };
                tokio::join!(connection, hearing);
            });
        }
        Err(error) => tracing::warn!(%error, "changes of links are seen late"),
    }
    Changes {
        changed,
        _tasks: tasks,
    }
}

fn matters(payload: &NetlinkPayload<RouteNetlinkMessage>) -> bool {
    let word = match payload {
        NetlinkPayload::InnerMessage(word) => word,
        // The kernel could not keep all for us.
        NetlinkPayload::Overrun(_) => return true,
        _ => return false,
    };
    match word {
        RouteNetlinkMessage::NewLink(link) | RouteNetlinkMessage::DelLink(link) => {
            !name(link).is_some_and(is_of_pod)
        }
        RouteNetlinkMessage::NewAddress(address) | RouteNetlinkMessage::DelAddress(address) => {
            address.header.scope == AddressScope::Universe
        }
        RouteNetlinkMessage::DelRoute(route) => route.header.protocol == PROTOCOL,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
