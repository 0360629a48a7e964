//! A link's limit: a token bucket before what is sent by it.

use super::{LinkError, netlink};
use futures::StreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

/// Attributes of the discipline `tbf`.
const PARAMETERS: u16 = 1;
const RATE_64: u16 = 4;
const BURST: u16 = 6;
/// The sizes of what is on the wire are those of Ethernet.
const LINK_LAYER_ETHERNET: u8 = 1;

/// What may be sent at once: the kernel hands over up to 64 KiB that it cuts later.
const BURST_BYTES_MIN: u64 = 64 << 10;
/// Of a rate, so that a timer of some milliseconds keeps up with it.
const BURST_MS: u64 = 10;
/// What waits at most, as time of the rate; what comes beside it is dropped.
const WAIT_MS: u64 = 25;

/// At most so many bytes a second leave by the link.
pub async fn limit(handle: &Handle, index: u32, bytes_per_second: u64) -> Result<(), LinkError> {
    let index = i32::try_from(index).expect("the kernel's numbers of links are positive");
    let mut message = TcMessage::with_index(index);
    message.header.parent = TcHandle::ROOT;
    message.header.handle = TcHandle { major: 1, minor: 0 };
    message.attributes = vec![
        TcAttribute::Kind("tbf".to_owned()),
        TcAttribute::Options(options(bytes_per_second)),
    ];
    let message = RouteNetlinkMessage::NewQueueDiscipline(message);
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    let failed = netlink("limit the pod's bandwidth");
    let mut handle = handle.clone();
    let mut answers = match handle.request(request) {
        Ok(answers) => answers,
        Err(error) => return Err(failed(error)),
    };
    while let Some(answer) = answers.next().await {
        if let NetlinkPayload::Error(error) = answer.payload
            && error.code.is_some()
        {
            return Err(failed(rtnetlink::Error::NetlinkError(error)));
        }
    }
    Ok(())
}

fn options(bytes_per_second: u64) -> Vec<TcOption> {
    let burst = (bytes_per_second * BURST_MS / 1000).max(BURST_BYTES_MIN);
    let burst = u32::try_from(burst).unwrap_or(u32::MAX);
    let waiting = u64::from(burst) + bytes_per_second * WAIT_MS / 1000;
    let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
    let option = |kind, value: &[u8]| TcOption::Other(DefaultNla::new(kind, value.to_vec()));
    // struct tc_tbf_qopt: two rates of twelve bytes, then what waits, the bucket and a packet. The
    // bucket is told by its own attribute.
    let rate = u32::try_from(bytes_per_second).unwrap_or(u32::MAX);
    let mut parameters = vec![0, LINK_LAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
    parameters.extend(rate.to_ne_bytes());
    parameters.extend([0; 12]);
    parameters.extend(waiting.to_ne_bytes());
    parameters.extend([0; 8]);
    let mut options = vec![option(PARAMETERS, &parameters)];
    if bytes_per_second > u64::from(u32::MAX) {
        options.push(option(RATE_64, &bytes_per_second.to_ne_bytes()));
    }
    options.push(option(BURST, &burst.to_ne_bytes()));
    options
}
