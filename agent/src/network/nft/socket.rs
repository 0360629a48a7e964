//! The socket: one commit or question at a time, each awaited to its end.
//!
//! An answer is known by its sequence, so what a cancelled call left behind is passed over.

pub(super) mod raw; // The descriptor.

use super::batch::Batch;
use super::dump;
use super::wire::{
    Attributes, DONE, ERROR, FAMILY_INET, FAMILY_UNSPECIFIED, FLAG_DUMP, FLAG_INTERRUPTED,
    HEADER_BYTES, Message, Writer, message_type, messages,
};
use super::{ChainFound, Element, ForeignChain, Hook, RuleFound, SetFound, TABLE, TableFound};
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// A dump that others change all the time is given up.
const DUMP_TRIES_MAX: usize = 20;
/// The kernel answers at once; the largest batches take it a second or two.
const ANSWER_MAX: Duration = Duration::from_secs(60);
const DUMP_PAUSE: Duration = Duration::from_millis(20);
/// Beside the batch itself, for its frame and the kernel's bookkeeping.
const SEND_BYTES_EXTRA: usize = 64 << 10;
/// Room for the answer to a batch with many refused messages.
const RECEIVE_BYTES: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum NftError {
    #[error("cannot {action} nf_tables")]
    Io {
        action: &'static str,
        source: io::Error,
    },
    #[error("nf_tables changed {DUMP_TRIES_MAX} times while it was read")]
    Busy,
}

#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Nothing was changed.
    #[error(transparent)]
    Refused(Refused),
    /// What the kernel made of it is not known.
    #[error("cannot change nf_tables")]
    Io(#[source] io::Error),
}

/// The first message that the kernel did not take.
#[derive(Debug, thiserror::Error)]
#[error("nf_tables refused to {message}{}", said(.kernel.as_deref(), *.more))]
pub struct Refused {
    /// Of the batch's messages; the batch as a whole when it is None.
    pub index: Option<usize>,
    /// What it was to do, in words.
    pub message: String,
    /// What the kernel said beside the number.
    pub kernel: Option<String>,
    /// How many other messages were refused too.
    pub more: usize,
    #[source]
    pub source: io::Error,
}

impl Refused {
    /// An errno.
    pub fn code(&self) -> i32 {
        self.source.raw_os_error().unwrap_or_default()
    }
}

fn said(kernel: Option<&str>, more: usize) -> String {
    let kernel = kernel.map(|kernel| format!(" ({kernel})"));
    let more = (more > 0).then(|| format!(" and {more} more"));
    kernel.unwrap_or_default() + &more.unwrap_or_default()
}

/// Access to the tables of the network namespace in which it was opened. Clones share one socket.
#[derive(Clone)]
pub struct Nft {
    inner: Arc<Mutex<Inner>>,
    port: u32,
}

impl std::fmt::Debug for Nft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nft").field("port", &self.port).finish()
    }
}

struct Inner {
    socket: TokioSocket,
    sequence: u32,
}

fn failed(action: &'static str) -> impl FnOnce(io::Error) -> NftError {
    move |source| NftError::Io { action, source }
}

/// The kernel's own address.
fn kernel() -> SocketAddr {
    SocketAddr::new(0, 0)
}

impl Nft {
    /// Needs a tokio runtime, and CAP_NET_ADMIN for all but reading.
    pub fn open() -> Result<Self, NftError> {
        let (socket, port) = raw::open().map_err(failed("open a socket for"))?;
        let options = || -> io::Result<()> {
            socket.socket_ref().set_cap_ack(true)?;
            socket.socket_ref().set_ext_ack(true)
        };
        raw::allow_receiving(&socket, RECEIVE_BYTES);
        options().map_err(failed("prepare a socket for"))?;
        let inner = Inner {
            socket,
            sequence: 0,
        };
        Ok(Self {
            inner: Arc::new(Mutex::new(inner)),
            port,
        })
    }

    /// By which the kernel names the author of a change.
    pub(super) fn port(&self) -> u32 {
        self.port
    }

