//! `pintle snapshot` on real servers: what is saved while others write is restored exactly, old clients notice
//! it, and neither kills nor damaged files leave anything that could be taken for a store or a snapshot.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod compared;
mod damage;
mod encryption;
mod etcd;
mod kills;
mod load;
mod made;
mod program;
