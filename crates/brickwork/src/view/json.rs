//! The directory's answers for programs.

use super::{LostRange, brick_state, lost_ranges, problems, volume_state};
use base::BLOCK_U64;
use serde_json::{Value, json};
use wire::directory::{BrickEntry, VolumeStatus};
use wire::{
    BrickCapacity, BrickStatus, CatchUp, ClusterStatus, GatewayStatus, GroupView, ReservedOn, StreamInfo,
    StreamsStatus, VolumeInfo, VolumeMap,
};

pub fn volume_json(volume: &VolumeInfo) -> Value {
    json!({
        "id": volume.id.0, "name": volume.name, "size_bytes": volume.size_bytes, "layout": volume.layout,
        "stripe_unit_bytes": u64::from(volume.stripe_unit_blocks) * BLOCK_U64,
        "column_bytes": u64::from(volume.column_blocks) * BLOCK_U64, "read_only": volume.read_only,
        "read_policy": volume.read_policy.name(), "reads": volume.reads.name(), "io_timeout_ms": volume.io_timeout.ms(),
        "snapshot": volume.is_snapshot, "family": volume.family.0, "origin": volume.origin.map(|origin| origin.0),
        "stream": volume.stream.0, "placement": volume.placement.name(),
        "protocol": volume.protocol.to_string(),
    })
}

pub fn stream_json(stream: &StreamInfo) -> Value {
    json!({
        "id": stream.id.0, "name": stream.name, "weight": stream.weight, "minimum": stream.minimum,
        "reservation_units_per_second": stream.reservation, "limit_units_per_second": stream.limit,
        "latency_us": Some(stream.latency_us).filter(|us| *us > 0), "background": stream.is_background(),
    })
}

/// All streams with their volumes and buckets.
pub fn streams_json(status: &StreamsStatus) -> Value {
    let all = status.table.streams.iter().zip(&status.streams).map(|(stream, of)| {
        let mut value = stream_json(stream);
        value["volumes"] = json!(of.volumes);
        value["buckets"] = json!(of.buckets);
        value["served_units"] = json!(of.served);
        let ReservedOn { bricks, measured } = of.reserved_on;
        value["reserved_on"] = json!({ "bricks": bricks, "measured": measured });
        value
    });
    json!({
        "shared": status.table.is_shared(), "places": status.table.places, "version": status.table.version,
        "bricks": status.bricks, "bricks_informed": status.bricks_informed,
        "capacities": capacities_json(&status.capacities), "streams": all.collect::<Vec<Value>>(),
    })
}

/// What bricks can serve; `null` as long as that is not known.
pub fn capacities_json(capacities: &[BrickCapacity]) -> Value {
    let of_brick = |of: &BrickCapacity| {
        json!({
            "brick": of.brick.0, "reserved_units_per_second": of.reserved,
            "capacity_units_per_second": Some(of.capacity).filter(|units| *units > 0),
        })
    };
    capacities.iter().map(of_brick).collect()
}

/// A volume and its groups.
pub fn map_json(map: &VolumeMap) -> Value {
    let mut value = volume_json(&map.volume);
    value["groups"] = map.groups.iter().map(group_json).collect();
    value
}

pub fn status_json(status: &ClusterStatus) -> Value {
    let bricks: Vec<Value> = status.bricks.iter().map(brick_json).collect();
    let gateways: Vec<Value> = status.gateways.iter().map(gateway_json).collect();
    let volumes: Vec<Value> = status.volumes.iter().map(volume_status_json).collect();
    json!({
        "healthy": problems(status).is_empty(), "problems": problems(status), "version": status.version,
        "bricks": bricks, "gateways": gateways, "volumes": volumes, "lost": lost_json(&lost_ranges(status)),
        "care": care_json(status), "store": store_json(status),
    })
}

fn gateway_json(gateway: &GatewayStatus) -> Value {
    let opened = gateway.opened.iter().map(|of| json!({ "volume": of.volume.0, "clients": of.users }));
    json!({
        "id": gateway.id.0, "name": gateway.name, "address": gateway.address, "silent_ms": gateway.silent_ms,
        "beside": gateway.beside.map(|brick| brick.0), "open": opened.collect::<Vec<Value>>(),
    })
}

/// Who has a volume open.
pub fn users_json(users: &[(&GatewayStatus, u32)]) -> Value {
    let of = |(gateway, clients): &(&GatewayStatus, u32)| json!({ "gateway": gateway.name, "gateway_id": gateway.id.0, "address": gateway.address, "clients": clients });
    users.iter().map(of).collect()
}

/// The directory's own store.
fn store_json(status: &ClusterStatus) -> Value {
    match &status.store {
        None => json!({ "failing": false }),
        Some(failure) => json!({
            "failing": true, "why": failure.why, "since_ms": failure.since_ms, "tries": failure.tries,
            "waiting_records": failure.waiting,
        }),
    }
}

