//! A word when someone else changed our table: a flush of all rules by a firewall that starts, or
//! a hand that deletes.
//!
//! What we change ourselves, by the `Nft` that it was opened for, is not told; what the kernel
//! could not keep for us is told as `Disturbance::Unknown`.

use super::TABLE;
use super::batch::{DELETE_TABLE, NEW_TABLE};
use super::socket::{Nft, NftError, raw};
use super::wire::{FAMILY_INET, Message, messages};
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, TokioSocket};
use std::io;

/// NFNLGRP_NFTABLES.
const GROUP: u32 = 7;
/// A firewall that starts says much at once.
const RECEIVE_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Disturbance {
    /// All is gone: to be made again.
    TableDeleted,
    /// Something in it was changed: to be compared.
    Changed,
    /// Words were lost: to be compared.
    Unknown,
}

pub struct Watch {
    socket: TokioSocket,
    own: u32,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("own", &self.own).finish()
    }
}

impl Watch {
    /// What happens from now on, in the network namespace of the calling thread.
    pub fn open(nft: &Nft) -> Result<Self, NftError> {
        let opened = || -> io::Result<TokioSocket> {
            let (mut socket, _) = raw::open()?;
            raw::allow_receiving(&socket, RECEIVE_BYTES);
            raw::ignore(&socket, nft.port())?;
            socket.socket_mut().add_membership(GROUP)?;
            Ok(socket)
        };
        let socket = opened().map_err(|source| NftError::Io {
            action: "watch",
            source,
        })?;
        Ok(Self {
            socket,
            own: nft.port(),
        })
    }

    /// Safe to cancel.
    pub async fn next(&mut self) -> Result<Disturbance, NftError> {
        loop {
            match self.socket.recv_from_full().await {
                Ok((bytes, _)) => {
                    let told = messages(&bytes).filter_map(|message| self.judge(&message));
                    if let Some(worst) = told.max_by_key(|told| *told == Disturbance::TableDeleted)
                    {
                        return Ok(worst);
                    }
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return Ok(Disturbance::Unknown);
                }
                Err(source) => {
                    return Err(NftError::Io {
                        action: "watch",
                        source,
                    });
                }
            }
        }
    }

    fn judge(&self, message: &Message<'_>) -> Option<Disturbance> {
        let number = message.number()?;
        let is_ours = message.family() == FAMILY_INET
            && message.port != self.own
            && message.attributes().text(1).as_deref() == Some(TABLE);
        match number {
            _ if !is_ours => None,
            DELETE_TABLE => Some(Disturbance::TableDeleted),
            NEW_TABLE => None,
            _ => Some(Disturbance::Changed),
        }
    }
}
