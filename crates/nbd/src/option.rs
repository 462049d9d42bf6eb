//! The data of options, parsed. A malformed one is `None`; nothing here trusts a length.

use crate::wire;

/// What `INFO` and `GO` ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InfoQuery {
    pub(crate) name: String,
    pub(crate) wants_name: bool,
    pub(crate) wants_description: bool,
}

/// What `LIST_META_CONTEXT` and `SET_META_CONTEXT` ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ContextQuery {
    pub(crate) name: String,
    pub(crate) base_allocation: bool,
}

/// An export's name, or the empty one.
pub(crate) fn export_name(data: &[u8]) -> Option<String> {
    let allowed = data.len() <= wire::STRING_BYTES_MAX && !data.contains(&0);
    allowed.then(|| String::from_utf8(data.to_vec()).ok()).flatten()
}

pub(crate) fn info_query(data: &[u8]) -> Option<InfoQuery> {
    let mut rest = Reader(data);
    let name = export_name(rest.sized()?)?;
    let count = rest.u16()?;
    let mut query = InfoQuery { name, wants_name: false, wants_description: false };
    for _ in 0..count {
        match rest.u16()? {
            wire::info::NAME => query.wants_name = true,
            wire::info::DESCRIPTION => query.wants_description = true,
            // Size, flags and block sizes are always sent; other pieces are not known here.
            _ => {}
        }
    }
    rest.0.is_empty().then_some(query)
}

/// `listing` tells the two options apart: to list, no query means all contexts and a namespace its contexts; to set,
/// only whole names select.
pub(crate) fn context_query(data: &[u8], listing: bool) -> Option<ContextQuery> {
    let mut rest = Reader(data);
    let name = export_name(rest.sized()?)?;
    let count = rest.u32()?;
    let mut base_allocation = listing && count == 0;
    for _ in 0..count {
        let query = rest.sized()?;
        base_allocation |= query == wire::BASE_ALLOCATION.as_bytes() || (listing && query == b"base:");
    }
    rest.0.is_empty().then_some(ContextQuery { name, base_allocation })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Bytes behind their length.
    fn sized(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_must_add_up() {
        let good = b"\0\0\0\x01v\0\x02\0\x01\0\x03";
        let query = info_query(good).unwrap();
        assert_eq!(query, InfoQuery { name: "v".into(), wants_name: true, wants_description: false });
        for cut in 0..good.len() {
            assert_eq!(info_query(&good[..cut]), None, "cut at {cut}");
        }
        assert_eq!(info_query(b"\0\0\0\x01v\0\0!"), None);
        assert_eq!(info_query(b"\xff\xff\xff\xffv\0\0"), None);
        assert_eq!(context_query(b"\0\0\0\0\xff\xff\xff\xff", true), None);
    }

    #[test]
    fn names_are_text() {
        assert_eq!(export_name(b"a\0b"), None);
        assert_eq!(export_name(b"\xff"), None);
        assert_eq!(export_name(&[b'a'; 4097]), None);
        assert_eq!(export_name(b""), Some(String::new()));
    }

    #[test]
    fn a_namespace_lists_but_does_not_select() {
        let namespace = b"\0\0\0\0\0\0\0\x01\0\0\0\x05base:";
        assert!(context_query(namespace, true).unwrap().base_allocation);
        assert!(!context_query(namespace, false).unwrap().base_allocation);
        assert!(context_query(b"\0\0\0\0\0\0\0\0", true).unwrap().base_allocation);
        assert!(!context_query(b"\0\0\0\0\0\0\0\0", false).unwrap().base_allocation);
    }
}
