use pintle_store::Revision;
use proptest::prelude::*;

use super::*;

fn object(name: &str) -> Arc<Object> {
    Arc::new(Object::bare(Bytes::from_static(b"{}"), name.into(), Revision(1), Kind::Created))
}

fn encoded(bytes: usize) -> Encoded {
    let content = Content::of(vec![7; bytes]);
    Encoded { resource: 1, extra: Extra::Protobuf, kind: Kind::Created, content }
}

/// What an encoding takes beside its bytes.
fn beside() -> usize {
    encoded(0).size()
}

/// Wants an encoding of so many bytes; whether it had to be made.
fn want(shelf: &Shelf, object: &Arc<Object>, bytes: usize) -> bool {
    let (encoded, is_new) = object.encodings.get_or_make(1, Extra::Protobuf, || encoded(bytes));
    if is_new {
        shelf.keep(object, &encoded);
    }
    is_new
}

fn kept(objects: &[Arc<Object>]) -> usize {
    let sizes = objects.iter().map(|object| {
        let kept = object.encodings.0.get().map(|kept| kept.lock());
        kept.iter().flat_map(|kept| kept.iter()).map(|encoded| encoded.size()).sum::<usize>()
    });
    sizes.sum()
}

#[test]
fn what_is_wanted_again_is_not_made_again() {
    let (shelf, object) = (Shelf::new(1000), object("a"));
    assert!(want(&shelf, &object, 10));
    assert!(!want(&shelf, &object, 10));
    assert_eq!(shelf.bytes(), beside() + 10);
    // Another resource, or another encoding, is something else.
    let (_, is_new) = object.encodings.get_or_make(2, Extra::Protobuf, || encoded(1));
    assert!(is_new);
    let (_, is_new) = object.encodings.get_or_make(1, Extra::ProtobufMetadata, || encoded(1));
    assert!(is_new);
}

#[test]
fn there_is_no_more_than_the_shelf_has_room_for() {
    let shelf = Shelf::new(10 * (beside() + 10));
    let objects: Vec<_> = (0..50).map(|n| object(&n.to_string())).collect();
    objects.iter().for_each(|object| assert!(want(&shelf, object, 10)));
    let full = 10 * (beside() + 10);
    assert_eq!((shelf.bytes(), kept(&objects)), (full, full));
    // Of what is read again and again and is a little too long, most is there.
    let mut found = 0;
    for _ in 0..20 {
        found += objects[..12].iter().filter(|object| !want(&shelf, object, 10)).count();
    }
    assert!(found > 100, "{found} of 240");
    // What has no room at all is used and not kept.
    let large = object("large");
    assert!(want(&shelf, &large, full));
    assert!(want(&shelf, &large, full));
}

proptest! {
    #[test]
    fn the_count_is_never_less_than_what_is_kept(
        steps in proptest::collection::vec((0_usize..20, 1_usize..60, any::<bool>()), 1..200),
    ) {
        let room = 5 * beside() + 200;
        let shelf = Shelf::new(room);
        let mut objects: Vec<_> = (0..20).map(|n| object(&n.to_string())).collect();
        for (at, bytes, replaced) in steps {
            if replaced {
                objects[at] = object("new");
            }
            want(&shelf, &objects[at], bytes);
            prop_assert!(kept(&objects) <= shelf.bytes() && shelf.bytes() <= room);
        }
    }
}
