//! Questions over UDP to a DNS server, one in flight a socket.
//!
//! Threads rather than tasks: the asker shares the machine with whom it asks, and is to cost less.

use crate::stats::Report;
use anyhow::{Context, bail};
use coracle_client::clock::Clock;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// One that is lost counts as failed.
const ANSWER_MAX: Duration = Duration::from_secs(1);
const TYPE_A: u16 = 1;
const CLASS_IN: u16 = 1;

pub struct Plan {
    pub server: SocketAddr,
    pub name: String,
    pub count: usize,
    pub sockets: usize,
}

pub fn run(plan: &Plan) -> anyhow::Result<Report> {
    let question = question(&plan.name)?;
    let clock = Clock::system();
    let begun = clock.monotonic();
    let each = plan.count.div_ceil(plan.sockets);
    let asked = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.sockets)
            .map(|_| scope.spawn(|| ask(plan.server, &question, each, &clock)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("asking does not panic"))
            .collect::<anyhow::Result<Vec<_>>>()
    })?;
    let (mut latencies, mut failed) = (Vec::new(), 0);
    for (one, lost) in asked {
        latencies.extend(one);
        failed += lost;
    }
    Ok(Report::new("dns", latencies, failed, begun.elapsed()))
}

fn ask(
    server: SocketAddr,
    question: &[u8],
    count: usize,
    clock: &Clock,
) -> anyhow::Result<(Vec<Duration>, usize)> {
    let any = if server.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(ANSWER_MAX))?;
    let mut packet = question.to_vec();
    let mut answer = [0; 4096];
    let (mut latencies, mut failed) = (Vec::with_capacity(count), 0);
    for number in 0..count {
        packet[..2].copy_from_slice(&(number as u16).to_be_bytes());
        let begun = clock.monotonic();
        socket.send(&packet)?;
        let is_answered = loop {
            match socket.recv(&mut answer) {
                // What comes late is of a question that was given up.
                Ok(length) if length < 12 || answer[..2] != packet[..2] => {}
                Ok(_) => break answer[3] & 0x0f == 0 && answer[6..8] != [0, 0],
                Err(_) => break false,
            }
        };
        if is_answered {
            latencies.push(begun.elapsed());
        } else {
            failed += 1;
        }
    }
    Ok((latencies, failed))
}

/// For the addresses of a name, recursion desired.
fn question(name: &str) -> anyhow::Result<Vec<u8>> {
    let mut packet = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok();
        let length = length.filter(|length| (1..64).contains(length));
        packet.push(length.with_context(|| format!("{name:?} is no name"))?);
        packet.extend(label.as_bytes());
    }
    packet.push(0);
    if packet.len() > 12 + 255 {
        bail!("{name:?} is too long for a name");
    }
    packet.extend(TYPE_A.to_be_bytes());
    packet.extend(CLASS_IN.to_be_bytes());
    Ok(packet)
}
