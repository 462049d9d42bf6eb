//! Disk models beside measured drives. One program for all files: each further one would be linked and optimised by itself.

mod drive_cache;
mod drive_errors;
mod drive_library;
mod drive_reference;
mod shared;
