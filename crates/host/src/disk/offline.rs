//! A disk for an offline check: one request at a time, each waited for.

use super::file::DiskFile;
use super::operation::is_medium;
use base::Payload;
use bytes::Bytes;
use std::io;
use store::{IoFault, Sectors};

impl Sectors for DiskFile {
    fn read(&mut self, offset: u64, length: usize) -> Result<Bytes, IoFault> {
        self.read_at(offset, length).map_err(|error| match error {
            error if is_medium(&error) => IoFault::Unreadable,
            error => failed(self, &error),
        })
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), IoFault> {
        let content = Payload::from(Bytes::copy_from_slice(bytes));
        self.write_at(offset, &content).map_err(|error| failed(self, &error))
    }

    fn sync(&mut self) -> Result<(), IoFault> {
        DiskFile::sync(self).map_err(|error| failed(self, &error))
    }
}

fn failed(disk: &DiskFile, error: &io::Error) -> IoFault {
    IoFault::Failed(format!("disk '{}': {error}", disk.path().display()))
}
