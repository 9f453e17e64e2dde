//! Links with packed relocations: they are read at every start and count as idle memory (1.3 MB
//! unpacked). A linker without the option ignores it; glibc supports it since 2.36, musl since
//! 1.2.4.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, values: &[&str]| {
        std::env::var(name).is_ok_and(|found| values.contains(&found.as_str()))
    };
    if is("CARGO_CFG_TARGET_OS", &["linux"]) && is("CARGO_CFG_TARGET_ENV", &["gnu", "musl"]) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
