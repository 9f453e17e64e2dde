//! The parts of names in the paths of errors.

/// The most bytes of a name in a path, and the length from which a path shows no further names.
/// Errors show no longer paths, and a path is copied for each error below a name.
const PATH_BYTES_MAX: usize = 4096;

/// Returns the part of a name by which a path of this length is extended.
pub(crate) fn step(length: usize, name: &str) -> &str {
    if length > PATH_BYTES_MAX { "" } else { &name[..name.floor_char_boundary(PATH_BYTES_MAX)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_bounded() {
        let long = "é".repeat(9000);
        for (length, name, shown) in [
            (0, "a", 1),
            (0, &*long, PATH_BYTES_MAX),
            (PATH_BYTES_MAX, &long[2..], PATH_BYTES_MAX),
            (PATH_BYTES_MAX + 1, "a", 0),
            (0, &format!("a{long}"), PATH_BYTES_MAX - 1),
        ] {
            assert_eq!(step(length, name).len(), shown);
        }
    }
}
