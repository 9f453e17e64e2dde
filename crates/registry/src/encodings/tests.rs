use pintle_store::Revision;
use proptest::prelude::*;

use super::*;

fn object(name: &str) -> Arc<Object> {
    Object::bare(Bytes::from_static(b"{}"), name.into(), Revision(1), Kind::Created)
}

fn encoded(bytes: usize) -> Encoded {
    let content = Content::of(vec![7; bytes]);
    Encoded { resource: 1, extra: Extra::Protobuf, kind: Kind::Created, content }
}

/// The memory of an encoding in addition to its bytes.
fn overhead() -> usize {
    encoded(0).size()
}

/// Asks for an encoding of `bytes` bytes; returns whether it had to be made.
fn want(cache: &EncodingCache, object: &Arc<Object>, bytes: usize) -> bool {
    let (encoded, is_new) = object.encodings.get_or_make(1, Extra::Protobuf, || encoded(bytes));
    if is_new {
        cache.insert(object.encodings.list(), &encoded);
    }
    is_new
}

fn held_bytes(objects: &[Arc<Object>]) -> usize {
    let sizes = objects.iter().map(|object| {
        let cached = object.encodings.0.get().map(|list| list.encoded.lock());
        cached.iter().flat_map(|cached| cached.iter()).map(|encoded| encoded.size()).sum::<usize>()
    });
    sizes.sum()
}

#[test]
fn an_encoding_is_made_once() {
    let (cache, object) = (EncodingCache::new(1000), object("a"));
    assert!(want(&cache, &object, 10));
    assert!(!want(&cache, &object, 10));
    assert_eq!(cache.bytes(), overhead() + 10);
    // Another resource, or another encoding, is something else.
    let (_, is_new) = object.encodings.get_or_make(2, Extra::Protobuf, || encoded(1));
    assert!(is_new);
    let (_, is_new) = object.encodings.get_or_make(1, Extra::ProtobufMetadata, || encoded(1));
    assert!(is_new);
}

#[test]
fn encodings_beyond_the_bound_are_evicted() {
    let cache = EncodingCache::new(10 * (overhead() + 10));
    let objects: Vec<_> = (0..50).map(|n| object(&n.to_string())).collect();
    objects.iter().for_each(|object| assert!(want(&cache, object, 10)));
    let full = 10 * (overhead() + 10);
    assert_eq!((cache.bytes(), held_bytes(&objects)), (full, full));
    // Of a list that is read repeatedly and is a little longer than the cache, most stays cached.
    let mut found = 0;
    for _ in 0..20 {
        found += objects[..12].iter().filter(|object| !want(&cache, object, 10)).count();
    }
    assert!(found > 100, "{found} of 240");
    // An encoding larger than the cache is used and not cached.
    let large = object("large");
    assert!(want(&cache, &large, full));
    assert!(want(&cache, &large, full));
}

proptest! {
    #[test]
    fn the_counted_bytes_are_never_less_than_the_held_bytes(
        steps in proptest::collection::vec((0_usize..20, 1_usize..60, any::<bool>()), 1..200),
    ) {
        let room = 5 * overhead() + 200;
        let cache = EncodingCache::new(room);
        let mut objects: Vec<_> = (0..20).map(|n| object(&n.to_string())).collect();
        for (at, bytes, replaced) in steps {
            if replaced {
                objects[at] = object("new");
            }
            want(&cache, &objects[at], bytes);
            prop_assert!(held_bytes(&objects) <= cache.bytes() && cache.bytes() <= room);
        }
    }
}
