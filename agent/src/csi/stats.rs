//! What a driver says of how full a volume is.

use super::Csi;
use super::messages::{GET_VOLUME_STATS, UNIT_BYTES, UNIT_INODES, VolumeUsage};
use crate::volumes::{Found, OfDriver};

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Amount {
    pub available: u64,
    pub total: u64,
    pub used: u64,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    pub bytes: Amount,
    pub inodes: Amount,
}

impl Csi {
    /// None when the driver is away or does not tell.
    pub async fn usage(&self, found: &Found, of: &OfDriver) -> Option<Usage> {
        let node = self.node(&of.driver).ok()?;
        let has = node.capabilities().await.ok()?;
        if !has.has(GET_VOLUME_STATS) {
            return None;
        }
        let told = node.stats(&of.handle, &self.shown(&found.path)).await;
        match told {
            Ok(told) => Some(usage(&told)),
            Err(status) => {
                tracing::debug!(volume = found.name, %status, "a driver does not tell of a volume");
                None
            }
        }
    }
}

fn usage(told: &[VolumeUsage]) -> Usage {
    let number = |number: i64| u64::try_from(number).unwrap_or(0);
    let mut usage = Usage::default();
    for one in told {
        let amount = Amount {
            available: number(one.available),
            total: number(one.total),
            used: number(one.used),
        };
        match one.unit {
            UNIT_BYTES => usage.bytes = amount,
            UNIT_INODES => usage.inodes = amount,
            _ => {}
        }
    }
    usage
}
