//! Which words of the kernel are a reason to look.

use super::matters;
use rtnetlink::packet_core::{DoneMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};

fn link(name: &str) -> NetlinkPayload<RouteNetlinkMessage> {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link))
}

#[test]
fn links_and_lost_words_are_a_reason_and_those_of_pods_are_none() {
    assert!(matters(&link("eth0")));
    assert!(!matters(&link("cveth0123456789")));
    assert!(matters(&NetlinkPayload::Overrun(Vec::new())));
    assert!(!matters(&NetlinkPayload::Done(DoneMessage::default())));
}
