//! The NBD session, driven by bytes. One program for all files: each further one would be linked and optimised by itself.

mod common;
mod negotiation;
mod properties;
mod transmission;
