//! Instances for the scripts in `tests/retrieval`.

use crate::drawn::Instance;

/// An instance and its last arrival as a JSON object in one line. Lists of numbers look in JSON as Rust prints them.
pub(crate) fn line(Instance { disks, request }: &Instance, last_ns: u64) -> String {
    let free_ns: Vec<u64> = disks.iter().map(|disk| disk.free_ns).collect();
    let access_ns: Vec<u64> = disks.iter().map(|disk| disk.access_ns).collect();
    let (holders, needed): (Vec<&[u32]>, Vec<u32>) = request.buckets().unzip();
    format!(
        r#"{{"free_ns":{free_ns:?},"access_ns":{access_ns:?},"needed":{needed:?},"holders":{holders:?},"last_ns":{last_ns}}}"#
    )
}
