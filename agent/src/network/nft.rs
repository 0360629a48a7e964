//! The kernel's packet filter, nf_tables, over netlink: batches of typed changes that the kernel
//! takes as a whole or not at all, dumps of what is there, and a word when someone else changed it.
//!
//! A `Batch` is built without I/O and committed through `Nft`. Nothing here knows what the rules
//! are for. A message's layout is that of linux/netfilter/nf_tables.h.
//!
//! ```ignore
//! let mut batch = Batch::new();
//! batch.add_set(&Set::map("endpoints-7", &[Kind::Number], &[Kind::Ip4, Kind::Port]));
//! batch.add_elements("endpoints-7", [Element::new([Datum::Number(0)])
//!     .to([Datum::Ip4(address), Datum::Port(8080)])]);
//! batch.add_chain(&Chain::plain("service-7"));
//! batch.add_rule(&Rule::new("service-7")
//!     .random_target("endpoints-7", 1, 0)
//!     .dnat_to_target(Target::Socket(Family::Ip4), Nat::default()));
//! batch.add_elements("services", [Element::new([
//!     Datum::Ip4(cluster_ip), Datum::Protocol(6), Datum::Port(80),
//! ]).verdict(Verdict::Goto("service-7".to_owned()))]);
//! nft.commit(&batch).await?;
//! ```

mod batch; // Changes that are taken together.
mod chain;
mod datum; // What is in keys, maps and registers.
mod dump; // What is there.
mod field; // What of a packet is loaded.
mod ranges; // Intervals that do not overlap.
mod rule;
mod set;
mod socket; // Commits and questions.
mod watch; // What others did.
pub(super) mod wire; // Headers and attributes.

pub use batch::Batch;
pub use chain::{Chain, ChainType, Hook, Policy};
pub use datum::{Datum, Family, Kind};
pub use dump::{ChainFound, ForeignChain, RuleFound, SetFound, TableFound};
pub use field::{
    CT_DNAT, CT_ESTABLISHED, CT_INVALID, CT_NEW, CT_RELATED, CT_SNAT, FIB_LOCAL, Field,
};
pub use ranges::{Range, merged, without};
pub use rule::{Mark, Nat, Part, Reject, Remember, Rule, Target, Test, Verdict};
pub use set::{Element, Set, Value};
pub use socket::{CommitError, Nft, NftError, Refused};
pub use watch::{Disturbance, Watch};

/// The one table that is ours, of the family that sees both IPv4 and IPv6.
pub const TABLE: &str = "coracle";
/// Longest name of a table, chain or set, in bytes; longer ones are refused by the kernel.
pub const NAME_BYTES_MAX: usize = 255;
