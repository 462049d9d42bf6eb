//! Runs a store over a disk for as long as it takes to bring home what its journal holds.

use super::report::Sectors;
use crate::config::StoreConfig;
use crate::destage::FIRST_ROUND;
use crate::event::{StoreEffect, StoreEvent};
use crate::io::{Io, IoDone, IoFault, IoKind};
use crate::machine::Store;
use crate::open_error::OpenError;
use base::{Machine, Time};
use bytes::Bytes;
use std::collections::VecDeque;
use wire::disk::{Command, Reply, Token};

/// Lets a store work until it has nothing left to do.
pub(super) fn bring_home(disk: &mut dyn Sectors, config: StoreConfig) -> Result<(), OpenError> {
    let mut store = Store::open(config);
    let (mut now, mut fx) = (Time::ZERO, Vec::new());
    let mut is_home = false;
    loop {
        store.settle(now, &mut fx);
        if fx.is_empty() {
            let Some((at, what)) = store.deadline() else { return Ok(()) };
            // The map is for the brick to make. One cycle of it brings home what there is.
            if what == FIRST_ROUND && core::mem::replace(&mut is_home, true) {
                return Ok(());
            }
            now = now.max(at);
            store.wake(now, &mut fx);
        }
        let mut todo = VecDeque::from(core::mem::take(&mut fx));
        while let Some(effect) = todo.pop_front() {
            match effect {
                StoreEffect::Io(io) => store.step(now, StoreEvent::Io(serve(disk, io)), &mut fx),
                StoreEffect::Opened(Err(error)) => return Err(error),
                StoreEffect::Reply(Reply::Broken { why }) => {
                    return Err(OpenError::Io { offset: 0, fault: IoFault::Failed(why) });
                }
                StoreEffect::Reply(Reply::WantsToDestage { blocks }) => {
                    let command = Command::Destage { token: Token(0), blocks };
                    store.step(now, StoreEvent::Command(command), &mut fx);
                }
                StoreEffect::Opened(Ok(_)) | StoreEffect::Reply(_) => {}
            }
            todo.extend(fx.drain(..));
        }
    }
}

fn serve(disk: &mut dyn Sectors, io: Io) -> IoDone {
    let result = match io.kind {
        IoKind::Read { offset, length, .. } => disk.read(offset, length),
        IoKind::Write { offset, payload, durable } => {
            let written = disk.write(offset, &payload.contiguous());
            written.and_then(|()| if durable { disk.sync() } else { Ok(()) }).map(|()| Bytes::new())
        }
        IoKind::Flush => disk.sync().map(|()| Bytes::new()),
    };
    IoDone { token: io.token, result }
}
