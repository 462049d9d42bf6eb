//! To which streams buckets belong.

use base::StreamId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The streams of buckets. A bucket of which nothing was said belongs to that of which nothing need be said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BucketStreams(Arc<BTreeMap<String, StreamId>>);

impl BucketStreams {
    pub fn of(&self, bucket: &str) -> StreamId {
        self.0.get(bucket).copied().unwrap_or_default()
    }
}

impl FromIterator<(String, StreamId)> for BucketStreams {
    fn from_iter<T: IntoIterator<Item = (String, StreamId)>>(buckets: T) -> BucketStreams {
        BucketStreams(Arc::new(buckets.into_iter().collect()))
    }
}