    /// All of the batch or nothing of it. Nothing to do for an empty one.
    pub async fn commit(&self, batch: &Batch) -> Result<(), CommitError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut inner = self.inner.lock().await;
        let committed = tokio::time::timeout(ANSWER_MAX, inner.commit(batch)).await;
        let answers = committed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let answers = answers.map_err(CommitError::Io)?;
        match refusal(batch, answers) {
            Some(refused) => Err(CommitError::Refused(refused)),
            None => Ok(()),
        }
    }

    /// The number of commits so far, by anyone, in this namespace.
    pub async fn generation(&self) -> Result<u32, NftError> {
        let all = self.ask(dump::GET_GENERATION, 0, FAMILY_UNSPECIFIED, |_| {});
        let all = all.await?;
        let generation = all.iter().find_map(|(_, body)| attributes(body).u32(1));
        Ok(generation.unwrap_or_default())
    }

    /// Our table, if it is there.
    pub async fn table(&self) -> Result<Option<TableFound>, NftError> {
        let all = self.dump(dump::GET_TABLE, |_| {}).await?;
        let mut tables = all
            .iter()
            .filter_map(|(_, body)| dump::table(attributes(body)));
        Ok(tables.find(|table| table.name == TABLE))
    }

    pub async fn chains(&self) -> Result<Vec<ChainFound>, NftError> {
        let all = self.dump(dump::GET_CHAIN, |_| {}).await?;
        let chains = all
            .iter()
            .filter_map(|(_, body)| dump::chain(attributes(body)));
        Ok(chains.collect())
    }

    /// Base chains of this hook, in tables of others, that drop what no rule of theirs accepts.
    pub async fn others_that_drop(&self, hook: Hook) -> Result<Vec<ForeignChain>, NftError> {
        let all = self.dump_of(FAMILY_UNSPECIFIED, dump::GET_CHAIN, |_| {});
        let all = all.await?;
        let chains = all
            .iter()
            .filter_map(|(_, body)| dump::foreign_drop(body, hook));
        Ok(chains.collect())
    }

    /// Of one chain, or of all; in their order in each.
    pub async fn rules(&self, chain: Option<&str>) -> Result<Vec<RuleFound>, NftError> {
        let all = self.dump(dump::GET_RULE, |writer| {
            writer.text(1, TABLE);
            if let Some(chain) = chain {
                writer.text(2, chain);
            }
        });
        let all = all.await?;
        let rules = all
            .iter()
            .filter_map(|(_, body)| dump::rule(attributes(body)));
        Ok(rules.collect())
    }

    pub async fn sets(&self) -> Result<Vec<SetFound>, NftError> {
        let all = self
            .dump(dump::GET_SET, |writer| writer.text(1, TABLE))
            .await?;
        let sets = all
            .iter()
            .filter_map(|(_, body)| dump::set(attributes(body)));
        Ok(sets.collect())
    }

    /// Of a set that was found by `sets`, in order. What is of a kind that is not known here is
    /// passed over.
    ///
    /// After a large change the kernel makes its table of the set larger, and a dump meanwhile may
    /// have some elements twice and lack others; it is asked again where the kernel says how many
    /// there are.
    pub async fn elements(&self, set: &SetFound) -> Result<Vec<Element>, NftError> {
        let mut set = set.clone();
        let mut found = self.elements_once(&set).await?;
        for _ in 0..DUMP_TRIES_MAX {
            if set.count.is_none_or(|count| found.len() >= count) || set.has_ranges() {
                break;
            }
            tokio::time::sleep(DUMP_PAUSE).await;
            let sets = self.sets().await?;
            let Some(now) = sets.into_iter().find(|now| now.handle == set.handle) else {
                return Ok(Vec::new());
            };
            set = now;
            found = self.elements_once(&set).await?;
        }
        Ok(found)
    }

    async fn elements_once(&self, set: &SetFound) -> Result<Vec<Element>, NftError> {
        let all = self.dump(dump::GET_ELEMENTS, |writer| {
            writer.text(1, TABLE);
            writer.text(2, &set.name);
        });
        let all = all.await?;
        let lists = all.iter().map(|(_, body)| attributes(body));
        let mut found = dump::elements(set, lists);
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// A dump, read until nobody changed anything meanwhile. Nothing there is no error.
    pub(super) async fn dump(
        &self,
        kind: u16,
        fill: impl Fn(&mut Writer),
    ) -> Result<Vec<(u16, Vec<u8>)>, NftError> {
        self.dump_of(FAMILY_INET, kind, fill).await
    }

    async fn dump_of(
        &self,
        family: u8,
        kind: u16,
        fill: impl Fn(&mut Writer),
    ) -> Result<Vec<(u16, Vec<u8>)>, NftError> {
        for _ in 0..DUMP_TRIES_MAX {
            match self.ask(kind, FLAG_DUMP, family, &fill).await {
                Err(NftError::Io { source, .. }) if source.raw_os_error() == Some(libc::ENOENT) => {
                    return Ok(Vec::new());
                }
                Err(NftError::Io { source, .. }) if source.raw_os_error() == Some(libc::EINTR) => {}
                Ok(all) if all.iter().any(|(flags, _)| flags & FLAG_INTERRUPTED != 0) => {}
                other => return other,
            }
        }
        Err(NftError::Busy)
    }

    /// Flags and bodies of the messages of the answer.
    async fn ask(
        &self,
        kind: u16,
        flags: u16,
        family: u8,
        fill: impl FnOnce(&mut Writer),
    ) -> Result<Vec<(u16, Vec<u8>)>, NftError> {
        let mut writer = Writer::default();
        let open = writer.begin(message_type(kind), flags, family, 0);
        fill(&mut writer);
        writer.end(open);
        let mut inner = self.inner.lock().await;
        let asking = inner.ask(writer.bytes, flags & FLAG_DUMP != 0);
        let asked = tokio::time::timeout(ANSWER_MAX, asking).await;
        let asked = asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        asked.map_err(failed("read"))
    }
}

