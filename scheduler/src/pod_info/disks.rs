//! Disks that a pod names without a claim, of the kinds that not everybody may use at once.

use coracle_client::pod_claims;
use k8s_openapi::api::core::v1::{Pod, Volume};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    Gce {
        name: String,
        is_read_only: bool,
    },
    Ebs {
        id: String,
    },
    Iscsi {
        iqn: String,
        is_read_only: bool,
    },
    Rbd {
        monitors: Vec<String>,
        pool: String,
        image: String,
        is_read_only: bool,
    },
}

impl Disk {
    fn of(volume: &Volume) -> Option<Self> {
        let is = |flag: Option<bool>| flag.unwrap_or(false);
        if let Some(disk) = &volume.gce_persistent_disk {
            return Some(Self::Gce {
                name: disk.pd_name.clone(),
                is_read_only: is(disk.read_only),
            });
        }
        if let Some(disk) = &volume.aws_elastic_block_store {
            let id = disk.volume_id.clone();
            return Some(Self::Ebs { id });
        }
        if let Some(disk) = &volume.iscsi {
            return Some(Self::Iscsi {
                iqn: disk.iqn.clone(),
                is_read_only: is(disk.read_only),
            });
        }
        let disk = volume.rbd.as_ref()?;
        Some(Self::Rbd {
            monitors: disk.monitors.clone(),
            pool: disk.pool.clone().unwrap_or_default(),
            image: disk.image.clone(),
            is_read_only: is(disk.read_only),
        })
    }

    /// Whether two pods on one node cannot both have their disk.
    pub fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Gce { name, is_read_only },
                Self::Gce {
                    name: other,
                    is_read_only: both,
                },
            ) => name == other && !(*is_read_only && *both),
            (Self::Ebs { id }, Self::Ebs { id: other }) => id == other,
            (
                Self::Iscsi { iqn, is_read_only },
                Self::Iscsi {
                    iqn: other,
                    is_read_only: both,
                },
            ) => iqn == other && !(*is_read_only && *both),
            (
                Self::Rbd {
                    monitors,
                    pool,
                    image,
                    is_read_only,
                },
                Self::Rbd {
                    monitors: others,
                    pool: pool_other,
                    image: image_other,
                    is_read_only: both,
                },
            ) => {
                monitors.iter().any(|one| others.contains(one))
                    && (pool, image) == (pool_other, image_other)
                    && !(*is_read_only && *both)
            }
            _ => false,
        }
    }
}

pub(super) fn of(pod: &Pod) -> Vec<Disk> {
    pod_claims::volumes(pod).filter_map(Disk::of).collect()
}
