//! Frames and messages of peers: whatever comes, decoding ends with a packet or an error, a decoded packet encodes to
//! bytes that decode to the same in every version that is spoken, and nothing is allocated that the bytes do not back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Message, Reader, Version, Wire, Writer, frame};

fuzz_target!(|bytes: &[u8]| {
    for version in [Version::OLDEST, Version::CURRENT] {
        if let Ok(Some((packet, taken))) = frame::decode(version, bytes) {
            assert!(taken <= bytes.len());
            let mut again = Vec::new();
            frame::encode(version, &packet, &mut again).expect("it fitted");
            packet.payload.parts().iter().for_each(|part| again.extend_from_slice(part));
            assert_eq!(frame::decode(version, &again), Ok(Some((packet, again.len()))));
        }
        // The checksum keeps random bytes from the messages behind it: those are tried without it too.
        if let Ok(message) = Message::decode(&mut Reader::of(version, bytes)) {
            let mut again = Vec::new();
            message.encode(&mut Writer::of(version, &mut again));
            assert_eq!(Message::decode(&mut Reader::of(version, &again)), Ok(message));
        }
    }
});