/// How bricks look after their blocks.
pub fn care_json(status: &ClusterStatus) -> Value {
    let care = &status.care;
    json!({
        "rebuild_bytes_per_s": care.rebuild_bytes_per_second, "rebuild_after_s": care.rebuild_after_s,
        "scrub_bytes_per_s": care.scrub_bytes_per_second, "scrub_every_s": care.scrub_interval_s,
    })
}

/// Bytes of volumes that nobody can make out.
pub fn lost_json(lost: &[LostRange]) -> Value {
    lost.iter()
        .map(|range| json!({ "volume": range.volume, "offset": range.offset, "length": range.length }))
        .collect()
}

pub fn brick_json(brick: &BrickEntry) -> Value {
    let status = &brick.status;
    let labels: serde_json::Map<String, Value> =
        status.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    // Beyond 2^53 many readers of JSON round numbers.
    let disks: Vec<String> = status.disks.iter().map(|disk| format!("{disk:016x}")).collect();
    json!({
        "id": brick.id.0, "name": brick.id.to_string(), "state": brick_state(brick), "alive": brick.alive,
        "evicted": brick.evicted, "silent_ms": brick.silent_ms, "version": brick.version, "groups": brick.groups,
        "stale_groups": brick.stale_groups, "joining_groups": brick.joining_groups, "stand_in_groups": brick.stand_in_groups, "caught_up_percent": brick.caught_up_percent, "address": status.address,
        "capacity_bytes": status.space.capacity_bytes, "used_bytes": status.space.used_bytes, "in_doubt": status.in_doubt,
        "unreadable_blocks": status.unreadable_blocks, "repaired_blocks": status.rot.repaired_blocks,
        "lost_blocks": status.rot.lost_blocks, "labels": labels, "failed": status.failed, "disks": disks,
        "catching_up": status.groups.catching_up.iter().map(catch_up_json).collect::<Vec<_>>(),
        "scrub": scrub_json(status),
        "slow": brick.slow.as_ref().map(slow_json), "health": health_json(status),
        "durability": status.durability.iter().map(|way| way.name()).collect::<Vec<_>>(),
    })
}

fn slow_json(slow: &wire::SlowEntry) -> Value {
    json!({
        "left_out": slow.is_out, "since_ms": slow.since_ms, "why": slow.why, "relapses": slow.relapses,
        "hold_s": slow.hold_s, "well_ms": slow.well_ms,
        "needed_by": slow.needed_by.map(|group| group.0),
    })
}

fn health_json(status: &BrickStatus) -> Value {
    let health = &status.health;
    json!({
        "write_us": health.write_us, "read_us": health.read_us, "late_us": health.late_us,
        "round_trip_us": health.round_trip_us, "home_us": health.home_us, "held_permille": health.held_permille,
    })
}

/// How far a brick's scrub is.
pub fn scrub_json(status: &BrickStatus) -> Value {
    let scrub = &status.scrub;
    json!({
        "running": scrub.running, "completed": scrub.completed, "checked_blocks": scrub.checked_blocks,
        "total_blocks": scrub.total_blocks, "found_blocks": scrub.found_blocks, "repaired_blocks": scrub.repaired_blocks,
    })
}

/// How far a brick has caught up in one group.
pub fn catch_up_json(group: &CatchUp) -> Value {
    json!({
        "group": group.group.0, "view": group.number.0, "compared_blocks": group.compared_blocks,
        "total_blocks": group.total_blocks, "fetched_bytes": group.fetched_bytes, "done": group.done,
    })
}

fn volume_status_json(status: &VolumeStatus) -> Value {
    let mut value = volume_json(&status.volume);
    for (key, count) in [
        ("groups", status.groups),
        ("degraded", status.degraded),
        ("unavailable", status.unavailable),
        ("rebuilding", status.rebuilding),
        ("unplaced", status.unplaced),
        ("covered", status.covered),
        ("lost_groups", status.lost),
        ("can_lose", u32::from(status.can_lose)),
    ] {
        value[key] = json!(count);
    }
    value["waits_for"] = status.waits_for.iter().map(|brick| brick.0).collect();
    value["state"] = json!(volume_state(status));
    value
}

fn group_json(group: &GroupView) -> Value {
    let slots = |has: fn(&GroupView, base::BrickId) -> bool| -> Vec<u32> {
        group.members.iter().filter(|brick| has(group, **brick)).map(|brick| brick.0).collect()
    };
    let stand_ins = group
        .sealed
        .iter()
        .filter_map(|(slot, member)| Some(json!({ "brick": group.stands_in_at(*slot)?.0, "for": member.0 })));
    json!({
        "group": group.group.0, "view": group.number.0, "members": slots(|_, _| true),
        "current": slots(GroupView::is_current), "joining": slots(GroupView::is_catching_up),
        "stand_ins": stand_ins.collect::<Vec<_>>(),
    })
}