fn attributes(body: &[u8]) -> Attributes<'_> {
    Attributes(body.get(4..).unwrap_or_default())
}

/// The kernel's word on one message of a batch; 0 is none against it.
#[derive(Debug)]
pub(super) struct Answer {
    /// 0 is the beginning of the batch.
    pub number: u32,
    pub code: i32,
    pub text: Option<String>,
}

impl Answer {
    fn parse(message: &Message<'_>, first: u32) -> Option<Self> {
        const TEXT: u16 = 1;
        let code = i32::from_ne_bytes(*message.body.first_chunk()?);
        // The header of what was asked is between, since the kernel does not repeat its body.
        let behind = message.body.get(4 + HEADER_BYTES..).unwrap_or_default();
        Some(Self {
            number: message.sequence.wrapping_sub(first),
            code: -code,
            text: Attributes(behind).text(TEXT),
        })
    }
}

pub(super) fn refusal(batch: &Batch, answers: Vec<Answer>) -> Option<Refused> {
    let mut errors = answers.into_iter().filter(|answer| answer.code != 0);
    let first = errors.next()?;
    let index = (first.number as usize).checked_sub(1);
    Some(Refused {
        index,
        message: match index {
            Some(index) => dump::words(batch.message_bytes(index)),
            None => format!("take {} changes", batch.message_count()),
        },
        kernel: first.text,
        more: errors.count(),
        source: io::Error::from_raw_os_error(first.code),
    })
}

impl Inner {
    /// What is left of an earlier answer would take the room of the next: a call was cancelled, or
    /// there was more than the socket could keep.
    fn drain(&self) {
        loop {
            match self.socket.socket_ref().recv_from_full() {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(_) => return,
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = self.socket.send_to(bytes, &kernel()).await?;
        if sent == bytes.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    async fn commit(&mut self, batch: &Batch) -> io::Result<Vec<Answer>> {
        self.drain();
        let first = self.sequence.wrapping_add(1);
        let last = u32::try_from(batch.message_count()).expect("a batch is bounded");
        // The frame's end has a number too.
        self.sequence = first.wrapping_add(last).wrapping_add(1);
        let bytes = batch.sealed(first);
        raw::allow_sending(&self.socket, bytes.len() + SEND_BYTES_EXTRA)?;
        self.send(&bytes).await?;
        let mut answers: Vec<Answer> = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full().await?;
            for message in messages(&bytes).filter(|message| message.kind == ERROR) {
                let Some(answer) = Answer::parse(&message, first) else {
                    continue;
                };
                if answer.number > last {
                    continue;
                }
                // One for the whole comes alone or first; that of the last change is the end.
                let is_end = answer.number == 0 || answer.number == last;
                answers.push(answer);
                if is_end {
                    return Ok(answers);
                }
            }
        }
    }

    async fn ask(
        &mut self,
        mut question: Vec<u8>,
        is_dump: bool,
    ) -> io::Result<Vec<(u16, Vec<u8>)>> {
        self.drain();
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        question[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.send(&question).await?;
        let mut all = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full().await?;
            for message in messages(&bytes).filter(|message| message.sequence == sequence) {
                match message.kind {
                    DONE | ERROR => {
                        let code = message.body.first_chunk().copied();
                        let code = i32::from_ne_bytes(code.unwrap_or_default());
                        if code != 0 {
                            return Err(io::Error::from_raw_os_error(-code));
                        }
                        // A dump may end with this flag on its last message.
                        all.push((message.flags, Vec::new()));
                        return Ok(all);
                    }
                    _ => all.push((message.flags, message.body.to_vec())),
                }
                if !is_dump {
                    return Ok(all);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
