//! `pintle snapshot` on real servers. A state that is saved while clients write is restored
//! exactly. Clients of the old server get 410 Gone from the restored one. Neither kills nor damaged
//! files leave anything that could be taken for a store or a snapshot.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod compared;
mod damage;
mod encryption;
mod etcd;
mod kills;
mod load;
mod made;
mod program;
