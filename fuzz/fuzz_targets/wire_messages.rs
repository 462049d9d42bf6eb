//! Frames and messages of peers: whatever comes, decoding ends with a packet or an error, a decoded packet encodes to
//! bytes that decode to the same, and nothing is allocated that the bytes do not back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Message, Wire, frame};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some((packet, taken))) = frame::decode(bytes) {
        assert!(taken <= bytes.len());
        let mut again = Vec::new();
        frame::encode(&packet, &mut again);
        packet.payload.parts().iter().for_each(|part| again.extend_from_slice(part));
        assert_eq!(frame::decode(&again), Ok(Some((packet, again.len()))));
    }
    // The checksum keeps random bytes from the messages behind it: those are tried without it too.
    if let Ok(message) = Message::from_bytes(bytes) {
        assert_eq!(Message::from_bytes(&message.to_bytes()), Ok(message));
    }
});
