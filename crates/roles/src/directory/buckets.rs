//! Buckets are given to streams: all that is put into a bucket and read from it is for its stream.
//!
//! A bucket is nothing but a part of names, and so it need not be there when it is given to a stream.

use super::admission::Proposal;
use super::cluster::Answered;
use super::desk::Desk;
use super::event::DirectoryEffect;
use super::records::Records;
use super::store::{After, Asker};
use super::streams::{may_be_given, named};
use super::volumes::invalid;
use base::{StreamId, Time};
use objects::index::BucketStreams;
use wire::AdminReply;
use wire::index::check_bucket;

/// So many buckets can be given to streams of their own: who they are is told in one message.
const BUCKETS_MAX: usize = 10_000;

impl Desk {
    pub(super) fn set_bucket_stream(
        &mut self,
        now: Time,
        asker: Asker,
        bucket: String,
        stream: &str,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let records = &self.cluster.records;
        let stream = check_bucket(&bucket).map_err(invalid).and_then(|()| named(records, stream));
        let stream = match stream.and_then(|info| may_be_given(&info).map(|()| info.id)) {
            Err(error) => return Some(Err(error)),
            Ok(stream) => stream,
        };
        let is_usual = stream == StreamId::default();
        if !is_usual && records.buckets.len() >= BUCKETS_MAX && !records.buckets.contains_key(&bucket) {
            return Some(Err(invalid(format!(
                "{BUCKETS_MAX} buckets are given to streams already: give some back to 'default' first"
            ))));
        }
        // The usual one's reservation does not count its buckets: nobody knows which there are.
        if !is_usual && let Err(error) = self.cluster.may_reserve(now, &Proposal::Bucket(&bucket, stream)) {
            return Some(Err(error));
        }
        let records = &mut self.cluster.records;
        match is_usual {
            true => drop(records.buckets.remove(&bucket)),
            false => drop(records.buckets.insert(bucket.clone(), stream)),
        }
        let puts = vec![records.put_bucket(&bucket)];
        let told = After::Buckets(records.streams_of_buckets());
        self.cluster.put(puts, vec![told, After::Answer(asker, Ok(AdminReply::Done))], fx);
        None
    }
}

impl Records {
    pub(super) fn streams_of_buckets(&self) -> BucketStreams {
        self.buckets.iter().map(|(bucket, stream)| (bucket.clone(), *stream)).collect()
    }

    /// The buckets that were given to a stream, by name.
    pub(super) fn buckets_of(&self, stream: StreamId) -> Vec<String> {
        self.buckets.iter().filter(|(_, of)| **of == stream).map(|(bucket, _)| bucket.clone()).collect()
    }
}
