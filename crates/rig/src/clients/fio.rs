//! fio with checksums in every block. Without `verify_fatal` it would end well on corruption.

use super::volume::Volume;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Random writes at depth, checked by fio's own checksums; then the same again over written data.
pub(super) fn verify(volume: &Volume) -> Result<()> {
    for (block, seed) in [("4k", 1), ("4k-64k", 2)] {
        let uri = format!("--uri={}", volume.uri);
        let (block, seed) = (format!("--bs={block}"), format!("--randseed={seed}"));
        let mut arguments = vec!["--name=verify", "--ioengine=nbd", &uri, "--rw=randwrite", "--iodepth=16"];
        arguments.extend([
            &*block,
            &*seed,
            "--size=96m",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--verify_state_save=0",
            "--do_verify=1",
        ]);
        arguments.push("--output-format=json");
        let finished = volume.tool("fio", &arguments)?;
        let start = finished.stdout.find('{').context("fio printed no JSON")?;
        let value: Value = serde_json::from_str(&finished.stdout[start..]).context("reading fio's JSON")?;
        let job = &value["jobs"][0];
        ensure!(job["error"] == 0, "fio: error {}", job["error"]);
        ensure!(job["read"]["total_ios"].as_u64() > Some(0), "fio verified nothing");
    }
    Ok(())
}
