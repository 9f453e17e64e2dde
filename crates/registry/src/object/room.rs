//! The memory of small objects that were read from the store or have left the history: one
//! allocation for the object and its JSON.
//!
//! Most clusters have far more small objects than large ones, and the allocator rounds each
//! allocation up. One allocation instead of three (the object, its bytes, their reference count)
//! saves a twelfth of the memory of a ConfigMap of 1 KB.

use std::sync::Arc;

use super::Object;

/// Places an object in one allocation with its JSON; gives the object back if the JSON is too long.
pub(super) fn place(object: Object<[u8; 0]>, json: &[u8]) -> Result<Arc<Object>, Object<[u8; 0]>> {
    match PLACES.iter().find(|(room, _)| json.len() <= *room) {
        Some((_, place)) => Ok(place(object, json)),
        None => Err(object),
    }
}

/// Places an object.
type Place = fn(Object<[u8; 0]>, &[u8]) -> Arc<Object>;

/// How objects are placed: the longest JSON, and the function.
const PLACES: [(usize, Place); 16] = [
    (room(320), place_in::<{ room(320) }>),
    (room(384), place_in::<{ room(384) }>),
    (room(448), place_in::<{ room(448) }>),
    (room(512), place_in::<{ room(512) }>),
    (room(640), place_in::<{ room(640) }>),
    (room(768), place_in::<{ room(768) }>),
    (room(896), place_in::<{ room(896) }>),
    (room(1024), place_in::<{ room(1024) }>),
    (room(1280), place_in::<{ room(1280) }>),
    (room(1536), place_in::<{ room(1536) }>),
    (room(1792), place_in::<{ room(1792) }>),
    (room(2048), place_in::<{ room(2048) }>),
    (room(2560), place_in::<{ room(2560) }>),
    (room(3072), place_in::<{ room(3072) }>),
    (room(3584), place_in::<{ room(3584) }>),
    (room(4096), place_in::<{ room(4096) }>),
];

/// The room for JSON in an allocation of `size` bytes, which is a size class of jemalloc: beside it
/// are the object and its two reference counts.
const fn room(size: usize) -> usize {
    size - size_of::<Object<[u8; 0]>>() - 2 * size_of::<usize>()
}

fn place_in<const ROOM: usize>(object: Object<[u8; 0]>, json: &[u8]) -> Arc<Object> {
    let mut room = [0; ROOM];
    room[..json.len()].copy_from_slice(json);
    Arc::new(object.with_room(room))
}

#[cfg(test)]
mod tests {
    use pintle_store::{Key, Kind, Record, Revision};

    use super::*;
    use crate::object::{FRAME_TAIL, FieldSets, frame_head};

    /// An object's JSON of this length.
    fn json(len: usize) -> Vec<u8> {
        let (before, after) = (br#"{"data":""#, br#""}"#);
        [before, &*vec![b'x'; len - before.len() - after.len()], after].concat()
    }

    /// An object that was just written.
    fn written(json: &[u8]) -> Arc<Object> {
        let head = frame_head(Kind::Created);
        let frame = [head, json, FRAME_TAIL].concat();
        Object::from_record(&record(frame, head.len()..head.len() + json.len()))
    }

    fn record(bytes: Vec<u8>, body: std::ops::Range<usize>) -> Record {
        let key = Key { collection: "configmaps".into(), item: "ns/a".into() };
        let (kind, revision) = (Kind::Created, Revision(1));
        Record { key, kind, revision, bytes: bytes.into(), body, note: None }
    }

    /// The memory of an object, its reference counts included.
    fn size(object: &Object) -> usize {
        size_of_val(object) + 2 * size_of::<usize>()
    }

    #[test]
    fn small_objects_lie_in_one_allocation_with_their_json() {
        let longest = room(4096);
        for len in (11..600).chain([longest - 1, longest, longest + 1, 2 * longest]) {
            let json = json(len);
            let read = Object::from_record(&record(json.clone(), 0..len));
            let written = written(&json);
            assert_eq!(size(&written), size_of::<Object<[u8; 0]>>() + 16, "it has a frame");
            let settled = written.settled(&mut FieldSets::default());
            assert_eq!(settled.is_some(), len <= longest);
            for object in [Some(read), settled].into_iter().flatten() {
                assert_eq!((&*object.json(), object.size()), (&*json, len));
                assert_eq!(
                    size(&object) >= size_of::<Object<[u8; 0]>>() + 16 + len,
                    len <= longest
                );
                assert!(object.settled(&mut FieldSets::default()).is_none() || len > longest);
            }
        }
    }

    #[test]
    fn an_object_that_has_settled_is_the_same_version() {
        let [object, other] = [json(100), json(100)].map(|json| written(&json));
        assert_ne!(object.number(), other.number());
        object.mark_view_of(9);
        object.check().expect("it is JSON");
        let settled = object.settled(&mut FieldSets::default()).expect("it is small");
        assert_eq!(settled.number(), object.number());
        assert!(settled.is_view_of(9) && settled.is_checked());
        assert_eq!((settled.kind(), settled.revision), (Kind::Created, Revision(1)));
    }

    /// A store in memory holds the bytes itself, so another copy would take more memory.
    #[test]
    fn bytes_that_something_else_holds_stay_where_they_are() {
        let object = written(&json(100));
        let held = object.json();
        assert!(object.settled(&mut FieldSets::default()).is_none());
        drop(held);
        assert!(object.settled(&mut FieldSets::default()).is_some());
    }
}
