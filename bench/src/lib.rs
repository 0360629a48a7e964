//! Load for any API server that a kubeconfig reaches, and what it took: the same work against
//! ours and against others. Works in a namespace of its own and removes what it made.

mod arguments; // What can be asked for.
mod run; // Start reading here.
mod tell; // Tables and JSON.

mod pairs; // Two servers side by side, pure.
mod stats; // Percentiles and rates, pure.

mod about; // Machine and versions.
mod patience; // What takes too long, and interrupts.
mod side; // A server to be measured.

mod pool; // Many timed calls over connections.
mod scratch; // The namespace, and cleaning up.
mod wire; // Calls whose answers nobody decodes.

mod connect;
mod dns;

mod coldstart;
mod flushes;
mod footprint;
mod group; // A command, and all that it starts.
mod process; // What the kernel counts of processes.

mod configmaps; // create, get, list, watch
mod fake_nodes;
mod idle;
mod pods;
mod rollout;
mod schedule;
mod suite; // writes, reads, fanout, nodes: many sizes in turn

pub use run::run;
