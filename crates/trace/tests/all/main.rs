//! Traces as they come from outside. One program for all files: each further one would be linked and optimised by itself.

mod bad_input;
mod formats;
mod public_traces;
